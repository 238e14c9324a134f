"""Linear assignments: labels and bounds against enumeration, and prices against their law."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.labels.assignment import label_prices, solve_assignment
from softmap.model import Model
from softmap.relaxation.bounds import dual_bound


def _costs(seed, n, d, whole):
    rng = np.random.default_rng(seed)
    costs = rng.integers(-9, 10, (n, d)).astype(float) if whole else rng.normal(size=(n, d))
    costs[rng.random((n, d)) < 0.15] = np.inf
    return costs


def _model(costs):
    n, d = costs.shape
    unary = [((i,), row) for i, row in enumerate(costs)]
    return Model.from_factors([d] * n, [*unary, softmap.AllDifferent(list(range(n)))])


def _least(costs):
    """The cost of the best assignment, by enumeration."""
    n, d = costs.shape
    rows = np.arange(n)
    return min(costs[rows, list(chosen)].sum() for chosen in itertools.permutations(range(d), n))


sizes = st.integers(3, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(max(n, 4), 6)))


@given(st.integers(0, 2**32), sizes, st.booleans())
def test_assignments_are_solved_and_proved(seed, size, whole):
    costs = _costs(seed, *size, whole)
    least = _least(costs)
    try:
        model = _model(costs)
    except softmap.InfeasibleModel:
        assert np.isinf(least)
        return
    if np.isinf(least):
        return
    found = solve_assignment(model, model)
    if found is None:  # small enough for one table
        assert not len(model.running)
        return
    labels, lam = found
    assert model.energy(labels) == pytest.approx(least, abs=1e-9)
    bound = dual_bound(model, lam)
    assert bound <= model.energy(labels)
    assert bound == pytest.approx(least, abs=1e-9)
    result = softmap.solve(model)
    assert result.status is softmap.Status.OPTIMAL
    assert result.energy == pytest.approx(least, abs=1e-9)
    assert softmap.verify(result).holds


@given(st.integers(0, 2**32), sizes)
def test_prices_make_each_label_the_cheapest(seed, size):
    from scipy.optimize import linear_sum_assignment

    costs = _costs(seed, *size, whole=False)
    if np.isinf(_least(costs)):
        return
    rows, labels = linear_sum_assignment(costs)
    prices = label_prices(costs, labels)
    assert (prices <= 0).all()
    free = np.setdiff1d(np.arange(costs.shape[1]), labels)
    assert prices[free] == pytest.approx(0.0, abs=1e-12)
    reduced = costs - prices
    assert (reduced[rows, labels][:, None] <= reduced + 1e-9).all()


def test_labels_that_are_not_optimal_give_a_lower_bound_only():
    """The bound comes from λ: labels of a wrong solver would not be called optimal."""
    rng = np.random.default_rng(5)
    costs = rng.random((5, 6))
    prices = label_prices(costs, np.arange(5))
    bound = (costs - prices).min(axis=1).sum() + prices.sum()
    assert bound <= _least(costs) + 1e-12 < costs[np.arange(5), np.arange(5)].sum()


def test_other_costs_are_left_to_other_methods():
    costs = np.random.default_rng(1).random((5, 6))
    unary = [((i,), row) for i, row in enumerate(costs)]
    different = softmap.AllDifferent(list(range(5)))
    pair = ((0, 1), np.random.default_rng(2).random((6, 6)))
    for more in ([pair], [softmap.AllDifferent([0, 1, 2, 3])]):
        model = Model.from_factors([6] * 5, [*unary, different, *more])
        assert solve_assignment(model, model) is None
    part = Model.from_factors([6] * 5, [*unary, softmap.AllDifferent([0, 1, 2, 3])])
    assert solve_assignment(part, part) is None
    model = _model(costs)
    assert solve_assignment(model, model) is not None


def test_a_larger_assignment_takes_one_check():
    rng = np.random.default_rng(0)
    result = softmap.solve(_model(rng.random((20, 25))))
    assert result.status is softmap.Status.OPTIMAL
    assert len(result.trace) == 1
