"""A vector of `LANES` numbers as one numba value: kernels state their SIMD.

LLVM vectorises short loops over arrays badly: it has to prove, or test each time, that arrays do
not overlap. A value of type `Lanes` lives in registers, of whatever width the processor has. It
knows +, -, *, / (also with a number), `least`, `choose`, `exp`, `log` and ways in and out of flat
arrays of float64 or float32. `exp` is for x <= 0 and gives about 1e-300 under -690 and for NaN;
`log` is for normal x > 0; both are good to about 5e-14. Functions that use vectors are compiled
without fast math (`jit` here), which would undo the rounding in `exp`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

LANES = 8
OPTIONS: Any = {
    "cache": True, "nogil": True, "fastmath": False, "error_model": "numpy", "_nrt": False
}  # fmt: skip
jit = njit(**OPTIONS)
inlined = njit(**OPTIONS, forceinline=True)  # into its callers: a call passes arrays word by word

FLOATS = ir.VectorType(ir.DoubleType(), LANES)
SINGLES = ir.VectorType(ir.FloatType(), LANES)
BITS = ir.VectorType(ir.IntType(64), LANES)
INDEX = ir.IntType(64)
FUSE = ("contract",)

# The best polynomials in the relative (exp) and absolute (log) sense, by Remez' exchange:
# exp(r) on |r| <= log(2) / 2, to 1.4e-14
EXP = (
    2.7482182513431903e-06, 2.4884026451421244e-05, 1.984159649626849e-04, 1.3888802794591272e-03,
    8.333333002656124e-03, 4.166666703268063e-02, 1.6666666667827756e-01, 0.4999999999945755,
    0.9999999999998926, 1.0000000000000129,
)  # fmt: skip
# (atanh(s) / s - 1) / s² in s², for s² up to that of sqrt(2), to 2.4e-14
ATANH = (
    0.08311681001527367, 0.09070040555845871, 0.11111432578152125, 0.14285712054190225,
    0.20000000005657737, 0.3333333333333101,
)  # fmt: skip
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
ROUND = 1.5 * 2.0**52  # adding it leaves the nearest integer in the low bits of a float64
SMALLEST = -690.0  # 1e-300: products with it are still normal numbers, which are fast
SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)


def aligned(size: int, dtype: Any = np.float64) -> np.ndarray:
    """Zeros that begin at a cache line, so that no vector lies across two."""
    item = np.dtype(dtype).itemsize
    raw = np.zeros(size + 64 // item, dtype)
    first = -raw.ctypes.data % 64 // item
    return raw[first : first + size]


class LanesType(types.Type):
    """numba's type of such a vector."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes{LANES}")


lanes_type = LanesType()


@register_model(LanesType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, FLOATS)


def _constant(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [float(value)] * LANES)


def _bits(value: int) -> ir.Constant:
    return ir.Constant(BITS, [value] * LANES)


def _place(k: int) -> ir.Constant:
    return ir.Constant(ir.IntType(32), k)


def _spread(builder: Any, number: Any) -> Any:
    empty = ir.Constant(FLOATS, ir.Undefined)
    first = builder.insert_element(empty, number, _place(0))
    nowhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, empty, nowhere)


def _fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
    kind = ir.FunctionType(FLOATS, [FLOATS] * 3)
    name = f"llvm.fma.v{LANES}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [x, y, z])


# --- arithmetic ---------------------------------------------------------------------------------


def _operator(symbol: Any, instruction: str) -> None:
    """`symbol` between vectors, or a vector and a number."""

    @type_callable(symbol)
    def typing(context: Any) -> Any:
        def result(a: Any, b: Any) -> Any:
            pair = (a, b)
            ours = [t is lanes_type for t in pair]
            known = all(o or t == types.float64 for o, t in zip(ours, pair, strict=True))
            return lanes_type if any(ours) and known else None

        return result

    def lowered(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = [
            a if t is lanes_type else _spread(builder, a)
            for a, t in zip(args, signature.args, strict=True)
        ]
        return getattr(builder, instruction)(*vectors, flags=FUSE)

    lower_builtin(symbol, lanes_type, lanes_type)(lowered)
    lower_builtin(symbol, lanes_type, types.float64)(lowered)
    lower_builtin(symbol, types.float64, lanes_type)(lowered)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


@intrinsic
def spread(context, value):
    """The same number in all lanes."""

    def codegen(context, builder, signature, args):
        return _spread(builder, args[0])

    return lanes_type(types.float64), codegen


@intrinsic
def choose(context, a, b, x, y):
    """x in the lanes where a < b, y in the others."""

    def codegen(context, builder, signature, args):
        a, b, x, y = args
        return builder.select(builder.fcmp_ordered("<", a, b), x, y)

    return lanes_type(*[lanes_type] * 4), codegen


@inlined
def least(a, b):
    """The smaller of each pair; b where they do not compare."""
    return choose(a, b, a, b)


@inlined
def greatest(a, b):
    """The greater of each pair; b where they do not compare."""
    return choose(b, a, a, b)


@inlined
def unless_infinite(a, x):
    """x, but 0 in the lanes where a is +inf."""
    return choose(a, spread(np.inf), x, spread(0.0))


@intrinsic
def total(context, value):
    """Σ over the lanes."""

    def codegen(context, builder, signature, args):
        parts = [builder.extract_element(args[0], _place(k)) for k in range(LANES)]
        while len(parts) > 1:
            half = len(parts) // 2
            pairs = zip(parts[:half], parts[half:], strict=True)
            parts = [builder.fadd(a, b) for a, b in pairs]
        return parts[0]

    return types.float64(lanes_type), codegen


@intrinsic
def exp(context, x):
    """exp(x) for x <= 0."""

    def codegen(context, builder, signature, args):
        low = _constant(SMALLEST)
        t = builder.select(builder.fcmp_ordered(">", args[0], low), args[0], low)
        shifted = _fma(builder, t, _constant(LOG2E), _constant(ROUND))
        k = builder.fsub(shifted, _constant(ROUND))
        r = _fma(builder, k, _constant(-LN2), t)
        p = _constant(EXP[0])
        for coefficient in EXP[1:]:
            p = _fma(builder, p, r, _constant(coefficient))
        power = builder.shl(builder.bitcast(shifted, BITS), _bits(52))
        return builder.bitcast(builder.add(builder.bitcast(p, BITS), power), FLOATS)

    return lanes_type(lanes_type), codegen


@intrinsic
def log(context, x):
    """log(x) for normal x > 0."""

    def codegen(context, builder, signature, args):
        bits = builder.bitcast(args[0], BITS)
        shift = builder.ashr(builder.sub(bits, _bits(SQRT_HALF)), _bits(52))
        mantissa = builder.bitcast(builder.sub(bits, builder.shl(shift, _bits(52))), FLOATS)
        one = _constant(1.0)  # the mantissa lies in [sqrt(1/2), sqrt(2))
        s = builder.fdiv(builder.fsub(mantissa, one), builder.fadd(mantissa, one))
        z = builder.fmul(s, s)
        p = _constant(ATANH[0])
        for coefficient in ATANH[1:]:
            p = _fma(builder, p, z, _constant(coefficient))
        inner = _fma(builder, builder.fmul(s, z), p, s)
        k = builder.sitofp(shift, FLOATS)
        return _fma(builder, k, _constant(LN2), builder.fadd(inner, inner))

    return lanes_type(lanes_type), codegen


# --- ways in and out ----------------------------------------------------------------------------


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _wide(builder: Any, value: Any) -> Any:
    return (
        value
        if value.type in (FLOATS, ir.DoubleType())
        else builder.fpext(
            value, FLOATS if isinstance(value.type, ir.VectorType) else ir.DoubleType()
        )
    )


@intrinsic
def load(context, array, at):
    """`array[at], ..., array[at + LANES - 1]`."""

    def codegen(context, builder, signature, args):
        pointer = builder.gep(_data(context, builder, signature.args[0], args[0]), [args[1]])
        kind = FLOATS if signature.args[0].dtype == types.float64 else SINGLES
        value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
        value.align = 4
        return _wide(builder, value)

    return lanes_type(array, types.intp), codegen


@intrinsic
def store(context, array, at, value):
    """The reverse of `load`."""

    def codegen(context, builder, signature, args):
        pointer = builder.gep(_data(context, builder, signature.args[0], args[0]), [args[1]])
        double = signature.args[0].dtype == types.float64
        kind, value = (FLOATS, args[2]) if double else (SINGLES, builder.fptrunc(args[2], SINGLES))
        builder.store(value, builder.bitcast(pointer, kind.as_pointer())).align = 4
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes_type), codegen


def _lane(builder: Any, k: int, count: Any) -> Any:
    """k, or the last of `count` lanes: idle lanes repeat it."""
    last = builder.sub(count, INDEX(1))
    return builder.select(builder.icmp_signed("<", INDEX(k), last), INDEX(k), last)


def _index(builder: Any, pointer: Any) -> Any:
    value = builder.load(pointer)
    return value if value.type == INDEX else builder.sext(value, INDEX)


@intrinsic
def gather(context, array, places, steps, at, spacing, x, count):
    """`array[places[at + k spacing] + x steps[at + k spacing]]` for each lane k.

    Lanes past `count` repeat the last.
    """

    def codegen(context, builder, signature, args):
        *arrays, at, spacing, x, count = args
        kinds = signature.args[:3]
        data, places, steps = (
            _data(context, builder, kind, array) for kind, array in zip(kinds, arrays, strict=True)
        )
        out = ir.Constant(FLOATS, ir.Undefined)
        for k in range(LANES):
            lane = builder.add(at, builder.mul(_lane(builder, k, count), spacing))
            place = _index(builder, builder.gep(places, [lane]))
            step = _index(builder, builder.gep(steps, [lane]))
            place = builder.add(place, builder.mul(step, x))
            value = _wide(builder, builder.load(builder.gep(data, [place])))
            out = builder.insert_element(out, value, _place(k))
        return out

    return lanes_type(array, places, steps, *[types.intp] * 4), codegen


@intrinsic
def scatter(context, array, at, spacing, value, count):
    """`array[at + k spacing]` from each of the first `count` lanes k."""

    def codegen(context, builder, signature, args):
        array, at, spacing, value, count = args
        first = builder.gep(_data(context, builder, signature.args[0], array), [at])
        for k in reversed(range(LANES)):  # the last lane that counts is written last
            lane = builder.mul(_lane(builder, k, count), spacing)
            number = builder.extract_element(value, _place(k))
            builder.store(number, builder.gep(first, [lane]))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, lanes_type, types.intp), codegen


@inlined
def store_some(array, at, value, count):
    """`store` of the first `count` lanes only."""
    scatter(array, at, 1, value, count)
