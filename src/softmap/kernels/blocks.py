"""One block of λ: its marginals in the log domain, its slack, and the two rules that change it.

A block is a set B of half-edges at one node i: a single one (the paper's edge update) or all of
them (its star update). `sigma` holds -(1/η) log S_h for h in B, one after the other, and `rho`
holds -(1/η) log μ_i: costs, +inf on forbidden states. The numpy twins are in `tests/numpy_twins`.

An update is so small that memory decides its time. So everything is kept in *star order*: the
half-edges of a node one after the other (see `Stars`), a block is one stretch of memory, and what
belongs together lies together. Handing over a whole `Layout`, or cutting slices, would cost more
than the arithmetic: these functions take plain arrays and places in them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from softmap.kernels.distances import TABLE
from softmap.kernels.fastmath import FAST, exp_nonpositive, log_positive
from softmap.kernels.messages import soft_columns, soft_message, soft_rows
from softmap.kernels.rng import below

HALF, TWIN, OWNER, PLACE = 0, 1, 2, 3
START, DEGREE, STATES, LABELS = 0, 1, 2, 3

jit = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
small = njit(cache=True, nogil=True, fastmath=FAST, inline="always")


class Stars(NamedTuple):
    """Half-edges by node: position k of N = 2m.

    `position[k]` is (half-edge, position of its other end, node, where its labels begin);
    `vertex[i]` is (first position, degree, where its states begin in node arrays, labels).
    """

    position: Any
    vertex: Any


@small
def draw_block(position, vertex, whole, rng):
    """Draw a position uniformly: first position and size of its block.

    The block is that half-edge, or if `whole` the star of its node, which so has p_i = |N_i| / N.
    """
    first = below(rng, len(position))
    size = 1
    if whole:
        i = position[first, OWNER]
        first, size = vertex[i, START], vertex[i, DEGREE]
    return first, size


@small
def subtract_star(degree, d, factor, lam, at, out):
    """out(x) -= factor · Σ_{h∈i} λ_h(x), the star of i beginning at `at`."""
    for k in range(degree):
        for x in range(d):
            out[x] -= factor * lam[at + k * d + x]


@small
def bar_forbidden(unary, states, out, at, d):
    """+inf on the forbidden ones of the states that begin at `states`."""
    for x in range(d):
        if unary[states + x] == np.inf:
            out[at + x] = np.inf


@small
def message(lay, h, a, senders, out, at, receivers, spare, eta):
    """`soft_message` into `h`, from a[:senders] to out[at:at+receivers].

    Dense tables have a short way; `spare` is scratch memory for it.
    """
    e = h >> 1
    g = 0
    while lay.group_start[g + 1] <= e:
        g += 1
    if lay.kind[g] == TABLE:
        k = e - lay.group_start[g]
        places, weights = lay.offset_at[g], lay.weight_at[g]
        begin = lay.table_at[g] + (lay.offset[places + k] if places >= 0 else lay.stride[g] * k)
        w = lay.weight[weights + k] if weights >= 0 else 1.0
        if h & 1:
            soft_columns(lay.table, begin, w, a[:senders], out[at : at + receivers], spare, eta)
        else:
            soft_rows(lay.table, begin, w, a[:senders], out[at : at + receivers], eta)
    else:
        soft_message(lay, h, a[:senders], out[at : at + receivers], eta)


@jit
def normalise(cost, at, d, eta):
    """Shift the d costs from `at` so that exp(-η cost) sums to one."""
    least = np.inf
    for x in range(at, at + d):
        least = min(least, cost[x])
    total = 0.0
    for x in range(at, at + d):
        total += exp_nonpositive(-eta * (cost[x] - least))
    shift = least - log_positive(total) / eta
    for x in range(at, at + d):
        cost[x] -= shift


@jit
def to_probabilities(cost, at, d, eta):
    """Turn d costs into probabilities ∝ exp(-η cost); return what `normalise` would subtract."""
    least = np.inf
    for x in range(at, at + d):
        least = min(least, cost[x])
    total = 0.0
    for x in range(at, at + d):
        weight = exp_nonpositive(-eta * (cost[x] - least))
        cost[x] = weight if cost[x] < np.inf else 0.0
        total += cost[x]
    for x in range(at, at + d):
        cost[x] /= total
    return least - log_positive(total) / eta


@jit
def slack(size, d, sigma, rho, nu, eta):
    """ν_h = S_h - μ_i for the half-edges of the block; 0 on forbidden states."""
    for x in range(d):
        mu = exp_nonpositive(-eta * rho[x])
        for k in range(size):
            difference = exp_nonpositive(-eta * sigma[k * d + x]) - mu
            nu[k * d + x] = difference if rho[x] < np.inf else 0.0


@jit
def minimise(size, d, y, at, sigma, rho):
    """Minimise L over the block at `at`: Propositions "emp-update" and "smp-update" in one.

    λ'_h = y_h - σ_h + (ρ + Σ_{h'∈B} σ_h') / (|B| + 1), with σ and ρ normalised.
    """
    for x in range(d):
        shared = rho[x]
        for k in range(size):
            shared += sigma[k * d + x]
        shared /= size + 1
        for k in range(size):
            new = y[at + k * d + x] - sigma[k * d + x] + shared
            y[at + k * d + x] = new if rho[x] < np.inf else 0.0


@jit
def descend(size, d, y, at, nu, eta):
    """Gradient step on the block at `at`, of one over its curvature η (|B| + 1) / 2."""
    step = 2.0 / (eta * (size + 1))
    for k in range(size * d):
        y[at + k] += step * nu[k]
