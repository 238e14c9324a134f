"""Half passes, one by one: together they are the passes of `core.passes`; sums that are low."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, generators
from softmap.methods.sweeps.chains import CLOCK, Chains
from softmap.model.layout import layout


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_half_passes_make_passes(threads, dtype):
    model = generators.random_grid(9, 11, 3, seed=1)
    chains = Chains(model, threads, dtype)
    one, other = chains.start(None), chains.start(None)
    chains.passes(one, 6, 40.0, momentum=True)
    theta, dot = np.zeros(chains.plan.cost_size), np.zeros(len(chains.plan.blocks))
    lay, plan = layout(model, dtype), chains.plan.native
    for _ in range(6):
        core.extrapolate(other.msg, other.drift, other.clock, threads)
        for forward in (True, False):
            core.half_pass(
                lay, plan, forward, other.msg, other.drift, theta, 40.0, True, other.shift, dot,
                threads,
            )  # fmt: skip
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
