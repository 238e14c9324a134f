"""Random models follow their laws, and the same seed gives the same model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import generators, lp
from softmap.errors import OptionError, SoftmapError
from softmap.model.potentials import Potts, TruncatedLinear
from softmap.relaxation.consistency import arc_consistency
from support.oracles import brute_force, tree_optimum
from support.strategies import seeds

MAKERS = {
    "erdos_renyi": lambda seed: generators.erdos_renyi(20, seed=seed),
    "potts_grid": lambda seed: generators.potts_grid(3, 4, seed=seed),
    "random_grid": lambda seed: generators.random_grid(3, 4, seed=seed),
    "stereo_grid": lambda seed: generators.stereo_grid(3, 4, seed=seed),
    "random_tree": lambda seed: generators.random_tree(12, seed=seed),
    "planted": lambda seed: generators.planted(12, seed=seed)[0],
    "ragged_constrained": lambda seed: generators.ragged_constrained(12, seed=seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_seed_names_a_model(name):
    make = MAKERS[name]
    assert make(1).fingerprint() == make(1).fingerprint()
    assert make(1).fingerprint() != make(2).fingerprint()


# --- graphs -------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.integers(1, 6))
def test_a_grid_joins_neighbours_once_horizontal_first(rows, cols):
    edges = generators.grid_edges(rows, cols)
    assert len(edges) == rows * (cols - 1) + (rows - 1) * cols
    assert len(np.unique(edges, axis=0)) == len(edges)
    step = edges[:, 1] - edges[:, 0]
    across = rows * (cols - 1)
    assert (step[:across] == 1).all()
    assert (edges[:across, 0] // cols == edges[:across, 1] // cols).all()
    assert (step[across:] == cols).all()


@given(st.integers(2, 30), st.floats(0, 1), seeds)
def test_random_graphs_are_simple_and_leave_no_vertex_alone(n, p, seed):
    edges = generators.random_edges(n, p, np.random.default_rng(seed))
    assert (edges[:, 0] < edges[:, 1]).all()
    assert edges.min() >= 0
    assert edges.max() < n
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert set(edges.ravel().tolist()) == set(range(n))


def test_every_pair_is_there_when_p_is_one():
    edges = generators.random_edges(9, 1.0, np.random.default_rng(0))
    assert edges.tolist() == [[i, j] for i in range(9) for j in range(i + 1, 9)]


@pytest.mark.parametrize("p", [0.1, 0.9])
def test_every_pair_has_the_same_chance(p):
    n, draws = 12, 2_000
    rng = np.random.default_rng(5)
    hits = np.zeros((n, n))
    for _ in range(draws):
        i, j = generators.random_edges(n, p, rng).T
        hits[i, j] += 1
    share = hits[np.triu_indices(n, 1)] / draws
    # a vertex left alone, of chance (1-p)^(n-1), adds an edge to one of n - 1 partners
    alone = (1 - p) ** (n - 1)
    expected = p + 2 * alone / (n - 1) * (1 - p)
    error = 5 * np.sqrt(expected * (1 - expected) / draws) + alone / (n - 1)
    assert np.abs(share - expected).max() < error


# --- the paper's law ----------------------------------------------------------------------------


def test_erdos_renyi_is_the_law_of_the_paper():
    n, c = 1_000, 1.1
    model = generators.erdos_renyi(n, seed=3)
    assert (model.n, set(model.num_labels.tolist())) == (n, {3})
    assert model.network.graph.degree.min() >= 1
    pairs, p = n * (n - 1) / 2, c * np.log(n) / n
    spread = np.sqrt(pairs * p * (1 - p))
    alone = n * (1 - p) ** (n - 1)
    assert abs(model.m - pairs * p - alone / 2) < 5 * spread + alone
    assert model.unary.min() >= -0.01
    assert model.unary.max() <= 0.01
    assert abs(model.unary.mean()) < 5 * 0.01 / np.sqrt(3 * len(model.unary))
    tables = model.potentials[0].tables
    assert set(np.unique(tables)) == {-1.0, 1.0}
    assert abs(tables.mean()) < 5 / np.sqrt(tables.size)


def test_erdos_renyi_may_be_small_and_dense():
    model = generators.erdos_renyi(2, 4, c=100.0)
    assert model.edges.tolist() == [[0, 1]]
    assert model.num_labels.tolist() == [4, 4]


# --- grids and trees ----------------------------------------------------------------------------


def test_grids_know_their_shape_and_family():
    potts = generators.potts_grid(3, 5, 4, weight=0.7)
    assert (potts.shape, potts.n) == ((3, 5), 15)
    assert isinstance(potts.potentials[0], Potts)
    assert (potts.potentials[0].weights == 0.7).all()
    assert 0 <= potts.unary.min() <= potts.unary.max() <= 1
    stereo = generators.stereo_grid(6, 8, 16, weight=0.3, truncation=2.0)
    assert isinstance(stereo.potentials[0], TruncatedLinear)
    assert (stereo.potentials[0].truncation == 2.0).all()
    assert stereo.shape == (6, 8)
    assert generators.random_grid(2, 2, 3).potentials[0].tables.shape == (4, 3, 3)


def test_a_stereo_scene_shows_in_its_costs():
    model = generators.stereo_grid(40, 40, 12, seed=1)
    unary = model.unary.reshape(40, 40, 12)
    scene = generators._stepped_scene(40, 40, 12)
    assert len(np.unique(scene)) > 3
    at_scene = np.take_along_axis(unary, scene[..., None], axis=2).mean()
    assert at_scene < unary.mean() - 0.2


@given(st.integers(1, 40), seeds)
def test_trees_are_trees(n, seed):
    model = generators.random_tree(n, 2, seed=seed)
    assert model.m == n - 1
    assert len(set(model.network.graph.components().tolist())) == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_lp_is_tight_on_trees(seed):
    model = generators.random_tree(15, 3, seed=seed)
    assert lp.solve(model).value == pytest.approx(tree_optimum(model), abs=1e-6)


# --- planted and constrained --------------------------------------------------------------------


@given(seeds, st.integers(2, 6), st.integers(1, 3))
def test_the_planted_labelling_is_the_only_best_one(seed, n, d):
    model, labels = generators.planted(n, d, margin=0.3, seed=seed)
    best, found = brute_force(model)
    assert found.tolist() == labels.tolist()
    assert best == pytest.approx(0.0, abs=1e-9)
    for i in range(n):
        for x in range(d):
            if x != labels[i]:
                other = labels.copy()
                other[i] = x
                assert model.energy(other) >= 0.3 - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_lp_of_a_planted_model_is_tight_and_integral(seed):
    model, labels = generators.planted(40, 4, degree=5.0, seed=seed)
    solution = lp.solve(model)
    assert solution.value == pytest.approx(model.energy(labels), abs=1e-6)
    marginals = np.asarray(solution.node_marginals).reshape(40, 4)
    np.testing.assert_allclose(marginals[np.arange(40), labels], 1.0, atol=1e-6)


@given(seeds, st.integers(2, 6))
def test_constrained_models_are_ragged_and_feasible(seed, n):
    model = generators.ragged_constrained(n, max_labels=4, forbidden=0.5, seed=seed)
    assert 1 <= model.num_labels.min() <= model.num_labels.max() <= 4
    assert arc_consistency(model).any()
    assert np.isfinite(brute_force(model)[0])


def test_constraints_and_label_counts_vary():
    model = generators.ragged_constrained(200, seed=0)
    assert set(model.num_labels.tolist()) == {1, 2, 3, 4, 5}
    assert model.network.has_forbidden
    share = np.mean([np.isposinf(t).mean() for t in model.network.tables() if t.size >= 9])
    assert 0.1 < share < 0.25
    assert not generators.ragged_constrained(20, forbidden=0.0).network.has_forbidden


BAD = {
    "rows=0: expected a whole number of at least 1": lambda: generators.potts_grid(0, 3),
    "at least two vertices, not 1": lambda: generators.erdos_renyi(1),
    "c=-1.0: expected a number that is not negative": lambda: generators.erdos_renyi(10, c=-1.0),
    "n=0: expected a whole number": lambda: generators.random_tree(0),
    "planted needs two variables": lambda: generators.planted(1),
    "margin=0.0: expected a positive number": lambda: generators.planted(3, margin=0.0),
    "d=0: expected a whole number": lambda: generators.planted(3, 0),
    "needs two variables or more, not 1": lambda: generators.ragged_constrained(1),
    "max_labels=0: expected a whole number": lambda: generators.ragged_constrained(3, max_labels=0),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_options_are_named(text):
    with pytest.raises(OptionError) as caught:
        BAD[text]()
    assert text in str(caught.value)


def test_no_labels_is_an_error_of_ours():
    for make in (generators.potts_grid, generators.random_grid, generators.stereo_grid):
        with pytest.raises(SoftmapError, match="d=0: expected a whole number"):
            make(2, 2, 0)
