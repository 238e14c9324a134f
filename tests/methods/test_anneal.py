"""The annealing policy: η rises, with a primal point to compare with or without."""

from __future__ import annotations

import numpy as np
import pytest

from softmap import generators
from softmap.drive.solve import solve
from softmap.methods.base import Assessment
from softmap.methods.policy import AnnealingRule
from softmap.methods.sweeps.anneal import Anneal
from softmap.model import Model
from softmap.model.potentials import Tables
from softmap.relaxation.gaps import cost_scale


def permutation(n: int, seed: int) -> Model:
    """Every variable another label: node marginals seldom have a coupling that is allowed."""
    rng = np.random.default_rng(seed)
    edges = [(i, j) for i in range(n) for j in range(i + 1, n)]
    differ = np.where(np.eye(n, dtype=bool), np.inf, 0.0)
    return Model(rng.normal(size=(n, n)), edges, Tables([differ] * len(edges)))


def test_the_temperature_is_annealed_without_a_primal_point():
    model = permutation(8, seed=0)
    trace = solve(model, lp_gap=0.0, gap=0.0, max_work=2 * model.m * 400, threads=1).trace
    assert trace[-1].eta > 10 * trace[0].eta
    assert trace[-1].bound > trace[0].bound


@pytest.mark.parametrize("primal", [5.0, np.inf])
def test_eta_is_raised_when_smoothing_makes_the_gap(primal):
    model = generators.potts_grid(3, 3, 2, seed=1)
    algorithm = Anneal(threads=1)
    state = algorithm.init(model.network, None, 0)
    first = state.eta
    state.smoothed, state.previous, state.node_entropy = 3.0, 2.99, 0.0
    # all of the gap 5 - 4 is entropy: the regularised pair agrees
    algorithm.observe(state, Assessment(4.0, (primal,), 2.0 * first, 0.0))
    assert state.eta == AnnealingRule().growth * first
    state.smoothed, state.previous = 3.0, 1.0
    algorithm.observe(state, Assessment(4.0, (primal,), 0.0, 0.0))
    assert state.eta == AnnealingRule().growth * first


def test_the_scale_of_costs_follows_factors_and_ignores_constants():
    model = generators.random_grid(4, 4, 3, seed=2)
    scale = cost_scale(model.network)
    shifted = model.replace(unary=model.unary + 7.0)
    assert cost_scale(shifted.network) == pytest.approx(scale)
    scaled = model.replace(
        unary=model.unary * 10.0, potentials=[p.scaled(10.0) for p in model.potentials]
    )
    assert cost_scale(scaled.network) == pytest.approx(10.0 * scale)
