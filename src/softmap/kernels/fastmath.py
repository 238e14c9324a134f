"""exp and log that vectorise inside numba loops, where `math.exp` would stay scalar.

Written with plain arithmetic and bit casts only, so LLVM turns a loop of them into SIMD. Relative
error about 3e-13 (float64), arguments as the kernels need them: `exp` for x <= 0, `log` for x > 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

# Infinities keep their meaning (forbidden states); no kernel ever makes a NaN, and sums may be
# reordered, which is what SIMD reductions need.
FAST = {"nnan", "reassoc", "contract", "nsz", "arcp"}

SMALL: Any = {"fastmath": FAST, "error_model": "numpy", "_nrt": False}

LOG2E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
SMALLEST = -708.0
SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)


@intrinsic
def as_float(typingctx, bits):
    """Reinterpret an int64 as a float64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def as_bits(typingctx, value):
    """Reinterpret a float64 as an int64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


def exp_nonpositive(x):
    """exp(x) for x <= 0; values under -708 (and -inf) give about 3e-308."""
    return np.exp(np.maximum(x, SMALLEST))


@overload(exp_nonpositive, jit_options=SMALL)
def _exp_nonpositive(x):
    def implementation(x):
        t = max(np.float64(x), SMALLEST)
        k = np.floor(t * LOG2E + 0.5)
        r = (t - k * LN2_HIGH) - k * LN2_LOW
        p = 2.5052108385441720e-08
        p = p * r + 2.7557319223985893e-07
        p = p * r + 2.7557319223985888e-06
        p = p * r + 2.4801587301587302e-05
        p = p * r + 1.9841269841269841e-04
        p = p * r + 1.3888888888888889e-03
        p = p * r + 8.3333333333333333e-03
        p = p * r + 4.1666666666666667e-02
        p = p * r + 1.6666666666666667e-01
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        return p * as_float(np.int64(np.int32(k) + 1023) << 52)

    return implementation


def log_positive(x):
    """log(x) for normal x > 0."""
    return np.log(x)


@overload(log_positive, jit_options=SMALL)
def _log_positive(x):
    def implementation(x):
        bits = as_bits(np.float64(x))
        shift = (bits - SQRT_HALF) >> 52
        mantissa = as_float(bits - (shift << 52))  # in [sqrt(1/2), sqrt(2))
        k = np.float64(shift)
        s = (mantissa - 1.0) / (mantissa + 1.0)
        z = s * s
        p = 1.0 / 19.0
        p = p * z + 1.0 / 17.0
        p = p * z + 1.0 / 15.0
        p = p * z + 1.0 / 13.0
        p = p * z + 1.0 / 11.0
        p = p * z + 1.0 / 9.0
        p = p * z + 1.0 / 7.0
        p = p * z + 1.0 / 5.0
        p = p * z + 1.0 / 3.0
        return k * 0.6931471805599453 + 2.0 * (s + s * z * p)

    return implementation


@njit(cache=True, fastmath=FAST, error_model="numpy")
def exp_array(x, out):
    """`exp_nonpositive` over an array (for tests and measurements)."""
    for k in range(len(x)):
        out[k] = exp_nonpositive(x[k])


@njit(cache=True, fastmath=FAST, error_model="numpy")
def log_array(x, out):
    """`log_positive` over an array (for tests and measurements)."""
    for k in range(len(x)):
        out[k] = log_positive(x[k])
