"""Sums are exact and rounded once, whatever the order of their terms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core
from softmap.model.sums import careful_sums, exact_terms, units_below

NUMBERS = st.lists(
    st.one_of(
        st.floats(-1e3, 1e3),
        st.floats(-1e250, 1e250),
        st.sampled_from([1.0, 2.0**-53, -(2.0**-53), 2.0**-106, 2.0**53, 2.0**53 + 2, 5e-324]),
    ),
    min_size=1,
    max_size=40,
)


@given(NUMBERS)
def test_a_sum_is_rounded_once(values):
    array, expected = np.array(values), math.fsum(values)
    assert core.careful_sum(array) == expected
    assert careful_sums(array) == expected
    many = np.stack([array] * 3)
    assert careful_sums(many).tolist() == [expected] * len(many)


@given(NUMBERS, st.integers(1, 5))
def test_exact_terms_lose_nothing(values, parts):
    pieces = np.array_split(np.array(values), parts)
    assert math.fsum(term for piece in pieces for term in exact_terms(piece)) == math.fsum(values)


def test_a_forbidden_term_makes_an_infinite_sum():
    assert careful_sums(np.array([1.0, np.inf, 2.0])) == math.inf
    assert careful_sums(np.array([[1.0, np.inf]] * 3)).tolist() == [math.inf] * 3
    assert math.fsum(exact_terms(np.array([1.0, np.inf]))) == math.inf


def test_rounding_is_right_halfway_between_two_numbers():
    half = [1.0, 2.0**-53]
    for rest in (2.0**-120, -(2.0**-120), 0.0):
        values = np.array([*half, rest])
        assert core.careful_sum(values) == math.fsum(values)


@pytest.mark.parametrize("seed", range(4))
def test_threads_do_not_change_a_sum(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=20_000) * 10.0 ** rng.integers(-20, 20, 20_000)
    values[::2] = -values[1::2]  # much cancels
    values[0] = 2.0**-60
    shuffled = rng.permutation(values)
    mass = rng.random(20_000) * (rng.random(20_000) < 0.5)
    costs = np.where(mass == 0, np.inf, shuffled)
    products = (shuffled * mass)[mass > 0]
    for threads in (1, 2, 5):
        assert core.careful_sum(shuffled, threads) == math.fsum(values)
        assert core.careful_product(costs, mass, threads) == math.fsum(products)
        costs[7], mass[7] = np.inf, 0.5
        assert core.careful_product(costs, mass, threads) == math.inf
        costs[7], mass[7] = np.inf, 0.0
        products = np.multiply(costs, mass, where=mass > 0, out=np.zeros(20_000))


@given(NUMBERS)
def test_products_are_rounded_before_they_are_added(values):
    costs, mass = np.array(values), np.linspace(0.1, 0.9, len(values))
    assert core.careful_product(costs, mass) == math.fsum(costs * mass)


@pytest.mark.parametrize("exponent", [-1000, -3, 0, 3, 700, 1000])
def test_units_are_below_their_costs(exponent):
    costs = np.array([-1e-140, -5e-324, -0.0, 0.0, 1e-140, -2.5, 3.7])
    unit = Fraction(2) ** exponent
    floors = [math.floor(Fraction(cost) / unit) for cost in costs.tolist()]
    assert units_below(costs, exponent).tolist() == [float(floor) for floor in floors]
