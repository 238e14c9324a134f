"""Algorithm 1: random block updates, and the iterate of least Σ ‖ν‖₁² over all of them.

Messages, S and μ are kept up to date, so that an update touches its star and the far ends of its
block: O(deg·d + d²). The best iterate is kept as the difference to the current one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from softmap.kernels.blocks import (
    DEGREE,
    HALF,
    LABELS,
    OWNER,
    PLACE,
    START,
    STATES,
    TWIN,
    bar_forbidden,
    descend,
    draw_block,
    jit,
    message,
    minimise,
    small,
    subtract_star,
    to_probabilities,
)

NORM, LEVEL = 0, 1


class Standard(NamedTuple):
    """Arrays of a run, half-edges in star order.

    `incoming` (messages), `S`, `mu` belong to the current `lam`; `half[k]` is (‖ν‖₁², normaliser of
    S), `node_level` the normalisers of μ; `total` is the sum of all ‖ν‖₁² as a pair (high, low),
    then the least so far. Position k of the best iterate is `saved` where `stamp[k] == epoch[0]`,
    else `lam`.
    """

    lam: Any
    incoming: Any
    S: Any
    mu: Any
    half: Any
    node_level: Any
    total: Any
    saved: Any
    stamp: Any
    epoch: Any


# numba hands its caller's fastmath on unless told otherwise; the terms would cancel symbolically
strict = njit(cache=True, nogil=True, fastmath=False)


@strict
def add(total, value):
    """Add to the pair (high, low) without loss: what high cannot hold goes to low."""
    high = total[0] + value
    back = high - total[0]
    total[1] += (total[0] - (high - back)) + (value - back)
    total[0] = high


@strict
def carry(total):
    """Bring back to high what has gathered in low, so that high is the rounded sum."""
    high = total[0] + total[1]
    total[1] -= high - total[0]
    total[0] = high


@small
def refresh_node(unary, states, star, degree, d, i, lam, mu, node_level, eta):
    """μ_i and its normaliser from λ."""
    for x in range(d):
        mu[states + x] = unary[states + x]
    for k in range(degree):
        for x in range(d):
            mu[states + x] -= lam[star + k * d + x]
    node_level[i] = to_probabilities(mu, states, d, eta)


@small
def refresh_half(k, at, d, lam, incoming, S, half, eta):
    """S and its normaliser at position k, from λ and the message that comes in."""
    for x in range(at, at + d):
        S[x] = incoming[x] + lam[x]
    half[k, LEVEL] = to_probabilities(S, at, d, eta)


@small
def refresh_norm(k, at, d, states, S, mu, half, total):
    """‖ν‖₁² at position k, and the sum of all."""
    value = 0.0
    for x in range(d):
        value += abs(S[at + x] - mu[states + x])
    add(total, -half[k, NORM])
    half[k, NORM] = value * value
    add(total, value * value)


@small
def send(lay, hard, h, lam, first, senders, far, a, incoming, at, receivers, near, spare, eta):
    """Message into half-edge h from λ of its far end: softmin_y [C(x, y) + λ_{h^1}(y)]."""
    for y in range(senders):
        a[y] = lam[first + y]
    if hard:
        bar_forbidden(lay.unary, far, a, 0, senders)
    message(lay, h, a, senders, incoming, at, receivers, spare, eta)
    if hard:
        bar_forbidden(lay.unary, near, incoming, at, receivers)


@jit
def begin(lay, stars, hard, eta, run):
    """Fill everything that follows from λ; λ itself is the best iterate so far."""
    position, vertex = stars.position, stars.vertex
    a, spare = np.empty(lay.num_labels.max()), np.empty(lay.num_labels.max())
    for k in range(len(position)):
        h, t, i, at = position[k, HALF], position[k, TWIN], position[k, OWNER], position[k, PLACE]
        near, d = vertex[i, STATES], vertex[i, LABELS]
        j, first = position[t, OWNER], position[t, PLACE]
        far, e = vertex[j, STATES], vertex[j, LABELS]
        send(lay, hard, h, run.lam, first, e, far, a, run.incoming, at, d, near, spare, eta)
        refresh_half(k, at, d, run.lam, run.incoming, run.S, run.half, eta)
    for i in range(len(vertex)):
        start, degree = vertex[i, START], vertex[i, DEGREE]
        states, d = vertex[i, STATES], vertex[i, LABELS]
        star = position[start, PLACE] if degree else 0
        refresh_node(lay.unary, states, star, degree, d, i, run.lam, run.mu, run.node_level, eta)
        for k in range(degree):
            refresh_norm(start + k, star + k * d, d, states, run.S, run.mu, run.half, run.total)
    carry(run.total)
    run.total[2] = run.total[0]


@small
def keep(first, size, base, d, lam, saved, stamp, epoch):
    """Before λ of the block changes: keep it for the best iterate, once per best iterate."""
    for k in range(size):
        if stamp[first + k] != epoch:
            stamp[first + k] = epoch
            for x in range(base + k * d, base + (k + 1) * d):
                saved[x] = lam[x]


@jit
def run_standard(lay, stars, hard, whole, exact, eta, count, run, rng, widest):
    """Run `count` updates; `widest` bounds |N_i| · d_i. Return the number of messages sent."""
    position, vertex, unary = stars.position, stars.vertex, lay.unary
    lam, incoming, S, mu, half, total = run.lam, run.incoming, run.S, run.mu, run.half, run.total
    node_level, saved, stamp, epoch = run.node_level, run.saved, run.stamp, run.epoch[0]
    sigma, rho = np.empty(widest), np.empty(widest)
    a, spare = np.empty(lay.num_labels.max()), np.empty(lay.num_labels.max())
    work = 0
    for _ in range(count):
        first, size = draw_block(position, vertex, whole, rng)
        i, base = position[first, OWNER], position[first, PLACE]
        start, degree, states, d = (
            vertex[i, START],
            vertex[i, DEGREE],
            vertex[i, STATES],
            vertex[i, LABELS],
        )
        star = base - (first - start) * d
        keep(first, size, base, d, lam, saved, stamp, epoch)
        if exact:
            for x in range(d):
                rho[x] = unary[states + x] - node_level[i]
            subtract_star(degree, d, 1.0, lam, star, rho)
            for k in range(size):
                level = half[first + k, LEVEL]
                for x in range(k * d, (k + 1) * d):
                    sigma[x] = incoming[base + x] + lam[base + x] - level
            minimise(size, d, lam, base, sigma, rho)
        else:
            for k in range(size):
                for x in range(d):
                    sigma[k * d + x] = S[base + k * d + x] - mu[states + x]
            descend(size, d, lam, base, sigma, eta)
        refresh_node(unary, states, star, degree, d, i, lam, mu, node_level, eta)
        for k in range(size):
            at, t = base + k * d, position[first + k, TWIN]
            h, j, to = position[t, HALF], position[t, OWNER], position[t, PLACE]
            far, labels = vertex[j, STATES], vertex[j, LABELS]
            send(lay, hard, h, lam, at, d, states, a, incoming, to, labels, far, spare, eta)
            refresh_half(first + k, at, d, lam, incoming, S, half, eta)
            refresh_half(t, to, labels, lam, incoming, S, half, eta)
            refresh_norm(t, to, labels, far, S, mu, half, total)
        for k in range(degree):
            refresh_norm(start + k, star + k * d, d, states, S, mu, half, total)
        carry(total)
        if total[0] < total[2]:
            total[2] = total[0]
            epoch += 1
        work += size
    run.epoch[0] = epoch
    return work
