"""Minimum cuts: optimal where edges are submodular, and moves that never raise the energy."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

import softmap
from softmap import core
from softmap.labels import cheapest
from softmap.labels.cuts import Expansions, Fusion, expandable, solve_binary
from softmap.model.layout import layout
from softmap.relaxation.bounds import dual_bound
from softmap.run.values import BestValues, Tolerances
from softmap.subsolvers.passes.passes import Passes
from support.deadlines import stopping


def random_binary(seed, *, submodular=True, hard=0.0):
    """A model of up to eight variables with two labels, some of them with one label only."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.5] or [(0, 1)]
    sizes = np.where(rng.random(n) < 0.15, 1, 2)
    unary = [rng.normal(size=size) for size in sizes]
    tables = []
    for i, j in pairs:
        table = rng.normal(size=(2, 2))
        if submodular:
            lack = table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]
            table[0, 1] += max(lack, 0.0) + 0.1
        if rng.random() < hard:
            table[0, 1] = np.inf
        tables.append(table[: sizes[i], : sizes[j]])
    return softmap.Model(unary, pairs, tables)


def brute_force(model):
    every = itertools.product(*(range(int(d)) for d in model.num_labels))
    return min(float(model.energy(np.array(labels))) for labels in every)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3]))
def test_a_cut_solves_submodular_models_of_two_labels(seed, hard):
    model = random_binary(seed, hard=hard)
    best = brute_force(model)
    labels, lam = solve_binary(model.network)
    assert model.energy(labels) == pytest.approx(best, abs=1e-9)
    assert dual_bound(model, lam) == pytest.approx(best, abs=1e-8)


def test_other_models_are_refused():
    wide = softmap.generators.potts_grid(3, 3, 3, seed=1)
    frustrated = softmap.Model(np.zeros((2, 2)), [[0, 1]], [[[1.0, 0.0], [0.0, 1.0]]])
    assert solve_binary(wide.network) is None
    assert solve_binary(frustrated.network) is None


@given(st.integers(0, 10**6))
def test_the_flow_is_that_of_scipy(seed):
    """Whole capacities: the least energy is a maximum flow."""
    rng = np.random.default_rng(seed)
    n, m = 30, 80
    ends = rng.integers(0, n, size=(m, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    excess = rng.integers(-20, 21, size=n)
    weights = rng.integers(0, 10, size=len(ends)).astype(float)
    unary = np.stack([np.maximum(-excess, 0), np.maximum(excess, 0)], axis=1).astype(float)
    model = softmap.Model(unary, ends, softmap.Potts(weights))
    labels, _ = solve_binary(model.network)
    source, sink = np.full(n, n), np.full(n, n + 1)
    row = np.concatenate([ends[:, 0], ends[:, 1], source, np.arange(n)])
    col = np.concatenate([ends[:, 1], ends[:, 0], np.arange(n), sink])
    capacity = np.concatenate([weights, weights, unary[:, 1], unary[:, 0]]).astype(np.int32)
    graph = coo_array((capacity, (row, col)), shape=(n + 2, n + 2)).tocsr()
    assert model.energy(labels) == maximum_flow(graph, n, n + 1).flow_value


def test_a_cut_is_stopped_and_continued():
    rng = np.random.default_rng(5)
    edges = softmap.generators.grid_edges(120, 120)
    model = softmap.Model(rng.normal(size=(120 * 120, 2)), edges, softmap.Potts(2.0))
    best = solve_binary(model.network)
    cut = core.BinaryCut(layout(model.network), math.inf, 1)
    labels, lam = np.empty(model.n, dtype=np.int64), np.empty(model.network.half_size)
    stops = 0
    while not cut.run(stopping(40)):
        stops += 1
    cut.read(labels, lam)
    assert stops > 3
    assert model.energy(labels) == pytest.approx(model.energy(best[0]), rel=1e-12)
    assert dual_bound(model.network, lam) == pytest.approx(dual_bound(model, best[1]), rel=1e-12)


@pytest.mark.parametrize("looks", [1, 100, 3000])
def test_a_cut_that_is_stopped_leaves_a_true_bound(looks):
    rng = np.random.default_rng(3)
    edges = softmap.generators.grid_edges(150, 150)
    model = softmap.Model(rng.normal(size=(150 * 150, 2)), edges, softmap.Potts(2.0))
    labels, lam = solve_binary(model.network, deadline=stopping(looks))
    _, best = solve_binary(model.network)
    assert dual_bound(model.network, lam) <= dual_bound(model, best) <= model.energy(labels)


@given(st.integers(0, 10**6))
def test_a_move_is_the_best_choice_where_it_is_submodular_and_never_worse(seed):
    rng = np.random.default_rng(seed)
    n, d = 6, 4
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.5] or [(0, 1)]
    metric = bool(rng.integers(2))
    tables = (
        softmap.Potts(rng.random(len(pairs))) if metric else rng.normal(size=(len(pairs), d, d))
    )
    model = softmap.Model(rng.normal(size=(n, d)), pairs, tables)
    labels = rng.integers(0, d, size=n)
    proposal = np.full(n, rng.integers(d)) if metric else rng.integers(0, d, size=n)
    before = labels.copy()
    Fusion(model.network).fuse(labels, proposal)
    assert np.all((labels == before) | (labels == proposal))
    assert model.energy(labels) <= model.energy(before) + 1e-9
    if metric:
        choices = itertools.product([False, True], repeat=n)
        best = min(float(model.energy(np.where(c, proposal, before))) for c in choices)
        assert model.energy(labels) == pytest.approx(best, abs=1e-9)


@given(st.integers(0, 10**6))
def test_a_move_is_the_best_choice_at_a_variable_with_many_neighbours(seed):
    """Given the choice of the hub, that of each leaf is its own."""
    rng = np.random.default_rng(seed)
    leaves = 60
    hub = np.stack([np.zeros(leaves, dtype=int), np.arange(1, leaves + 1)], axis=1)
    hub = rng.permuted(rng.permutation(hub), axis=1)
    weights = rng.random(leaves)
    model = softmap.Model(rng.normal(size=(leaves + 1, 4)), hub, softmap.Potts(weights))
    before, proposal = rng.integers(0, 4, size=leaves + 1), np.full(leaves + 1, rng.integers(4))
    labels = before.copy()
    Fusion(model.network).fuse(labels, proposal)
    of, costs = np.empty(leaves + 1), model.unary.reshape(-1, 4)
    of[hub.max(axis=1)] = weights
    totals = []
    for own in (before[0], proposal[0]):
        leaf = [costs[i] + of[i] * (np.arange(4) != own) for i in range(1, leaves + 1)]
        ways = [min(c[before[i]], c[proposal[i]]) for i, c in enumerate(leaf, start=1)]
        totals.append(costs[0, own] + sum(ways))
    assert model.energy(labels) == pytest.approx(min(totals), abs=1e-9)


def test_expansion_ends_where_no_label_can_be_expanded():
    model = softmap.generators.potts_grid(12, 12, 4, seed=2)
    labels = np.ascontiguousarray(cheapest(model.network, model.unary))
    before = model.energy(labels)
    fusion = Fusion(model.network)
    moves = Expansions(fusion)
    assert not moves.ended(labels)
    assert moves.run(labels)
    assert moves.ended(labels)
    assert model.energy(labels) < before
    for alpha in range(4):
        assert fusion.fuse(labels, np.full(144, alpha)) == 0


@given(st.integers(0, 10**6), st.sampled_from(["potts", "stereo"]))
def test_expansions_can_be_stopped_and_continued_anywhere(seed, kind):
    """The same labels as without stops: no expansion is lost, and none raises the energy."""
    make = {"potts": softmap.generators.potts_grid, "stereo": softmap.generators.stereo_grid}[kind]
    model = make(7, 8, 5, seed=seed)
    whole = np.ascontiguousarray(cheapest(model.network, model.unary))
    parts = whole.copy()
    Expansions(Fusion(model.network)).run(whole)
    moves, energy = Expansions(Fusion(model.network)), model.energy(parts)
    looks = itertools.count(400, 100)  # some expansions each time
    while not moves.run(parts, deadline=stopping(next(looks))):
        assert model.energy(parts) <= energy + 1e-9
        energy = model.energy(parts)
    assert np.array_equal(parts, whole)


def test_expansions_start_again_from_other_labels():
    model = softmap.generators.potts_grid(9, 9, 3, seed=4)
    moves = Expansions(Fusion(model.network))
    labels = np.ascontiguousarray(cheapest(model.network, model.unary))
    assert moves.run(labels)
    other = np.zeros(81, dtype=np.int64)
    assert not moves.ended(other)
    assert moves.run(other)
    assert model.energy(other) < model.energy(np.zeros(81, dtype=np.int64))


@pytest.mark.parametrize("looks", [1, 2, 2000, 8000])
def test_a_move_that_is_stopped_changes_nothing(looks):
    model = softmap.generators.potts_grid(60, 60, 4, seed=2)
    labels = np.zeros(3600, dtype=np.int64)
    assert Fusion(model.network).fuse(labels, np.ones(3600), deadline=stopping(looks)) == -1
    assert not labels.any()


def test_a_cut_needs_no_relaxation(monkeypatch):
    """Planning the passes took longer than the cut."""
    monkeypatch.setattr(Passes, "set_up", lambda self: pytest.fail("set up"))
    model = softmap.Model(np.eye(2), [[0, 1]], softmap.Potts(0.5))
    assert softmap.solve(model).status is softmap.Status.OPTIMAL


@pytest.mark.parametrize("goal", ["map", "labels", "optimal"])
def test_solve_proves_submodular_models_by_one_cut(goal):
    rng = np.random.default_rng(0)
    edges = softmap.generators.grid_edges(40, 40)
    model = softmap.Model(rng.normal(size=(1600, 2)), edges, softmap.Potts(0.7))
    result = softmap.solve(model, goal=goal)
    assert result.status is softmap.Status.OPTIMAL
    assert [row.stage for row in result.trace] == ["minimum cut"]
    assert softmap.verify(result).checked
    assert result.energy == pytest.approx(softmap.solve(model, goal="lp", lp_gap=1e-9).primal)


@pytest.mark.parametrize("exponent", [-40, 0, 7])
def test_hard_constraints_beside_large_costs_are_cut_in_any_units(exponent):
    """The finite cost that stands for +inf was smaller than the costs."""
    tables = np.ldexp([[[1000.0, np.inf], [1001.0, 999.0]]], exponent)
    model = softmap.Model(np.ldexp([[0.0, 0.75], [0.25, 0.0]], exponent), [[0, 1]], tables)
    result = softmap.solve(model)
    assert result.labels.tolist() == [1, 1]
    assert result.status is softmap.Status.OPTIMAL
    assert [row.stage for row in result.trace] == ["minimum cut"]


def test_a_run_that_a_cut_ends_is_stored(tmp_path):
    """No checkpoint was written."""
    model = softmap.Model(np.eye(2), [[0, 1]], softmap.Potts(0.5))
    path = tmp_path / "run.npz"
    first = softmap.solve(model, checkpoint=path)
    again = softmap.resume(path, model)
    assert again.status is first.status is softmap.Status.OPTIMAL
    assert again.energy == first.energy
    assert again.bound == first.bound


def test_an_infinite_gap_meets_no_tolerance():
    """Labels without any bound were called optimal within the tolerance."""
    best = BestValues(lambda bound: math.inf, lam=None, labels=None)
    best.offer_labelling(None, 1.0)
    assert best.gaps() == (math.inf, math.inf)
    assert best.met(Tolerances(1e-4, 1e-6)) is None
    assert softmap.relaxation.gaps.relative_gap(math.inf, math.inf) == math.inf


def test_all_terms_of_metrics_are_submodular():
    edges = softmap.generators.grid_edges(4, 5)
    for potential in (softmap.Potts(2.0), softmap.TruncatedLinear(1.5, 3.0)):
        assert expandable(softmap.Model(np.zeros((20, 7)), edges, potential).network) == 1.0


@given(st.integers(2, 4), st.integers(2, 4), st.integers(0, 10**6))
def test_the_fraction_of_submodular_terms(rows, cols, seed):
    table = np.random.default_rng(seed).integers(-2, 3, size=(rows, cols)).astype(float)
    model = softmap.Model([np.zeros(rows), np.zeros(cols)], [[0, 1]], softmap.Tables(table[None]))
    both = range(min(rows, cols))
    terms = [
        table[a, a] + table[x, y] <= table[x, a] + table[a, y]
        for a in both for x in both for y in both if a not in (x, y)
    ]  # fmt: skip
    assert expandable(model.network) == np.mean(terms)
