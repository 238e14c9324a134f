"""Short cycles against an enumeration, and their gains against brute force."""

from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import lp
from softmap.relaxation.bounds import dual_bound
from softmap.subsolvers.clusters import clusters
from softmap.subsolvers.clusters.cluster_numbers import ClusterSizes
from softmap.subsolvers.clusters.clusters import (
    Adjacency,
    cluster_scopes,
    cycle_gains,
    select,
    short_cycles,
    unions,
)
from softmap.subsolvers.clusters.regions import build
from support.deadlines import stopping
from support.pair_costs import pair_costs
from support.small_models import random_clusters, random_model
from support.stage_runs import finish
from support.strategies import random_lam

SIZES = ClusterSizes()


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
    for length, cycles in zip(range(3, 7), finish(short_cycles(graph, limits=SIZES)), strict=True):
        sets = [tuple(sorted(c)) for c in cycles.tolist()]
        assert len(set(sets)) == len(sets)
        assert set(sets) == chordless(pairs, n, length)
        for k in range(length):
            assert (graph.find(cycles[:, k], cycles[:, (k + 1) % length]) >= 0).all()


def test_a_wrapped_grid_has_its_faces():
    index = np.arange(25).reshape(5, 5)
    across = np.stack([index.ravel(), np.roll(index, -1, 1).ravel()], axis=1)
    down = np.stack([index.ravel(), np.roll(index, -1, 0).ravel()], axis=1)
    pairs = np.unique(np.sort(np.concatenate([across, down]), axis=1), axis=0)
    found = finish(short_cycles(Adjacency.of(pairs, 25), limits=SIZES))
    assert [len(c) for c in found] == [0, 25, 10, 0]  # faces, and the rows and columns themselves


def test_a_limit_cuts_the_search_short():
    rng, every = np.random.default_rng(1), np.array(list(combinations(range(40), 2)))
    graph = Adjacency.of(every[rng.random(len(every)) < 0.2], 40)
    limits = (ClusterSizes(paths=5 * pairs, pairs=pairs) for pairs in (1_000, 6))
    whole, short = (finish(short_cycles(graph, limits=each)) for each in limits)
    assert len(whole[0]) == len(short[0])  # triangles are not limited
    for length in (1, 2, 3):
        assert 0 < len(short[length]) < len(whole[length])
        assert len(short[length]) <= 30 * 40
        assert {*map(tuple, short[length].tolist())} <= {*map(tuple, whole[length].tolist())}


def test_cycles_do_not_depend_on_the_number_of_threads():
    model = softmap.generators.erdos_renyi(700, 2, c=2.3, seed=1)
    pairs = np.unique(np.sort(model.edges.astype(np.int64), axis=1), axis=0)
    graph = Adjacency.of(pairs, model.n)
    assert len(graph.neighbour) > 8192  # otherwise one thread is used
    one, three = (finish(short_cycles(graph, limits=SIZES, threads=threads)) for threads in (1, 3))
    assert min(map(len, one)) > 0
    assert all(map(np.array_equal, one, three))
    assert all((np.diff(cycles[:, 0]) >= 0).all() for cycles in one)


@pytest.mark.parametrize("seed", range(6))
def test_a_round_adds_a_limited_number_of_messages(seed):
    model = softmap.generators.erdos_renyi(60, 2 + seed % 2, c=4.0, seed=seed)
    tight, rng = build(model.network, []), np.random.default_rng(seed)
    for _ in range(3):
        limits = ClusterSizes(messages=0)
        costs = pair_costs(tight, rng.normal(size=tight.model.half_size))
        found = [finish(select(tight, costs, limits, 0.0, threads=t)) for t in (1, 2)]
        assert found[0].listed == found[1].listed
        sizes = [len(scope) * model.num_labels[list(scope)].prod() for scope in found[0]]
        assert 0 < sum(sizes) <= tight.model.half_size
        assert not {*found[0]} & {*tight.clusters}
        tight = build(model.network, [*tight.clusters, *found[0]])


def test_all_faces_of_a_grid_are_added_at_once():
    edges = softmap.generators.grid_edges(6, 7)
    model = softmap.Model(np.zeros((42, 2)), edges, softmap.Potts(np.ones(len(edges))))
    tight = build(model.network, [])
    costs = pair_costs(tight, np.zeros(tight.model.half_size))
    assert len(finish(select(tight, costs, ClusterSizes(), 0.0))) == 30
    states = ClusterSizes(states=int(tight.model.num_labels[tight.base.n :].sum()) + 20 * 16)
    costs = pair_costs(tight, np.random.default_rng(0).normal(size=tight.model.half_size))
    assert 0 < len(finish(select(tight, costs, states, 0.0))) < 30


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_tables_of_pairs_are_sums_over_their_edges(seed, hard):
    model = random_model(("tables", "mix", "factors")[seed % 3], seed, hard=hard)
    tight = build(model.network, random_clusters(model, seed) if seed % 2 else [])
    lam = random_lam(tight.model, seed)
    graph, tables = clusters.empty_tables(tight, 64)
    expected = tables.copy()
    clusters.add_edges(tight, lam, graph, tables)
    for e in range(len(tight.kept)):
        i, j = tight.model.edges[e].astype(np.int64)
        if max(i, j) >= model.network.num_variables:
            continue
        u, v = (tight.model.half_slice(2 * e + side) for side in (0, 1))
        table = tight.model.table(e) + lam[u][:, None] + lam[v]
        table[np.isposinf(tight.model.unary[tight.model.node_slice(i)])] = np.inf
        table[:, np.isposinf(tight.model.unary[tight.model.node_slice(j)])] = np.inf
        table = table.T if i > j else table
        at = graph.find(np.array([i]), np.array([j]))[0]
        expected[at, : table.shape[0], : table.shape[1]] += table
    assert tables == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_gains_are_those_of_brute_force(seed):
    model = random_model(("tables", "mix", "factors")[seed % 3], seed, hard=False)
    tight = build(model.network, random_clusters(model, seed) if seed % 2 else [])
    costs = pair_costs(tight, random_lam(tight.model, seed))
    for cycles in finish(short_cycles(costs.graph, limits=SIZES)):
        for cycle, gain in zip(cycles, cycle_gains(costs, cycles), strict=True):
            ring = list(zip(cycle, np.roll(cycle, -1), strict=True))
            tables = [table_of(costs, i, j) for i, j in ring]
            labels = [range(model.network.num_labels[i]) for i in cycle]
            joint = min(
                sum(t[x[k], x[(k + 1) % len(x)]] for k, t in enumerate(tables))
                for x in product(*labels)
            )
            assert gain == pytest.approx(joint - sum(t.min() for t in tables), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_a_cluster_raises_the_lp_by_its_gain_at_least(seed):
    model = softmap.generators.erdos_renyi(8, 2, c=2.0, seed=seed)
    solution = lp.solve(model)
    costs = pair_costs(build(model.network, []), solution.lam)
    for cycles in finish(short_cycles(costs.graph, limits=SIZES)):
        for cycle, gain in zip(cycles.tolist(), cycle_gains(costs, cycles), strict=True):
            assert gain >= -1e-9
            if gain > 1e-6:
                scopes = cluster_scopes(np.array([cycle]), model.num_labels, model.n, whole=0)
                tight = build(model.network, scopes)
                value = lp.solve(tight.model).value
                assert value >= dual_bound(model.network, solution.lam) + gain - 1e-6


def test_hard_constraints_may_forbid_a_cycle():
    equal = softmap.Potts([np.inf] * 3)
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], equal)
    costs = pair_costs(build(model.network, []), np.zeros(int(model.network.half_offset[-1])))
    assert cycle_gains(costs, np.array([[0, 1, 2]])) == pytest.approx([0.0])
    unequal = softmap.Tables(np.array([[[np.inf, 0.0], [0.0, np.inf]]] * 3))
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], unequal)
    costs = pair_costs(build(model.network, []), np.zeros(int(model.network.half_offset[-1])))
    assert np.isposinf(cycle_gains(costs, np.array([[0, 1, 2]]))).all()


def clusters_of(cycle, labels, whole):
    """The clusters of one cycle: itself, or triangles at a variable with the fewest labels."""
    counts = [int(labels[i]) for i in cycle]
    if len(cycle) == 3 or np.prod(counts) <= whole:
        return [tuple(sorted(cycle))]
    hub = counts.index(min(counts))
    rest = cycle[hub + 1 :] + cycle[:hub]
    return [tuple(sorted((cycle[hub], i, j))) for i, j in pairwise(rest)]


def padded(cycles, n, longest):
    return np.array([[*cycle, *[n] * (longest - len(cycle))] for cycle in cycles], dtype=np.int64)


def test_long_cycles_are_cut_into_triangles():
    labels = np.array([3, 2, 3, 3, 3])
    cycles = padded([(0, 1, 2, 3), (0, 1, 2, 3, 4)], 5, 5)
    assert list(cluster_scopes(cycles[:1], np.full(5, 2), 5, 16)) == [(0, 1, 2, 3)]
    cut = list(cluster_scopes(cycles[1:], labels, 5, 16))
    assert cut == [(1, 2, 3), (1, 3, 4), (0, 1, 4)]


@given(st.integers(0, 10_000), st.integers(1, 60))
def test_clusters_of_many_cycles_are_those_of_each(seed, whole):
    rng, n = np.random.default_rng(seed), 9
    labels = rng.integers(1, 4, n)
    cycles = [tuple(rng.permutation(n)[: rng.integers(3, 7)].tolist()) for _ in range(8)]
    found = cluster_scopes(padded(cycles, n, 6), labels, n, whole)
    assert list(found) == [c for cycle in cycles for c in clusters_of(cycle, labels, whole)]


@given(st.integers(0, 10_000), st.integers(0, 400), st.integers(0, 2_000), st.integers(1, 9))
def test_the_first_cycles_within_the_limits_are_taken(seed, states, messages, block):
    rng, model = np.random.default_rng(seed), random_model("tables", seed, hard=False)
    n = model.network.num_variables
    some = [tuple(rng.permutation(n)[: rng.integers(3, min(n, 6) + 1)].tolist()) for _ in range(12)]
    tight = build(model.network, [sorted(some[0][:3])])
    limits = ClusterSizes(states=states, messages=messages)
    wanted, all_fit = greedily(tight, some, limits)
    blocks = (padded(some[at : at + block], n, 6) for at in range(0, len(some), block))
    found, fit = clusters._within(tight, blocks, limits, 0.0)
    assert (list(found), fit) == (wanted, all_fit)


@given(st.lists(st.integers(-2, 5), min_size=1, max_size=30), st.integers(1, 40))
def test_cycles_are_ranked_block_by_block(scores, block):
    cycles = np.arange(3 * len(scores)).reshape(-1, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "RANKED", block)
        blocks = list(clusters._ranked([cycles], [np.array(scores, dtype=np.float64)], 1000))
    found = np.concatenate([np.zeros((0, 3), dtype=np.int64), *blocks])[:, 0] // 3
    wanted = sorted((k for k, s in enumerate(scores) if s > 0), key=lambda k: (-scores[k], k))
    assert found.tolist() == wanted


def greedily(tight, cycles, limits):
    """Clusters one after the other, until one exceeds a limit."""
    labels, chosen = tight.base.num_labels, []
    states = limits.states - int(tight.model.num_labels[tight.base.n :].sum())
    messages = limits.messages
    for cycle in cycles:
        for scope in clusters_of(cycle, labels, limits.whole):
            if scope in tight.clusters or scope in chosen:
                continue
            size = int(labels[list(scope)].prod())
            states, messages = states - size, messages - len(scope) * size
            if states < 0 or (messages < 0 and chosen):
                return chosen, False
            chosen.append(scope)
    return chosen, True


def test_a_cycle_without_its_pairs_has_no_gain():
    model = softmap.generators.random_tree(5, 2, seed=1)
    costs = pair_costs(build(model.network, []), np.zeros(model.network.half_size))
    with pytest.raises(ValueError, match="no table"):
        cycle_gains(costs, np.array([[0, 1, 2]]))


@pytest.mark.parametrize("seed", range(8))
def test_unions_are_those_of_every_two_clusters_that_share_a_pair(seed):
    model = random_model("tables", seed, hard=False)
    tight = build(model.network, random_clusters(model, seed))
    inside = {p: [] for p in map(tuple, tight.pairs.tolist())}
    for scope in tight.clusters:
        for pair in combinations(scope, 2):
            inside.get(pair, []).append(scope)
    both = {tuple(sorted({*a, *b})) for some in inside.values() for a, b in combinations(some, 2)}
    small = {s for s in both if model.num_labels[list(s)].prod() <= SIZES.union}
    assert {*unions(tight, ClusterSizes())} == small - {*tight.clusters}


def test_neighbouring_faces_become_one():
    edges = softmap.generators.grid_edges(3, 3)
    model = softmap.Model(np.zeros((9, 2)), edges, softmap.Potts(np.ones(len(edges))))
    faces = [(0, 1, 3, 4), (1, 2, 4, 5), (3, 4, 6, 7), (4, 5, 7, 8)]
    joined = unions(build(model.network, faces), ClusterSizes())
    assert set(joined) == {
        (0, 1, 2, 3, 4, 5), (3, 4, 5, 6, 7, 8), (0, 1, 3, 4, 6, 7), (1, 2, 4, 5, 7, 8),
    }  # fmt: skip
    assert not len(unions(build(model.network, faces), ClusterSizes(union=32)))
    assert not len(unions(build(model.network, faces), ClusterSizes(states=200)))


@given(st.integers(1, 60), st.integers(0, 9))
def test_a_stopped_search_returns_what_it_has_found(looks, seed):
    model = softmap.generators.erdos_renyi(12, 2, c=2.0, seed=seed)
    tight = build(model.network, [])
    costs = pair_costs(tight, random_lam(tight.model, seed))
    whole = finish(short_cycles(costs.graph, limits=SIZES))
    some = finish(short_cycles(costs.graph, limits=SIZES, deadline=stopping(looks)))
    for cycles, found in zip(whole, some, strict=True):
        assert {*map(tuple, found.tolist())} <= {*map(tuple, cycles.tolist())}
        gains = cycle_gains(costs, cycles)
        stopped = cycle_gains(costs, cycles, deadline=stopping(looks))
        assert ((stopped == gains) | (stopped == 0.0)).all()
        assert (stopped[: looks - 1] == gains[: looks - 1]).all()
    chosen = finish(select(tight, costs, ClusterSizes(), 0.0, deadline=stopping(looks)))
    assert all(2 < len(scope) for scope in chosen)
