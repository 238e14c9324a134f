"""A barrier for a few threads that run one compiled loop together.

Kernels release the GIL, so ordinary Python threads can walk through the levels of a pass side by
side; between levels they meet here. A phase is short (microseconds), so a thread spins first and
gives up its time slice only when the others are late, which they are on a busy machine.
"""

from __future__ import annotations

import sys

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

SPINS = 50_000  # about 0.1 ms: yielding sooner hands the core to whoever waits for one
_yield_slice = (
    types.ExternalFunction("sched_yield", types.int32())
    if sys.platform != "win32"
    else types.ExternalFunction("SwitchToThread", types.int32())
)


@intrinsic
def _add(typingctx, array, place):
    """Atomically add 1 to `array[place]`; the old value."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, signature, args)
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", pointer, one, "seq_cst")

    return types.int64(array, types.int64), codegen


@intrinsic
def _load(typingctx, array, place):
    """Atomically read `array[place]`."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, signature, args)
        return builder.load_atomic(pointer, "seq_cst", 8)

    return types.int64(array, types.int64), codegen


def _pointer(context, builder, signature, args):
    view = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(view.data, [args[1]])


def new_barrier() -> np.ndarray:
    """The counter that the threads of one run share."""
    return np.zeros(16, np.int64)


@njit(cache=True, nogil=True)
def wait(barrier, threads):
    """Return when all `threads` have called it as often as this one."""
    if threads == 1:
        return
    ticket = _add(barrier, 0)
    goal = (ticket // threads + 1) * threads
    spins = 0
    while _load(barrier, 0) < goal:
        spins += 1
        if spins > SPINS:
            _yield_slice()
