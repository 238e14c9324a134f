"""Accelerated sweeps: every inequality of their theorem, and the method against plain numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_baselines import plain_sweep

from softmap import generators, lp, paper
from softmap.paper import rates, theory
from softmap.paper.accel_sweeps import AccelSweeps, sweep_curvature
from softmap.relaxation.bounds import projected_cost
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import SmoothedDual
from support.numpy_twins import long_run
from support.pairs import pair
from support.strategies import few, models, random_lam, seeds

etas = st.sampled_from([0.5, 5.0, 200.0])
finite = models(max_n=5, max_d=3, hard=False)


def colours(model):
    return int(model.network.graph.colouring().max(initial=-1)) + 1


@few
@given(model=finite, seed=seeds, eta=etas)
def test_a_sweep_lowers_L_by_its_share_of_the_gradient(model, seed, eta):
    """L(y) - L(sweep(y)) ≥ ‖∇L(y)‖² / 2B, in the 2-norm with W and in the 1-norm with 2W."""
    if not model.m:
        return
    dual, y = SmoothedDual(model, eta), random_lam(model, seed)
    decrease = dual.value(y) - dual.value(plain_sweep(model, y, "star", eta))
    nu, weight = dual.slack(y), sweep_curvature(model.network, eta)
    norms = np.add.reduceat(np.abs(nu), model.network.half_offset[:-1])
    whole = max(
        (nu**2 / weight).sum(), (norms**2 / (2 * weight[model.network.half_offset[:-1]])).sum()
    )
    assert decrease >= whole / (2 * colours(model)) - 1e-9 * (1 + abs(dual.value(y)))


@few
@given(model=finite, seed=seeds, eta=etas)
def test_the_curvature_bounds_the_hessian(model, seed, eta):
    dual, lam = SmoothedDual(model, eta), random_lam(model, seed)
    u = random_lam(model, seed + 1)
    step = 1e-4 / (1 + eta)
    curvature = -(dual.slack(lam + step * u) - dual.slack(lam - step * u)) @ u / (2 * step)
    assert curvature <= (sweep_curvature(model.network, eta) * u**2).sum() * (1 + 1e-6) + 1e-6


@few
@given(model=models(max_n=4, max_d=3).map(tighten), seed=seeds)
def test_a_safeguard_step_is_that_of_the_theorem(model, seed):
    """One step from arbitrary x, v and A, by definition."""
    if not model.m:
        return
    eta, algorithm = 7.0, AccelSweeps(eta=7.0)
    state = algorithm.init(model, None, 0)
    stars, dual = algorithm.stars, SmoothedDual(model, eta)
    x, v = (stars.lam(stars.start(random_lam(model, seed + k)).msg) for k in (0, 1))
    state.x, state.v = stars.start(x).msg, stars.start(v).msg
    state.value, state.total = dual.value(x), 0.3
    now = stars.lam(state.messages.msg)
    algorithm.guard(state)

    count = algorithm.colours
    least = (1 + math.sqrt(1 + 4 * count * 0.3)) / (2 * count)
    y = x + least / (0.3 + least) * (v - x)
    swept, gradient = plain_sweep(model, y, "star", eta), -dual.slack(y)
    weight = sweep_curvature(model.network, eta)
    value = min(dual.value(x), dual.value(now), dual.value(swept))
    assert state.value == pytest.approx(value, abs=1e-8)
    gain = dual.value(y) - value + gradient @ (v - y)
    square = (gradient**2 / weight).sum()
    held = 0.3 * (dual.value(x) - value)
    if square < 1e-12:
        return
    a = (gain + math.sqrt(max(0.0, gain**2 + 2 * square * held))) / square
    assert state.total - 0.3 == pytest.approx(a, rel=1e-4, abs=1e-6)
    assert state.total - 0.3 >= least * (1 - 1e-12)
    np.testing.assert_allclose(stars.lam(state.v), v - a * gradient / weight, atol=1e-4 * (1 + a))


@pytest.mark.parametrize("eta", [3.0, 100.0])
@pytest.mark.parametrize("every", [1, 6])
def test_the_rate_holds_on_runs(eta, every):
    """L(x_k) - L* ≤ R² / (2 A_k) ≤ 2 B R² / (k + 1)², with R of a minimiser and of its bound."""
    for model in (generators.erdos_renyi(9, seed=2), generators.potts_grid(3, 3, 3, seed=1)):
        least, lam = long_run(model, eta)
        s, weight = theory.sizes(model), sweep_curvature(model.network, eta)
        parts = [lam[model.network.half_slice(h)] for h in range(2 * model.m)]
        centred = np.concatenate([p - (p.max() + p.min()) / 2 for p in parts])
        distance = float((weight * centred**2).sum())
        assert distance <= rates.sweep_distance(s, eta)
        algorithm = AccelSweeps(eta=eta, every=every)
        state = algorithm.init(model.network, None, 0)
        before = state.value
        for k in range(1, 20):
            algorithm.step(state, every)
            assert state.guards == k
            error = state.value - least
            assert error <= distance / (2 * state.total) + 1e-8
            assert state.total >= (k + 1) ** 2 / (4 * algorithm.colours) * (1 - 1e-9)
            assert error <= rates.sweep_rate(k, algorithm.colours, distance) + 1e-8
            assert state.value <= before
            before = state.value
            proposal = algorithm.propose(state)
            assert -proposal.smoothed <= state.value + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_mean_marginals_are_epsilon_optimal_after_K(epsilon):
    model = pair()
    s = theory.sizes(model)
    eta = rates.eta_for(s, epsilon)
    algorithm = AccelSweeps(eta=eta, every=1)
    state = algorithm.init(model.network, None, 0)
    algorithm.step(state, math.ceil(rates.sweep_iterations(s, algorithm.colours, epsilon)))
    dual = SmoothedDual(model, eta)
    cost = projected_cost(dual, algorithm.stars.lam(state.x), state.nodes, exact=True)
    least = lp.solve(model).value
    assert least - 1e-9 <= cost <= least + epsilon


def test_a_run_stops_and_goes_on():
    """Chunks change nothing; a run without edges ends; `solve` takes the method by its name."""
    model = generators.erdos_renyi(12, seed=4)
    states = []
    for chunks in ([60], [1, 24, 30, 5]):
        algorithm = AccelSweeps(eta=50.0)
        states.append(algorithm.init(model.network, None, 0))
        for count in chunks:
            algorithm.step(states[-1], count)
    np.testing.assert_array_equal(states[0].x, states[1].x)
    assert states[0].work == states[1].work == 60 * 2 * model.m + 2 * 7 * model.m
    result = paper.solve(model, method="accel-sweeps", eta=1000.0, goal="lp", lp_gap=1e-3)
    assert result.lp_bound <= lp.solve(model).value + 1e-6 <= result.primal + 2e-6
