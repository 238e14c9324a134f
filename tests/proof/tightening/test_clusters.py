"""Short cycles against an enumeration, and their gains against brute force."""

from itertools import combinations, permutations, product

import numpy as np
import pytest

import softmap
from softmap import lp
from softmap.proof.tightening.clusters import (
    Adjacency,
    Limits,
    cluster_scopes,
    cycle_gains,
    pair_costs,
    short_cycles,
    unions,
)
from softmap.proof.tightening.regions import build
from softmap.relaxation.bounds import dual_bound
from support.small_models import random_clusters, random_model
from support.strategies import random_lam


def table_of(costs, i, j):
    """The costs of a pair, the labels of i by rows."""
    table = costs.tables[costs.graph.find(np.array([i]), np.array([j]))[0]]
    return table.T if i > j else table


def chordless(pairs, n, length):
    """Vertex sets that induce a cycle, by trying all of them."""
    have = {tuple(p) for p in pairs.tolist()}
    found = set()
    for some in combinations(range(n), length):
        inside = [p for p in combinations(some, 2) if p in have]
        if len(inside) != length:
            continue
        for rest in permutations(some[1:]):
            ring = (some[0], *rest)
            steps = zip(ring, ring[1:] + ring[:1], strict=True)
            if all((min(s), max(s)) in have for s in steps):
                found.add(some)
                break
    return found


@pytest.mark.parametrize("seed", range(12))
def test_all_short_chordless_cycles_are_found_once(seed):
    rng, n = np.random.default_rng(seed), 9
    every = np.array(list(combinations(range(n), 2)))
    pairs = every[rng.random(len(every)) < (0.25, 0.35, 0.6)[seed % 3]]
    graph = Adjacency.of(pairs, n)
    for length, cycles in zip(range(3, 7), short_cycles(graph), strict=True):
        sets = [tuple(sorted(c)) for c in cycles.tolist()]
        assert len(set(sets)) == len(sets)
        assert set(sets) == chordless(pairs, n, length)
        for k in range(length):
            assert graph.adjacent(cycles[:, k], cycles[:, (k + 1) % length]).all()


def test_a_wrapped_grid_has_its_faces():
    index = np.arange(25).reshape(5, 5)
    across = np.stack([index.ravel(), np.roll(index, -1, 1).ravel()], axis=1)
    down = np.stack([index.ravel(), np.roll(index, -1, 0).ravel()], axis=1)
    pairs = np.unique(np.sort(np.concatenate([across, down]), axis=1), axis=0)
    found = short_cycles(Adjacency.of(pairs, 25))
    assert [len(c) for c in found] == [0, 25, 10, 0]  # faces, and the rows and columns themselves


def test_a_limit_cuts_the_search_short():
    pairs = np.array(list(combinations(range(30), 2)))
    assert sum(len(c) for c in short_cycles(Adjacency.of(pairs, 30), paths=5)) == 4060


@pytest.mark.parametrize("seed", range(20))
def test_gains_are_those_of_brute_force(seed):
    model = random_model(("tables", "mix", "factors")[seed % 3], seed, hard=False)
    tight = build(model, random_clusters(model, seed) if seed % 2 else [])
    costs = pair_costs(tight, random_lam(tight.model, seed))
    for cycles in short_cycles(costs.graph):
        for cycle, gain in zip(cycles, cycle_gains(costs, cycles), strict=True):
            ring = list(zip(cycle, np.roll(cycle, -1), strict=True))
            tables = [table_of(costs, i, j) for i, j in ring]
            labels = [range(model.num_labels[i]) for i in cycle]
            joint = min(
                sum(t[x[k], x[(k + 1) % len(x)]] for k, t in enumerate(tables))
                for x in product(*labels)
            )
            assert gain == pytest.approx(joint - sum(t.min() for t in tables), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_a_cluster_raises_the_lp_by_its_gain_at_least(seed):
    model = softmap.generators.erdos_renyi(8, 2, c=2.0, seed=seed)
    solution = lp.solve(model)
    costs = pair_costs(build(model, []), solution.lam)
    for cycles in short_cycles(costs.graph):
        for cycle, gain in zip(cycles.tolist(), cycle_gains(costs, cycles), strict=True):
            assert gain >= -1e-9
            if gain > 1e-6:
                tight = build(model, cluster_scopes(tuple(cycle), model.num_labels, whole=0))
                value = lp.solve(tight.model).value
                assert value >= dual_bound(model, solution.lam) + gain - 1e-6


def test_hard_constraints_may_forbid_a_cycle():
    equal = softmap.Potts([np.inf] * 3)
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], equal)
    costs = pair_costs(build(model, []), np.zeros(int(model.half_offset[-1])))
    assert cycle_gains(costs, np.array([[0, 1, 2]])) == pytest.approx([0.0])
    unequal = softmap.Tables(np.array([[[np.inf, 0.0], [0.0, np.inf]]] * 3))
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], unequal)
    costs = pair_costs(build(model, []), np.zeros(int(model.half_offset[-1])))
    assert np.isposinf(cycle_gains(costs, np.array([[0, 1, 2]]))).all()


def test_long_cycles_are_cut_into_triangles():
    labels = np.array([3, 2, 3, 3, 3])
    assert list(cluster_scopes((0, 1, 2, 3), np.full(5, 2), 16)) == [(0, 1, 2, 3)]
    cut = list(cluster_scopes((0, 1, 2, 3, 4), labels, 16))
    assert cut == [(1, 2, 3), (1, 3, 4), (0, 1, 4)]


def test_neighbouring_faces_become_one():
    edges = softmap.generators.grid_edges(3, 3)
    model = softmap.Model(np.zeros((9, 2)), edges, softmap.Potts(np.ones(len(edges))))
    faces = [(0, 1, 3, 4), (1, 2, 4, 5), (3, 4, 6, 7), (4, 5, 7, 8)]
    joined = unions(build(model, faces), Limits(), 10)
    assert set(joined) == {
        (0, 1, 2, 3, 4, 5), (3, 4, 5, 6, 7, 8), (0, 1, 3, 4, 6, 7), (1, 2, 4, 5, 7, 8),
    }  # fmt: skip
    assert unions(build(model, faces), Limits(union=32), 10) == ()
    assert unions(build(model, faces), Limits(), 3) == ()
