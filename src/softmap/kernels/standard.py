"""Algorithm 1: random block updates, and the iterate of least Σ ‖ν‖₁² over all of them.

Messages, S and μ are kept up to date, so that an update touches its block and the far ends of it:
O(deg·d + d²). The best iterate is kept as the difference to the current one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from softmap.kernels.blocks import (
    bar_forbidden,
    descend,
    draw_block,
    message,
    minimise,
    small,
    subtract_star,
    to_probabilities,
)
from softmap.kernels.fastmath import FAST

jit = njit(cache=True, nogil=True, fastmath=FAST)


class Standard(NamedTuple):
    """Arrays of a run; half-edge arrays flat over `half_offset`, node arrays over `node_offset`.

    `message`, `S`, `mu` belong to the current `lam`; `half_level` and `node_level` are the
    normalisers of S and μ, `norm` is ‖ν_h‖₁², `total` its sum as a pair (high, low) and the least
    sum so far. Half-edge h of the best iterate is `saved` where `stamp[h] == epoch[0]`, else `lam`.
    """

    lam: Any
    message: Any
    S: Any
    mu: Any
    half_level: Any
    node_level: Any
    norm: Any
    total: Any
    saved: Any
    stamp: Any
    epoch: Any


@njit(cache=True, nogil=True)
def add(total, value):
    """Add to the pair (high, low) with twice the precision: the sum does not drift."""
    high = total[0] + value
    back = high - total[0]
    total[1] += (total[0] - (high - back)) + (value - back)
    total[0] = high + total[1]
    total[1] -= total[0] - high


@small
def refresh_node(unary, node_offset, start, half, half_offset, i, lam, mu, node_level, eta):
    """μ_i and its normaliser from λ."""
    at, d = node_offset[i], node_offset[i + 1] - node_offset[i]
    for x in range(at, at + d):
        mu[x] = unary[x]
    subtract_star(start, half, half_offset, i, 1.0, lam, mu, at, d)
    node_level[i] = to_probabilities(mu, at, d, eta)


@small
def refresh_half(half_offset, h, lam, messages, S, half_level, eta):
    """S_h and its normaliser from λ_h and the message into h."""
    at, d = half_offset[h], half_offset[h + 1] - half_offset[h]
    for x in range(at, at + d):
        S[x] = messages[x] + lam[x]
    half_level[h] = to_probabilities(S, at, d, eta)


@small
def refresh_norm(node, node_offset, half_offset, h, S, mu, norm, total):
    """‖ν_h‖₁² and the running sum of all."""
    shift = node_offset[node[h]] - half_offset[h]
    value = 0.0
    for x in range(half_offset[h], half_offset[h + 1]):
        value += abs(S[x] - mu[x + shift])
    add(total, -norm[h])
    norm[h] = value * value
    add(total, norm[h])


@small
def send(lay, h, tables, node_offset, half_offset, node, unary, lam, a, messages, spare, eta):
    """Message into half-edge `h` from λ of its far end: softmin_y [C(x, y) + λ_{h^1}(y)]."""
    group_start, kind, table = tables
    near, far = node_offset[node[h]], node_offset[node[h ^ 1]]
    at, first = half_offset[h], half_offset[h ^ 1]
    receivers, senders = half_offset[h + 1] - at, half_offset[(h ^ 1) + 1] - first
    for y in range(senders):
        a[y] = lam[first + y]
    bar_forbidden(unary, far, a, 0, senders)
    message(lay, h, group_start, kind, table, a, senders, messages, at, receivers, spare, eta)
    bar_forbidden(unary, near, messages, at, receivers)


@jit
def begin(lay, eta, run):
    """Fill everything that follows from λ; λ itself is the best iterate so far."""
    node, node_offset, half_offset, unary = lay.node, lay.node_offset, lay.half_offset, lay.unary
    start, half, tables = lay.start, lay.half, (lay.group_start, lay.kind, lay.table)
    lam, messages, S, mu = run.lam, run.message, run.S, run.mu
    a, spare = np.empty(lay.num_labels.max()), np.empty(lay.num_labels.max())
    for h in range(len(node)):
        send(lay, h, tables, node_offset, half_offset, node, unary, lam, a, messages, spare, eta)
        refresh_half(half_offset, h, lam, messages, S, run.half_level, eta)
    for i in range(len(lay.num_labels)):
        refresh_node(unary, node_offset, start, half, half_offset, i, lam, mu, run.node_level, eta)
    for h in range(len(node)):
        refresh_norm(node, node_offset, half_offset, h, S, mu, run.norm, run.total)
    run.total[2] = run.total[0]


@small
def gather(block, size, d, half_offset, lam, messages, half_level, y, sigma):
    """λ and σ of the block."""
    for k in range(size):
        first, level = half_offset[block[k]], half_level[block[k]]
        for x in range(d):
            y[k * d + x] = lam[first + x]
            sigma[k * d + x] = messages[first + x] + lam[first + x] - level


@small
def gather_slack(block, size, d, half_offset, lam, S, mu, at, y, nu):
    """λ and ν of the block, whose node's μ begins at `at`."""
    for k in range(size):
        first = half_offset[block[k]]
        for x in range(d):
            y[k * d + x] = lam[first + x]
            nu[k * d + x] = S[first + x] - mu[at + x]


@small
def replace(block, size, d, half_offset, y, lam, saved, stamp, epoch):
    """Write λ of the block, keeping what the best iterate had there."""
    for k in range(size):
        h = block[k]
        first = half_offset[h]
        if stamp[h] != epoch:
            stamp[h] = epoch
            for x in range(first, first + d):
                saved[x] = lam[x]
        for x in range(d):
            lam[first + x] = y[k * d + x]


@jit
def run_standard(lay, stars, exact, eta, count, run, rng, widest):
    """Run `count` updates; `widest` bounds |N_i| · d_i. Return the number of messages sent."""
    node, node_offset, half_offset, unary = lay.node, lay.node_offset, lay.half_offset, lay.unary
    start, half, tables = lay.start, lay.half, (lay.group_start, lay.kind, lay.table)
    lam, messages, S, mu, norm, total = run.lam, run.message, run.S, run.mu, run.norm, run.total
    half_level, node_level, saved, stamp = run.half_level, run.node_level, run.saved, run.stamp
    epoch = run.epoch[0]
    block = np.empty(widest, np.int64)
    y, sigma = np.empty(widest), np.empty(widest)
    rho, a, spare = np.empty(widest), np.empty(lay.num_labels.max()), np.empty(lay.num_labels.max())
    work = 0
    for _ in range(count):
        size = draw_block(node, start, half, stars, rng, block)
        i = node[block[0]]
        at, d = node_offset[i], node_offset[i + 1] - node_offset[i]
        if exact:
            for x in range(d):
                rho[x] = unary[at + x] - node_level[i]
            subtract_star(start, half, half_offset, i, 1.0, lam, rho, 0, d)
            gather(block, size, d, half_offset, lam, messages, half_level, y, sigma)
            minimise(size, d, y, sigma, rho)
        else:
            gather_slack(block, size, d, half_offset, lam, S, mu, at, y, sigma)
            descend(size, d, y, sigma, eta)
        replace(block, size, d, half_offset, y, lam, saved, stamp, epoch)
        refresh_node(unary, node_offset, start, half, half_offset, i, lam, mu, node_level, eta)
        for k in range(size):
            h = block[k] ^ 1
            send(
                lay, h, tables, node_offset, half_offset, node, unary, lam, a, messages, spare, eta
            )
            refresh_half(half_offset, h ^ 1, lam, messages, S, half_level, eta)
            refresh_half(half_offset, h, lam, messages, S, half_level, eta)
            refresh_norm(node, node_offset, half_offset, h, S, mu, norm, total)
        for k in range(start[i], start[i + 1]):
            refresh_norm(node, node_offset, half_offset, half[k], S, mu, norm, total)
        if total[0] < total[2]:
            total[2] = total[0]
            epoch += 1
        work += size
    run.epoch[0] = epoch
    return work
