"""Send the messages of the blocks of a `Schedule`, in one direction.

Messages are normalised to a least entry of 0; what was taken off goes into `shift`. With momentum
the product ⟨y - z, z - z_prev - τ (y - z)⟩ goes into `dot`, one number per block, and `prev` is
left as `z_prev + ρ (y - z)`: that over-relaxes Nesterov's β (z - prev) by ρβ (z - y), as in the
optimised gradient method (Kim and Fessler 2016, where ρ → 1 for gradient steps).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels import tiles
from softmap.kernels.distances import LINEAR, POTTS, SAFE, TABLE
from softmap.kernels.fastmath import FAST
from softmap.kernels.messages import hard_message, scratch_size, soft_message_into
from softmap.kernels.schedule import (
    COUNT,
    EARLY,
    EARLY_AT,
    KIND,
    LANE,
    LATE,
    LATE_AT,
    ORIENTATION,
    REACH,
    STEP,
    STRAIGHT_EARLY,
    STRAIGHT_LATE,
    TABLE_AT,
)
from softmap.kernels.vectors import (
    LANES,
    gather,
    inlined,
    jit,
    least,
    load,
    spread,
    store,
    total,
    unless_infinite,
)

RELAX = 0.75  # ρ; at 1 some directions would only swing to and fro
TURN = 0.3  # τ: how far momentum has to point back for a restart; at 0 noise restarts random graphs


@njit(cache=True, nogil=True)
def _room(size):
    """Scratch memory that begins at a cache line."""
    raw = np.empty(size + LANES)
    first = -(raw.ctypes.data >> 3) & 7
    return raw[first : first + size]


@njit(cache=True, nogil=True)
def buffers_for(lay):
    """Scratch memory of one thread: sending costs, messages, sums."""
    widest = 4
    for i in range(len(lay.num_labels)):
        widest = max(widest, lay.num_labels[i])
    tile = widest if widest <= 1024 else 4  # only labels of tiles count; joint states are larger
    size, sums = max(LANES * tile, widest), max(LANES * (4 * tile + 4), scratch_size(widest))
    return _room(size), _room(size), _room(sums)


@inlined
def _stage(theta, at, step, lane, straight, msg, begin, message_step, a, senders):
    """Costs on the sending labels: the node's share minus the message that came from there."""
    if straight:
        place, wide = at[lane], step[lane]
        for x in range(senders):
            share = load(theta, place + x * wide)
            store(a, LANES * x, share - load(msg, begin + x * message_step))
    else:
        for x in range(senders):
            share = gather(theta, at, step, lane, 1, x, LANES)
            store(a, LANES * x, share - load(msg, begin + x * message_step))


@inlined
def _write(out, msg, prev, begin, message_step, receivers, shift, lane, momentum):
    """Normalise a tile of messages and write it; the momentum product is returned."""
    low = load(out, 0)
    for y in range(1, receivers):
        low = least(load(out, LANES * y), low)
    store(shift, lane, low)
    product = spread(0.0)
    for y in range(receivers):
        at = begin + message_step * y
        value = load(out, LANES * y) - low
        value = unless_infinite(value, value)
        if momentum:
            step, before = load(msg, at) - value, load(prev, at)
            product = product + step * (value - before - TURN * step)
            store(prev, at, before + RELAX * step)
        store(msg, at, value)
    return total(product) if momentum else 0.0


@inlined
def _distance_tile(kind, reach, steepest, weight, ceiling, lane, a, out, work, labels, eta):
    """Potts and truncated costs of one staged tile."""
    w, top = load(weight, lane), load(ceiling, lane)
    if kind == POTTS and eta == np.inf:
        tiles.hard_potts(w, a, out, labels)
    elif kind == POTTS:
        tiles.soft_potts(w, a, out, labels, steepest, eta)
    elif kind == LINEAR and eta == np.inf:
        tiles.hard_linear(w, top, a, out, labels)
    elif kind == LINEAR and eta * steepest <= SAFE:
        tiles.soft_linear(w, top, reach, a, out, work, labels, eta)
    elif eta == np.inf:
        tiles.hard_window(kind, w, top, reach, a, out, work, labels)
    else:
        tiles.soft_window(kind, w, top, reach, a, out, work, labels, eta)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)
def _single(
    lay, e, side, theta, at, step, msg, prev, sent, got, senders, receivers, eta, momentum, buffers
):
    """One message through the general verbs; its shift and its part of the product."""
    a, out = buffers[0][:senders], buffers[1][:receivers]
    for x in range(senders):
        a[x] = theta[at + x * step] - msg[sent + x]
    h = 2 * e + side
    if eta == np.inf:
        hard_message(lay, h, a, out)
    else:
        soft_message_into(lay, h, a, out, eta, buffers[2])
    low = np.inf
    for y in range(receivers):
        low = min(low, out[y])
    product = 0.0
    for y in range(receivers):
        value = out[y] - low if out[y] < np.inf else 0.0
        if momentum:
            back = msg[got + y] - value
            product += back * (value - prev[got + y] - TURN * back)
            prev[got + y] += RELAX * back
        msg[got + y] = value
    return low, product


@jit
def send_blocks(
    lay, plan, listed, first, last, forward, theta, msg, prev, eta, momentum, shift, dot,
    buffers,
):  # fmt: skip
    """Send along all edges of the blocks `listed[first:last]`, onwards if `forward`, else back.

    A loop in here rather than around it: a call that carries a layout and a schedule costs as much
    as a small tile.
    """
    blocks, table = plan.blocks, plan.table
    at, step = (plan.early_at, plan.early_step) if forward else (plan.late_at, plan.late_step)
    a, out, work = buffers
    for k in range(first, last):
        b = listed[k]
        kind, lane = blocks[b, KIND], blocks[b, LANE]
        early, late, wide = blocks[b, EARLY], blocks[b, LATE], blocks[b, STEP]
        sent, got = blocks[b, EARLY_AT], blocks[b, LATE_AT]
        senders, receivers, straight = early, late, blocks[b, STRAIGHT_EARLY]
        if not forward:
            sent, got = got, sent
            senders, receivers, straight = late, early, blocks[b, STRAIGHT_LATE]
        if blocks[b, COUNT] == 0:
            side = 1 - blocks[b, ORIENTATION] if forward else blocks[b, ORIENTATION]
            shift[lane], dot[b] = _single(
                lay, plan.edge[lane], side, theta, at[lane], step[lane], msg, prev, sent, got,
                senders, receivers, eta, momentum, buffers,
            )  # fmt: skip
            continue
        _stage(theta, at, step, lane, straight, msg, sent, wide, a, senders)
        if kind == TABLE:
            entry = blocks[b, TABLE_AT]
            step_x, step_y = (late * LANES, LANES) if forward else (LANES, late * LANES)
            if eta == np.inf:
                tiles.hard_tables(table, entry, step_x, step_y, a, out, senders, receivers)
            else:
                tiles.soft_tables(
                    table, entry, step_x, step_y, a, out, work, senders, receivers, eta
                )
        else:
            _distance_tile(
                kind, blocks[b, REACH], plan.steepest[b], plan.weight, plan.ceiling, lane,
                a, out, work, senders, eta,
            )  # fmt: skip
        dot[b] = _write(out, msg, prev, got, wide, receivers, shift, lane, momentum)
