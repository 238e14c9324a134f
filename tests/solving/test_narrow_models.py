"""Models of small width are solved by variable elimination, before long iterations."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.proof.search.exact import flatten


def entries(model, limit=1e9):
    flat = flatten(model)
    return core.elimination_entries(flat.num_labels, flat.scope_start, flat.scope, limit)


def test_the_entries_of_a_tree_are_those_of_its_edges():
    model = softmap.generators.random_tree(30, 4, seed=1)
    assert entries(model) == 29 * 16 + 4


def greedy(sizes, scopes):
    """The same count in plain Python: always the variable of the smallest table."""
    near = {v: set() for v in range(len(sizes))}
    for scope in scopes:
        for a, b in itertools.permutations(scope, 2):
            near[a].add(b)
    total = 0
    while near:
        table = {v: math.prod(sizes[u] for u in {v, *near[v]}) for v in near}
        v = min(table, key=lambda v: (table[v], v))
        total += table[v]
        around = near.pop(v)
        for u in around:
            near[u] = (near[u] | around) - {u, v}
    return total


@given(st.integers(0, 10**6))
def test_the_count_is_that_of_its_twin(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    sizes = rng.choice([2, 4, 8], size=n)  # sums of logarithms are exact
    scopes = [rng.choice(n, size=min(n, int(rng.integers(1, 4))), replace=False) for _ in range(8)]
    start = np.cumsum([0, *map(len, scopes)])
    flat = np.concatenate(scopes).astype(np.int64)
    found = core.elimination_entries(sizes.astype(np.int64), start, flat, 1e12)
    assert found == greedy(sizes.tolist(), [scope.tolist() for scope in scopes])
    assert core.elimination_entries(sizes.astype(np.int64), start, flat, found - 1) == math.inf


def test_scopes_are_checked():
    two = np.array([2, 2])
    with pytest.raises(ValueError, match="does not exist"):
        core.elimination_entries(two, np.array([0, 2]), np.array([0, 2]), 10.0)
    with pytest.raises(ValueError, match="must not decrease"):
        core.elimination_entries(two, np.array([0, 3]), np.array([0, 1]), 10.0)


def test_a_narrow_model_whose_relaxation_is_loose_is_proved():
    """A 5 × 400 spin glass: no pass closes its gap, an elimination over five rows does."""
    rng = np.random.default_rng(4)
    edges = softmap.generators.grid_edges(5, 400)
    weights = rng.normal(size=len(edges))
    tables = weights[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    model = softmap.Model(rng.normal(size=(2000, 2)) * 0.1, edges, tables)
    assert entries(model) < 5e5
    result = softmap.solve(model, threads=1)
    assert result.status is softmap.Status.OPTIMAL
    assert result.proof.kind.name == "SEARCH"
    assert result.sweeps < 20
