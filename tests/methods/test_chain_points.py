"""Node marginals of chains: sums over them, points in single precision, and one weight for all."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_chain_proofs import SEEDS, passed
from test_chains import models_of

import softmap
from softmap import core, generators, lp
from softmap.methods.base import Assessment
from softmap.methods.sweeps import chains as sweeps
from softmap.methods.sweeps.anneal import Anneal
from softmap.methods.sweeps.loops import SAMPLED
from softmap.methods.sweeps.planning import chain_schedule
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import base, distance
from softmap.relaxation.consistency import tighten
from softmap.relaxation.polytope import couple, node_cost, normalised
from softmap.run.judge import Judge
from support.families import FAMILIES
from support.oracles import violation
from support.other_numbers import large_models
from support.strategies import few, models

PLAIN = sorted(set(FAMILIES) - {"projection"})


@pytest.mark.parametrize("name", FAMILIES)
@few
@given(seed=SEEDS, eta=st.sampled_from([0.3, 20.0, 1e3]), forward=st.booleans())
def test_sums_over_marginals_are_those_of_numpy(name, seed, eta, forward):
    for model in models_of(name, seed):
        chains, state = passed(model, eta)
        nodes, entropy, minima = chains.loops.marginals(state.msg, eta, forward=forward)
        share, plan = chains.loops.by_node(), chains.plan
        later = np.empty(model.network.n)
        later[plan.nodes] = plan.forward_degree
        through = np.maximum(np.maximum(later, model.network.graph.degree - later), 1.0)
        ends = through - (later if forward else model.network.graph.degree - later)
        expected = np.zeros(2)
        for i in range(model.network.n):
            own, mu = share[model.network.node_slice(i)], nodes[model.network.node_slice(i)]
            mass = np.exp(-eta * (own - own.min()))
            np.testing.assert_allclose(mu, mass / mass.sum(), rtol=1e-9, atol=1e-13)
            log = np.log(np.where(mu > 0, mu, 1.0))
            expected[0] -= (model.network.graph.degree[i] - through[i]) * (mu * log).sum()
            expected[1] += ends[i] * (own.min() - np.log(mass.sum()) / eta)
        scale = 1.0 + np.abs(share[np.isfinite(share)]).sum() * (
            1 + model.network.graph.degree.max()
        )
        assert entropy == pytest.approx(expected[0], abs=1e-9 * model.network.half_size + 1e-9)
        assert minima == pytest.approx(expected[1], abs=1e-12 * scale)


@pytest.mark.parametrize("name", PLAIN)
@few
@given(seed=SEEDS, eta=st.sampled_from([2.0, 200.0]))
def test_points_in_single_precision_cost_what_is_read_from_them(name, seed, eta):
    for model in models_of(name, seed):
        with large_models():
            chains, state = passed(model, eta)
            found = chains.marginals(state, eta)
        if found.point_cost is None:
            assert found.nodes.dtype == np.float64
            continue
        assert found.nodes.dtype == np.float32
        exact = chains.loops.marginals(state.msg, eta, forward=False)[0]
        np.testing.assert_array_equal(found.nodes, exact.astype(np.float32))
        nodes = normalised(model, found.nodes)
        mass = np.add.reduceat(nodes, model.node_offset[:-1])
        np.testing.assert_allclose(mass, 1.0, rtol=0, atol=1e-15 * model.num_labels.max())
        assert node_cost(model, found.nodes) == pytest.approx(node_cost(model, nodes), rel=1e-14)
        share = chains.loops.by_node()
        priced = found.point_cost(found.nodes, whole=True)
        plain = couple(model, nodes, chains.loops.couplings(state.msg, share), eta)
        assert priced.cost == pytest.approx(plain.cost, rel=1e-12, abs=1e-12)
        assert priced.entropy == pytest.approx(plain.entropy, rel=1e-9, abs=1e-9)


@few
@given(model=models())
def test_large_runs_are_right_about_points_and_bounds(model):
    tight, method = tighten(model), Anneal()
    judge = Judge.of(tight)
    with large_models():
        state = method.init(tight, None, 0)
        for _ in range(4):
            method.step(state, SAMPLED)
            method.observe(state, judge.look(method.propose(state)))
    optimum, scale = lp.solve(tight).value, 1.0 + np.abs(tight.unary).sum() + tight.m
    assert judge.best.lp_bound <= optimum + 1e-9 * scale
    if judge.best.point is None:  # no coupling obeys the hard constraints so far
        assert np.isinf(judge.best.point_cost)
        assert any(np.isinf(table).any() for table in tight.tables())
        return
    point = judge.best.point.make()
    assert judge.best.point_cost >= optimum - 1e-9 * scale
    assert point.cost == pytest.approx(judge.best.point_cost, abs=1e-12 * scale)
    assert violation(tight, point.nodes, point.edges).max <= 1e-9


def test_large_runs_reach_the_gap_and_the_number_of_threads_does_not_show():
    model, runs = generators.potts_grid(60, 60, 4, seed=1), []
    with large_models():
        for threads in (1, 3):
            runs.append(softmap.solve(model, goal="lp", lp_gap=1e-6, threads=threads))
    one, other = runs
    assert one.point.nodes.dtype == np.float32
    assert one.point.make().cost == pytest.approx(one.primal, rel=1e-13)
    assert one.relative_gap(one.primal - one.lp_bound) <= 1e-6
    assert (one.lp_bound, one.primal) == (other.lp_bound, other.primal)
    np.testing.assert_array_equal(one.point.nodes, other.point.nodes)


@pytest.mark.parametrize("kept", [(True, True), (False, True), (True, False), ()])
def test_an_average_in_use_is_not_changed(kept):
    model = tighten(generators.potts_grid(5, 5, 3, seed=2))
    method = Anneal()
    state = method.init(model, None, 0)
    method.step(state, 2 * SAMPLED)
    mean, before = state.mean, state.mean.copy()
    method.observe(state, Assessment(0.0, (1.0, 1.0), 0.0, 0.0, (), kept))
    method.step(state, SAMPLED)
    assert (state.mean is mean) == (not any(kept[1:]))
    assert np.array_equal(mean, before) == any(kept[1:])
    assert not np.array_equal(state.mean, before)


@pytest.mark.parametrize(
    "kind", [softmap.Potts, softmap.TruncatedLinear, softmap.TruncatedQuadratic]
)
def test_one_weight_for_all_edges_gives_the_same_bits(kind):
    costs = np.random.default_rng(0).random((77, 4))
    edges, runs = generators.grid_edges(7, 11), []
    for compact in (base.compact, lambda array: array.copy()):
        with (
            mock.patch.object(base, "compact", compact),
            mock.patch.object(distance, "compact", compact),
        ):
            potential = kind(
                np.full(len(edges), 0.3), *([2.0] if kind is not softmap.Potts else [])
            )
        model = Model(costs, edges, potential)
        plan = chain_schedule(model.network)
        chains, state = passed(model, 20.0, 9)
        lam, clock = chains.current_lam(state, 20.0).tobytes(), state.clock.tobytes()
        proved = chains.prove(state, 1)
        runs.append((len(plan.weight), proved.bound, lam, clock, proved.lam().tobytes()))
    assert runs[0][0] == softmap.core.LANES < runs[1][0] == len(plan.edge)
    assert runs[0][1:] == runs[1][1:]
    assert model.potentials[0].arrays()["weights"].tolist() == [0.3] * len(edges)


def test_weights_of_another_size_are_refused():
    model = generators.potts_grid(6, 6, 3, seed=0)
    plan = chain_schedule(model.network)
    blocks = plan.blocks.view(np.uint8)
    with pytest.raises(ValueError, match="one entry per lane"):
        softmap.core.pack_lanes(
            layout(model.network), blocks, plan.edge, np.zeros(3), np.zeros(0), np.zeros(0), 1
        )


@given(models(), st.integers(0, 10**6))
def test_marginals_in_single_precision_are_divided_by_their_sums(model, seed):
    nodes = np.random.default_rng(seed).random(model.network.unary.size).astype(np.float32) + 0.1
    parts = np.split(nodes.astype(float), model.network.node_offset[1:-1])
    expected = np.concatenate([part / part.sum() for part in parts])
    assert normalised(model.network, nodes) == pytest.approx(expected, rel=1e-15)
    out = np.empty(model.network.unary.size)
    core.normalise(layout(model.network), nodes, out, 3)
    assert np.array_equal(out, normalised(model.network, nodes))
    with pytest.raises(ValueError, match="mass"):
        core.normalise(layout(model.network), nodes[1:], out)


@given(models(hard=True), st.integers(0, 10**6), st.sampled_from([1, 3]))
def test_the_cost_of_marginals_in_single_precision_is_that_of_what_they_stand_for(
    model, seed, threads
):
    nodes = np.random.default_rng(seed).random(model.network.unary.size).astype(np.float32) + 0.1
    nodes[np.isinf(model.network.unary)] = 0.0
    terms = np.multiply(
        model.network.unary,
        normalised(model.network, nodes),
        where=nodes > 0,
        out=np.zeros(nodes.size),
    )
    assert node_cost(model.network, nodes, threads) == math.fsum(terms)
    with pytest.raises(ValueError, match="mass"):
        core.careful_node_cost(layout(model.network), nodes[1:])


@given(
    models(hard=True).map(tighten),
    st.sampled_from([1, 3]),
    st.sampled_from([0.5, 30.0, 1e4]),
    st.booleans(),
)
def test_the_shares_that_a_pass_leaves_are_those_of_its_messages(model, threads, eta, forward):
    chains = sweeps.Chains(model.network, threads)
    state, loops = chains.start(None), chains.loops
    chains.passes(state, 3, eta, momentum=True)
    if forward:
        chains.prove(state)
        chains.resend(state, eta)
    left = loops.marginals(state.msg, eta, forward=forward)
    loops.forget()
    anew = loops.marginals(state.msg, eta, forward=forward)
    for one, other in zip(left, anew, strict=True):
        np.testing.assert_array_equal(one, other)


def test_shares_of_messages_that_were_changed_are_computed_anew():
    model = generators.potts_grid(6, 6, 3, seed=0)
    chains = sweeps.Chains(model.network, 1)
    state = chains.start(None)
    chains.passes(state, 3, 10.0, momentum=False)
    before = chains.nodes(state.msg, 10.0)
    half = np.arange(2 * model.m)
    lam = np.random.default_rng(0).normal(size=model.network.half_size)
    chains.begin_with(state, lam, half, np.ones(len(half)))
    after = chains.nodes(state.msg, 10.0)
    chains.loops.forget()
    assert not np.allclose(before, after)
    np.testing.assert_array_equal(after, chains.nodes(state.msg, 10.0))
