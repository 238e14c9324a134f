"""The LP over the local polytope as arrays, and handed to HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.model import Model
from softmap.relaxation.dual import Floats, Ints, edge_batches, half_states

__all__ = ["Program", "highs_model", "program_of"]


@dataclass(frozen=True)
class Program:
    """min cost·x, A x = rhs, x ≥ 0, over allowed states and pairs only.

    Rows are a normalisation per node, then `S_{e,i}(x) - μ_i(x) = 0` per allowed half-edge state.
    """

    cost: Floats
    matrix: Any
    rhs: Floats
    states: Ints  # columns -> node states
    pairs: Ints  # further columns -> edge entries
    halves: Ints  # rows after the n normalisations -> half-edge states


def program_of(model: Model) -> Program:
    """Build the sparse LP in bulk; forbidden states and pairs get no columns and rows."""
    from scipy.sparse import coo_array

    allowed = np.isfinite(model.unary)
    states = np.flatnonzero(allowed)
    column = np.cumsum(allowed) - 1
    owner = np.repeat(np.arange(model.n), model.num_labels)
    below = half_states(model)
    halves = np.flatnonzero(allowed[below])
    row = model.n + np.cumsum(allowed[below]) - 1
    ones, minus = np.ones(len(states)), -np.ones(len(halves))
    rows = [owner[states], row[halves]]
    cols = [np.arange(len(states)), column[below[halves]]]
    data, cost, pairs = [ones, minus], [model.unary[states]], []
    width = len(states)
    for batch in edge_batches(model):
        k, x, y = np.nonzero(np.isfinite(batch.cost))
        place = width + np.arange(len(k))
        width += len(k)
        rows += [row[batch.rows[k, x]], row[batch.cols[k, y]]]
        cols += [place, place]
        data += [np.ones(len(k)), np.ones(len(k))]
        cost.append(batch.cost[k, x, y])
        pairs.append(batch.entries[k, x, y])
    height = model.n + len(halves)
    entries = (np.concatenate(data), (np.concatenate(rows), np.concatenate(cols)))
    matrix = coo_array(entries, shape=(height, width)).tocsc()
    rhs = np.zeros(height)
    rhs[: model.n] = 1.0
    joined = np.concatenate(pairs) if pairs else np.zeros(0, np.int64)
    return Program(np.concatenate(cost), matrix, rhs, states, joined, halves)


def highs_model(program: Program) -> Any:
    """The program as HiGHS takes it."""
    import highspy

    lp = highspy.HighsLp()
    height, width = program.matrix.shape
    lp.num_col_, lp.num_row_ = width, height
    lp.col_cost_ = program.cost
    lp.col_lower_, lp.col_upper_ = np.zeros(width), np.full(width, highspy.kHighsInf)
    lp.row_lower_ = lp.row_upper_ = program.rhs
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = program.matrix.indptr
    lp.a_matrix_.index_ = program.matrix.indices
    lp.a_matrix_.value_ = program.matrix.data
    return lp
