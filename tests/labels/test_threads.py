"""Moves and energies on several threads: plain twins, and the same bits for any number of them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.arguments import seeded
from softmap.labels import first_labels, round_nodes
from softmap.labels.cuts import Expansions, Fusion
from softmap.labels.energies import energy_of
from softmap.labels.improving import Neighbourhoods, best_labelling, improved_by_forests
from softmap.model.layout import layout
from softmap.relaxation.bounds import dual_bound
from support.families import PAIRWISE
from support.strategies import models, seeds

PAIRS = (*PAIRWISE, "mix")
THREADS = (1, 2, 5)


def random_labels(model, seed):
    return np.random.default_rng(seed).integers(0, model.num_labels[: model.network.num_variables])


@given(models(), seeds)
def test_an_energy_is_that_of_the_model_to_the_bit(model, seed):
    labels = random_labels(model, seed)
    assert energy_of(model.network, labels) == model.energy(labels)


@pytest.mark.parametrize("wrong", [-1, 3])
def test_labels_out_of_range_have_no_energy(wrong):
    model = softmap.generators.random_grid(2, 2, 3, seed=0)
    with pytest.raises(ValueError, match=f"node 2 has no label {wrong}"):
        energy_of(model.network, np.array([0, 1, wrong, 2]))


@pytest.mark.parametrize("hard", [False, True])
def test_an_energy_does_not_depend_on_the_threads(hard):
    rng = np.random.default_rng(0)
    edges = softmap.generators.grid_edges(110, 110)
    weights = rng.normal(size=len(edges)) * 10.0 ** rng.integers(-9, 9, len(edges))
    weights[7] = np.inf if hard else 0.0
    model = softmap.Model(rng.normal(size=(110 * 110, 3)), edges, softmap.Potts(weights))
    labels = rng.integers(0, 3, model.n)
    labels[model.edges[7]] = 0, 1
    found = [energy_of(model.network, labels, threads) for threads in THREADS]
    assert found == [model.energy(labels)] * 3
    assert np.isinf(found[0]) == hard


def wish_of(model, labels, i):
    """The best label of a variable, given all others, and what it gains; None if it has it."""
    count = int(model.num_labels[i])
    terms = [model.network.unary_of(i)]
    for h in np.flatnonzero(model.edges.reshape(-1) == i):
        table = model.network.table(h >> 1) if h % 2 == 0 else model.network.table(h >> 1).T
        terms.append(table[:, labels[model.edges.reshape(-1)[h ^ 1]]])
    broken = np.isposinf(terms).sum(axis=0)
    cost = np.where(np.isposinf(terms), 0.0, terms).sum(axis=0)
    own = int(labels[i])
    best = min(range(count), key=lambda x: (broken[x], cost[x], x != own, x))
    if best == own:
        return None
    return best, np.inf if broken[best] < broken[own] else cost[own] - cost[best]


def scattered(i):
    mask = 2**32 - 1
    x = (i ^ (i >> 16)) * 0x7FEB352D & mask
    x = (x ^ (x >> 15)) * 0x846CA68B & mask
    return x ^ (x >> 16)


def rounds_plainly(model, labels, rounds):
    """The twin of `core.independent_modes`."""
    labels = labels.copy()
    for _ in range(rounds):
        wishes = {i: w for i in range(model.n) if (w := wish_of(model, labels, i))}
        rank = {i: (-gain, scattered(i)) for i, (_, gain) in wishes.items()}
        pairs = [(int(i), int(j)) for i, j in model.edges]
        lost = {j if rank[i] < rank[j] else i for i, j in pairs if i in rank and j in rank}
        for i in wishes.keys() - lost:
            labels[i] = wishes[i][0]
    return labels


@given(models(families=PAIRS, whole=True), seeds, st.integers(0, 4))
def test_independent_changes_are_those_of_the_plain_twin(model, seed, rounds):
    labels = random_labels(model, seed)
    expected = rounds_plainly(model, labels, rounds)
    core.independent_modes(layout(model.network), labels, rounds, 2)
    assert labels.tolist() == expected.tolist()


@given(models(families=PAIRS), seeds)
def test_independent_changes_end_where_no_variable_gains(model, seed):
    given_labels = random_labels(model, seed)
    labels = given_labels.copy()
    core.independent_modes(layout(model.network), labels, 1000)
    assert model.energy(labels) <= model.energy(given_labels)
    wishes = [w for i in range(model.n) if (w := wish_of(model, labels, i))]
    assert all(gain < 1e-9 for _, gain in wishes)


def test_equal_gains_take_few_rounds():
    """In the order of the nodes, a chain would change one variable per round."""
    n = 1000
    model = softmap.Model(
        np.tile([1.0, 0.0], (n, 1)), [(i, i + 1) for i in range(n - 1)], np.zeros((n - 1, 2, 2))
    )
    labels = np.zeros(n, dtype=np.int64)
    core.independent_modes(layout(model.network), labels, 20)
    assert labels.all()


LARGE = {
    "grid": lambda: softmap.generators.potts_grid(140, 130, 5, seed=3),
    "graph": lambda: softmap.generators.erdos_renyi(17_000, 3, seed=3),
}


@pytest.fixture(params=list(LARGE), scope="module")
def large(request):
    return LARGE[request.param]()


def test_large_models_get_the_same_labels_with_any_number_of_threads(large):
    start = random_labels(large, 0)
    known = start, energy_of(large.network, start)
    polished = [best_labelling(large.network, [start], None, threads) for threads in THREADS]
    cold = [improved_by_forests(large.network, known, 2, 0.0, 5, threads) for threads in THREADS]
    warm = [
        improved_by_forests(large.network, polished[0], 9, 2.0, 5, threads) for threads in THREADS
    ]
    nodes = np.random.default_rng(1).random(large.unary.size)
    rounded = [round_nodes(large.network, nodes, threads) for threads in THREADS]
    for found in (polished, cold, warm):
        assert found[0][1] == large.energy(found[0][0]) < known[1]
        assert all(np.array_equal(found[0][0], other[0]) for other in found)
    assert all(np.array_equal(rounded[0], other) for other in rounded)


def test_large_models_end_at_a_local_optimum(large):
    labels, energy = best_labelling(large.network, [random_labels(large, 0)])
    again = labels.copy()
    none = np.zeros(2 * large.m, dtype=np.int64)
    core.iterated_modes(layout(large.network), again, none, large.n, 1)
    assert large.energy(again) == pytest.approx(energy, abs=1e-9)


@given(models(families=PAIRS, max_n=9), seeds, st.data())
def test_the_forest_of_a_range_is_induced_and_apart_from_earlier_ranges(model, seed, data):
    begin = data.draw(st.integers(0, model.n - 1))
    end = data.draw(st.integers(begin + 1, model.n))
    nodes, links, parent = np.empty((3, end - begin), dtype=np.int64)
    size = core.next_forest(layout(model.network), begin, end, seeded(seed), nodes, links, parent)
    chosen = {int(i) for i in nodes[:size]}
    assert chosen == {begin + int(k) for k in np.flatnonzero(links < 0)}
    ends = [(int(i), int(j)) for i, j in model.edges]
    assert not any((i in chosen and j < begin) or (j in chosen and i < begin) for i, j in ends)
    within = [e for e, (i, j) in enumerate(ends) if i in chosen and j in chosen]
    assert sorted(parent[i - begin] >> 1 for i in chosen if parent[i - begin] >= 0) == within
    left = [i for i in range(begin, end) if i not in chosen]
    fixed = {k for i, j in ends for k, far in ((i, j), (j, i)) if far < begin}
    assert all(i in fixed or links[i - begin] > 1 for i in left)


@given(seeds, st.integers(0, 5))
def test_a_move_between_similar_labellings_is_that_of_the_whole_flow_graph(seed, differ):
    """With fewer than half of the variables, the flow graph has only these."""
    rng = np.random.default_rng(seed)
    model = softmap.generators.potts_grid(4, 3, 3, seed=seed % 1000)
    labels = rng.integers(0, 3, 12)
    changed = rng.permutation(12)[:differ]
    proposal = labels.copy()
    proposal[changed] = (labels[changed] + 1) % 3
    trials = np.repeat(labels[None], 2**differ, axis=0)
    for trial, choice in zip(trials, product([False, True], repeat=differ), strict=True):
        trial[changed] = np.where(choice, proposal[changed], labels[changed])
    ends = model.edges[np.isin(model.edges, changed).all(axis=1)]
    submodular = all(_submodular(model, labels, proposal, pair) for pair in ends)
    before = model.energy(labels)
    Fusion(model.network).fuse(labels, proposal)
    best = float(np.min(model.energy(trials)))
    assert best - 1e-9 <= model.energy(labels) <= before + 1e-9
    if submodular:
        assert model.energy(labels) == pytest.approx(best, abs=1e-9)


def _submodular(model, labels, proposal, pair):
    """Whether the weight of a Potts edge is paid no more often by equal choices than by others."""
    (a, b), (p, q) = labels[pair], proposal[pair]
    return int(a != b) + int(p != q) <= int(a != q) + int(p != b)


# --- forests that all threads draw together -------------------------------------------------------


def random_graph(n, m, labels, seed):
    """A random graph with a table for each edge."""
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.sort(rng.integers(n, size=(m, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    tables = rng.normal(size=(len(pairs), labels, labels))
    return softmap.Model(rng.normal(size=(n, labels)), pairs, softmap.Tables(tables))


def forest_of(model, labels, seed, threads=1, heat=0.0):
    """Labels after one forest, and the levels of its nodes."""
    moved, level = labels.astype(np.int64), np.empty(model.n, dtype=np.int64)
    core.scattered_forest(layout(model.network), moved, seed, heat, level, threads)
    return moved, level


def mixed(seed, i):
    mask = 2**64 - 1
    z = (seed + 0x9E3779B97F4A7C15 * (i + 1)) & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return z ^ (z >> 31)


def drawn_plainly(model, seed):
    """The levels of `core.scattered_forest`: candidates join that are first among those near."""
    near = [set() for _ in range(model.n)]
    for i, j in model.edges.tolist():
        near[i].add(j)
        near[j].add(i)
    level = np.zeros(model.n, dtype=int)
    flipped = 2**64 - 1 - seed
    links, left = [0] * model.n, list(range(model.n))  # neighbours that have joined
    for turn in range(64):
        left = [i for i in left if level[i] == 0 and links[i] <= 1]
        may = [
            i
            for i in left
            if links[i] == 1 or turn >= 52 or (turn == 0 and mixed(flipped, i) < 2**54)
        ]
        key = {i: (mixed(seed + turn, i), i) for i in may}
        joins = [i for i in may if all(key[i] < key[j] for j in near[i] if j in key)]
        above = {i: max((level[j] for j in near[i]), default=0) for i in joins}
        for i in joins:
            level[i] = above[i] + 1
            for j in near[i]:
                links[j] += 1
    return level


def test_a_forest_of_all_threads_is_drawn_as_a_plain_implementation_does():
    model = random_graph(6000, 9000, 2, seed=0)
    _, level = forest_of(model, np.zeros(model.n), seed=0)
    assert level.max() > 10
    assert np.array_equal(level, drawn_plainly(model, 0))


@given(seeds)
def test_a_forest_of_all_threads_has_no_cycles_and_is_maximal_in_small_graphs(seed):
    model = random_graph(40, 80, 2, seed)
    _, level = forest_of(model, np.zeros(model.n), seed)
    inner = model.edges[(level[model.edges] > 0).all(axis=1)]
    root = list(range(model.n))

    def find(i):
        while root[i] != i:
            i = root[i]
        return i

    for i, j in inner.tolist():
        assert abs(level[i] - level[j]) == 1
        a, b = find(i), find(j)
        assert a != b
        root[a] = b
    links = np.zeros(model.n, dtype=int)
    for i, j in model.edges.tolist():
        links[i] += level[j] > 0
        links[j] += level[i] > 0
    assert (links[level == 0] > 1).all()


@given(seeds)
def test_a_forest_of_all_threads_gets_its_best_labels(seed):
    """Against brute force over the labels of the forest, all others fixed."""
    model = random_graph(9, 12, 2, seed)
    labels = random_labels(model, seed)
    moved, level = forest_of(model, labels, seed)
    inside = np.flatnonzero(level)
    energies = []
    for chosen in product(range(2), repeat=len(inside)):
        every = labels.copy()
        every[inside] = chosen
        energies.append(model.energy(every))
    assert (moved == labels)[level == 0].all()
    assert model.energy(moved) == pytest.approx(min(energies), abs=1e-9)


@pytest.mark.parametrize("heat", [0.0, 0.7])
def test_tree_moves_on_random_graphs_do_not_depend_on_the_threads(heat):
    model = random_graph(20_000, 60_000, 3, seed=4)
    labels = random_labels(model, 0)
    known = labels, energy_of(model.network, labels)
    found = [improved_by_forests(model.network, known, 3, heat, 5, threads) for threads in THREADS]
    assert found[0][1] < known[1]
    assert all(np.array_equal(one[0], found[0][0]) for one in found)


# --- cuts, first labels and large neighbourhoods --------------------------------------------------


@pytest.fixture(scope="module")
def grid():
    """A grid that is large enough for ranges and pieces."""
    return softmap.generators.potts_grid(160, 160, 4, seed=3)


def test_first_labels_do_not_depend_on_the_threads(grid):
    one, *others = (first_labels(grid.network, threads=threads) for threads in THREADS)
    assert all(np.array_equal(one, other) for other in others)


def test_expansions_do_not_depend_on_the_threads(grid):
    found = []
    for threads in THREADS:
        labels = random_labels(grid, 1)
        Expansions(Fusion(grid.network, threads=threads)).run(labels, rounds=2)
        found.append(labels)
    assert all(np.array_equal(found[0], other) for other in found)


def test_a_fusion_that_runs_out_of_work_changes_nothing_with_any_number_of_threads(grid):
    for threads in THREADS:
        labels, proposal = random_labels(grid, 1), random_labels(grid, 2)
        before = labels.copy()
        few = 4 * grid.m + grid.n + 50_000
        assert Fusion(grid.network, threads=threads).fuse(labels, proposal, work=few) == -1
        assert np.array_equal(labels, before)


@pytest.mark.parametrize("shape", ["grid", "graph"])
def test_a_cut_in_pieces_is_optimal_and_does_not_depend_on_the_threads(shape):
    """λ proves it: its bound is the energy of the labels."""
    rng = np.random.default_rng(6)
    n = 130 * 130
    edges = softmap.generators.grid_edges(130, 130)
    if shape == "graph":
        edges = np.sort(rng.integers(n, size=(3 * n, 2)), axis=1)
        edges = edges[edges[:, 0] != edges[:, 1]]
    weights = softmap.Potts(0.7 * rng.random(len(edges)))
    model = softmap.Model(rng.normal(size=(n, 2)), edges, weights)
    labels, lam = np.empty(n, dtype=np.int64), np.empty(model.network.half_size)
    found = []
    for threads in THREADS:
        cut = core.BinaryCut(layout(model.network), np.inf, threads)
        assert cut.run()
        cut.read(labels, lam)
        found.append((labels.tolist(), lam.tolist()))
    assert dual_bound(model.network, lam) == pytest.approx(model.energy(labels), rel=1e-10)
    assert len(np.unique(labels)) == 2
    assert found == [found[0]] * 3


def test_large_neighbourhoods_do_not_depend_on_the_threads(grid):
    start = random_labels(grid, 1)
    found = []
    for threads in THREADS:
        search, labels = Neighbourhoods(grid.network, seed=2, threads=threads), start
        energies = [grid.energy(labels)]
        for _ in range(3):
            labels = search.improve(labels, work=1_500_000)
            energies.append(grid.energy(labels))
        assert energies == sorted(energies, reverse=True)
        assert len(set(energies)) == 4
        found.append(labels)
    assert all(np.array_equal(found[0], other) for other in found)


def test_every_variable_of_a_grid_is_reached_by_one_of_two_layers_of_ranges(grid):
    """From the worst labels, no row keeps them all."""
    worst = np.array([np.argmax(grid.network.unary_of(i)) for i in range(grid.n)])
    search, labels = Neighbourhoods(grid.network, seed=2), worst
    for _ in range(2):
        labels = search.improve(labels, work=3_000_000)
    kept = (labels == worst).reshape(160, 160)
    assert kept.all(axis=1).sum() == 0
