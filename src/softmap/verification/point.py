"""The labelling and the point of the local polytope: their costs, and whether they are feasible."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model
from softmap.verification.dual import blocks

__all__ = ["Membership", "energy_terms", "membership"]

Floats = NDArray[np.float64]


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
    """A point: how far it is outside the polytope, its cost, and the size of the cost's terms."""

    outside: float
    cost: float
    size: float


def membership(model: Model, nodes: Floats, edges: Floats) -> Membership:
    """Normalisation, marginalisation, signs, forbidden states and pairs; and ⟨C, μ⟩."""
    sums = np.add.reduceat(nodes, model.node_offset[:-1])
    outside = [float(np.abs(sums - 1).max()), float(-nodes.min())]
    terms = [model.constant]
    outside.append(_price(model.unary, nodes, terms))
    for block in blocks(model):
        mu = edges[block.entries(model)]
        rows, cols = nodes[block.states(model, 0)], nodes[block.states(model, 1)]
        outside.append(float(np.abs(mu.sum(axis=2) - rows).max()))
        outside.append(float(np.abs(mu.sum(axis=1) - cols).max()))
        outside.append(float(-mu.min()))
        outside.append(_price(block.cost, mu, terms))
    worst = math.nan if any(map(math.isnan, outside)) else max(outside)
    return Membership(worst, math.fsum(terms), math.fsum(map(abs, terms)))


def _price(cost: Floats, mass: Floats, terms: list[float]) -> float:
    """Add the products of costs and masses to `terms`; the largest mass on a forbidden place."""
    barred = np.isposinf(cost)
    used = ~barred & (mass != 0)
    terms += (cost[used] * mass[used]).tolist()
    return float(np.abs(mass[barred]).max(initial=0.0))
