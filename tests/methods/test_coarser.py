"""Pictures in blocks, and passes that begin with what those have learnt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.generators import erdos_renyi, grid_edges, potts_grid
from softmap.methods.policy import AnnealingRule
from softmap.methods.sweeps import anneal
from softmap.methods.sweeps.anneal import Anneal
from softmap.methods.sweeps.chains import Chains
from softmap.model import Model, Potts, TruncatedLinear, TruncatedQuadratic
from softmap.tuning import TUNING, Tuning
from support.oracles import dense_lp
from support.relaxed_runs import promised, same_result

FAMILIES = {
    "potts": Potts,
    "linear": lambda weights: TruncatedLinear(weights, 2.0),
    "quadratic": lambda weights: TruncatedQuadratic(weights, 3.5),
}
SHAPES = st.tuples(st.integers(2, 7), st.integers(3, 7))


NUMBERS = anneal.AnnealNumbers(coarse_pixels=6)  # pictures of any size are looked at
ANY_SIZE = Tuning(NUMBERS)


def picture(
    shape: tuple[int, int], family: str, seed: int, *, labels: int = 3, weight: float = 4.0
) -> Model:
    """A random picture whose edges come in any order and direction, in two groups."""
    rng = np.random.default_rng(seed)
    edges = rng.permutation(grid_edges(*shape))
    turned = rng.random(len(edges)) < 0.5
    edges[turned] = edges[turned][:, ::-1]
    weights, some = weight * rng.uniform(0.5, 1.5, len(edges)), len(edges) // 2
    groups = [(edges[:some], weights[:some]), (edges[some:], weights[some:])]
    costs = rng.random((shape[0] * shape[1], labels))
    made = [(ends, FAMILIES[family](of)) for ends, of in groups if len(ends)]
    return Model(costs, None, made)


def in_blocks(model: Model, width: int) -> np.ndarray:
    """The block of every pixel, one by one."""
    across = (width + 1) // 2
    return np.array([(i // width) // 2 * across + (i % width) // 2 for i in range(model.n)])


@pytest.mark.parametrize("family", FAMILIES)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_blocks_cost_what_their_pixels_cost_with_one_label(family, shape, seed):
    model = picture(shape, family, seed)
    small = anneal.coarser(model.network, NUMBERS)
    assert small is not None
    block = in_blocks(model, shape[1])
    assert small.model.n == block.max() + 1
    for labels in np.random.default_rng(seed).integers(0, 3, (5, small.model.n)):
        assert small.model.energy(labels) == pytest.approx(model.energy(labels[block]))


@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_lam_comes_from_the_edge_that_leads_the_same_way(shape, seed):
    model = picture(shape, "potts", seed)
    small, block = anneal.coarser(model.network, NUMBERS), in_blocks(model, shape[1])
    across = (shape[1] + 1) // 2
    ends = {tuple(pair): e for e, pair in enumerate(small.model.edges.tolist())}
    weights = small.model.potentials[0].arrays()["weights"]
    own = np.concatenate([p.arrays()["weights"] for p in model.potentials])
    for h in range(2 * model.m):
        to, far = (int(model.edges[h >> 1, side]) for side in (h & 1, 1 - (h & 1)))
        step = {1: 1, shape[1]: across}[abs(far - to)] * (1 if far > to else -1)
        there = (block[to], block[to] + step)
        known = ends.get(tuple(sorted(there)), -1)
        if step in (1, -1) and block[to] // across != there[1] // across:
            known = -1
        assert small.source[h] == (-1 if known < 0 else 2 * known + (step < 0))
        assert small.part[h] == (0.0 if known < 0 else own[h >> 1] / weights[known])


@given(
    shape=SHAPES,
    family=st.sampled_from(list(FAMILIES)),
    seed=st.integers(0, 2**32 - 1),
)
def test_spreading_is_taking_and_packing(shape, family, seed):
    model = picture(shape, family, seed)
    small, chains = anneal.coarser(model.network, NUMBERS), Chains(model.network, 1)
    lam = np.random.default_rng(seed).normal(size=small.model.half_size)
    state = chains.start(None)
    chains.begin_with(state, lam, small.source, small.part)
    taken = lam.reshape(-1, 3)[small.source] * small.part[:, None]
    expected = chains.start(taken.reshape(-1))
    back = len(state.drift)
    assert not state.drift.any()
    np.testing.assert_array_equal(state.msg[:back], expected.msg[:back])
    assert not state.msg[back:].any()


def test_what_is_spread_must_be_there():
    model = potts_grid(3, 3, 2)
    chains, halves = Chains(model.network, 1), 2 * model.m
    state = chains.start(None)
    with pytest.raises(ValueError, match="source names half-edges past the end of lam"):
        core.spread(
            chains.loops.layout, chains.plan.native, np.zeros(8), np.full(halves, 4),
            np.ones(halves), state.msg,
        )  # fmt: skip
    with pytest.raises(ValueError, match="part"):
        core.spread(
            chains.loops.layout, chains.plan.native, np.zeros(8), np.zeros(halves, dtype=np.int64),
            np.ones(1), state.msg,
        )  # fmt: skip


def others() -> dict[str, Model]:
    """Models that are not gone through in blocks."""
    edges, costs = grid_edges(5, 6), np.random.default_rng(0).random((30, 3))
    uneven = [row[: 2 + k % 2] for k, row in enumerate(costs)]
    hard = costs.copy()
    hard[3, 1] = np.inf
    cuts = np.where(np.arange(len(edges)) % 2, 1.0, 2.0)
    return {
        "weak couplings": Model(costs, edges, Potts(0.1)),
        "no edges": Model(costs),
        "not a grid": erdos_renyi(30, 3, seed=1),
        "eight neighbours": Model(costs, grid_edges(5, 6, 8), Potts(9.0)),
        "a chain": Model(costs, np.stack([np.arange(29), np.arange(1, 30)], axis=1), Potts(9.0)),
        "uneven labels": Model(uneven, edges, Potts(9.0)),
        "hard constraints": Model(hard, edges, Potts(9.0)),
        "negative weights": Model(costs, edges, Potts(np.where(np.arange(len(edges)), 9.0, -1.0))),
        "several truncations": Model(
            costs, edges, TruncatedLinear(9.0 * np.ones(len(edges)), cuts)
        ),
        "several families": Model(
            costs, None, [(edges[:9], Potts(9.0)), (edges[9:], TruncatedLinear(9.0, 2.0))]
        ),
        "tables": Model(costs, edges, 9.0 * (1.0 - np.eye(3))),
    }


@pytest.mark.parametrize("name", others())
def test_other_models_have_no_blocks(name):
    assert anneal.coarser(others()[name].network, NUMBERS) is None


def test_small_pictures_have_no_blocks():
    assert anneal.coarser(picture((5, 6), "potts", 0).network, anneal.AnnealNumbers()) is None


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=8)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_runs_that_looked_ahead_keep_their_promises(family, shape, seed):
    model = picture(shape, family, seed, weight=2.0)
    relaxed = dense_lp(model)
    found = softmap.solve(model, goal="lp", lp_gap=1e-6, tuning=ANY_SIZE)
    promised(found, model, relaxed)
    assert found.bound == pytest.approx(relaxed, rel=1e-5, abs=1e-5)
    assert softmap.verify(found).holds


def test_looking_ahead_is_work_and_the_same_with_any_number_of_threads():
    model = picture((40, 51), "linear", 3)
    options = {"goal": "lp", "lp_gap": 1e-4, "tuning": ANY_SIZE}
    runs = [softmap.solve(model, threads=threads, **options) for threads in (1, 2)]
    same_result(*runs)
    small = anneal.coarser(model.network, NUMBERS)
    assert small is not None
    passes, rest = divmod(runs[0].work, 2 * model.m)
    assert rest  # passes over blocks are no whole number of passes over pixels
    assert runs[0].sweeps > passes >= 5


def test_a_strongly_tied_picture_takes_less_work(monkeypatch):
    model = potts_grid(130, 130, 8, weight=1.0, seed=0)
    ahead = softmap.solve(model, goal="lp", lp_gap=1e-4)
    monkeypatch.setattr(anneal, "coarser", lambda *_: None)
    plain = softmap.solve(model, goal="lp", lp_gap=1e-4)
    assert ahead.sweeps < 0.8 * plain.sweeps


def test_whoever_has_no_time_begins_at_zero():
    model = picture((20, 20), "potts", 0)
    method = Anneal().with_tuning(ANY_SIZE)
    state = method.init(model.network, None, 0)
    eta = state.eta
    method.start_coarse(state, core.Deadline(0.0))
    assert not state.messages.msg.any()
    assert (state.work, state.eta) == (0, eta)
    method.start_coarse(state)
    assert state.messages.msg.any()
    small = anneal.coarser(model.network, NUMBERS)
    assert state.work > 2 * small.model.m * NUMBERS.coarse_passes  # and blocks of blocks
    assert state.eta == TUNING.of(AnnealingRule).growth * eta


def test_eta_stays_where_it_was_given():
    model = picture((20, 20), "potts", 0)
    method = Anneal(eta=7.0).with_tuning(ANY_SIZE)
    state = method.init(model.network, None, 0)
    method.start_coarse(state)
    assert state.eta == 7.0


@pytest.mark.parametrize("passes", [1, NUMBERS.coarse_passes - 1, NUMBERS.coarse_passes])
def test_short_runs_do_not_start_coarse(passes):
    model = picture((20, 20), "potts", 0)
    whole = 2 * model.m
    most = passes * whole
    found = softmap.solve(model, goal="lp", lp_gap=0.0, max_work=most, tuning=ANY_SIZE)
    assert (found.work % whole == 0) == (passes < NUMBERS.coarse_passes)
    assert found.work <= most


def test_warm_starts_do_not_start_coarse():
    model = picture((20, 20), "potts", 0)
    found = softmap.solve(
        model, goal="lp", warm_start=np.zeros(model.network.half_size), tuning=ANY_SIZE
    )
    assert found.work % (2 * model.m) == 0
