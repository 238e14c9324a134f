"""Algorithms 2 and 3: a block update at y_k, and a step of v, as printed or as proved.

Both keep two arrays of which y_k is a combination, formed only where it is needed:

- as printed, λ stays off the block: `w` is λ and y = θ v + (1 - θ) λ;
- as proved, λ_{k+1} = y_k off the block, so λ - v shrinks by 1 - θ_k everywhere: with λ = v + a w
  and a = θ_{k-1}², y_k = v + θ_k² w, and an iteration changes nothing off its block.
"""

from __future__ import annotations

import numpy as np

from softmap.kernels.blocks import (
    bar_forbidden,
    descend,
    draw_block,
    message,
    minimise,
    normalise,
    slack,
    small,
    subtract_star,
)
from softmap.kernels.messages import jit


@small
def next_theta(theta):
    """θ_k from θ_{k-1}: the root of θ_k² = (1 - θ_k) θ_{k-1}², without cancellation."""
    return 2.0 * theta / (theta + np.sqrt(theta * theta + 4.0))


@small
def combine(at_v, v, at_w, w, first, out, at, d):
    """out = at_v · v + at_w · w over the half-edge whose block begins at `first`."""
    for x in range(d):
        out[at + x] = at_v * v[first + x] + at_w * w[first + x]


@jit
def run_accelerated(lay, stars, exact, printed, eta, gain, count, theta, v, w, rng, widest):
    """Run `count` updates from θ_{k-1} = `theta`; v moves by gain_i / θ_k · ν.

    `widest` bounds |N_i| · d_i. Return the last θ and the number of messages sent.
    """
    node, node_offset, half_offset, unary = lay.node, lay.node_offset, lay.half_offset, lay.unary
    start, half, group_start, kind, table = (
        lay.start,
        lay.half,
        lay.group_start,
        lay.kind,
        lay.table,
    )
    block = np.empty(widest, np.int64)
    y, sigma, nu, rho = np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    a, spare = np.empty(lay.num_labels.max()), np.empty(lay.num_labels.max())
    work = 0
    for _ in range(count):
        theta = next_theta(theta)
        at_v, at_w = (theta, 1.0 - theta) if printed else (1.0, theta * theta)
        size = draw_block(node, start, half, stars, rng, block)
        i = node[block[0]]
        at, d = node_offset[i], node_offset[i + 1] - node_offset[i]
        for x in range(d):
            rho[x] = unary[at + x]
        subtract_star(start, half, half_offset, i, at_v, v, rho, 0, d)
        subtract_star(start, half, half_offset, i, at_w, w, rho, 0, d)
        normalise(rho, 0, d, eta)
        for k in range(size):
            h = block[k]
            first, senders = half_offset[h ^ 1], half_offset[(h ^ 1) + 1] - half_offset[h ^ 1]
            combine(at_v, v, at_w, w, first, a, 0, senders)
            bar_forbidden(unary, node_offset[node[h ^ 1]], a, 0, senders)
            message(lay, h, group_start, kind, table, a, senders, sigma, k * d, d, spare, eta)
            combine(at_v, v, at_w, w, half_offset[h], y, k * d, d)
            for x in range(k * d, (k + 1) * d):
                sigma[x] += y[x]
            bar_forbidden(unary, at, sigma, k * d, d)
            normalise(sigma, k * d, d, eta)
        slack(size, d, sigma, rho, nu, eta)
        if exact:
            minimise(size, d, y, sigma, rho)
        else:
            descend(size, d, y, nu, eta)
        step = gain[i] / theta
        for k in range(size):
            first = half_offset[block[k]]
            for x in range(d):
                v[first + x] += step * nu[k * d + x]
                new = y[k * d + x]
                w[first + x] = new if printed else (new - v[first + x]) / at_w
        work += size
    return theta, work
