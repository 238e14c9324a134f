"""What is read off messages where they lie: bounds below the truth, prices and labels of twins."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_chains import models_of

import softmap
from softmap import core, generators, tuning
from softmap.labels import decode
from softmap.later import later, unmade
from softmap.methods.sweeps import chains as sweeps
from softmap.methods.sweeps.anneal import Anneal
from softmap.methods.sweeps.chains import ChainNumbers, Chains, ProvedBound
from softmap.methods.sweeps.loops import Messages
from softmap.methods.sweeps.planning import chain_schedule, decoding_order
from softmap.model import Model
from softmap.model.potentials import SharedTables
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.relaxation.polytope import couple
from softmap.run.judge import Judge
from softmap.verification.dual import exact_bound
from support.families import FAMILIES
from support.other_numbers import large_models
from support.strategies import few

SEEDS = st.integers(0, 2**32 - 1)


def passed(model: Model, eta: float, count: int = 3) -> tuple[Chains, Messages]:
    chains = Chains(model.network, 1)
    state = chains.start(None)
    chains.passes(state, count, eta, momentum=True)
    return chains, state


@pytest.mark.parametrize("name", FAMILIES)
@few
@given(seed=SEEDS, hard=st.integers(0, 1))
def test_the_bound_of_a_half_pass_is_one_of_its_lambda(name, seed, hard):
    for model in models_of(name, seed):
        chains, state = passed(model, 20.0)
        back = state.msg[: len(state.drift)].copy()
        proved = chains.prove(state, hard)
        lam = proved.lam()
        chains.undo_proposal(state)
        np.testing.assert_array_equal(state.msg[: len(back)], back)
        np.testing.assert_array_equal(proved.lam(), lam)
        assert proved.bound <= exact_bound(model.network, lam)
        assert proved.bound == pytest.approx(dual_bound(model, lam), rel=1e-12, abs=1e-12)
        chains.passes(state, 1, 20.0, momentum=True)  # λ is the same whenever it is made
        np.testing.assert_array_equal(proved.lam(), lam)


def passed_large(model: Model) -> tuple[Chains, Messages]:
    with large_models():
        return passed(model, 30.0)


@pytest.mark.parametrize("hard", [0, 1, 3])
def test_the_bound_of_a_large_model_takes_the_memory_of_momentum(hard):
    model = generators.random_grid(7, 7, 3, seed=3)
    chains, state = passed_large(model)
    room, size = state.drift, len(state.drift)
    back = state.msg[:size].copy()
    proved = chains.prove(state, hard)
    assert np.shares_memory(room, state.aside)
    assert not len(state.drift)
    sent, moved = state.msg[:size].copy(), state.aside.copy()
    np.testing.assert_array_equal(sent, sent.astype(np.float32))  # they can be kept exactly
    np.testing.assert_allclose(sent + moved, back, rtol=1e-6, atol=1e-6 * np.abs(moved).max())
    if hard:
        assert np.abs(moved).max() > 1e-4  # so that it says something that they came back
        assert np.abs(sent + moved - back).max() <= 1e-6 * np.abs(moved).max()
    lam = proved.lam()
    chains.undo_proposal(state)
    np.testing.assert_array_equal(state.msg[:size], sent + moved)
    assert np.shares_memory(room, state.drift)
    assert not state.drift.any()
    assert not len(state.aside)
    np.testing.assert_array_equal(proved.lam._back, sent)
    np.testing.assert_array_equal(proved.lam(), lam)


@given(seed=SEEDS, hard=st.integers(0, 2))
def test_a_bound_in_single_precision_is_one_of_its_lambda(seed, hard):
    """Also if λ is made later, and close to the bound of the messages that are not rounded."""
    model = tighten(generators.erdos_renyi(12, 3, seed=seed % 1000))
    plain, state = passed(model, 20.0)
    exact = plain.prove(state, hard).bound
    with large_models():
        chains, state = passed(model, 20.0)
        proved = chains.prove(state, hard)
        assert proved.bound == pytest.approx(exact, rel=1e-6, abs=1e-6)
        chains.passes(state, 1, 20.0, momentum=True)
        other = chains.prove(state, hard)
        lam = proved.lam()
        assert proved.bound <= exact_bound(model, lam)
        assert proved.bound == pytest.approx(dual_bound(model, lam), rel=1e-12, abs=1e-12)
        assert other.bound <= exact_bound(model, other.lam())


def test_only_a_bound_in_use_is_copied(monkeypatch):
    """As the judge keeps one of two, one array for the best bound is enough."""
    chains, state = passed_large(generators.random_grid(7, 7, 3, seed=3))
    kept, copies = chains.prove(state, 1), []
    plain = sweeps.KeptBound.keep
    monkeypatch.setattr(
        sweeps.KeptBound, "keep", lambda self, back: (copies.append(self), plain(self, back))
    )
    chains.prove(state, 1)
    assert copies == [kept.lam]
    chains.passes(state, 1, 30.0, momentum=True)
    assert copies == [kept.lam]


def test_bounds_of_two_runs_over_one_schedule_do_not_mix():
    model = generators.random_grid(7, 7, 3, seed=3)
    chains, first = passed_large(model)
    second = chains.start(None)
    chains.passes(second, 1, 5.0, momentum=True)
    proofs = [chains.prove(state, 1) for state in (first, second)]
    expected = [proved.lam() for proved in proofs]
    for state in (first, second):
        chains.passes(state, 1, 30.0, momentum=True)
    for proved, lam in zip(proofs, expected, strict=True):
        np.testing.assert_array_equal(proved.lam(), lam)


def test_messages_that_single_precision_has_no_room_for_are_not_rounded(monkeypatch):
    monkeypatch.setitem(tuning._DEFAULTS, ChainNumbers, ChainNumbers(spare=0))
    model = generators.random_grid(5, 5, 3, seed=1)
    huge = model.replace(
        unary=model.unary * 2.0**140, potentials=[p.scaled(2.0**140) for p in model.potentials]
    )
    found = []
    for each, unit in ((model, 1.0), (huge, 2.0**140)):
        chains, state = passed(each, 30.0 / unit)
        assert chains.large == (unit == 1.0)
        found.append(chains.prove(state, 1).bound / unit)
        assert np.isfinite(state.msg).all()
    assert found[1] == pytest.approx(found[0], rel=1e-3)


def test_momentum_that_begins_anew_is_a_pass_without():
    model = generators.random_grid(7, 7, 3, seed=3)
    for momentum in (True, False):
        passes, state = passed(model, 30.0)
        state.drift = state.drift[:0]
        passes.passes(state, 1, 30.0, momentum=momentum)
        if momentum:
            first = state.msg.copy()
    np.testing.assert_array_equal(state.msg, first)


@given(seed=SEEDS)
def test_what_is_left_at_nodes_is_not_above_the_truth(seed):
    """Shares of any size, at nodes of 1, 2, 3 or more chains: 1 / 3 is no number of the machine."""
    rng = np.random.default_rng(seed)
    model = generators.erdos_renyi(20, 3, seed=seed % 1000)
    chains = Chains(model.network, 1)
    plan, shift = chains.plan, np.zeros(len(chains.plan.blocks))
    theta = rng.normal(size=plan.cost_size) * 10.0 ** rng.integers(-3, 4)
    found = core.chain_bound(plan.native, theta, shift, 0.0, 1)
    exact = Fraction(0)
    (at, step), onwards = plan.node_places, plan.forward_degree
    for k, i in enumerate(plan.nodes):
        chains_through = abs(int(plan.chains[k]))
        part = Fraction(1.0 / chains_through)
        if part > Fraction(1, chains_through):  # shares of bounds are rounded down
            part = Fraction(np.nextafter(1.0 / chains_through, 0.0))
        rest = 1 / part - int(onwards[k])
        states = at[i] + step[i] * np.arange(3)
        exact += min(rest * Fraction(share) for share in theta[states])
    assert Fraction(found) <= exact
    assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-12 * np.abs(theta).sum())


@given(seed=SEEDS)
def test_packed_tables_are_rounded_down(seed):
    rng = np.random.default_rng(seed)
    edges = generators.grid_edges(4, 4)
    weights, table = rng.random(len(edges)), rng.normal(size=(3, 3))
    model = Model(
        rng.normal(size=(16, 3)),
        edges,
        SharedTables([table], np.zeros(len(edges), dtype=int), weights),
    )
    plan = chain_schedule(model.network)
    tiles = plan.blocks[plan.blocks["count"] > 0]
    assert len(tiles)
    for block in tiles:
        for lane in range(block["count"]):
            e = int(plan.edge[block["lane"] + lane])
            at = block["table_at"] + lane + core.LANES * np.arange(9)
            packed = plan.table[at].reshape(3, 3)
            packed = packed if block["orientation"] == 0 else packed.T
            for x, y in np.ndindex(3, 3):
                exact = Fraction(weights[e]) * Fraction(table[x, y])
                assert Fraction(float(packed[x, y])) <= exact
                assert packed[x, y] == pytest.approx(float(exact), rel=1e-12)


def test_bounds_do_not_depend_on_threads_or_on_what_was_asked_before():
    model = generators.potts_grid(70, 70, 3, seed=1)
    found = []
    for threads in (1, 2):
        chains = Chains(model.network, threads)
        state = chains.start(None)
        chains.passes(state, 4, 30.0, momentum=True)
        first = chains.prove(state, 1).bound
        assert chains.prove(state, 1).bound == first
        found.append(first)
    assert found[0] == found[1]


def test_a_message_that_is_no_number_proves_nothing():
    model = generators.potts_grid(5, 5, 3, seed=1)
    chains, state = passed(model, 30.0)
    for broken in (np.nan, np.inf, -np.inf):
        messages = state.msg.copy()
        messages[0] = broken
        assert chains.prove(replace(state, msg=messages), 0).bound == -np.inf


def turned(model: Model, rng: np.random.Generator) -> Model:
    """The same graph with tables of nine labels, every other edge given from its later end."""
    edges = model.edges.copy()
    edges[::2] = edges[::2, ::-1]
    costs = softmap.Tables(rng.normal(size=(len(edges), 9, 9)))
    return Model(rng.normal(size=(model.n, 9)), edges, costs)


@pytest.mark.parametrize("name", [*FAMILIES, "turned"])
@settings(max_examples=15)
@given(seed=SEEDS, eta=st.sampled_from([1.0, 30.0, 1e4]))
def test_a_price_is_that_of_the_coupling(name, seed, eta):
    """Also where shares and messages go on: κ is made of what was kept, to the bit."""
    rng = np.random.default_rng(seed)
    given = [turned(generators.potts_grid(4, 5, 2), rng)] if name == "turned" else None
    for model in given or models_of(name, seed):
        chains, state = passed(model, eta)
        chains.keep_couplings()
        for again in (False, True):
            if again:
                chains.prove(state, 1)
                chains.resend(state, eta)
            found = chains.marginals(state, eta)
            kappa = chains.loops.couplings(state.msg, chains.loops.by_node())
            if len(model.network.auxiliaries):
                continue
            prices = []
            for nodes in (found.nodes, other_marginals(model, rng)):
                plain = couple(model.network, nodes, kappa, eta)
                prices.append((plain, found.point_cost and found.point_cost(nodes, whole=True)))
                if found.point_cost:
                    assert found.point_cost(nodes, whole=False).cost == prices[-1][1].cost
            chains.passes(state, 1, 3.0 * eta, momentum=True)
            np.testing.assert_array_equal(found.coupling(), kappa)
            # but for weights of several kinds
            assert found.point_cost or name.startswith(("potts", "truncated"))
            for plain, priced in prices if found.point_cost else ():
                assert priced.cost == pytest.approx(plain.cost, rel=1e-12, abs=1e-12)
                assert priced.entropy == pytest.approx(plain.entropy, rel=1e-9, abs=1e-9)
                assert priced.slack == pytest.approx(plain.slack, rel=1e-9, abs=1e-9)


def other_marginals(model: Model, rng: np.random.Generator) -> np.ndarray:
    mass = rng.random(model.unary.size) * np.isfinite(model.unary)
    return mass / np.repeat(np.add.reduceat(mass, model.network.node_offset[:-1]), model.num_labels)


@pytest.mark.parametrize("weight", [0.3, 0.7, 1.0])
def test_the_cost_of_a_point_is_computed_with_products_rounded_to_nearest(weight):
    """The packed tables of passes hold the products rounded down, for the bound."""
    rng, edges = np.random.default_rng(2), generators.grid_edges(6, 6)
    tables = rng.integers(-9, 9, (4, 3, 3)).astype(float)
    costs = SharedTables(tables, rng.integers(0, 4, len(edges)), np.full(len(edges), weight))
    model = Model(rng.random((36, 3)), edges, costs)
    result = softmap.solve(model, goal="lp", lp_gap=1e-3)
    assert result.point.make().cost == pytest.approx(result.primal, rel=1e-14)
    assert softmap.verify(result, model).holds


def test_points_do_not_depend_on_messages_where_costs_say_so():
    for model in (generators.potts_grid(3, 3, 4), generators.stereo_grid(3, 3, 8)):
        chains, state = passed(model, 10.0)
        assert chains.marginals(state, 10.0).coupling is None


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=10)
@given(seed=SEEDS)
def test_labels_are_those_of_lambda(name, seed):
    for model in models_of(name, seed):
        chains, state = passed(model, 20.0)
        proved = chains.prove(state, 0)
        if model.network.has_forbidden or len(model.network.auxiliaries):
            assert proved.labels is None
            continue
        order = decoding_order(model.network.graph, model.network.num_variables)
        np.testing.assert_array_equal(proved.labels(), decode(model.network, proved.lam(), order))


@pytest.mark.threads
def test_labels_are_the_same_on_any_number_of_threads():
    """Of a picture that is large enough for a second thread, and a graph without straight rows."""
    pairs = np.random.default_rng(1).integers(0, 3000, (20_000, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    costs = np.random.default_rng(2).random((3000, 3))
    for model in (
        generators.stereo_grid(70, 70, 5, seed=1),
        Model(costs, pairs, softmap.Potts(0.3)),
    ):
        chains, state = passed(model, 20.0)
        proved, found = chains.prove(state, 0), []
        for threads in (1, 2, 3):
            chains.threads = threads
            found.append(proved.labels())
        np.testing.assert_array_equal(found[1], found[0])
        np.testing.assert_array_equal(found[2], found[0])
        order = decoding_order(model.network.graph, model.network.num_variables)
        np.testing.assert_array_equal(found[0], decode(model.network, proved.lam(), order))


def test_a_point_that_was_looked_at_can_be_looked_at_again():
    """A bound overwrites the messages sent forward; a second look sends them once more."""
    model = tighten(generators.random_grid(8, 8, 3, seed=4))
    method = Anneal()
    state = method.init(model, None, 0)
    method.step(state, 40)
    first, second = (Judge.of(model).look(method.propose(state)) for _ in range(2))
    assert second.bound == first.bound
    assert second.primals[0] == pytest.approx(first.primals[0], abs=1e-3)
    assert second.slack == pytest.approx(first.slack, abs=0.1)


def test_making_lambda_between_passes_changes_nothing():
    model = generators.random_grid(7, 7, 3, seed=3)
    chains, state = passed(model, 30.0)
    proved = chains.prove(state, 1)
    chains.passes(state, 2, 30.0, momentum=True)
    before = state.msg.copy()
    lam = proved.lam()
    np.testing.assert_array_equal(state.msg, before)
    np.testing.assert_array_equal(proved.lam(), lam)
    assert not state.overwritten
    assert chains.prove(state, 0).bound == passed_again(model, before).bound


def passed_again(model: Model, messages: np.ndarray) -> ProvedBound:
    chains = Chains(model.network, 1)
    state = chains.start(None)
    state.msg[:] = messages
    return chains.prove(state, 0)


def test_places_of_messages():
    model = generators.ragged_constrained(30, max_labels=4, seed=2)
    chains = Chains(tighten(model), 1)
    lam = np.random.default_rng(0).normal(size=int(model.network.half_offset[-1]))
    messages, (at, step) = chains.start(lam).msg, chains.plan.half_places
    for h in range(2 * model.m):
        own = lam[model.network.half_slice(h)]
        np.testing.assert_array_equal(messages[at[h] + step[h] * np.arange(len(own))], -own)
    np.testing.assert_array_equal(chains.loops.lam(messages), lam)


def test_what_is_made_later_is_made_once():
    @later("value")
    class Owner:
        pass

    owner, calls = Owner(), []
    owner.value = lambda: calls.append(1) or [1, 2]
    assert callable(unmade(owner, "value"))
    assert owner.value == [1, 2]
    assert unmade(owner, "value") is owner.value
    assert calls == [1]
    owner.value = [3]
    assert owner.value == [3]
