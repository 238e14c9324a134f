"""Send the messages of one batch of like half-edges, in tiles or one by one.

Calls that carry a whole `Layout` cost as much as a small message, so they happen once per batch;
inside, only plain arrays travel.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels import tiles
from softmap.kernels.fastmath import FAST
from softmap.kernels.messages import (
    LINEAR,
    POTTS,
    PROJECTION,
    SAFE,
    TABLE,
    distance_cost,
    hard_columns,
    hard_message,
    hard_rows,
    reach_of,
    soft_columns,
    soft_message,
    soft_rows,
)
from softmap.kernels.tiles import LANES

# Without reference counts: touching those of every array at every call would take longer than the
# work itself. Such functions may not create arrays.
jit = njit(cache=True, nogil=True, fastmath=FAST, _nrt=False)
TILE_ENTRIES = 144  # larger tables fill the SIMD lanes by themselves


@njit(cache=True, nogil=True)
def buffers_for(lay):
    """Scratch memory of one thread."""
    widest = 4
    for i in range(len(lay.num_labels)):
        widest = max(widest, lay.num_labels[i])
    return (
        np.empty((widest, LANES)),
        np.empty((widest, LANES)),
        np.empty((TILE_ENTRIES, LANES)),
        np.empty((widest, LANES)),
        np.empty((6 * widest + 16, LANES)),
        np.empty(widest),
        np.empty(widest),
        np.empty(widest),
    )


@jit
def _store(h, at, receivers, new, msg, prev, shift, dot):
    """Write the message of half-edge `h`, least entry 0; keep what was taken off, and the momentum
    product ⟨y - z, z - z_prev⟩."""
    least = np.inf
    for y in range(receivers):
        least = min(least, new[y])
    product = 0.0
    for y in range(receivers):
        value = new[y] - least if new[y] < np.inf else 0.0
        product += (msg[at + y] - value) * (value - prev[at + y])
        msg[at + y] = value
    shift[h >> 1] = least
    dot[h] = product


@jit
def _stage(halves, first, count, node, node_offset, half_offset, theta, share, msg, a, senders):
    """Costs on the sending labels, one lane per half-edge; spare lanes repeat the last."""
    for k in range(LANES):
        h = halves[first + min(k, count - 1)]
        i = node[h]
        at, m, s = node_offset[i], half_offset[h], share[i]
        for x in range(senders):
            a[x, k] = theta[at + x] * s - msg[m + x]


@jit
def _unstage(halves, first, count, half_offset, out, receivers, msg, prev, shift, dot):
    """Normalise and write a tile of messages (see `_store`)."""
    for k in range(count):
        h = halves[first + k] ^ 1
        at = half_offset[h]
        least = np.inf
        for y in range(receivers):
            least = min(least, out[y, k])
        product = 0.0
        for y in range(receivers):
            value = out[y, k] - least if out[y, k] < np.inf else 0.0
            product += (msg[at + y] - value) * (value - prev[at + y])
            msg[at + y] = value
        shift[h >> 1] = least
        dot[h] = product


@jit
def _stage_tables(halves, first, count, side, where, offset, weight, costs, table, shape):
    """Dense tables of a tile as `table[x * receivers + y, lane]`."""
    group_start, table_at, stride, offset_at, weight_at = where
    senders, receivers = shape
    for k in range(LANES):
        e = (halves[first + min(k, count - 1)] >> 1) - group_start
        begin = table_at + (offset[offset_at + e] if offset_at >= 0 else stride * e)
        w = weight[weight_at + e] if weight_at >= 0 else weight.dtype.type(1.0)
        if side == 0:
            for row in range(senders * receivers):
                table[row, k] = w * costs[begin + row]
        else:
            for y in range(receivers):
                for x in range(senders):
                    table[x * receivers + y, k] = w * costs[begin + y * senders + x]


@jit
def _send_tables(lay, batch, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf):
    g, side, senders, receivers = batch[0], batch[1], batch[2], batch[3]
    a, out, table, total = buf[0], buf[1], buf[2], buf[3]
    node, node_offset, half_offset = lay.node, lay.node_offset, lay.half_offset
    offset, weight, costs = lay.offset, lay.weight, lay.table
    where = (
        lay.group_start[g],
        lay.table_at[g],
        lay.stride[g],
        lay.offset_at[g],
        lay.weight_at[g],
    )
    shape = (senders, receivers)
    for k in range(first, last, LANES):
        n = min(LANES, last - k)
        _stage(halves, k, n, node, node_offset, half_offset, theta, share, msg, a, senders)
        _stage_tables(halves, k, n, side, where, offset, weight, costs, table, shape)
        if eta == np.inf:
            tiles.hard_tables(table, a, out, senders, receivers)
        else:
            tiles.soft_tables(table, a, out, total, senders, receivers, eta)
        _unstage(halves, k, n, half_offset, out, receivers, msg, prev, shift, dot)


@jit
def _send_large(lay, batch, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf):
    """Tables too large for tiles: one by one, vectorised inside the table."""
    g, side, senders, receivers = batch[0], batch[1], batch[2], batch[3]
    a, out, total = buf[5][:senders], buf[6][:receivers], buf[7]
    node, node_offset, half_offset = lay.node, lay.node_offset, lay.half_offset
    offset, weight, costs = lay.offset, lay.weight, lay.table
    start, at, stride = lay.group_start[g], lay.table_at[g], lay.stride[g]
    offset_at, weight_at = lay.offset_at[g], lay.weight_at[g]
    for k in range(first, last):
        h = halves[k]
        i, e = node[h], (h >> 1) - start
        begin = at + (offset[offset_at + e] if offset_at >= 0 else stride * e)
        w = weight[weight_at + e] if weight_at >= 0 else weight.dtype.type(1.0)
        for x in range(senders):
            a[x] = theta[node_offset[i] + x] * share[i] - msg[half_offset[h] + x]
        if side == 1 and eta < np.inf:
            soft_rows(costs, begin, w, a, out, eta)
        elif side == 1:
            hard_rows(costs, begin, w, a, out)
        elif eta < np.inf:
            soft_columns(costs, begin, w, a, out, total, eta)
        else:
            hard_columns(costs, begin, w, a, out)
        _store(h ^ 1, half_offset[h ^ 1], receivers, out, msg, prev, shift, dot)


@jit
def _send_single(lay, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf):
    """Messages one by one through the general verbs: projections and unusual weights."""
    a, out = buf[5], buf[6]
    for k in range(first, last):
        h = halves[k]
        i = lay.node[h]
        senders, receivers = lay.num_labels[i], lay.num_labels[lay.node[h ^ 1]]
        for x in range(senders):
            a[x] = theta[lay.node_offset[i] + x] * share[i] - msg[lay.half_offset[h] + x]
        if eta == np.inf:
            hard_message(lay, h ^ 1, a[:senders], out[:receivers])
        else:
            soft_message(lay, h ^ 1, a[:senders], out[:receivers], eta)
        _store(h ^ 1, lay.half_offset[h ^ 1], receivers, out, msg, prev, shift, dot)


@jit
def _distance_lanes(halves, first, count, kind, labels, where, weight, truncation, work):
    """Weights (row 0), truncations (row 1) and ceilings (row 2) of a tile, and its common reach.

    -1 where the tile has none, or a weight no tile can take.
    """
    group_start, weight_at, truncation_at = where
    reach = 0
    for k in range(LANES):
        e = (halves[first + min(k, count - 1)] >> 1) - group_start
        w = weight[weight_at + e]
        work[0, k] = w
        if w < 0.0 or w == np.inf:
            return -1
        if kind != POTTS:
            cut = truncation[truncation_at + e]
            mine = reach_of(kind, cut, labels)
            if k > 0 and mine != reach:
                return -1
            reach = mine
            work[1, k] = cut
            work[2, k] = distance_cost(kind, w, cut, labels)
    return reach


@jit
def _distance_tile(kind, reach, a, out, total, work, labels, eta):
    """Potts and truncated costs of one staged tile."""
    if kind == POTTS:
        if eta == np.inf:
            tiles.hard_potts(work[0], a, out, total, labels)
        else:
            tiles.soft_potts(work[0], a, out, total, labels, eta)
        return
    if kind == LINEAR and eta == np.inf:
        tiles.hard_linear(work[0], work[1], a, out, total, labels)
        return
    steepest = 0.0
    for k in range(LANES):
        steepest = max(steepest, work[0, k] * reach, work[2, k])
    if kind == LINEAR and eta * steepest <= SAFE:
        tiles.soft_linear(work[0], work[2], reach, a, out, total, work[3:], labels, eta)
        return
    profile = work[3 : 4 + labels]
    for step in range(reach):
        for k in range(LANES):
            profile[step, k] = distance_cost(kind, work[0, k], work[1, k], step)
    for k in range(LANES):
        profile[reach, k] = work[2, k]
    if eta == np.inf:
        tiles.hard_window(profile, reach, a, out, total, labels)
    else:
        tiles.soft_window(profile, reach, a, out, total, work[4 + labels :], labels, eta)


@jit
def _send_distances(lay, batch, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf):
    g, labels = batch[0], batch[2]
    a, out, total, work = buf[0], buf[1], buf[3], buf[4]
    node, node_offset, half_offset = lay.node, lay.node_offset, lay.half_offset
    weight, truncation, kind = lay.weight, lay.truncation, lay.kind[g]
    where = (lay.group_start[g], lay.weight_at[g], lay.truncation_at[g])
    for k in range(first, last, LANES):
        n = min(LANES, last - k)
        reach = _distance_lanes(halves, k, n, kind, labels, where, weight, truncation, work)
        if reach < 0:
            _send_single(lay, halves, k, k + n, theta, share, msg, prev, eta, shift, dot, buf)
            continue
        _stage(halves, k, n, node, node_offset, half_offset, theta, share, msg, a, labels)
        _distance_tile(kind, reach, a, out, total, work, labels, eta)
        _unstage(halves, k, n, half_offset, out, labels, msg, prev, shift, dot)


@jit
def send_batch(lay, batch, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf):
    """Send along `halves[first:last]`, all of one batch, at η (inf for hard-min messages)."""
    kind, senders, receivers = lay.kind[batch[0]], batch[2], batch[3]
    if kind == TABLE and senders * receivers <= TILE_ENTRIES:
        _send_tables(lay, batch, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf)
    elif kind == TABLE:
        _send_large(lay, batch, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf)
    elif kind == PROJECTION or senders != receivers:
        _send_single(lay, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf)
    else:
        _send_distances(
            lay, batch, halves, first, last, theta, share, msg, prev, eta, shift, dot, buf
        )
