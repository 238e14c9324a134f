"""The constants of the theorems: as printed, consistent with each other, and true on models."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import softmap
from softmap.errors import ModelError, OptionError
from softmap.paper import theory
from softmap.relaxation.bounds import projected_cost
from softmap.relaxation.dual import SmoothedDual
from support.families import PAIRWISE
from support.oracles import dense_lp
from support.strategies import etas, models, random_lam, seeds

finite = models(families=(*PAIRWISE, "mix"), hard=False, graphs=("random", "tree", "single"))
SMALL = theory.Sizes(n=3, m=2, d=4, cost=2.0, min_degree=1, max_degree=2)
LOG4 = math.log(4)


def halves(model, nu):
    return np.add.reduceat(np.abs(nu), model.network.half_offset[:-1])


def minimiser(model, eta):
    """L* and a minimiser of L, by a general-purpose method."""
    dual = SmoothedDual(model, eta)
    start = np.zeros(int(model.network.half_offset[-1]))
    options = {"maxiter": 2000, "gtol": 1e-9, "ftol": 1e-15}
    found = minimize(dual.value, start, jac=dual.gradient, method="L-BFGS-B", options=options)
    return dual, found.fun, found.x


@given(finite, seeds, etas)
def test_proposition_approx_bound(model, seed, eta):
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed, 0.5)
    excess = projected_cost(dual, lam, dual.node_marginals(lam)) - dense_lp(model)
    norms = halves(model, dual.slack(lam))
    assert excess <= theory.approximation_error(theory.sizes(model), eta, norms) + 1e-8


@given(finite, st.sampled_from([0.5, 3.0]))
def test_bounds_on_the_dual_optimum(model, eta):
    s = theory.sizes(model)
    dual, least, lam = minimiser(model, eta)
    gap = dual.value(np.zeros_like(lam)) - least
    assert -1e-9 <= gap <= theory.dual_gap_bound(s, eta)
    assert np.abs(_centred(model, lam)).sum() <= theory.dual_norm_bound(s, eta)
    for blocks in ("edges", "stars"):
        gamma = theory.gamma_0(s, eta, blocks)
        norm = float(np.linalg.norm(_centred(model, lam)))
        numerator = 4 * theory.dual_rate(0, gap, norm, gamma)
        if s.d >= 2:  # Lemma "g-bound" assumes two labels
            assert numerator <= theory.growth(s, eta, blocks) ** 2


def _centred(model, lam):
    """λ minus a constant per message, which L does not feel and which shortens it."""
    blocks = [lam[model.network.half_slice(h)] for h in range(2 * model.m)]
    return np.concatenate([b - b.mean() for b in blocks])


def test_theorem_1_and_2_as_printed():
    epsilon = 0.1
    eta = theory.eta_for(SMALL, epsilon)
    assert eta == pytest.approx(4 * 5 * LOG4 / epsilon)
    target = epsilon / (48 * 5 * 4 * 2.0)
    assert theory.slack_target(SMALL, epsilon) == pytest.approx(target)
    standard = 16 * 2 * 5 * (eta * 2.0 + LOG4) / target**2
    assert theory.standard_iterations(SMALL, epsilon) == pytest.approx(standard)
    assert theory.standard_iterations(SMALL, epsilon, "stars") == pytest.approx(2 * standard)
    growth = 24 * 2 * 4 * 5 * (math.sqrt(eta) * 2.0 + LOG4 / math.sqrt(eta))
    assert theory.growth(SMALL, eta) == pytest.approx(growth)
    assert theory.growth(SMALL, eta, "stars") == pytest.approx(2 * growth)
    assert theory.growth(SMALL, eta, "stars", "appendix") == pytest.approx(growth * 40 / 24)
    accelerated = math.sqrt(4 * eta) * growth / (target / 2)
    assert theory.accelerated_iterations(SMALL, epsilon) == pytest.approx(accelerated)
    stars = theory.accelerated_iterations(SMALL, epsilon, "stars")
    assert stars == pytest.approx(accelerated * 2 * math.sqrt(2))


def test_rates_in_epsilon():
    """K grows like ε⁻³ for the standard and ε⁻² for the accelerated algorithms."""
    fine, coarse = 1e-6, 1e-5
    ratio = theory.standard_iterations(SMALL, fine) / theory.standard_iterations(SMALL, coarse)
    assert ratio == pytest.approx(1e3, rel=1e-3)
    ratio = theory.accelerated_iterations(SMALL, fine) / theory.accelerated_iterations(
        SMALL, coarse
    )
    assert ratio == pytest.approx(1e2, rel=1e-3)


def test_the_chosen_eta_and_slack_give_epsilon():
    """With ‖ν‖ = ε′ everywhere, Proposition "approx-bound" is at most ε."""
    for epsilon in (0.01, 1.0):
        eta = theory.eta_for(SMALL, epsilon)
        target = theory.slack_target(SMALL, epsilon)
        assert theory.approximation_error(SMALL, eta, np.full(4, target)) <= epsilon


def test_gamma_0_of_each_form():
    eta = 7.0
    assert theory.gamma_0(SMALL, eta) == 2 * 16 * eta
    assert theory.gamma_0(SMALL, eta, form="zero-sum") == 16 * eta
    assert theory.gamma_0(SMALL, eta, "stars") == 4 * 16 * eta / 1
    assert theory.gamma_0(SMALL, eta, "stars", "zero-sum") == 2 * 16 * eta
    printed = theory.dual_rate(3, 2.0, 0.5, theory.gamma_0(SMALL, eta))
    assert printed == pytest.approx((4 * 2.0 + 16 * 2**2 * eta * 0.25) / 25)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=6))
def test_zero_sum_vectors_have_small_two_norm(values):
    """What halves γ_0: ‖ν‖₁² ≥ 2 ‖ν‖₂² where Σ ν = 0."""
    nu = np.array(values) - np.mean(values)
    assert np.abs(nu).sum() ** 2 >= 2 * (nu @ nu) - 1e-9


def test_theta_and_delta():
    theta, delta = theory.thetas(1000), theory.deltas(1001)
    previous = np.concatenate([[1.0], theta[:-1]])
    printed = (-(previous**2) + np.sqrt(previous**4 + 4 * previous**2)) / 2
    assert np.allclose(theta, printed, rtol=1e-9)
    assert np.allclose(theta**2, (1 - theta) * previous**2)
    assert np.allclose(delta[1:], theta**2)
    k = np.arange(1001)
    assert (delta <= 4 / (k + 2) ** 2 + 1e-15).all()


def test_rounding_theorem():
    eta = theory.rounding_eta(SMALL, 0.5)
    assert eta == pytest.approx(16 * 5 * (math.log(5) + LOG4) / 0.5)
    wide = theory.Sizes(n=50, m=200, d=4, cost=2.0, min_degree=1, max_degree=9)
    assert theory.rounding_threshold(wide, 0.5) <= theory.rounding_eta(wide, 0.5)
    order = 4**3 * 2**7 * 2**2 * 2.0**2 * math.log(8) ** 2
    printed = theory.rounding_iterations(SMALL, 0.5, 0.1, form="printed")
    assert printed == pytest.approx(order / (0.1 * 0.5))
    assert theory.rounding_iterations(SMALL, 0.5, 0.1) == pytest.approx(order / (0.1 * 0.25))
    slow = 4**4 * 2**11 * 2**4 * 2.0**3 * math.log(8) ** 3 / (0.01 * 0.125)
    assert theory.rounding_iterations(SMALL, 0.5, 0.1, accelerated=False) == pytest.approx(slow)


def test_dimensionless_counts_do_not_change_with_the_units_of_cost():
    scaled = theory.Sizes(n=3, m=2, d=4, cost=2000.0, min_degree=1, max_degree=2)
    for count in (theory.standard_iterations, theory.accelerated_iterations):
        assert count(scaled, 100.0) == pytest.approx(count(SMALL, 0.1))
    one = theory.rounding_iterations(SMALL, 0.5, 0.1)
    assert theory.rounding_iterations(scaled, 500.0, 0.1) == pytest.approx(one)


def test_sizes_of_a_model():
    model = softmap.Model(
        [[0.0, -3.0], [1.0, 1.0, 1.0], [0.0, 0.0]],
        [[0, 1], [1, 0]],
        [np.ones((2, 3)), np.ones((3, 2))],
    )
    s = theory.sizes(model)
    assert s == theory.Sizes(n=3, m=2, d=3, cost=3.0, min_degree=2, max_degree=2)


def test_hard_constraints_have_no_theorem():
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], softmap.Potts([np.inf]))
    with pytest.raises(ModelError, match="the theorems need finite costs"):
        theory.sizes(model)


def test_bad_arguments():
    with pytest.raises(OptionError, match="epsilon must be a positive number"):
        theory.eta_for(SMALL, 0.0)
    with pytest.raises(OptionError, match="eta must be a positive number"):
        theory.growth(SMALL, -1.0)
    with pytest.raises(OptionError, match="blocks must be 'edges' or 'stars'"):
        theory.gamma_0(SMALL, 1.0, "nodes")
    with pytest.raises(OptionError, match="failure must lie between 0 and 1"):
        theory.rounding_iterations(SMALL, 1.0, 1.0)
