"""Passes over monotonic chains: smooth TRW-S at finite η, Kolmogorov's TRW-S at η = ∞.

With messages M = -λ and `θ̂_i = C_i + Σ_h M_h`, a node sends along each edge that points onwards
`M(y) = softmin_x θ̂_i(x) / n_i - M_h(x) + C_e(x, y)`, up to a constant. Levels are walked through by
all threads together; every message is computed the same way whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.fastmath import FAST
from softmap.kernels.sending import buffers_for, send_batch
from softmap.kernels.threads import wait

jit = njit(cache=True, nogil=True, fastmath=FAST, _nrt=False)
BLOCKS = 64  # partial sums of fixed blocks: the same total whatever the number of threads


@jit
def reparametrise(lay, nodes, first, last, msg, theta):
    """θ̂_i = C_i + Σ_h M_h for `nodes[first:last]`."""
    num_labels, node_offset, half_offset = lay.num_labels, lay.node_offset, lay.half_offset
    start, half, unary = lay.start, lay.half, lay.unary
    for k in range(first, last):
        i = nodes[k]
        d, at = num_labels[i], node_offset[i]
        for x in range(at, at + d):
            theta[x] = unary[x]
        for place in range(start[i], start[i + 1]):
            m = half_offset[half[place]]
            for x in range(d):
                theta[at + x] += msg[m + x]


@jit
def _first_at(node, position, halves, first, last, bound):
    """First place in `halves[first:last]`, sorted by the sender's position, at `bound` or later."""
    while first < last:
        middle = (first + last) // 2
        if position[node[halves[middle]]] < bound:
            first = middle + 1
        else:
            last = middle
    return first


@jit
def half_pass(lay, plan, forward, msg, prev, theta, eta, shift, dot, buffers, team):
    """One direction: levels in turn, every node sends along its onward edges."""
    thread, threads, barrier = team
    node, position, share = lay.node, plan.position, plan.share
    batch_start = plan.forward_start if forward else plan.backward_start
    batches = plan.forward if forward else plan.backward
    halves = plan.forward_half if forward else plan.backward_half
    levels = len(plan.level_start) - 1
    for step in range(levels):
        level = step if forward else levels - 1 - step
        begin = plan.level_start[level]
        width = plan.level_start[level + 1] - begin
        low, high = width * thread // threads, width * (thread + 1) // threads
        reparametrise(lay, plan.nodes, begin + low, begin + high, msg, theta)
        for b in range(batch_start[level], batch_start[level + 1]):
            batch = batches[b]
            first, last = batch[4], batch[5]
            if threads > 1:
                first = _first_at(node, position, halves, batch[4], batch[5], low)
                last = _first_at(node, position, halves, first, batch[5], high)
            if first < last:
                send_batch(
                    lay, batch, halves, first, last,
                    theta, share, msg, prev, eta, shift, dot, buffers,
                )  # fmt: skip
        wait(barrier, threads)


@jit
def _total(values, sums, team):
    """Σ values, by fixed blocks, the same on every thread and for any number of threads."""
    thread, threads, barrier = team
    size = (len(values) + BLOCKS - 1) // BLOCKS
    for block in range(thread, BLOCKS, threads):
        total = 0.0
        for k in range(min(block * size, len(values)), min((block + 1) * size, len(values))):
            total += values[k]
        sums[block] = total
    wait(barrier, threads)
    total = 0.0
    for block in range(BLOCKS):
        total += sums[block]
    wait(barrier, threads)
    return total


@jit
def extrapolate(msg, prev, dot, sums, clock, team):
    """Nesterov's step over a whole pass: y = z + β (z - z_prev), restarted when it points back.

    `clock[0]` is Nesterov's t, `clock[1]` counts restarts.
    """
    thread, threads, barrier = team
    back = _total(dot, sums, team) > 0.0
    t = 1.0 if back else clock[0]
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
    beta = (t - 1.0) / following
    low, high = len(msg) * thread // threads, len(msg) * (thread + 1) // threads
    for k in range(low, high):
        z = msg[k]
        msg[k] = z + beta * (z - prev[k])
        prev[k] = z
    wait(barrier, threads)
    if thread == 0:
        clock[0] = following
        clock[1] += back
    wait(barrier, threads)


@njit(cache=True, nogil=True)
def passes(lay, plan, count, msg, prev, theta, eta, momentum, shift, dot, sums, clock, team):
    """`count` passes, forward then backward each, with momentum over whole passes if asked for.

    With momentum, `msg` is the extrapolated point y on return and `prev` the last pass's result z.
    """
    buffers = buffers_for(lay)
    for _ in range(count):
        half_pass(lay, plan, True, msg, prev, theta, eta, shift, dot, buffers, team)
        half_pass(lay, plan, False, msg, prev, theta, eta, shift, dot, buffers, team)
        if momentum:
            extrapolate(msg, prev, dot, sums, clock, team)


@jit
def cut_chains(lay, plan, msg, theta, lam, first, last):
    """λ whose plain bound is the chain bound, after a hard forward half pass.

    Each node's share θ̂_i / n_i goes to the edge that leads onwards from it: then every such edge
    has the least cost that its message took off, whatever the label of its far end.
    """
    for k in range(first, last):
        h = plan.forward_half[k]
        i = lay.node[h]
        at, far = lay.half_offset[h], lay.half_offset[h ^ 1]
        for x in range(lay.num_labels[i]):
            share = theta[lay.node_offset[i] + x] * plan.share[i]
            lam[at + x] = share - msg[at + x] if share < np.inf else 0.0
        for y in range(lay.num_labels[lay.node[h ^ 1]]):
            lam[far + y] = -msg[far + y]


@jit
def couplings(lay, plan, msg, theta, out, first, last):
    """κ_h = θ̂_i / n_i - M_h: chain edge marginals are exp(-η (C_e + κ_h + κ_{h^1}))."""
    for h in range(first, last):
        i = lay.node[h]
        at = lay.half_offset[h]
        for x in range(lay.num_labels[i]):
            share = theta[lay.node_offset[i] + x] * plan.share[i]
            out[at + x] = share - msg[at + x] if share < np.inf else 0.0
