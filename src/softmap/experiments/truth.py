"""The models of the figures and the optimum that curves are measured from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from softmap import generators
from softmap.errors import SoftmapError
from softmap.model import Model
from softmap.relaxation import lp, theory

__all__ = ["COLUMNS", "Problem", "cvxpy_optimum", "problem", "reference_row"]

COLUMNS = (
    "n", "m", "labels", "cost", "min_degree", "max_degree", "optimum",
    "cvxpy_optimum", "unary_energy", "uniform_cost", "fingerprint",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """A model of the paper's law and the value of its LP."""

    model: Model
    optimum: float


def problem(size: int, labels: int, seed: int) -> Problem:
    """The random graph of section "Numerical Experiments" and its optimum, by HiGHS."""
    model = generators.erdos_renyi(size, labels, seed=seed)
    # a vertex solution; tolerances well below the gaps that the figures show
    solution = lp.solve(model, "simplex", tolerance=1e-9, threads=1)
    if not math.isfinite(solution.value):
        raise SoftmapError(f"HiGHS found no optimum: {solution.status}")
    return Problem(model, solution.value)


def reference_row(given: Problem, *, check: bool) -> tuple[Any, ...]:
    """Facts about a problem that claims are decided by (`COLUMNS`)."""
    model = given.model
    obvious = np.array([int(model.unary_of(i).argmin()) for i in range(model.n)])
    uniform = sum(float(model.unary_of(i).mean()) for i in range(model.n))
    uniform += sum(float(table.mean()) for table in model.tables())
    other = cvxpy_optimum(model) if check else None
    s = theory.sizes(model)
    return (
        model.n, model.m, s.d, s.cost, s.min_degree, s.max_degree, given.optimum,
        math.nan if other is None else other,
        model.energy(obvious), uniform, model.fingerprint(),
    )  # fmt: skip


def cvxpy_optimum(model: Model) -> float | None:
    """The LP once more, written down independently in CVXPY; None where that is not installed.

    For models with one label count, as the paper's are.
    """
    try:
        cvxpy: Any = import_module("cvxpy")
    except ImportError:
        return None
    n, m, d = model.n, model.m, int(model.num_labels[0])
    nodes = cvxpy.Variable((n, d), nonneg=True)
    pairs = cvxpy.Variable((m, d * d), nonneg=True)  # tables row by row
    tables = np.stack([table.ravel() for table in model.tables()])
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
