"""Passes that a deadline stops anywhere: they leave what proves bounds, and go on from there."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softmap import core, generators, lp
from softmap.errors import InfeasibleModel
from softmap.methods.base import make
from softmap.methods.policy import Ask
from softmap.methods.sweeps import planning
from softmap.methods.sweeps.anneal import Anneal
from softmap.methods.sweeps.chains import ChainNumbers, Chains
from softmap.model import Model, Potts
from softmap.model.graph import Graph
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.relaxation.polytope import couple
from softmap.run.judge import Judge
from support.deadlines import stopping
from support.oracles import brute_force
from support.other_numbers import by_default
from support.strategies import models

STOPS = st.lists(st.integers(1, 60), min_size=1, max_size=6)
SWEEPS = ["anneal", "trws", "anneal-star", "mplp", "diffusion", "nesterov"]


def close(value, other):
    return value == pytest.approx(other, rel=1e-6, abs=1e-6)


@given(models(), st.sampled_from(SWEEPS), STOPS)
def test_what_a_stopped_pass_leaves_proves_a_bound(model, name, stops):
    try:
        model = tighten(model)
    except InfeasibleModel:
        return
    least = brute_force(model)[0]
    method = make(name, eta=20.0 if name == "nesterov" else None, threads=1)
    state = method.init(model, None, 0)
    for looks in stops:
        before = state.work
        method.step(state, 3, stopping(looks))
        assert state.work - before <= 2 * model.m * 3
        for ask in (Ask.BOUND, Ask.EVERYTHING):
            proposal = method.answer(state, ask)
            bound = dual_bound(model.network, proposal.lam)
            assert bound <= least + 1e-9 * (1.0 + abs(least))
            assert proposal.bound is None or proposal.bound <= bound + 1e-9 * (1.0 + abs(bound))
        verdict = Judge.of(model.network).look(proposal)
        assert verdict.bound <= min(verdict.primals) + 1e-7 * (1.0 + abs(verdict.bound))


@settings(max_examples=15)
@given(st.integers(0, 10**6), STOPS, st.sampled_from([1, 2]))
def test_passes_go_on_to_the_same_optimum(seed, stops, threads):
    model = generators.random_grid(4, 5, 3, seed=seed)
    chains, eta = Chains(model.network, threads), 5.0
    one, other = chains.start(None), chains.start(None)
    for looks in stops:
        chains.passes(one, 4, eta, momentum=True, deadline=stopping(looks))
    values = []
    for state in (one, other):
        chains.passes(state, 400, eta, momentum=True)
        values.append(chains.marginals(state, eta).smoothed)
    assert values[0] == pytest.approx(values[1], rel=1e-5, abs=1e-5)


@given(st.integers(0, 10**6), st.integers(2, 200))
def test_a_pass_that_stops_forward_changes_no_messages_of_the_run(seed, looks):
    """The messages into early endpoints, the drift and the clock are those before the pass."""
    model = generators.random_grid(6, 7, 3, seed=seed)
    chains = Chains(model.network, 1)
    state, whole = chains.start(None), chains.start(None)
    for run in (state, whole):
        chains.passes(run, 3, 20.0, momentum=True)
    back = chains.plan.back_size
    chains.passes(state, 1, 20.0, momentum=True, deadline=stopping(looks))
    forward = len(chains.plan.rows) + len(chains.plan.blocks)  # looks of the forward half
    if looks <= 1 + forward:
        np.testing.assert_allclose(state.msg[:back], whole.msg[:back], atol=1e-6)
        np.testing.assert_allclose(state.drift, whole.drift, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(state.clock, whole.clock)
    elif looks > 1 + 2 * forward:
        chains.passes(whole, 1, 20.0, momentum=True)
        np.testing.assert_array_equal(state.msg, whole.msg)


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_deadline_that_does_not_pass_changes_no_bit(name, threads):
    model = tighten(generators.random_grid(9, 8, 3, seed=3))
    found = []
    for deadline in (None, core.Deadline()):
        method = make(name, eta=20.0 if name == "nesterov" else None, threads=threads)
        state = method.init(model, None, 0, deadline)
        method.step(state, 25, deadline)
        proposal = method.answer(state, Ask.EVERYTHING, deadline)
        found.append((proposal.lam.tobytes(), state.work, proposal.bound))
    assert found[0] == found[1]


def test_momentum_is_not_lost_by_stops():
    """As many passes, stopped again and again, come about as far as those of one call."""
    model = generators.random_grid(20, 20, 4, seed=1)
    chains, eta = Chains(model.network, 1), 40.0
    whole, parts = chains.start(None), chains.start(None)
    chains.passes(whole, 40, eta, momentum=True)
    done, looks = 0, 0
    while done < 40:
        looks = (looks + 701) % 3000 + 500
        done += chains.passes(parts, 40 - done, eta, momentum=True, deadline=stopping(looks))
    zero = dual_bound(model.network, np.zeros(model.network.half_size))
    bounds = [dual_bound(model.network, chains.prove(state).lam()) for state in (whole, parts)]
    assert bounds[1] - zero > 0.9 * (bounds[0] - zero)


def test_set_up_without_time_says_so():
    model = generators.potts_grid(12, 12, 3, seed=1)
    for name in ("anneal", "trws", "mplp"):
        with pytest.raises(core.OutOfTime):
            make(name).init(model.network, None, 0, core.Deadline(0.0))


@pytest.mark.parametrize("model", [
    generators.potts_grid(12, 12, 3, seed=1), generators.random_grid(6, 6, 6, seed=1),
], ids=["potts", "tables"])  # fmt: skip
def test_an_answer_without_time_has_a_bound_and_no_point(model):
    method = Anneal()
    state = method.init(model.network, None, 0)
    method.step(state, 30)
    late = core.Deadline(0.0)
    proposal = method.answer(state, Ask.EVERYTHING, late)
    assert proposal.abandoned
    assert close(proposal.bound, dual_bound(model.network, proposal.lam))
    alone = method.last_bound(state, core.Deadline())
    assert not alone.nodes
    assert close(alone.bound, dual_bound(model.network, alone.lam))
    nodes = np.full(model.unary.size, 1.0 / int(model.num_labels[0]))
    with pytest.raises(core.OutOfTime):
        couple(model.network, nodes, proposal.lam, 20.0, deadline=late)


@pytest.mark.parametrize("spare", [0, 1 << 23])
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 120))
def test_the_last_bound_is_proved_in_time_or_changes_nothing(spare, seed, stop, looks):
    model = generators.random_grid(5, 5, 3, seed=seed)
    least = lp.solve(model).value
    with by_default(ChainNumbers(spare=spare)):
        for name in ("anneal", "trws"):
            methods = [make(name, threads=1) for _ in range(2)]
            states = [method.init(model.network, None, 0) for method in methods]
            for method, state in zip(methods, states, strict=True):
                method.step(state, 2)
                method.step(state, 1, stopping(stop))
            back = len(states[0].messages.drift)
            before = states[0].messages.msg[:back].copy()
            try:
                found = methods[0].last_bound(states[0], stopping(looks))
            except core.OutOfTime:
                np.testing.assert_allclose(states[0].messages.msg[:back], before, atol=1e-6)
                found = methods[0].last_bound(states[0], core.Deadline())
            whole = methods[1].last_bound(states[1], core.Deadline())
            bound = dual_bound(model.network, found.lam)
            assert found.bound == pytest.approx(whole.bound, abs=1e-5)
            assert found.bound == pytest.approx(bound, abs=1e-9)  # the last check offers no other
            assert bound <= least + 1e-7


def test_a_coarse_start_without_time_changes_nothing():
    model = generators.potts_grid(140, 140, 4, weight=3.0, seed=2)
    method = Anneal()
    state = method.init(model.network, None, 0)
    before = state.messages.msg.copy()
    method.start_coarse(state, core.Deadline(0.0))
    np.testing.assert_array_equal(state.messages.msg, before)
    method.start_coarse(state)
    assert (state.messages.msg != before).any()


@pytest.mark.parametrize("looks", [1, 2])
def test_trws_leaves_out_its_point_once_the_time_is_up(looks):
    """The looks are in the cost of the point."""
    model = generators.erdos_renyi(60, 3, seed=2)
    method, same = (make("trws", eta=None, threads=1) for _ in range(2))
    state, other = (one.init(model.network, None, 0) for one in (method, same))
    for one, at in ((method, state), (same, other)):
        one.step(at, 4)
    end = core.Deadline()
    end.stop_after(looks)
    found = method.answer(state, Ask.EVERYTHING, end)
    whole = same.propose(other)
    assert found.abandoned
    assert not found.points
    assert whole.points
    assert not whole.abandoned
    assert found.bound <= lp.solve(model).value + 1e-9
    assert dual_bound(model.network, found.lam) >= found.bound - 1e-9


@pytest.mark.parametrize(
    ("looks", "made"),
    [(1, []), (2, ["graph"]), (3, ["graph", "levels"]), (4, ["graph", "levels", "keys"])],
)
def test_a_schedule_looks_at_the_deadline_between_its_steps(monkeypatch, looks, made):
    """The graph of 48 million edges was sorted, divided and numbered without a look."""
    steps = []

    def noted(name, function):
        return lambda *given, **named: steps.append(name) or function(*given, **named)

    monkeypatch.setattr(Graph, "from_edges", noted("graph", Graph.from_edges))
    monkeypatch.setattr(planning, "pass_order", noted("levels", planning.pass_order))
    monkeypatch.setattr(planning, "_tile_keys", noted("keys", planning._tile_keys))
    costs = np.random.default_rng(1).random((25, 3))
    model, deadline = Model(costs, generators.grid_edges(5, 5), Potts(1.0)), core.Deadline()
    monkeypatch.setattr(planning, "PLANNING", replace(planning.PLANNING, remembered=0))
    deadline.stop_after(looks)
    with pytest.raises(core.OutOfTime):
        planning.chain_schedule(model.network, 1, deadline)
    assert steps == made
