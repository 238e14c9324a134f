"""Theorem 2, sharper; small slack by regularisation; the lower bound on chains."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from test_theory import finite, halves, minimiser

import softmap
from softmap import lp
from softmap.errors import OptionError
from softmap.methods.base import make
from softmap.paper import rates, theory
from softmap.paper.regularised import RegularisedDual, iterates, stage
from softmap.relaxation.bounds import projected_cost
from softmap.relaxation.dual import SmoothedDual
from support.pairs import pair, projected
from support.strategies import few, random_lam, seeds

PAPERS = theory.Sizes(n=100, m=271, d=3, cost=1.0, min_degree=1, max_degree=11)
ORDERS = st.sampled_from(["edges", "stars"])


def triangle():
    """The paper's law on three nodes with two labels."""
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (0, 2)]
    return softmap.Model(
        rng.uniform(-0.01, 0.01, (3, 2)), edges, rng.choice([-1.0, 1.0], (3, 2, 2))
    )


def chain(n, tie):
    unary = np.zeros((n, 2))
    unary[0, 0] = unary[-1, 1] = tie
    return softmap.Model(unary, [(i, i + 1) for i in range(n - 1)], softmap.Potts(np.ones(n - 1)))


def least_value(dual):
    """The least value of a regularised dual, by a general-purpose method."""
    halves = range(2 * dual.model.m)

    def gradient(lam):
        return np.concatenate([dual.gradient(lam, h) for h in halves])

    start = np.zeros(dual.model.network.half_size)
    return minimize(dual.value, start, jac=gradient, options={"gtol": 1e-9}).fun


def opposite(model, lam):
    """λ with constants added so that the extreme entries of every λ_h are opposite."""
    out = lam.copy()
    for h in range(2 * model.m):
        part = model.network.half_slice(h)
        out[part] -= (lam[part].max() + lam[part].min()) / 2
    return out


@few
@given(finite, ORDERS, st.sampled_from([0.5, 3.0]))
def test_start_and_distance(model, blocks, eta):
    """Lemma 4: L(0) - L* and ‖λ*‖_G are bounded; P is at least R, and G at least 8/3 of W."""
    if not model.m:
        return
    s = theory.sizes(model)
    dual, least, lam = minimiser(model, eta)
    assert dual.value(np.zeros_like(lam)) - least <= rates.initial_error(s) + 1e-9
    weight = RegularisedDual(model.network, eta, 0.0, blocks).weight
    radius = rates.block_distance(s, eta, blocks)
    assert (weight * opposite(model, lam) ** 2).sum() <= radius * (1 + 1e-6)
    assert radius <= rates.block_weights(s, eta, blocks)
    first = [model.network.half_slice(h).start for h in range(2 * model.m)]
    trace = s.d * rates.spread(s) ** 2 * weight[first].sum()
    assert trace <= rates.block_weights(s, eta, blocks) * (1 + 1e-12)
    degree = model.network.graph.degree[model.edges.reshape(-1)]
    assert (eta * (degree + 2) / 2 <= 3 / 8 * weight[first] * (1 + 1e-12)).all()


@few
@given(finite, ORDERS, seeds)
def test_the_cost_of_a_point_at_small_regularised_error(model, blocks, seed):
    """Lemma 5, at random points near and far from the minimiser."""
    if not model.m:
        return
    s, eta = theory.sizes(model), 2.0
    rng = np.random.default_rng(seed)
    delta = 10 ** rng.uniform(-4, 0) / s.half_edges**2
    dual, smooth = RegularisedDual(model.network, eta, delta, blocks), SmoothedDual(model, eta)
    weight = delta * dual.weight

    def smooth_value(lam):
        return smooth.value(lam) + (weight * lam**2).sum() / 2

    def gradient(lam):
        return smooth.gradient(lam) + weight * lam

    best = minimize(
        smooth_value, np.zeros(model.network.half_size), jac=gradient, method="L-BFGS-B"
    )
    lam = best.x + random_lam(model, seed, 10 ** rng.uniform(-3, 0))
    error = math.sqrt(2 * max(smooth_value(lam) - best.fun, 0.0))
    radius = math.sqrt(rates.block_distance(s, eta, blocks))
    price = math.sqrt(rates.block_weights(s, eta, blocks))
    bound = (s.n + 2 * s.m) * s.log_d / eta + error**2 / (4 * delta)
    bound += price * (delta * radius + 1.5 * error)
    excess = projected_cost(smooth, lam, smooth.node_marginals(lam)) - lp.solve(model).value
    assert excess <= bound + 1e-6


@pytest.mark.parametrize("blocks", ["edges", "stars"])
def test_the_regularised_dual_is_the_smoothed_one_and_a_term(blocks):
    model, eta = triangle(), 2.0
    smooth, dual = (
        SmoothedDual(model.network, eta),
        RegularisedDual(model.network, eta, 0.01, blocks),
    )
    lam = random_lam(model, 0, 0.5)
    term = 0.01 * dual.weight * lam
    assert dual.value(lam) == pytest.approx(smooth.value(lam) + (term * lam).sum() / 2)
    gradient = np.concatenate([dual.gradient(lam, h) for h in range(2 * model.m)])
    np.testing.assert_allclose(gradient, smooth.gradient(lam) + term, atol=1e-12)


@pytest.mark.parametrize("blocks", ["edges", "stars"])
def test_a_stage_divides_the_expected_error_by_eight(blocks):
    model = triangle()
    dual = RegularisedDual(model.network, 4.0, 1 / (2 * model.m) ** 2, blocks)
    lam = random_lam(model, 3, 2.0)
    least = least_value(dual)
    length = rates.stage_length(dual.delta)
    ends = [stage(dual, lam, length, np.random.default_rng(k)) for k in range(3)]
    assert np.mean([dual.value(end) for end in ends]) - least <= (dual.value(lam) - least) / 8


@pytest.mark.parametrize("blocks", ["edges", "stars"])
def test_the_last_point_of_the_regularised_method_is_epsilon_optimal(blocks):
    model, epsilon = triangle(), 8.0
    s = theory.sizes(model)
    eta, delta = rates.eta_for(s, epsilon), rates.regularisation(s, epsilon, blocks)
    dual = RegularisedDual(model.network, eta, delta, blocks)
    least = least_value(dual)
    lam = list(iterates(model.network, epsilon, blocks))[-1]
    assert dual.value(lam) - least <= delta**2 * rates.block_distance(s, eta, blocks) / 18
    assert projected(model, lam, eta) <= lp.solve(model).value + epsilon


@pytest.mark.parametrize(("name", "epsilon"), [("emp", 2.0), ("smp", 0.5)])
def test_settled_methods_are_epsilon_optimal_after_as_many_updates_as_proved(name, epsilon):
    """Accelerated updates, one sweep (stars), plain updates: dual error, slack and cost."""
    model, blocks = pair(), "stars" if name == "smp" else "edges"
    s = theory.sizes(model)
    eta = rates.eta_for(s, epsilon)
    dual, least, _ = minimiser(model, eta)
    half = math.ceil(rates.settled_iterations(s, epsilon, blocks) / 2)
    assert 2 * half < rates.standard_iterations(s, epsilon, blocks)
    errors, slacks = [], []
    for seed in range(5):
        fast = make(f"accel-{name}", eta=eta)
        state = fast.init(model.network, None, seed)
        fast.step(state, half)
        lam = fast.propose(state).lam
        errors.append(dual.value(lam) - least)
        plain = make(name, eta=eta)
        end = plain.init(model.network, lam, seed)
        plain.step(end, half)
        lam = plain.propose(end).lam
        slacks.append((halves(model, dual.slack(lam)) ** 2).sum())
        assert projected(model, lam, eta) <= lp.solve(model).value + epsilon
    assert np.mean(errors) <= rates.accelerated_rate(half, s, eta, blocks)
    assert np.mean(slacks) <= rates.settled_slack(half, half, s, eta, blocks)


def test_counts_of_settled_and_regularised_methods():
    """On the paper's problem: the orders in ε, the least at a third, and below Theorem 1."""
    for blocks in ("edges", "stars"):
        for epsilon in (10.0, 1.0, 0.1):
            settled = rates.settled_iterations(PAPERS, epsilon, blocks)
            assert settled < rates.standard_iterations(PAPERS, epsilon, blocks) / 100
        fine, coarse = (rates.settled_iterations(PAPERS, e, blocks) for e in (1e-5, 1e-2))
        assert math.log10(fine / coarse) == pytest.approx(4, abs=0.01)
        parts = [rates.settled_iterations(PAPERS, 1.0, blocks, f) for f in (0.1, 1 / 3, 0.5)]
        assert parts[1] < parts[2] < parts[0] < 1.23 * parts[1]
        fine, coarse = (rates.regularised_iterations(PAPERS, e, blocks) for e in (1e-5, 1e-2))
        assert 3 < math.log10(fine / coarse) < 3.3
    assert rates.settled_iterations(PAPERS, 1.0, "stars") == pytest.approx(7.5e7, rel=0.01)
    with pytest.raises(OptionError, match="settling must lie between 0 and 1"):
        rates.settled_iterations(PAPERS, 1.0, settling=1.0)


@pytest.mark.parametrize(("name", "blocks"), [("smp", "stars"), ("emp", "edges")])
@pytest.mark.parametrize(("n", "tie", "eta"), [(3, 0.9, 10.0), (5, 0.5, 100.0), (10, 0.5, 388.0)])
def test_plain_methods_are_no_faster_on_a_chain_than_the_lower_bound(name, blocks, n, tie, eta):
    model = chain(n, tie)
    dual, algorithm = SmoothedDual(model, eta), make(name, eta=eta)
    assert lp.solve(model).value == pytest.approx(tie)
    times = np.linspace(0, 2 / rates.chain_decay(n, blocks), 12).astype(int)
    least = []
    for seed in range(8):
        state, gaps = algorithm.init(model.network, None, seed), []
        for count in np.diff(times, prepend=0):
            algorithm.step(state, int(count))
            lam = state.current()
            gaps.append(projected_cost(dual, lam, dual.node_marginals(lam)) - tie)
        least.append(np.minimum.accumulate(gaps))
    bound = rates.chain_gap(times, n, eta, tie, blocks)
    assert bound[0] > bound[-1] > 0
    assert (np.mean(least, axis=0) >= bound).all()


def test_on_a_chain_the_lower_bound_has_the_power_of_the_upper_one():
    """Updates to an expected gap of 0.1 by both bounds: their ratio is bounded in n."""
    ratios = []
    for n in (50, 100, 200):
        model = chain(n, 0.5)
        s = theory.sizes(model)
        gap = float(rates.chain_gap(0, n, rates.eta_for(s, 0.1), 0.5))
        lower = math.log(gap / 0.1) / -math.log1p(-rates.chain_decay(n))
        ratios.append(rates.standard_iterations(s, 0.1, "stars") / lower)
    assert max(ratios) < 1.1 * min(ratios)
    for wrong in ((2, 0.5), (5, 1.0)):
        with pytest.raises(OptionError):
            rates.chain_gap(1, wrong[0], 10.0, wrong[1])
