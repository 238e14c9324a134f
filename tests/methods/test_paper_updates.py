"""Every method equals its numpy twin, update by update, and every update keeps the paper's laws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from softmap import generators, paper
from softmap.methods.base import METHODS, make
from softmap.model import Model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import SmoothedDual
from support.numpy_twins import Xoshiro
from support.strategies import models, random_lam

PAPER = tuple(paper.ALGORITHMS)
STANDARD = ("emp", "smp", "bcd")
seeds = st.integers(0, 2**32 - 1)
etas = st.sampled_from([0.1, 1.0, 20.0, 1000.0])


def _allowed_lam(model, seed, scale=1.0):
    excluded = np.isposinf(model.unary)[SmoothedDual(model, 1.0)._half_states]
    return np.where(excluded, 0.0, random_lam(model, seed, scale))


def _assert_follows_twin(name, model, eta, seed, updates=12):
    first = _allowed_lam(model, seed)
    algorithm = make(name, eta=eta)
    state = algorithm.init(model.network, first, seed)
    expected = paper.iterate(model.network, *paper.ALGORITHMS[name], eta, lam=first, seed=seed)
    for lam in itertools.islice(expected, 1, updates + 1):
        algorithm.step(state, 1)
        got = state.current() if name in STANDARD else algorithm.propose(state).lam
        np.testing.assert_allclose(got, lam, rtol=1e-9, atol=1e-9 * (1 + 1 / eta), err_msg=name)


@given(model=models(max_n=4, max_d=3).map(tighten), seed=seeds, eta=etas)
def test_methods_follow_their_numpy_twins(model, seed, eta):
    for name in PAPER if model.m else ():
        _assert_follows_twin(name, model, eta, seed)


@pytest.mark.parametrize("name", PAPER)
def test_methods_follow_their_numpy_twins_on_graphs(name):
    star = Model(np.random.default_rng(0).normal(size=(5, 3)), [[0, k] for k in (1, 2, 3, 4)],
                 np.random.default_rng(1).normal(size=(4, 3, 3)))  # fmt: skip
    ragged = tighten(generators.ragged_constrained(7, seed=3))
    for model in (generators.erdos_renyi(8, seed=1), generators.random_tree(6, 3), star, ragged):
        _assert_follows_twin(name, model, 30.0, 5, updates=40)


# --- laws of one update -------------------------------------------------------------------------


def _one_update(name, model, eta, seed, scale=1.0):
    """λ before and after one update, and the half-edges of its block."""
    before = _allowed_lam(model, seed, scale)
    algorithm = make(name, eta=eta)
    state = algorithm.init(model, before, seed)
    algorithm.step(state, 1)
    h = Xoshiro.seeded(seed).half_edge(model)
    node = int(model.edges.reshape(-1)[h])
    block = paper.N(model.network, node) if name == "smp" else [h]
    return before, state.current(), node, block


@pytest.mark.parametrize("name", ["emp", "smp"])
@given(model=models(max_n=5, max_d=4).map(tighten), seed=seeds, eta=etas)
def test_an_update_zeroes_the_slack_of_its_block(name, model, seed, eta):
    if not model.m:
        return
    _, after, _, block = _one_update(name, model, eta, seed)
    nu = SmoothedDual(model, eta).slack(after)
    for h in block:
        np.testing.assert_allclose(nu[model.network.half_slice(h)], 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["emp", "smp"])
@given(model=models(max_n=5, max_d=4).map(tighten), seed=seeds, eta=etas)
def test_the_decrease_of_L_is_the_bhattacharyya_formula(name, model, seed, eta):
    """-(|B|+1)/η log Σ_x (μ Π S)^{1/(|B|+1)}; for |B| = 1 that is -(2/η) log Σ √(μ S)."""
    if not model.m:
        return
    before, after, node, block = _one_update(name, model, eta, seed)
    dual = SmoothedDual(model, eta)
    decrease = dual.value(before) - dual.value(after)
    power = len(block) + 1
    logs = paper.log_mu(model.network, before, eta, node) + sum(
        paper.log_S(model.network, before, eta, h) for h in block
    )
    scale = 1 + abs(dual.value(before))
    assert decrease == pytest.approx(-power / eta * logsumexp(logs / power), abs=1e-9 * scale)

    norms = [np.abs(paper.nu(model.network, before, eta, [h])).sum() ** 2 for h in block]
    if name == "emp":  # Lemma "emp-improvement"
        assert decrease >= norms[0] / (4 * eta) - 1e-9 * scale
    else:  # Lemma "smp-improvement", and the sharper constant of docs/theory
        assert decrease >= sum(norms) / (8 * len(block) * eta) - 1e-9 * scale
    assert decrease >= sum(norms) / (2 * power * eta) - 1e-9 * scale


@given(model=models(max_n=5, max_d=4).map(tighten), seed=seeds, eta=etas)
def test_a_gradient_step_promises_half_the_squared_slack(model, seed, eta):
    """L falls by ‖ν‖₂²/(2η) or more: the curvature of an edge block is η, so 1/η is its step."""
    if not model.m:
        return
    before, after, _, (h,) = _one_update("bcd", model, eta, seed)
    dual = SmoothedDual(model, eta)
    promised = (paper.nu(model.network, before, eta, [h]) ** 2).sum() / (2 * eta)
    scale = 1 + abs(dual.value(before))
    assert dual.value(before) - dual.value(after) >= promised - 1e-9 * scale


# --- extremes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [1e-3, 1.0, 1e8])
@settings(max_examples=10)
@given(model=models(max_n=5, max_d=4), seed=seeds, scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_nothing_overflows(eta, model, seed, scale):
    scaled = tighten(
        model.network.replace(
            unary=model.network.unary * scale,
            potentials=[p.scaled(scale) for p in model.network.potentials],
        )
    )
    dual = SmoothedDual(scaled, eta)
    excluded = np.isposinf(scaled.unary)[dual._half_states]
    for name in PAPER:
        algorithm = make(name, eta=eta)
        state = algorithm.init(scaled, None, seed)
        algorithm.step(state, 200)
        lam = algorithm.propose(state).lam
        assert np.isfinite(lam).all(), name
        assert np.isfinite(dual.value(lam)), name
        assert (lam[excluded] == 0.0).all(), name


@pytest.mark.parametrize("name", PAPER)
def test_isolated_vertices_and_models_without_edges(name):
    alone = Model([[0.0, 1.0]] * 3, None, [])
    algorithm = make(name, eta=10.0)
    state = algorithm.init(alone.network, None, 0)
    algorithm.step(state, 10)
    assert algorithm.propose(state).lam.size == 0
    assert state.work == 0
    with_pair = Model([[0.0, 1.0]] * 4, [[1, 3]], [[[0.0, 1.0], [2.0, 0.0]]])
    _assert_follows_twin(name, with_pair, 10.0, 2)


def test_the_registry_knows_the_papers_methods():
    assert set(PAPER) <= set(METHODS)
    for name in PAPER:
        assert make(name, eta=1.0).name == name
