"""The labelling and the point of the local polytope: their costs, and whether they are feasible."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model
from softmap.verification.dual import blocks
from softmap.verification.exact import TINIEST

__all__ = ["Membership", "energy_terms", "membership"]

Floats = NDArray[np.float64]
EPSILON = 2.0**-52  # between 1 and the next number


def energy_terms(model: Model, labels: NDArray[np.int64]) -> list[float]:
    """The costs that a labelling of the variables pays, one by one."""
    states = np.asarray(labels, dtype=np.int64)
    if len(model.running):
        states = model.running.follow(states)
    if len(model.auxiliaries):
        states = np.concatenate([states, model.auxiliaries.states(states)])
    terms: list[float] = [model.constant, *model.unary[model.node_offset[:-1] + states].tolist()]
    for first, last, potential in model.groups():
        ends = states[model.edges[first:last]]
        terms += np.asarray(potential.value(np.arange(last - first), *ends.T)).tolist()
    return terms


@dataclass(frozen=True)
class Membership:
    """A point: how far it is outside the polytope, its cost, and how exact that is.

    Attributes
    ----------
    outside
        The largest violation of any constraint.
    cost, size
        The sum of costs times masses, and of their sizes.
    grain
        What the cost may change by when masses are rounded to the numbers near 1, and products.
    """

    outside: float
    cost: float
    size: float
    grain: float


def membership(model: Model, nodes: Floats, edges: Floats) -> Membership:
    """Normalisation, marginalisation, signs, forbidden states and pairs; and ⟨C, μ⟩."""
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
    grain = math.fsum(grains)
    return Membership(worst, math.fsum(terms), math.fsum(map(abs, terms)), grain)


def _unplaced(cost: Floats, rows: Floats, cols: Floats) -> list[float]:
    """What one digit of mass may cost on each edge, at the worst pair that can have it."""
    most = np.minimum(np.minimum(rows[:, :, None], cols[:, None, :]), EPSILON)
    paid = np.where(np.isfinite(cost), np.abs(cost), 0.0) * np.maximum(most, 0.0)
    return paid.max(axis=(1, 2), initial=0.0).tolist()


def _price(cost: Floats, mass: Floats, terms: list[float], grains: list[float]) -> float:
    """Add costs times masses to `terms` and what they are exact to; the largest forbidden mass."""
    barred = np.isposinf(cost)
    used = ~barred & (mass != 0)
    terms += (cost[used] * mass[used]).tolist()
    grains += np.maximum(EPSILON * np.abs(cost[used]), TINIEST).tolist()
    return float(np.abs(mass[barred]).max(initial=0.0))
