"""Truncated linear edges get their cheapest transport: against linear programs, in any units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.model.layout import layout
from softmap.relaxation.polytope import needs_coupling
from softmap.relaxation.transport import cheapest_coupling


def coupled(p, q, weights, cut, eta=3.0):
    """Prices and plans of edges between the rows of p and those of q."""
    count, d = p.shape
    nodes = np.stack([p, q], axis=1).ravel()
    edges = np.arange(2 * count).reshape(count, 2)
    model = softmap.Model(np.zeros((2 * count, d)), edges, softmap.TruncatedLinear(weights, cut))
    assert not needs_coupling(model.network)
    cost, plan, kappa = np.empty(count), np.empty(count * d * d), np.zeros(model.network.half_size)
    core.couple(
        layout(model.network), kappa, eta, nodes, None, core.CouplingArrays(cost, plan=plan)
    )
    tables = np.stack([model.network.table(e) for e in range(count)])
    return cost, plan.reshape(tables.shape), tables


def distributions(rng, count, d, kind):
    mass = rng.random((2, count, d)) ** rng.choice([1, 8, 60])
    mass[rng.random(mass.shape) < 0.3] = 0.0
    mass[:, :, rng.integers(d)] += 1e-3
    if kind == "near":  # where all but the last digits agree
        mass[1] = mass[0] * (1.0 + 1e-12 * rng.random(mass[0].shape))
    if kind == "sharp":
        mass = np.eye(d)[rng.integers(d, size=(2, count))]
    return mass / mass.sum(axis=2, keepdims=True)


cuts = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 3.0, 7.0, np.inf]), st.floats(0.0, 30.0, allow_subnormal=False)
)


@settings(deadline=None)
@given(
    st.integers(1, 24), st.integers(1, 19), st.lists(cuts, min_size=1, max_size=3),
    st.sampled_from(["any", "near", "sharp"]), st.integers(0, 10**6),
)  # fmt: skip
def test_the_price_is_that_of_the_cheapest_coupling(d, count, cut, kind, seed):
    rng = np.random.default_rng(seed)
    p, q = distributions(rng, count, d, kind)
    weights = rng.uniform(0.0, 3.0, count) * (rng.random(count) > 0.1)
    cost, plan, tables = coupled(p, q, weights, rng.choice(cut, count))
    best = (cheapest_coupling(tables, p, q)[0] * tables).sum(axis=(1, 2))
    np.testing.assert_allclose(cost, best, rtol=1e-12, atol=1e-13)
    handed_out = (plan * tables).sum(axis=(1, 2))
    digit = tables.max(axis=(1, 2)) * d * 2.0**-52  # since the sums of p and q may differ
    assert (cost >= handed_out * (1 - 1e-15) - digit).all()
    assert plan.min() >= 0.0
    np.testing.assert_allclose(plan.sum(axis=2), p, atol=1e-14)
    np.testing.assert_allclose(plan.sum(axis=1), q, atol=1e-14)


def test_between_whole_truncations_prices_lie_on_a_line():
    """The same coupling is the cheapest from one whole truncation to the next."""
    rng = np.random.default_rng(0)
    p, q = distributions(rng, 40, 12, "any")
    for whole in range(12):
        low, middle, high = (coupled(p, q, 1.0, whole + part)[0] for part in (0.0, 0.3, 1.0))
        np.testing.assert_allclose(middle, 0.7 * low + 0.3 * high, rtol=1e-12)


def test_equal_distributions_cost_nothing_at_all():
    p, _ = distributions(np.random.default_rng(1), 30, 17, "any")
    cost, plan, _ = coupled(p, p, 1e15, 4.5)
    assert not cost.any()
    np.testing.assert_array_equal(plan, p[:, :, None] * np.eye(17))


def test_what_hardly_differs_is_priced_to_the_last_digits():
    """Prices are relative to the mass that moves, not to all of it."""
    rng, d = np.random.default_rng(2), 20
    p = np.tile(rng.dirichlet(np.ones(d)), (50, 1))
    q, moved = p.copy(), 2.0 ** -rng.integers(40, 50, 50)
    ends = np.sort(rng.choice(d - 1, (50, 2)), axis=1)
    ends[:, 1] += 1
    q[np.arange(50), ends[:, 0]] -= moved
    q[np.arange(50), ends[:, 1]] += moved
    left = p[np.arange(50), ends[:, 0]] - q[np.arange(50), ends[:, 0]]
    right = q[np.arange(50), ends[:, 1]] - p[np.arange(50), ends[:, 1]]
    cost = coupled(p, q, 1e12, 6.0)[0]
    steps = np.minimum(ends[:, 1] - ends[:, 0], 6)
    between = np.minimum(left, right), np.maximum(left, right)
    assert (cost >= 1e12 * steps * between[0] * (1 - 1e-13)).all()
    assert (cost <= 1e12 * steps * between[1] * (1 + 1e-3)).all()


@pytest.mark.parametrize("power", [-300, -20, 0, 20, 290])
def test_units_change_nothing_but_the_unit(power):
    p, q = distributions(np.random.default_rng(3), 20, 9, "any")
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 20)
    once, scaled = (coupled(p, q, w, 3.5)[0] for w in (weights, weights * 2.0**power))
    np.testing.assert_array_equal(scaled, once * 2.0**power)


@pytest.mark.parametrize(
    ("labels", "weight"), [((5, 5), -1.0), ((5, 4), 1.0)], ids=["negative", "uneven"]
)
def test_other_edges_depend_on_messages(labels, weight):
    potential = softmap.TruncatedLinear([1.0, weight], 2.0)
    unary = [np.zeros(5), np.zeros(5), np.zeros(labels[1])]
    assert needs_coupling(softmap.Model(unary, [(0, 1), (1, 2)], potential).network)


def test_a_solved_model_needs_no_messages_for_its_point():
    """Its price is that of the point, which is checked by itself."""
    rng = np.random.default_rng(5)
    edges = softmap.generators.grid_edges(9, 11)
    costs = softmap.TruncatedLinear(rng.uniform(0.05, 0.3, len(edges)), 3.5)
    model = softmap.Model(rng.random((99, 12)), edges, costs)
    result = softmap.solve(model, goal="lp", lp_gap=1e-6)
    assert result.primal - result.lp_bound <= 1e-6 * abs(result.primal)
    assert softmap.verify(result, model).holds
