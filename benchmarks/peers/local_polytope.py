"""The LP relaxation over the local polytope as a sparse program, for any LP solver.

`softmap.lp` has the same program but loads HiGHS, which cannot share a process with OR-Tools (both
bring a HiGHS of their own).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from benchmarks.peers.base import Answer
from softmap.model import Model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import edge_batches, half_states

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """min cost·x, matrix x = rhs, x >= 0, over allowed states and pairs only.

    Columns are states, then pairs. Rows are one normalisation per node, then
    `Σ_y μ_e(x, y) - μ_i(x) = 0` per allowed half-edge state.
    """

    model: Model
    cost: Floats
    matrix: Any
    rhs: Floats
    states: Ints
    halves: Ints

    def answer(self, x: Any, row_duals: Any, status: str, iterations: int) -> Answer:
        """Columns and prices of rows in our terms: prices π of `cost - matrixᵀπ` are λ = -π."""
        nodes = lam = None
        if x is not None and len(x):
            nodes = np.zeros(int(self.model.network.node_offset[-1]))
            nodes[self.states] = np.asarray(x)[: len(self.states)]
        if row_duals is not None and len(row_duals):
            lam = np.zeros(int(self.model.network.half_offset[-1]))
            lam[self.halves] = -np.asarray(row_duals)[self.model.n :]
        return Answer(lam=lam, nodes=nodes, status=status, iterations=iterations)


def program(model: Model) -> Program:
    """Build the program in bulk; forbidden states and pairs get no columns and rows."""
    tight = tighten(model)
    allowed = np.isfinite(tight.unary)
    states = np.flatnonzero(allowed)
    column = np.cumsum(allowed) - 1
    below = half_states(tight)
    halves = np.flatnonzero(allowed[below])
    row = tight.n + np.cumsum(allowed[below]) - 1
    owner = np.repeat(np.arange(tight.n), tight.num_labels)
    rows, cols = [owner[states], row[halves]], [np.arange(len(states)), column[below[halves]]]
    data, cost = [np.ones(len(states)), -np.ones(len(halves))], [tight.unary[states]]
    width = len(states)
    for batch in edge_batches(tight):
        k, x, y = np.nonzero(np.isfinite(batch.cost))
        place = width + np.arange(len(k))
        width += len(k)
        rows += [row[batch.rows[k, x]], row[batch.cols[k, y]]]
        cols += [place, place]
        data.append(np.ones(2 * len(k)))
        cost.append(batch.cost[k, x, y])
    height = tight.n + len(halves)
    entries = (np.concatenate(data), (np.concatenate(rows), np.concatenate(cols)))
    matrix = coo_array(entries, shape=(height, width)).tocsc()
    rhs = np.concatenate([np.ones(tight.n), np.zeros(len(halves))])
    return Program(tight, np.concatenate(cost), matrix, rhs, states, halves)
