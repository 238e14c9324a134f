"""Half passes, one by one: together they are the passes of `core.passes`; sums that are low."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, generators
from softmap.methods.sweeps.chains import Chains
from softmap.methods.sweeps.loops import CLOCK
from softmap.model.layout import layout


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 2])
def test_half_passes_make_passes(threads):
    model = generators.random_grid(9, 11, 3, seed=1)
    chains = Chains(model.network, threads)
    one, other = chains.start(None), chains.start(None)
    chains.passes(one, 6, 40.0, momentum=True)
    theta, dot = np.zeros(chains.plan.cost_size), np.zeros(len(chains.plan.blocks))
    lay, plan = layout(model.network), chains.plan.native
    arrays = core.ChainArrays(other.msg, other.drift, theta, other.shift, dot, other.clock)
    for _ in range(6):
        core.extrapolate(other.msg, other.drift, other.clock, threads)
        for forward in (True, False):
            core.half_pass(lay, plan, arrays, forward, 40.0, True, threads)
        other.clock[2] = dot.sum()
    assert np.array_equal(one.msg, other.msg)
    assert np.array_equal(one.drift, other.drift)
    assert np.array_equal(one.shift, other.shift)
    assert one.clock == pytest.approx(other.clock)


def test_arrays_are_checked():
    clock = np.array(CLOCK)
    with pytest.raises(ValueError, match="fewer messages"):
        core.extrapolate(np.zeros(2), np.zeros(3, np.float32), clock, 1)
    with pytest.raises(ValueError, match="at least 1"):
        core.extrapolate(np.zeros(3), np.zeros(3, np.float32), clock, 0)
    with pytest.raises(ValueError, match="clock"):
        core.extrapolate(np.zeros(3), np.zeros(3, np.float32), clock[:2], 1)


@given(st.lists(st.floats(-1e300, 1e300), max_size=20))
def test_low_sums_are_low_and_close(values):
    found = core.lower_sum(np.array(values, dtype=np.float64))
    exact = sum(map(Fraction, values), Fraction(0))
    assert Fraction(found) <= exact
    size = sum(abs(Fraction(v)) for v in values)
    assert exact - Fraction(found) <= size * Fraction(1, 2**51) + Fraction(1, 2**1000)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], 0.0), ([1.0, np.inf], np.inf), ([np.nan], -np.inf), ([-np.inf, np.inf], -np.inf)],
)
def test_sums_that_are_no_numbers(values, expected):
    assert core.lower_sum(np.array(values)) == expected


def test_the_drift_is_that_of_momentum():
    """By its definition, from the messages of two passes: a plain twin of what a pass stores."""
    chains = Chains(generators.random_grid(9, 11, 3, seed=1).network, 1)
    state, size = chains.start(None), chains.plan.back_size
    chains.passes(state, 4, 40.0, momentum=True)
    before, drift = state.msg[:size].copy(), state.drift.astype(float)
    t = 1.0 if state.clock[2] > 0.0 else state.clock[0]
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
    core.extrapolate(state.msg, state.drift, state.clock, 1)
    ahead = (t - 1.0) / following * drift
    close = {"rtol": 1e-6, "atol": 1e-6 * np.abs(drift).max()}
    assert np.abs(ahead).max() > 1e-4  # so that it says something
    assert state.clock[0] == pytest.approx(following)
    start = state.msg[:size].copy()
    np.testing.assert_allclose(start, before + ahead, **close)
    np.testing.assert_allclose(state.drift, ahead, **close)
    for forward in (True, False):
        chains.loops.half_pass(forward, state.msg, 40.0, drift=state.drift)
    after = state.msg[:size]
    step = start - after
    np.testing.assert_allclose(state.drift, after - before - core.RELAX * step, **close)
    product = step @ (after - before - 0.3 * step)
    assert chains.loops.product == pytest.approx(product, rel=1e-4, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 40), threads=st.integers(1, 3))
def test_messages_are_rounded_and_put_back(seed, size, threads):
    rng = np.random.default_rng(seed)
    msg = rng.normal(size=size + 3)
    drift = rng.normal(size=size).astype(np.float32)
    given, before = msg.copy(), drift.copy()
    core.round_off(msg, drift, threads)
    rounded = given[:size].astype(np.float32)
    rest = given[:size] - rounded
    np.testing.assert_array_equal(msg[:size], rounded)
    np.testing.assert_array_equal(drift, (before + rest).astype(np.float32))
    expected = msg[:size] + drift
    core.put_back(msg, drift, threads)
    np.testing.assert_array_equal(msg[:size], expected)
    np.testing.assert_array_equal(msg[size:], given[size:])
    assert not drift.any()
    with pytest.raises(ValueError, match="fewer messages"):
        core.put_back(msg[: size + 1], np.zeros(size + 2, np.float32), 1)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_traced_passes_are_hard_passes_and_tell_the_way_back(count):
    chains = Chains(generators.random_grid(9, 11, 3, seed=1).network, 1)
    one, other = chains.start(None), chains.start(None)
    for state in (one, other):
        chains.passes(state, 4, 40.0, momentum=True)
    back = chains.plan.back_size
    before, moved = one.msg[:back].copy(), np.zeros(back, np.float32)
    one.aside = moved
    chains.loops.traced_passes(count, one)
    chains.loops.passes(2 * count, other, np.inf, momentum=False)
    np.testing.assert_array_equal(one.msg, other.msg)
    assert moved.any() == (count > 0)
    error = one.msg[:back] + moved.astype(float) - before
    assert np.abs(error).max() <= 1e-6 * np.abs(moved).max()


def test_a_drift_beyond_single_precision_is_as_long_as_it_can_be():
    huge = 2.0**140
    model = generators.random_grid(4, 4, 3, seed=1)
    model = model.replace(
        unary=model.unary * huge, potentials=[p.scaled(huge) for p in model.potentials]
    )
    chains = Chains(model.network, 1)
    state = chains.start(None)
    chains.passes(state, 5, 40.0 / huge, momentum=True)
    assert np.isfinite(state.drift).all()
    assert np.abs(state.drift).max() == np.finfo(np.float32).max
    assert np.isfinite(state.msg).all()
