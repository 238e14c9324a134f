"""The random models of the paper, and references for their costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from softmap import generators
from softmap.errors import SoftmapError
from softmap.model import Model
from softmap.paper import theory
from softmap.relaxation import lp

COLUMNS = (
    "n", "graph", "m", "labels", "cost", "min_degree", "max_degree", "optimum",
    "cvxpy_optimum", "unary_energy", "uniform_cost", "fingerprint",
)  # fmt: skip


@dataclass(frozen=True)
class Graph:
    """A random model of the paper's distribution (section "Numerical Experiments").

    Attributes
    ----------
    n : int
        Number of variables.
    labels : int
        Number of labels.
    seed : int
        Seed of edges and costs.
    """

    n: int
    labels: int
    seed: int

    def model(self) -> Model:
        """Return the model."""
        return _model(self)


@lru_cache(maxsize=256)
def _model(graph: Graph) -> Model:
    return generators.erdos_renyi(graph.n, graph.labels, seed=graph.seed)


def optimum(model: Model) -> float:
    """Return the optimum of the local LP, by the simplex method of HiGHS."""
    # Simplex finds a vertex; the tolerance is well below the gaps that the figures show.
    solution = lp.solve(model, "simplex", tolerance=1e-9, threads=1)
    if not math.isfinite(solution.value):
        raise SoftmapError(f"HiGHS found no optimum: {solution.status}")
    return solution.value


def reference_row(graph: Graph) -> tuple[Any, ...]:
    """Return the row of a graph in the table of references (`COLUMNS`)."""
    model = graph.model()
    network = model.network
    obvious = np.array([int(network.unary_of(i).argmin()) for i in range(model.n)])
    uniform = sum(float(network.unary_of(i).mean()) for i in range(model.n))
    uniform += sum(float(table.mean()) for table in network.tables())
    other = cvxpy_optimum(model)
    s = theory.sizes(model)
    return (
        model.n, graph.seed, model.m, s.d, s.cost, s.min_degree, s.max_degree, optimum(model),
        math.nan if other is None else other,
        model.energy(obvious), uniform, model.fingerprint(),
    )  # fmt: skip


def cvxpy_optimum(model: Model) -> float | None:
    """Return the LP optimum by an independent formulation in CVXPY; None if not installed.

    All variables must have the same number of labels, as in the paper.
    """
    try:
        cvxpy: Any = import_module("cvxpy")
    except ImportError:
        return None
    n, m, d = model.n, model.m, int(model.num_labels[0])
    nodes = cvxpy.Variable((n, d), nonneg=True)
    pairs = cvxpy.Variable((m, d * d), nonneg=True)  # row-major tables
    tables = np.stack([table.ravel() for table in model.network.tables()])
    rows, columns = np.kron(np.eye(d), np.ones((d, 1))), np.kron(np.ones((d, 1)), np.eye(d))
    constraints = [
        cvxpy.sum(nodes, axis=1) == 1,
        pairs @ rows == nodes[model.edges[:, 0]],
        pairs @ columns == nodes[model.edges[:, 1]],
    ]
    unary = model.unary.reshape(n, d)
    cost = cvxpy.sum(cvxpy.multiply(unary, nodes)) + cvxpy.sum(cvxpy.multiply(tables, pairs))
    program = cvxpy.Problem(cvxpy.Minimize(cost), constraints)
    return float(program.solve(solver=cvxpy.CLARABEL)) + model.constant
