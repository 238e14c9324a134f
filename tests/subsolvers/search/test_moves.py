"""Large moves against enumeration: never worse, optimal if they are large, repeatable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, generators
from softmap.labels.exact import flatten
from softmap.labels.moves import LargeMoves
from support.oracles import brute_force
from support.strategies import models, seeds

EACH = 20_000  # units of work that a search counts as


@given(models(max_n=6), seeds)
def test_moves_over_all_variables_find_the_optimum(model, seed):
    least, best = brute_force(model)
    rng = np.random.default_rng(seed)
    start = rng.integers(0, model.network.num_labels[: model.network.num_variables])
    if not np.isfinite(model.energy(start)):
        start = np.asarray(best)[: model.network.num_variables]
    found = LargeMoves(flatten(model.network), seed, EACH).improve(start, work=30 * EACH)
    assert model.energy(found) <= model.energy(start) + 1e-9
    if (
        len(np.unique(model.network.edges)) == model.network.num_variables
        and model.network.num_variables <= 3
    ):
        assert model.energy(found) == pytest.approx(least, abs=1e-9)


def test_moves_lower_the_cost_of_larger_models_and_can_be_repeated():
    model = generators.random_grid(6, 6, 4, seed=3)
    start = np.zeros(36, dtype=np.int64)
    found = [
        LargeMoves(flatten(model.network), 7, EACH).improve(start, work=120 * EACH)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*found)
    least = model.energy(found[0])
    assert least < model.energy(start)
    for i in range(36):  # no single label is left to change
        for x in range(4):
            other = found[0].copy()
            other[i] = x
            assert model.energy(other) >= least - 1e-9


def eliminated(n, scopes, order):
    """The set of a variable and its neighbours at each elimination."""
    near = [{v} for v in range(n)]
    for scope in scopes:
        for v in scope:
            near[v] |= set(scope)
    left, out = set(range(n)), []
    for v in order:
        out.append(frozenset(near[v] & left))
        for u in out[-1]:
            near[u] |= out[-1]
        left.remove(v)
    return out


@given(st.data())
def test_clusters_are_a_tree_decomposition(data):
    n = data.draw(st.integers(1, 9))
    variables = st.lists(st.integers(0, n - 1), min_size=2, max_size=3)
    scopes = data.draw(st.lists(variables, max_size=14))
    order = data.draw(st.permutations(range(n)))
    start, scope = np.cumsum([0, *map(len, scopes)]), [v for one in scopes for v in one]
    members, near, home = core.cluster_tree(
        np.full(n, 2), start, np.array(scope, dtype=np.int64), np.array(order, dtype=np.int64)
    )
    clusters = list(map(frozenset, members))
    assert list(map(len, members)) == list(map(len, clusters))
    bags = eliminated(n, scopes, order)
    assert set(clusters) == {bag for bag in bags if not any(bag < other for other in bags)}
    assert len(clusters) == len(set(clusters))
    assert all(v in clusters[home[v]] for v in range(n))
    assert all(any(set(scope) <= own for own in clusters) for scope in scopes)
    joined = {(a, b) for a, others in enumerate(near) for b in others}
    assert joined == {(b, a) for a, b in joined}
    assert sum(map(len, near)) == len(joined)
    for v in range(n):  # the clusters of a variable are a tree
        own = {c for c, cluster in enumerate(clusters) if v in cluster}
        reached, edges = {home[v]}, sum(a in own and b in own for a, b in joined) // 2
        for _ in own:
            reached |= {b for a, b in joined if a in reached and b in own}
        assert (reached, edges) == (own, len(own) - 1)


def test_limits_are_kept():
    model = generators.random_grid(6, 6, 4, seed=3)
    start = np.zeros(36, dtype=np.int64)
    moves = LargeMoves(flatten(model.network), 0, EACH)
    np.testing.assert_array_equal(moves.improve(start, deadline=core.Deadline(0.0)), start)
    stopped = core.Deadline()
    stopped.stop()
    np.testing.assert_array_equal(moves.improve(start, deadline=stopped), start)


def test_wrong_arrays_are_named():
    flat = flatten(generators.random_grid(2, 2, 2, seed=0).network)
    with pytest.raises(ValueError, match="one cost per label"):
        LargeMoves(replace(flat, unary=flat.unary[1:].copy()), 0, EACH)
    with pytest.raises(ValueError, match="all entries"):
        LargeMoves(replace(flat, tables=flat.tables[1:].copy()), 0, EACH)
    with pytest.raises(ValueError, match="variable 0 has no label 2"):
        LargeMoves(flat, 0, EACH).improve(np.array([2, 0, 0, 0]))
