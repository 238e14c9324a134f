"""Passes over monotonic chains: smooth TRW-S at finite η, Kolmogorov's TRW-S at η = ∞.

With messages M = -λ and `θ̂_i = C_i + Σ_h M_h`, a node sends along each edge that points onwards
`M(y) = softmin_x θ̂_i(x) / n_i - M_h(x) + C_e(x, y)`, up to a constant. Levels are walked through by
all threads together; every message is computed the same way whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels import vectors
from softmap.kernels.fastmath import FAST
from softmap.kernels.schedule import (
    DEGREE,
    FIRST,
    GATHERED,
    LABELS,
    NODES,
    PLACE,
    ROW_STEP,
    STRAIGHT,
    WAY,
)
from softmap.kernels.sending import buffers_for, send_blocks
from softmap.kernels.threads import wait
from softmap.kernels.vectors import LANES, gather, load, store, store_some

unsigned = np.uint64  # an index that cannot be negative needs no test, and then loops vectorise
jit = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)
BLOCKS = 64  # partial sums of fixed blocks: the same total whatever the number of threads


@vectors.jit
def shares(lay, plan, msg, theta, first, last):
    """θ̂_i / n_i for the nodes of the rows `plan.rows[first:last]`, into `theta` by strip."""
    for r in range(first, last):
        way = plan.rows[r, WAY]
        if way == STRAIGHT:
            _straight_row(plan, r, msg, theta)
        elif way == GATHERED:
            _gathered_row(plan, r, msg, theta)
        else:
            _share(lay, plan, plan.rows[r, FIRST], msg, theta, plan.rows[r, PLACE])


@vectors.inlined
def _straight_row(plan, r, msg, theta):
    """A row whose messages lie side by side: all by whole vectors."""
    k, count, d = plan.rows[r, FIRST], plan.rows[r, NODES], plan.rows[r, LABELS]
    degree, place, step = plan.rows[r, DEGREE], plan.rows[r, PLACE], plan.rows[r, ROW_STEP]
    pull, part = plan.pull_start[k], load(plan.share, k)
    for x in range(d):
        value = load(plan.unary, place + x * step)
        for p in range(unsigned(pull), unsigned(pull + degree)):
            value = value + load(msg, plan.pull_at[p] + x * plan.pull_step[p])
        if count == LANES:
            store(theta, place + x * step, value * part)
        else:
            store_some(theta, place + x * step, value * part, count)


@vectors.inlined
def _gathered_row(plan, r, msg, theta):
    k, count, d = plan.rows[r, FIRST], plan.rows[r, NODES], plan.rows[r, LABELS]
    degree, place, step = plan.rows[r, DEGREE], plan.rows[r, PLACE], plan.rows[r, ROW_STEP]
    pull = plan.pull_start[k]
    part = load(plan.share, k)
    for x in range(d):
        value = load(plan.unary, place + x * step)
        for p in range(pull, pull + degree):
            value = value + gather(msg, plan.pull_at, plan.pull_step, p, degree, x, count)
        store_some(theta, place + x * step, value * part, count)


@jit
def _share(lay, plan, k, msg, theta, place):
    """θ̂_i / n_i of one node."""
    i = plan.nodes[k]
    d, step, part = lay.num_labels[i], plan.node_step[i], plan.share[k]
    for x in range(d):
        theta[unsigned(place + x * step)] = plan.unary[unsigned(place + x * step)]
    for p in range(plan.pull_start[k], plan.pull_start[k + 1]):
        at, wide = plan.pull_at[p], plan.pull_step[p]
        for x in range(d):
            theta[unsigned(place + x * step)] += msg[unsigned(at + x * wide)]
    for x in range(d):
        theta[unsigned(place + x * step)] *= part


@jit
def by_node(lay, plan, theta, out, first, last):
    """Copy costs of nodes `first..last-1` from the order of strips to that of the model."""
    for i in range(first, last):
        at, step, place = plan.node_at[i], plan.node_step[i], lay.node_offset[i]
        for x in range(lay.num_labels[i]):
            out[place + x] = theta[at + x * step]


@jit
def portion(start, level, thread, threads):
    """What one thread does of the items `start[level]..start[level + 1] - 1`."""
    begin = start[level]
    width = start[level + 1] - begin
    return begin + width * thread // threads, begin + width * (thread + 1) // threads


@jit
def half_pass(lay, plan, forward, msg, prev, theta, eta, momentum, shift, dot, buffers, team):
    """One direction: levels in turn, every node sends along its onward edges."""
    thread, threads, barrier = team
    start = plan.forward_start if forward else plan.backward_start
    listed = plan.forward if forward else plan.backward
    levels = len(plan.row_start) - 1
    for step in range(levels):
        level = step if forward else levels - 1 - step
        low, high = portion(plan.row_start, level, thread, threads)
        shares(lay, plan, msg, theta, low, high)
        wait(barrier, threads)
        low, high = portion(start, level, thread, threads)
        send_blocks(
            lay, plan, listed, low, high, forward, theta, msg, prev, eta, momentum, shift, dot,
            buffers,
        )  # fmt: skip
        wait(barrier, threads)


@jit
def block_total(values, sums, team):
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
def extrapolate(msg, prev, product, clock, team):
    """Nesterov's step before a whole pass: y = z + β (z - z_prev), restarted when it points back.

    `product` is the last pass's (see `sending`); `clock[0]` is Nesterov's t, `clock[1]` counts
    restarts. Only the first `len(prev)` messages take part.
    """
    thread, threads, barrier = team
    back = product > 0.0
    t = 1.0 if back else clock[0]
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
    beta = (t - 1.0) / following
    low, high = len(prev) * thread // threads, len(prev) * (thread + 1) // threads
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
def passes(lay, plan, halves, msg, prev, theta, eta, momentum, shift, dot, sums, clock, team):
    """`halves` half passes, forward first, with momentum over whole passes if asked for.

    Momentum is for the messages sent backward: those sent forward are all made anew before they are
    read. `prev` is as long as the part of `msg` that holds them; `clock[2]` is the last product.
    One call site for both directions: the pass is compiled once.
    """
    buffers = buffers_for(lay)
    product = clock[2]
    for half in range(halves):
        forward = half % 2 == 0
        if momentum and forward:
            extrapolate(msg, prev, product, clock, team)
        moving = momentum and not forward
        half_pass(lay, plan, forward, msg, prev, theta, eta, moving, shift, dot, buffers, team)
        if moving:
            product = block_total(dot, sums, team)
    if team[0] == 0:
        clock[2] = product


@jit
def cut_chains(lay, plan, msg, theta, lam, first, last):
    """λ of edges `first..last-1` whose plain bound is the chain bound.

    To be called after a hard forward half pass. Each node's share θ̂_i / n_i goes to the edge that
    leads onwards from it: then every such edge has the least cost that its message took off,
    whatever the label of its far end. `theta` holds the shares in the order of the model.
    """
    for e in range(first, last):
        for side in range(2):
            h = 2 * e + side
            i = lay.node[h]
            at, step, place = plan.half_at[h], plan.half_step[h], lay.half_offset[h]
            onwards = i < lay.node[h ^ 1]
            for x in range(lay.num_labels[i]):
                value = -msg[at + x * step]
                if onwards:
                    share = theta[lay.node_offset[i] + x]
                    value = value + share if share < np.inf else 0.0
                lam[place + x] = value


@jit
def couplings(lay, plan, msg, theta, out, first, last):
    """κ_h = θ̂_i / n_i - M_h: chain edge marginals are exp(-η (C_e + κ_h + κ_{h^1})).

    `theta` holds the shares θ̂_i / n_i in the order of the model.
    """
    for h in range(first, last):
        i = lay.node[h]
        at, step, place = plan.half_at[h], plan.half_step[h], lay.half_offset[h]
        for x in range(lay.num_labels[i]):
            share = theta[lay.node_offset[i] + x]
            out[place + x] = share - msg[at + x * step] if share < np.inf else 0.0
