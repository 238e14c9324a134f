"""The sharper Theorem 1: its inequalities on models, and end to end."""

import math

import numpy as np
import pytest
from hypothesis import given
from test_theory import finite, halves

from softmap import generators, lp
from softmap.methods.base import make
from softmap.paper import rates, theory
from softmap.relaxation.bounds import projected_cost
from softmap.relaxation.dual import SmoothedDual
from support.numpy_twins import long_run
from support.oracles import dense_lp
from support.pairs import pair, projected
from support.strategies import etas, few, random_lam, seeds

PAPERS = theory.Sizes(n=100, m=271, d=3, cost=1.0, min_degree=1, max_degree=11)


def spreads(model, lam):
    parts = [lam[model.network.half_slice(h)] for h in range(2 * model.m)]
    return np.array([part.max() - part.min() for part in parts])


@given(finite, seeds, etas)
def test_the_cost_of_a_projected_point(model, seed, eta):
    dual, lam = SmoothedDual(model, eta), random_lam(model, seed, 0.5)
    excess = projected_cost(dual, lam, dual.node_marginals(lam)) - dense_lp(model)
    bound = rates.cost_error(
        theory.sizes(model), eta, halves(model, dual.slack(lam)), spreads(model, lam)
    )
    assert excess <= bound + 1e-8


@few
@given(finite, seeds)
def test_bounds_on_lambda_and_the_dual_error(model, seed):
    """Spreads of star updates and of level sets, and (L - L*)² ≤ Q Σ ‖ν‖₁² for both orders."""
    eta = 3.0
    if not model.m:
        return
    s = theory.sizes(model)
    dual = SmoothedDual(model, eta)
    least, best = long_run(model, eta, 3000)
    assert spreads(model, best).sum() <= rates.total_spread(s, eta)
    for name, blocks in (("emp", "edges"), ("smp", "stars")):
        algorithm = make(name, eta=eta)
        state = algorithm.init(model.network, None, seed)
        for _ in range(4):
            algorithm.step(state, 3)
            lam = state.current()
            if blocks == "stars":
                assert spreads(model, lam).max() <= rates.star_spread(s) + 1e-9
            assert spreads(model, lam).sum() <= rates.total_spread(s, eta)
            error, norms = dual.value(lam) - least, halves(model, dual.slack(lam))
            assert error**2 <= rates.conditioning(s, eta, blocks) * (norms**2).sum() + 1e-9


@pytest.mark.parametrize(("name", "epsilon"), [("emp", 2.0), ("smp", 0.5)])
def test_the_projected_point_is_epsilon_optimal_after_fewer_updates(name, epsilon):
    model = pair()
    s, blocks = theory.sizes(model), "stars" if name == "smp" else "edges"
    algorithm = make(name, eta=rates.eta_for(s, epsilon))
    state = algorithm.init(model.network, None, 0)
    count = math.ceil(rates.standard_iterations(s, epsilon, blocks))
    assert count < theory.standard_iterations(s, epsilon, blocks) / 20
    algorithm.step(state, count)
    value = projected(model, algorithm.propose(state).lam, algorithm.eta)
    least = lp.solve(model).value
    assert least - 1e-9 <= value <= least + epsilon


def test_counts():
    """On the paper's problem at ε = 1; the order in ε; the closed form for stars."""
    epsilon = 1.0
    for blocks in ("edges", "stars"):
        fine = rates.standard_iterations(PAPERS, epsilon / 10, blocks)
        coarse = rates.standard_iterations(PAPERS, epsilon, blocks)
        assert fine / coarse == pytest.approx(100, rel=0.01)
        assert coarse < theory.standard_iterations(PAPERS, epsilon, blocks) / 1e4
    stars = 512 * 271**2 * (100 + 542) * 4 * math.log(3) / epsilon**2
    assert rates.standard_iterations(PAPERS, epsilon, "stars") == pytest.approx(stars)
    edges = rates.greedy_rate(7, PAPERS, 1000.0) * 2 * 271
    assert edges == pytest.approx(rates.random_rate(7, PAPERS, 1000.0))
    assert rates.sweep_iterations(PAPERS, 7, 0.1) == pytest.approx(
        10 * rates.sweep_iterations(PAPERS, 7, 1.0)
    )
    model = generators.erdos_renyi(9, seed=0)
    assert rates.spread(theory.sizes(model)) == 2.0
