"""Moves and energies on several threads: plain twins, and the same bits for any number of them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.arguments import seeded
from softmap.labels import round_nodes
from softmap.labels.cuts import Fusion
from softmap.labels.improving import best_labelling, improved_by_forests
from softmap.labels.pricing import energy_of
from softmap.model.layout import layout
from support.families import PAIRWISE
from support.strategies import models, seeds

PAIRS = (*PAIRWISE, "mix")
THREADS = (1, 2, 5)


def random_labels(model, seed):
    return np.random.default_rng(seed).integers(0, model.num_labels[: model.num_variables])


@given(models(), seeds)
def test_an_energy_is_that_of_the_model_to_the_bit(model, seed):
    labels = random_labels(model, seed)
    assert energy_of(model, labels) == model.energy(labels)


@pytest.mark.parametrize("wrong", [-1, 3])
def test_labels_out_of_range_have_no_energy(wrong):
    model = softmap.generators.random_grid(2, 2, 3, seed=0)
    with pytest.raises(ValueError, match=f"node 2 has no label {wrong}"):
        energy_of(model, np.array([0, 1, wrong, 2]))


@pytest.mark.parametrize("hard", [False, True])
def test_an_energy_does_not_depend_on_the_threads(hard):
    rng = np.random.default_rng(0)
    edges = softmap.generators.grid_edges(110, 110)
    weights = rng.normal(size=len(edges)) * 10.0 ** rng.integers(-9, 9, len(edges))
    weights[7] = np.inf if hard else 0.0
    model = softmap.Model(rng.normal(size=(110 * 110, 3)), edges, softmap.Potts(weights))
    labels = rng.integers(0, 3, model.n)
    labels[model.edges[7]] = 0, 1
    found = [energy_of(model, labels, threads) for threads in THREADS]
    assert found == [model.energy(labels)] * 3
    assert np.isinf(found[0]) == hard


def wish_of(model, labels, i):
    """The best label of a variable, given all others, and what it gains; None if it has it."""
    count = int(model.num_labels[i])
    terms = [model.unary_of(i)]
    for h in np.flatnonzero(model.edges.reshape(-1) == i):
        table = model.table(h >> 1) if h % 2 == 0 else model.table(h >> 1).T
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
    core.independent_modes(layout(model), labels, rounds, 2)
    assert labels.tolist() == expected.tolist()


@given(models(families=PAIRS), seeds)
def test_independent_changes_end_where_no_variable_gains(model, seed):
    given_labels = random_labels(model, seed)
    labels = given_labels.copy()
    core.independent_modes(layout(model), labels, 1000)
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
    core.independent_modes(layout(model), labels, 20)
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
    known = start, energy_of(large, start)
    polished = [best_labelling(large, [start], None, threads) for threads in THREADS]
    cold = [improved_by_forests(large, known, 2, 0.0, 5, threads) for threads in THREADS]
    warm = [improved_by_forests(large, polished[0], 9, 2.0, 5, threads) for threads in THREADS]
    nodes = np.random.default_rng(1).random(large.unary.size)
    rounded = [round_nodes(large, nodes, threads) for threads in THREADS]
    for found in (polished, cold, warm):
        assert found[0][1] == large.energy(found[0][0]) < known[1]
        assert all(np.array_equal(found[0][0], other[0]) for other in found)
    assert all(np.array_equal(rounded[0], other) for other in rounded)


def test_large_models_end_at_a_local_optimum(large):
    labels, energy = best_labelling(large, [random_labels(large, 0)])
    again = labels.copy()
    none = np.zeros(2 * large.m, dtype=np.int64)
    core.iterated_modes(layout(large), again, none, large.n, 1)
    assert large.energy(again) == pytest.approx(energy, abs=1e-9)


@given(models(families=PAIRS, max_n=9), seeds, st.data())
def test_the_forest_of_a_range_is_induced_and_apart_from_earlier_ranges(model, seed, data):
    begin = data.draw(st.integers(0, model.n - 1))
    end = data.draw(st.integers(begin + 1, model.n))
    nodes, links, parent = np.empty((3, end - begin), dtype=np.int64)
    size = core.next_forest(layout(model), begin, end, seeded(seed), nodes, links, parent)
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
    Fusion(model).fuse(labels, proposal)
    best = float(np.min(model.energy(trials)))
    assert best - 1e-9 <= model.energy(labels) <= before + 1e-9
    if submodular:
        assert model.energy(labels) == pytest.approx(best, abs=1e-9)


def _submodular(model, labels, proposal, pair):
    """Whether the weight of a Potts edge is paid no more often by equal choices than by others."""
    (a, b), (p, q) = labels[pair], proposal[pair]
    return int(a != b) + int(p != q) <= int(a != q) + int(p != b)
