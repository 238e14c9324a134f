"""The SIMD value of the kernels against plain numpy, lane by lane."""

import numpy as np
import pytest

from softmap.kernels import vectors
from softmap.kernels.vectors import LANES, aligned


@vectors.jit
def _mapped(which, x, y, out):
    for k in range(0, len(out), LANES):
        a, b = vectors.load(x, k), vectors.load(y, k)
        if which == 0:
            c = vectors.exp(a)
        elif which == 1:
            c = vectors.log(a)
        elif which == 2:
            c = vectors.least(a, b)
        elif which == 3:
            c = vectors.greatest(a, b)
        elif which == 4:
            c = vectors.unless_infinite(a, a)
        else:
            c = 2.0 * (a - b) + a / b
        vectors.store(out, k, c)


@vectors.jit
def _moved(array, places, steps, spacing, x, count, out):
    vectors.store_some(out, 1, vectors.gather(array, places, steps, 2, spacing, x, count), count)
    return vectors.total(vectors.load(array, 3))


def _map(which, x, y=None, dtype=np.float64):
    x = np.asarray(x, dtype)
    out = np.empty_like(x)
    _mapped(which, x, x if y is None else np.asarray(y, dtype), out)
    return out


def test_exp_of_what_is_not_positive():
    x = -np.random.default_rng(0).exponential(50.0, 8000)
    x[:8] = 0.0, -1e-300, -690.0, -0.5, -600.0, -1.0, -2.0, -3.0
    x = np.maximum(x, -690.0)
    np.testing.assert_allclose(_map(0, x), np.exp(x), rtol=1e-13)


@pytest.mark.parametrize("bad", [-np.inf, -1e9, np.nan])
def test_exp_far_down_is_tiny_but_positive(bad):
    out = _map(0, np.full(LANES, bad))
    assert (out > 0.0).all()
    assert (out < 1e-299).all()


def test_log_of_normal_numbers():
    x = 10.0 ** np.random.default_rng(1).uniform(-300, 300, 8000)
    x[:4] = 1.0, 2.0, np.sqrt(0.5), np.sqrt(2.0)
    np.testing.assert_allclose(_map(1, x), np.log(x), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arithmetic_is_by_lanes(dtype):
    x, y = np.random.default_rng(2).normal(size=(2, 4 * LANES)).astype(dtype)
    np.testing.assert_array_equal(_map(2, x, y, dtype), np.minimum(x, y))
    np.testing.assert_array_equal(_map(3, x, y, dtype), np.maximum(x, y))
    wide = 2.0 * (x.astype(float) - y) + x.astype(float) / y
    np.testing.assert_allclose(_map(5, x, y, dtype), wide.astype(dtype), rtol=1e-6)


def test_infinity_becomes_zero():
    x = np.arange(float(LANES))
    x[3] = np.inf
    np.testing.assert_array_equal(_map(4, x), np.where(np.isinf(x), 0.0, x))


@pytest.mark.parametrize("count", range(1, LANES + 1))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gather_and_store_some_of_the_lanes(count, dtype):
    rng = np.random.default_rng(count)
    array = rng.normal(size=200).astype(dtype)
    places, steps = rng.integers(0, 50, 40), rng.integers(0, 9, 40).astype(np.int32)
    spacing, x = 4, 7
    out = np.full(LANES + 2, -1.0)
    total = _moved(array, places, steps, spacing, x, count, out)
    at = 2 + spacing * np.arange(count)
    np.testing.assert_array_equal(out[1 : count + 1], array[places[at] + x * steps[at]])
    assert (out[count + 1 :] == -1.0).all()
    assert out[0] == -1.0
    assert total == pytest.approx(array[3 : 3 + LANES].astype(float).sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_aligned_arrays_begin_at_a_cache_line(dtype):
    for size in (1, 17, 1000):
        array = aligned(size, dtype)
        assert array.ctypes.data % 64 == 0
        assert array.shape == (size,)
        assert not array.any()
