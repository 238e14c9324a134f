"""`soft_map` where the costs are on a GPU: CuPy works on the memory of the tensors themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from softmap.learn.layer import Problem
from softmap.methods.marginals.uniform import Costs, Point, optimum, pulled_back

__all__ = ["backward", "forward"]


def _costs(problem: Problem, unary: Any, pairwise: Any, xp: Any) -> Costs:
    problem.check(unary.shape)
    n, d = unary.shape[-2:]
    flat = xp.ascontiguousarray(unary, dtype=np.float64).reshape(-1, d)
    tables = xp.ascontiguousarray(pairwise, dtype=np.float64).reshape(-1, d, d)
    return Costs(flat, tables, problem.edges, len(flat) // n, xp)


def forward(problem: Problem, unary: Any, pairwise: Any, xp: Any) -> tuple[Any, Any, Any] | None:
    """Marginals of nodes and edges, and λ; None for hard constraints and for several graphs."""
    if problem.edges.ndim > 2:
        return None
    costs = _costs(problem, unary, pairwise, xp)
    if not all(bool(xp.isfinite(a).all()) for a in (costs.unary, costs.tables)):
        return None
    point = optimum(costs, problem.eta, problem.tol)
    return point.nodes.reshape(unary.shape), point.tables.reshape(pairwise.shape), point.lam


def backward(
    problem: Problem, costs: tuple[Any, Any], lam: Any, given: tuple[Any, Any], xp: Any
) -> tuple[Any, Any]:
    """Gradients by the costs, from λ that `forward` has found and gradients by the marginals."""
    whole = _costs(problem, *costs, xp)
    lam = xp.ascontiguousarray(lam, dtype=np.float64).reshape(*whole.node.shape, whole.labels)
    nodes, tables = (
        xp.ascontiguousarray(a, dtype=np.float64).reshape(like.shape)
        for a, like in zip(given, (whole.unary, whole.tables), strict=True)
    )
    by_node, by_table = pulled_back(Point(whole, lam, problem.eta), nodes, tables)
    return by_node.reshape(costs[0].shape), by_table.reshape(costs[1].shape)
