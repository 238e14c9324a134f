"""Theorems end to end, on models small enough to afford the number of iterations they ask for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from softmap import generators, lp
from softmap.labels import round_nodes
from softmap.methods.base import make
from softmap.model import Model
from softmap.paper import theory
from softmap.relaxation.dual import SmoothedDual
from support.pairs import pair, projected

PAPER = ("emp", "smp", "accel-emp", "accel-smp", "accel-emp-printed", "accel-smp-printed")


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("emp", 4.0), ("smp", 5.0), ("accel-emp", 1.0), ("accel-smp", 2.0)],
)
def test_the_projected_point_is_epsilon_optimal_after_K(name, epsilon):
    """Theorems 1 and 2 with their own η and K; ‖C‖_∞ = 1, so costs of points span about 6."""
    model = pair()
    s = theory.sizes(model)
    blocks = "stars" if "smp" in name else "edges"
    count = theory.accelerated_iterations if "accel" in name else theory.standard_iterations
    algorithm = make(name, eta=theory.eta_for(s, epsilon))
    state = algorithm.init(model.network, None, 0)
    algorithm.step(state, math.ceil(count(s, epsilon, blocks)))
    value = projected(model, algorithm.propose(state).lam, algorithm.eta)
    least = lp.solve(model).value
    assert least - 1e-9 <= value <= least + epsilon


@pytest.mark.parametrize("name", PAPER)
def test_the_projected_point_nears_the_lp(name):
    """Not K but a few thousand updates, on trees, cycles, stars: the error is that of the entropy.

    Proposition "approx-bound" holds at the iterate itself.
    """
    star = Model(np.eye(5, 3), [[0, k] for k in range(1, 5)], np.ones((4, 3, 3)) - np.eye(3))
    for model in (generators.random_tree(5, 3, seed=1), generators.erdos_renyi(6, seed=4), star):
        eta, least = 60.0, lp.solve(model).value
        algorithm = make(name, eta=eta)
        state = algorithm.init(model.network, None, 1)
        algorithm.step(state, 4000)
        lam = algorithm.propose(state).lam
        dual = SmoothedDual(model, eta)
        norms = np.add.reduceat(np.abs(dual.slack(lam)), model.network.half_offset[:-1])
        error = projected(model, lam, eta) - least
        assert -1e-9 <= error <= theory.approximation_error(theory.sizes(model), eta, norms)
        assert error < 0.25


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("seed", range(3))
def test_rounding_recovers_a_unique_tight_labelling(name, seed):
    """Two labels, so vertices of the polytope are half-integral and Δ ≥ margin / 2."""
    margin = 0.5
    model, labels = generators.planted(10, 2, margin=margin, seed=seed)
    eta = theory.rounding_threshold(theory.sizes(model), margin / 2)
    algorithm = make(name, eta=eta)
    state = algorithm.init(model.network, None, seed)
    for _ in range(40):
        algorithm.step(state, 5000)
        lam = algorithm.propose(state).lam
        found = round_nodes(model.network, SmoothedDual(model, eta).node_marginals(lam))
        if np.array_equal(found, labels):
            break
    np.testing.assert_array_equal(found, labels)
