"""Small random models of every family with random clusters, for brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from softmap.model import Model, checked_network
from support.strategies import FAMILIES, Recipe, build

PER_FAMILY = 40


def cases() -> list[tuple[str, int]]:
    """All (family, seed) that tests go through: some hundreds."""
    return [(family, seed) for family in FAMILIES for seed in range(PER_FAMILY)]


def random_model(family: str, seed: int, *, hard: bool | None = None) -> Model:
    """Four or five variables, one to three labels, eight edges of which some are parallel."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    n = int(rng.integers(4, 6))
    counts = (2,) * n if seed % 3 == 0 else tuple(rng.integers(1, 4, n).tolist())
    ends = [(i, j) for i in range(n) for j in range(n) if i != j]
    edges = tuple(ends[k] for k in rng.choice(len(ends), 8, replace=False))
    forbid = bool(seed % 4 == 1) if hard is None else hard
    return build(Recipe(family, counts, edges, forbid, seed % 5 == 0, seed))


def random_clusters(model: Model, seed: int) -> list[tuple[int, ...]]:
    """A few triplets, and now and then four variables."""
    rng = np.random.default_rng(seed)
    sets = list(combinations(range(checked_network(model).num_variables), 3))
    chosen = [sets[k] for k in rng.choice(len(sets), 2, replace=False)]
    if seed % 2:
        chosen.append((0, 1, 2, 3))
    return chosen


def random_labels(model: Model, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(
        0, checked_network(model).num_labels[: checked_network(model).num_variables]
    )
