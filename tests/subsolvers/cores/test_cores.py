"""Core-guided search against enumeration: bounds, labels, infeasibility, and its encoding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.model import Model
from softmap.subsolvers.cores.core_guided import CoreGuided
from softmap.subsolvers.cores.encoding import prime_cubes
from softmap.subsolvers.cores.units import FORBIDDEN, units_of
from support.logical import least_cost, logical_model
from support.strategies import seeds


@given(seeds, st.sampled_from([1, 3, 1 << 40]), st.booleans())
def test_the_optimum_is_that_of_enumeration_and_no_bound_exceeds_it(seed, conflicts, told):
    rng = np.random.default_rng(seed)
    try:
        model = logical_model(rng)
    except softmap.InfeasibleModel:
        return
    optimum, search = least_cost(model), CoreGuided(model.network)
    counts = model.network.num_labels[: model.network.num_visible]
    known = model.energy(rng.integers(0, counts)) if told else math.inf
    slack = 1e-12 * max(1.0, abs(optimum)) if math.isfinite(optimum) else 0.0
    while not search.done:
        labels = search.run(energy=known - model.constant, conflicts=conflicts)
        assert search.bound + model.constant <= optimum + slack
    if math.isinf(optimum):
        assert math.isinf(search.bound)
        assert labels is None
        return
    found = math.inf if labels is None else model.energy(labels[: model.network.num_visible])
    assert min(found, known) == pytest.approx(optimum, rel=1e-9, abs=1e-9)
    assert search.bound + model.constant == pytest.approx(optimum, rel=1e-6, abs=1e-6)


def test_a_search_that_is_stopped_goes_on():
    rng = np.random.default_rng(0)
    clauses = [(rng.choice(30, 3, replace=False), rng.integers(0, 2, 3)) for _ in range(220)]
    factors = [((i,), [0.0, float(rng.integers(1, 9))]) for i in range(30)]
    factors += [softmap.Or(scope, signs) for scope, signs in clauses[:90]]
    factors += [softmap.Or(scope, signs, 2.0) for scope, signs in clauses[90:]]
    model = Model.from_factors([2] * 30, factors)
    whole, parts = CoreGuided(model.network), CoreGuided(model.network)
    expected = model.energy(whole.run())
    stops = 0
    while not parts.done:
        deadline = core.Deadline()
        deadline.stop_after(500)
        labels = parts.run(deadline=deadline)
        stops += 1
        assert parts.bound <= expected
    assert stops > 1
    assert model.energy(labels) == expected == parts.bound == whole.bound


def test_hard_sums_are_searched_whole_without_their_chain_variables():
    n = 40
    weights = [3 + i % 7 for i in range(n)]
    factors = [((i,), [0.0, 1.0 + i % 3]) for i in range(n)]
    factors += [softmap.Linear(range(n), weights, low=60), softmap.AtMostOne(range(0, n, 2))]
    model = Model.from_factors([2] * n, factors)
    encoding = CoreGuided(model.network).encoding
    assert model.network.num_variables > n
    assert encoding.variables == n + 1
    assert len(encoding.sums) == 2
    search = CoreGuided(model.network)
    labels = search.run()
    assert search.done
    assert model.energy(labels[:n]) == search.bound
    assert search.bound == pytest.approx(softmap.solve(model, goal="optimal").energy)


def test_chain_variables_with_costs_are_kept():
    factors = [softmap.Cardinality(range(5), 1, [math.inf, 4.0, 1.0, 0.0, 2.0, 3.0])]
    model = Model.from_factors([2] * 5, factors)
    search = CoreGuided(model.network)
    labels = search.run()
    assert search.bound == 0.0
    assert labels[:5].sum() == 3


@given(seeds, st.integers(1, 4))
def test_cubes_cover_what_they_must_and_nothing_else(seed, axes):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 4, axes)
    needed = rng.random(shape) < rng.random()
    usable = needed | (rng.random(shape) < 0.3)
    covered = np.zeros(shape, dtype=bool)
    for cube in prime_cubes(needed, usable):
        place = [slice(None)] * axes
        for axis, label in cube:
            place[axis] = label
        assert usable[tuple(place)].all()
        for axis, _ in cube:
            wider = place.copy()
            wider[axis] = slice(None)
            assert not usable[tuple(wider)].all()
        covered[tuple(place)] = True
    assert (covered >= needed).all()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.integers(1, 1000), st.integers(-9, 9))
def test_units_are_rounded_down_and_by_less_than_one(costs, tables, exponent):
    values = np.ldexp(np.array([*costs, math.inf]), exponent)
    units = units_of(values, tables)
    unit = Fraction(units.whole) * Fraction(2) ** units.exponent
    found = units.floors(values)
    assert found[-1] == FORBIDDEN
    for cost, count in zip(values[:-1].tolist(), found[:-1].tolist(), strict=True):
        assert count * unit <= Fraction(cost) < (count + 1) * unit
        assert Fraction(units.lower(count)) <= count * unit
        assert units.above(cost) * unit >= Fraction(cost)
    assert abs(found[:-1]).max() * tables < 2**60


def test_whole_costs_are_not_rounded():
    units = units_of(np.array([6.0, -9.0, 0.0, math.inf]), 4)
    assert units.floors(np.array([6.0, -9.0])).tolist() == [2, -3]
    assert units.lower(2) == 6.0


def test_literals_out_of_range_are_refused():
    search = core.CoreSearch(np.zeros(2, dtype=bool))
    start = np.array([0, 1])
    with pytest.raises(ValueError, match="out of range"):
        search.add_clauses(np.array([3]), start, np.array([0]))
    with pytest.raises(ValueError, match="too large"):
        search.add_sums(np.array([1]), start, np.array([1 << 61]), np.array([1]), np.zeros(4, int))
    with pytest.raises(ValueError, match="not positive"):
        search.add_costs(np.array([1]), np.array([0]))
