"""A point of the local polytope: how far outside it is, and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.verification.dual import blocks
from softmap.verification.exact import TINIEST, rounded_sum

Floats = NDArray[np.float64]
EPSILON = 2.0**-52  # distance from 1 to the next larger float64


@dataclass(frozen=True)
class Membership:
    """Constraint violation, cost and rounding error of a point of the local polytope.

    Attributes
    ----------
    outside : float
        The largest violation of any constraint, in units of mass.
    cost : float
        The sum of costs times masses, ⟨C, μ⟩.
    size : float
        The sum of the absolute values of the terms of `cost`.
    grain : float
        Upper bound on the rounding error of the cost, from rounded masses and products.
    """

    outside: float
    cost: float
    size: float
    grain: float


def membership(model: Network, nodes: Floats, edges: Floats) -> Membership:
    """Check all constraints of the local polytope at a point μ, and compute ⟨C, μ⟩."""
    sums = np.add.reduceat(nodes, model.node_offset[:-1])
    outside = [float(np.abs(sums - 1).max()), float(-nodes.min())]
    terms, grains = [model.constant], [0.0]
    outside.append(_price(model.unary, nodes, terms, grains))
    for block in blocks(model):
        mu = edges[block.entries(model)]
        rows, cols = nodes[block.states(model, 0)], nodes[block.states(model, 1)]
        outside.append(float(np.abs(mu.sum(axis=2) - rows).max()))
        outside.append(float(np.abs(mu.sum(axis=1) - cols).max()))
        outside.append(float(-mu.min()))
        outside.append(_price(block.cost, mu, terms, grains))
        grains += _unplaced(block.cost, rows, cols)
    worst = math.nan if any(map(math.isnan, outside)) else max(outside)
    cost, size = rounded_sum(terms), rounded_sum(map(abs, terms))
    return Membership(worst, cost, size, rounded_sum(grains))


def _unplaced(cost: Floats, rows: Floats, cols: Floats) -> list[float]:
    """The largest absolute cost of a mass of at most ε on one pair of each edge."""
    most = np.minimum(np.minimum(rows[:, :, None], cols[:, None, :]), EPSILON)
    paid = np.where(np.isfinite(cost), np.abs(cost), 0.0) * np.maximum(most, 0.0)
    return paid.max(axis=(1, 2), initial=0.0).tolist()


def _price(cost: Floats, mass: Floats, terms: list[float], grains: list[float]) -> float:
    """Append costs times masses to `terms` and `grains`; return the largest forbidden mass."""
    excluded = np.isposinf(cost)
    used = ~excluded & (mass != 0)
    terms += (cost[used] * mass[used]).tolist()
    grains += np.maximum(EPSILON * np.abs(cost[used]), TINIEST).tolist()
    return float(np.abs(mass[excluded]).max(initial=0.0))
