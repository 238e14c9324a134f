"""Labellings: vertex rounding, the sequential decoder and the searches, against plain twins."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.arguments import seeded
from softmap.errors import ModelError, OptionError
from softmap.labels import best_labelling, decide, decode, forests, icm, round_nodes, search
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Tables
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from support.families import PAIRWISE
from support.oracles import brute_force
from support.strategies import models, random_lam, seeds

PAIRS = (*PAIRWISE, "mix")


@given(st.lists(st.lists(st.sampled_from([0.0, 0.2, 0.2 + 1e-12, 0.3]), min_size=1), min_size=1))
def test_rounding_takes_the_first_of_the_largest_marginals(marginals):
    labels = round_nodes(
        Model([np.zeros(len(m)) for m in marginals]).network, np.concatenate(marginals)
    )
    for mu, label in zip(map(np.array, marginals), labels, strict=True):
        assert label == np.flatnonzero(mu >= mu.max() * (1 - 1e-9))[0]


def decode_plainly(model, lam, order):
    """The decoder in plain numpy, with dense tables, for the same λ and order."""
    reduced = [model.network.unary_of(i).astype(float).copy() for i in range(model.n)]
    for h, i in enumerate(model.edges.reshape(-1)):
        reduced[i] = reduced[i] - lam[model.network.half_slice(h)]
    labels = np.full(model.n, -1)
    for i in [*order, *range(model.network.num_variables, model.n)]:
        around = [h for h in range(2 * model.m) if model.edges.reshape(-1)[h] == i]
        belief = reduced[i].copy()
        for h in around:
            j = model.edges.reshape(-1)[h ^ 1]
            if labels[j] >= 0:
                continue
            far = lam[model.network.half_slice(h ^ 1)] + (
                reduced[j] if j >= model.network.num_variables else 0.0
            )
            far = np.where(np.isposinf(reduced[j]), np.inf, far)
            table = model.network.table(h >> 1) if h % 2 == 0 else model.network.table(h >> 1).T
            belief += lam[model.network.half_slice(h)] + (table + far[None, :]).min(axis=1)
        chosen = belief if np.isfinite(belief).any() else reduced[i]
        labels[i] = int(np.argmin(chosen))
        for h in around:
            j = model.edges.reshape(-1)[h ^ 1]
            if labels[j] < 0:
                table = model.network.table(h >> 1) if h % 2 == 0 else model.network.table(h >> 1).T
                reduced[j] = reduced[j] + lam[model.network.half_slice(h ^ 1)] + table[labels[i]]
    return labels[: model.network.num_variables]


def polish_plainly(model, labels):
    """Coordinate descent on `Model.energy`, restarted until nothing improves."""
    labels, energy = labels.copy(), model.energy(labels)
    improved = True
    while improved:
        improved = False
        for i in range(model.network.num_variables):
            for x in range(model.network.num_labels[i]):
                trial = labels.copy()
                trial[i] = x
                if model.energy(trial) < energy - 1e-9:
                    labels, energy, improved = trial, model.energy(trial), True
    return labels


@given(models(), seeds)
def test_rounding_takes_the_largest_marginal(model, seed):
    mu = np.random.default_rng(seed).integers(0, 3, size=len(model.unary)).astype(float)
    labels = round_nodes(model.network, mu)
    assert labels.shape == (model.network.num_variables,)
    for i, x in enumerate(labels):
        assert x == int(np.argmax(mu[model.network.node_slice(i)]))


@given(models(whole=False) | models(families=("tables", "potts", "factors"), whole=True), seeds)
def test_the_decoder_is_its_plain_twin(model, seed):
    model = tighten(model)
    lam = np.round(8 * random_lam(model, seed)) / 8  # exact sums, so that ties are ties for both
    order = np.random.default_rng(seed).permutation(model.network.num_variables)
    assert decode(model.network, lam, order).tolist() == decode_plainly(model, lam, order).tolist()


@given(models(graphs=("tree",), families=("tables", "shared", "potts", "mix"), hard=True), seeds)
def test_the_decoder_obeys_hard_constraints_from_a_root_outwards(model, seed):
    tight = tighten(model)
    assert np.isfinite(model.energy(decode(tight, random_lam(tight, seed))))


@given(models(), seeds)
def test_the_polish_never_raises_the_energy_and_ends_at_a_local_optimum(model, seed):
    rng = np.random.default_rng(seed)
    given_labels = rng.integers(0, model.network.num_labels[: model.network.num_variables])
    labels = icm(model.network, given_labels)
    energy = model.energy(labels)
    assert energy <= model.energy(given_labels)
    if np.isfinite(energy):
        assert model.energy(polish_plainly(model, labels)) >= energy - 1e-9


@given(models(max_n=4))
def test_the_polish_keeps_an_optimum(model):
    optimum, labels = brute_force(model)
    assert model.energy(icm(model.network, labels)) == pytest.approx(optimum)


def test_the_polish_repairs_broken_constraints():
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2]], softmap.Potts([np.inf, np.inf]))
    assert model.energy([0, 1, 0]) == np.inf
    assert model.energy(icm(model.network, [0, 1, 0])) == 0.0


def test_the_polish_moves_auxiliary_states_along():
    table = np.ones((2, 2, 2))
    table[1, 1, 1] = 0.0
    model = softmap.Model.from_factors([2, 2, 2], [((2, 0, 1), table), ((0,), [0.5, 0.0])])
    assert icm(model.network, np.array([0, 1, 1])).tolist() == [1, 1, 1]


def random_labels(model, seed):
    return np.random.default_rng(seed).integers(
        0, model.network.num_labels[: model.network.num_variables]
    )


def first_forest(model, seed):
    """The nodes of the first forest that `forests` solves with this seed."""
    nodes, links, parent = np.empty((3, model.n), np.int64)
    size = core.next_forest(layout(model.network), 0, model.n, seeded(seed), nodes, links, parent)
    assert sorted(nodes[:size]) == np.flatnonzero(links < 0).tolist()
    return nodes[:size], parent, links


@given(models(families=PAIRS), seeds)
def test_a_forest_is_induced_and_none_could_join(model, seed):
    nodes, parent, links = first_forest(model, seed)
    rank = {int(i): k for k, i in enumerate(nodes)}
    ends = [(int(i), int(j)) for i, j in model.edges]
    within = [e for e, (i, j) in enumerate(ends) if i in rank and j in rank]
    assert sorted(parent[i] >> 1 for i in nodes if parent[i] >= 0) == within
    for i in nodes:
        if parent[i] >= 0:
            assert model.edges.reshape(-1)[parent[i]] == i
            assert rank[int(model.edges.reshape(-1)[parent[i] ^ 1])] < rank[int(i)]
    assert (links[[i for i in range(model.n) if i not in rank]] > 1).all()


def test_a_round_finds_the_best_label_of_a_variable_without_edges():
    model = Model([[0.5, -0.25, 1.0]])
    assert forests(model.network, [0], 1).tolist() == [1]


@given(models(families=PAIRS, max_n=5), seeds)
def test_a_round_finds_the_best_labels_of_its_forest(model, seed):
    given_labels = brute_force(model)[1] if seed % 2 else random_labels(model, seed)
    labels = forests(model.network, given_labels, 1, seed=seed)
    if not np.isfinite(model.energy(given_labels)):
        assert labels.tolist() == given_labels.tolist()
        return
    nodes, _, _ = first_forest(model, seed)
    best = np.inf
    for choice in product(*(range(model.num_labels[i]) for i in nodes)):
        trial = given_labels.copy()
        trial[nodes] = choice
        best = min(best, model.energy(trial))
    assert model.energy(labels) == pytest.approx(best, abs=1e-9)


@given(models(), seeds, st.sampled_from([0.0, 0.5, 1e3]))
def test_forests_never_raise_the_energy(model, seed, heat):
    given_labels = random_labels(model, seed)
    labels = forests(model.network, given_labels, 8, heat, seed)
    assert model.energy(labels) <= model.energy(given_labels)
    assert labels.tolist() == forests(model.network, given_labels, 8, heat, seed).tolist()


@given(models(families=PAIRS, graphs=("tree",)), seeds)
def test_one_forest_solves_a_tree(model, seed):
    optimum, _ = brute_force(model)
    start = icm(model.network, decode(tighten(model), np.zeros(int(model.network.half_offset[-1]))))
    labels = forests(model.network, start, 1, seed=seed)
    assert model.energy(labels) == pytest.approx(optimum, abs=1e-9)


def test_forests_find_what_the_polish_does_not():
    model = softmap.generators.erdos_renyi(300, 3, seed=1)
    polished = icm(model.network, random_labels(model, 0))
    descended = forests(model.network, polished, 30)
    annealed = forests(model.network, polished, 300, heat=2.0)
    assert model.energy(annealed) < model.energy(descended) < model.energy(polished) - 10


def test_the_best_of_several_is_kept():
    model = softmap.generators.random_grid(5, 5, 3, seed=2)
    rng = np.random.default_rng(0)
    candidates = [rng.integers(0, 3, size=25) for _ in range(5)]
    labels, energy = best_labelling(model.network, candidates)
    assert energy == model.energy(labels)
    assert energy == min(model.energy(icm(model.network, c)) for c in candidates)


def test_ties_go_to_the_smallest_label():
    model = softmap.Model(np.zeros((2, 3)), [[0, 1]], softmap.Potts([0.0]))
    assert round_nodes(model.network, np.full(6, 1 / 3)).tolist() == [0, 0]
    assert decode(model.network, np.zeros(6)).tolist() == [0, 0]


@given(st.integers(0, 5))
def test_a_tight_lam_decodes_to_the_planted_labelling(seed):
    model, labels = softmap.generators.planted(15, 3, seed=seed)
    lam = softmap.lp.solve(model).lam
    assert (
        model.energy(icm(model.network, decode(model.network, lam)))
        >= dual_bound(model.network, lam) - 1e-7
    )
    nodes = softmap.lp.solve(model).node_marginals
    assert round_nodes(model.network, nodes).tolist() == labels.tolist()


def test_bad_input():
    model = softmap.generators.random_tree(4, 2)
    with pytest.raises(OptionError, match="node marginals must be 8 numbers"):
        round_nodes(model.network, np.ones(3))
    with pytest.raises(OptionError, match=r"order must be a permutation of 0\.\.3"):
        decode(model.network, np.zeros(12), [0, 1, 2, 2])
    with pytest.raises(OptionError, match="lam must be a flat array of 12"):
        decode(model.network, np.zeros(3))
    with pytest.raises(ModelError, match="of variable 1 is outside"):
        icm(model.network, [0, 7, 0, 0])


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 30))
def test_deciding_with_consistency_obeys_hard_constraints_on_trees(seed, n):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, n)
    edges = np.array([(int(rng.integers(j)), j) for j in range(1, n)])
    tables = np.where(rng.random((n - 1, 3, 3)) < 0.5, np.inf, rng.normal(size=(n - 1, 3, 3)))
    tables[np.arange(n - 1), hidden[edges[:, 0]], hidden[edges[:, 1]]] = 0.0
    model = tighten(Model(rng.normal(size=(n, 3)), edges, Tables(tables)))
    labels = decide(model, rng.random(3 * n))
    assert np.isfinite(model.energy(labels))


def test_a_search_anneals_only_if_there_is_time_for_it(monkeypatch):
    model = softmap.generators.potts_grid(12, 12, 4, seed=1)
    heats, moves = [], search.improved_by_forests

    def noted(model, known, rounds, heat, *rest):
        heats.append((rounds, heat))
        return moves(model, known, rounds, heat, *rest)

    monkeypatch.setattr(search, "improved_by_forests", noted)
    zero = np.zeros(model.network.num_variables, dtype=np.int64)
    known, lam = (zero, model.energy(zero)), np.zeros(model.network.half_size)
    nodes, work = np.full(model.unary.size, 0.25), 2 * model.m * 1000
    look = search.LabelSearch(model.network).look
    free = look(known, lam, nodes, -1e3, math.inf, work)
    (_, cold), (rounds, heat) = heats
    assert cold == 0.0
    assert heat > 0.0
    assert rounds >= 31  # one per 32 passes
    heats.clear()
    late = look(known, lam, nodes, -1e3, math.inf, work, deadline=core.Deadline(0.0))
    assert [heat for _, heat in heats] == [0.0]
    for labels, energy in (free, late):
        assert energy == pytest.approx(model.energy(labels))
        assert energy <= known[1]
    heats.clear()
    look(known, lam, nodes, -1e3, math.inf, 1000 * work, deadline=core.Deadline(0.2))
    assert 0 < heats[-1][0] < 31_000
