"""Send the messages of one block of a `Schedule`, in one direction.

Messages are normalised to a least entry of 0; what was taken off goes into `shift`, and the
momentum product ⟨y - z, z - z_prev⟩ into `dot`, one number per block and direction.

`prev` is left as `z_prev + ρ (y - z)`: that over-relaxes Nesterov's β (z - prev) by ρβ (z - y),
as in the optimised gradient method (Kim and Fessler 2016, where ρ → 1 for gradient steps).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels import tiles
from softmap.kernels.distances import LINEAR, POTTS, SAFE, TABLE, distance_cost, reach_of
from softmap.kernels.fastmath import FAST
from softmap.kernels.messages import hard_message, scratch_size, soft_message_into
from softmap.kernels.schedule import (
    COUNT,
    EARLY,
    KIND,
    LANE,
    LATE,
    MESSAGE,
    ORIENTATION,
    TABLE_AT,
)
from softmap.kernels.tiles import LANES, unsigned

# Without reference counts: touching those of every array at every call would take longer than the
# work itself. Such functions may not create arrays.
jit = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)
RELAX = 0.75  # ρ; at 1 some directions would only swing to and fro


@njit(cache=True, nogil=True)
def buffers_for(lay):
    """Scratch memory of one thread: tiles (a, out, total, work), single messages (a, out, sums)."""
    widest = 4
    for i in range(len(lay.num_labels)):
        widest = max(widest, lay.num_labels[i])
    tile = widest if widest <= 1024 else 4  # only labels of tiles count; joint states are larger
    return (
        np.empty((tile, LANES)),
        np.empty((tile, LANES)),
        np.empty((4, LANES)),
        np.empty((6 * tile + 16, LANES)),
        np.empty(widest),
        np.empty(widest),
        np.empty(scratch_size(widest)),
    )


@jit
def _stage(theta, at, lane, msg, begin, a, senders):
    """Costs on the sending labels: the node's share minus the message that came from there."""
    for x in range(senders):
        place = unsigned(begin + x * LANES)
        for k in range(LANES):
            costs = unsigned(at[unsigned(lane + k)] + x)
            a[x, k] = theta[costs] - msg[place + unsigned(k)]


@jit
def _store_tile(out, least, msg, prev, begin, receivers, shift, lane):
    """Normalise and write a tile of messages; the momentum product is returned."""
    for k in range(LANES):
        least[k] = out[0, k]
    for y in range(1, receivers):
        for k in range(LANES):
            least[k] = min(least[k], out[y, k])
    product = 0.0
    for y in range(receivers):
        place = unsigned(begin + y * LANES)
        for k in range(LANES):
            out[y, k] = out[y, k] - least[k] if out[y, k] < np.inf else 0.0
        for k in range(LANES):
            at = place + unsigned(k)
            product += (msg[at] - out[y, k]) * (out[y, k] - prev[at])
        for k in range(LANES):
            at = place + unsigned(k)
            prev[at] += RELAX * (msg[at] - out[y, k])
            msg[at] = out[y, k]
    for k in range(LANES):
        shift[unsigned(lane + k)] = least[k]
    return product


@jit
def _distance_tile(kind, plan, lane, count, a, out, total, work, labels, eta):
    """Potts and truncated costs of one staged tile; False if a lane needs the general verbs."""
    reach, steepest = 0, 0.0
    for k in range(LANES):
        w, cut = plan.weight[lane + k], plan.truncation[lane + k]
        if w < 0.0 or w == np.inf:
            return False
        work[0, k] = w
        if kind != POTTS:
            # spare lanes have weight 0: any reach is right for them
            mine = reach_of(kind, cut, labels) if k < count else reach
            if k > 0 and mine != reach:
                return False
            reach = mine
            work[1, k] = cut
            work[2, k] = distance_cost(kind, w, cut, labels)
            steepest = max(steepest, w * reach, work[2, k])
    if kind == POTTS and eta == np.inf:
        tiles.hard_potts(work[0], a, out, total, labels)
    elif kind == POTTS:
        tiles.soft_potts(work[0], a, out, total, labels, eta)
    elif kind == LINEAR and eta == np.inf:
        tiles.hard_linear(work[0], work[1], a, out, total, labels)
    elif kind == LINEAR and eta * steepest <= SAFE:
        tiles.soft_linear(work[0], work[2], reach, a, out, total, work[3:], labels, eta)
    else:
        _window_tile(kind, reach, a, out, total, work, labels, eta)
    return True


@jit
def _window_tile(kind, reach, a, out, total, work, labels, eta):
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
def _single(lay, e, side, theta, at, msg, sent, prev, got, step, senders, receivers, eta, buf):
    """One message through the general verbs, from labels at stride `step` to the same."""
    a, out = buf[4][:senders], buf[5][:receivers]
    for x in range(senders):
        a[x] = theta[at + x] - msg[sent + x * step]
    h = 2 * e + side
    if eta == np.inf:
        hard_message(lay, h, a, out)
    else:
        soft_message_into(lay, h, a, out, eta, buf[6])
    least = np.inf
    for y in range(receivers):
        least = min(least, out[y])
    product = 0.0
    for y in range(receivers):
        value = out[y] - least if out[y] < np.inf else 0.0
        place = got + y * step
        product += (msg[place] - value) * (value - prev[place])
        prev[place] += RELAX * (msg[place] - value)
        msg[place] = value
    return least, product


@jit
def send_block(lay, plan, b, forward, theta, msg, prev, eta, shift, dot, buf):
    """Send along all edges of block b, onwards if `forward`, else back."""
    blocks = plan.blocks
    kind, count, lane = blocks[b, KIND], blocks[b, COUNT], blocks[b, LANE]
    early, late, begin = blocks[b, EARLY], blocks[b, LATE], blocks[b, MESSAGE]
    width = LANES if count > 0 else 1
    early_at, late_at = begin, begin + early * width
    if forward:
        senders, receivers, sent, got, at = early, late, early_at, late_at, plan.early_at
        side = 1 - blocks[b, ORIENTATION]
    else:
        senders, receivers, sent, got, at = late, early, late_at, early_at, plan.late_at
        side = blocks[b, ORIENTATION]
    a, out, total, work = buf[0], buf[1], buf[2], buf[3]
    if count > 0:
        _stage(theta, at, lane, msg, sent, a, senders)
        done = True
        if kind == TABLE:
            step_x, step_y = (late * LANES, LANES) if forward else (LANES, late * LANES)
            begin = blocks[b, TABLE_AT]
            if eta == np.inf:
                tiles.hard_tables(plan.table, begin, step_x, step_y, a, out, senders, receivers)
            else:
                tiles.soft_tables(
                    plan.table, begin, step_x, step_y, a, out, total, senders, receivers, eta
                )
        else:
            done = _distance_tile(kind, plan, lane, count, a, out, total, work, senders, eta)
        if done:
            dot[b] = _store_tile(out, total[0], msg, prev, got, receivers, shift, lane)
            return
    dot[b] = 0.0
    for k in range(max(count, 1)):
        shift[lane + k], product = _single(
            lay, plan.edge[lane + k], side, theta, at[lane + k], msg, sent + k, prev, got + k,
            width, senders, receivers, eta, buf,
        )  # fmt: skip
        dot[b] += product
