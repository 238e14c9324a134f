"""Algorithms 2 and 3: a block update at y_k, and a step of v, as printed or as proved.

Both keep two arrays of which y_k is a combination, formed only where it is needed:

- as printed, λ stays off the block: `w` is λ and y = θ v + (1 - θ) λ;
- as proved, λ_{k+1} = y_k off the block, so λ - v shrinks by 1 - θ_k everywhere: with λ = v + a w
  and a = θ_{k-1}², y_k = v + θ_k² w, and an iteration changes nothing off its block.
"""

from __future__ import annotations

import numpy as np

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
    normalise,
    slack,
    small,
    subtract_star,
)


@small
def next_theta(theta):
    """θ_k from θ_{k-1}: the root of θ_k² = (1 - θ_k) θ_{k-1}², without cancellation."""
    return 2.0 * theta / (theta + np.sqrt(theta * theta + 4.0))


@small
def combine(at_v, v, at_w, w, first, out, count):
    """out = at_v · v + at_w · w over the stretch that begins at `first`."""
    for x in range(count):
        out[x] = at_v * v[first + x] + at_w * w[first + x]


@jit
def run_accelerated(
    lay, stars, hard, whole, exact, printed, eta, gain, count, theta, v, w, rng, widest
):
    """Run `count` updates from θ_{k-1} = `theta`; v moves by gain_i / θ_k · ν.

    `widest` bounds |N_i| · d_i. Return the last θ and the number of messages sent.
    """
    position, vertex, unary = stars.position, stars.vertex, lay.unary
    y, sigma, nu, rho = np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    a, spare = np.empty(lay.num_labels.max()), np.empty(lay.num_labels.max())
    work = 0
    for _ in range(count):
        theta = next_theta(theta)
        at_v, at_w = (theta, 1.0 - theta) if printed else (1.0, theta * theta)
        first, size = draw_block(position, vertex, whole, rng)
        i, base = position[first, OWNER], position[first, PLACE]
        degree, states, d = vertex[i, DEGREE], vertex[i, STATES], vertex[i, LABELS]
        star = base - (first - vertex[i, START]) * d
        for x in range(d):
            rho[x] = unary[states + x]
        subtract_star(degree, d, at_v, v, star, rho)
        subtract_star(degree, d, at_w, w, star, rho)
        normalise(rho, 0, d, eta)
        combine(at_v, v, at_w, w, base, y, size * d)
        for k in range(size):
            h, t = position[first + k, HALF], position[first + k, TWIN]
            j = position[t, OWNER]
            combine(at_v, v, at_w, w, position[t, PLACE], a, vertex[j, LABELS])
            if hard:
                bar_forbidden(unary, vertex[j, STATES], a, 0, vertex[j, LABELS])
            message(lay, h, a, vertex[j, LABELS], sigma, k * d, d, spare, eta)
            for x in range(k * d, (k + 1) * d):
                sigma[x] += y[x]
            if hard:
                bar_forbidden(unary, states, sigma, k * d, d)
            normalise(sigma, k * d, d, eta)
        slack(size, d, sigma, rho, nu, eta)
        if exact:
            minimise(size, d, y, 0, sigma, rho)
        else:
            descend(size, d, y, 0, nu, eta)
        step = gain[i] / theta
        for x in range(size * d):
            v[base + x] += step * nu[x]
            w[base + x] = y[x] if printed else (y[x] - v[base + x]) / at_w
        work += size
    return theta, work
