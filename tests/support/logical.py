"""Small random models of hard constraints and costs, and their optima by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

import softmap
from softmap.model import Model, checked_network


def _costs(rng, shape, hard=0.0):
    whole = rng.random() < 0.7
    costs = rng.integers(-3, 10, shape) if whole else 3 * rng.normal(size=shape)
    costs = np.where(rng.random(shape) < 0.5, costs, 0.0)
    return np.where(rng.random(shape) < hard, np.inf, costs)


def _sum(rng, scope, sizes):
    """A hard or soft sum, count or `AllDifferent` over some variables."""
    k, kind = len(scope), rng.random()
    penalty = math.inf if rng.random() < 0.7 else float(rng.integers(1, 8))
    if kind < 0.4:
        low = int(rng.integers(-6, 4))
        high = low + int(rng.integers(0, 9)) if rng.random() < 0.6 else None
        weights = rng.integers(-6, 7, k).tolist()
        return softmap.Linear(scope, weights, low=low, high=high, penalty=penalty)
    if kind < 0.8 or max(sizes) < k:
        label = [int(rng.integers(0, d)) for d in sizes]
        forbids = np.where(rng.random(k + 1) < 0.4, penalty, 0.0)
        costs = forbids if rng.random() < 0.8 else _costs(rng, (k + 1,), 0.3)
        return softmap.Cardinality(scope, label, costs)
    return softmap.AllDifferent(scope)


def logical_model(rng):
    """A small random model of tables, sums, counts and forbidden states."""
    n = int(rng.integers(2, 8))
    sizes = [2] * n if rng.random() < 0.7 else rng.integers(1, 4, n).tolist()
    factors = [((i,), _costs(rng, (d,))) for i, d in enumerate(sizes)]
    for _ in range(int(rng.integers(0, 10))):
        scope = rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False).tolist()
        factors.append((scope, _costs(rng, [sizes[i] for i in scope], 0.4 * rng.random())))
    for _ in range(int(rng.integers(0, 4))):
        scope = rng.choice(n, int(rng.integers(2, n + 1)), replace=False).tolist()
        factors.append(_sum(rng, scope, [sizes[i] for i in scope]))
    return Model.from_factors(sizes, factors)


def least_cost(model):
    """The least energy, by enumeration."""
    every = itertools.product(
        *map(
            range, checked_network(model).num_labels[: checked_network(model).num_visible].tolist()
        )
    )
    return min(model.energy(np.array(labels)) for labels in every)


def exact_least_cost(model):
    """The least cost as a fraction; None if no labelling has finite cost."""
    every = itertools.product(
        *map(range, model.num_labels[: checked_network(model).num_visible].tolist())
    )
    costs = [(model.energy(np.array(labels)), labels) for labels in every]
    least = min(costs)[0]
    if math.isinf(least):
        return None
    near = [np.array(labels) for cost, labels in costs if cost <= least + 1e-6 * (1 + abs(least))]
    return min(
        sum(map(Fraction, checked_network(model).cost_terms(labels).tolist())) for labels in near
    )
