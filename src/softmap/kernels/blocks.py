"""One block of λ: its marginals in the log domain, its slack, and the two rules that change it.

A block is any set B of half-edges at one node i: a single one (the paper's edge update) or all of
them (its star update). `sigma` holds -(1/η) log S_h for h in B, one after the other, and `rho`
holds -(1/η) log μ_i: costs, +inf on forbidden states. The numpy twins are in `tests/numpy_twins`.

An update is so small that handing over a whole `Layout`, or cutting slices, would cost more than
its arithmetic: these functions take plain arrays and places in them, and melt into their callers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.fastmath import FAST, exp_nonpositive, log_positive
from softmap.kernels.messages import TABLE, soft_columns, soft_message, soft_rows
from softmap.kernels.rng import below

small = njit(cache=True, nogil=True, fastmath=FAST, inline="always")


@small
def draw_block(node, start, half, stars, rng, block):
    """Draw a half-edge uniformly; the block is that one, or all of its node (so p_i = |N_i|/N)."""
    h = below(rng, len(node))
    size = 1
    block[0] = h
    if stars:
        first = start[node[h]]
        size = start[node[h] + 1] - first
        for k in range(size):
            block[k] = half[first + k]
    return size


@small
def subtract_star(start, half, half_offset, i, factor, lam, out, at, d):
    """out(x) -= factor · Σ_{h∈i} λ_h(x), where out begins at `at`."""
    for k in range(start[i], start[i + 1]):
        first = half_offset[half[k]]
        for x in range(d):
            out[at + x] -= factor * lam[first + x]


@small
def bar_forbidden(unary, first, out, at, d):
    """+inf on the forbidden states of the node whose costs begin at `first`."""
    for x in range(d):
        if unary[first + x] == np.inf:
            out[at + x] = np.inf


@small
def message(lay, h, group_start, kind, table, a, senders, out, at, receivers, spare, eta):
    """`soft_message` into `h`, from a[:senders] to out[at:at+receivers], with a short way for tables.

    Tables are what an update's overhead would show with; `spare` is scratch memory.
    """
    e = h >> 1
    g = 0
    while group_start[g + 1] <= e:
        g += 1
    if kind[g] == TABLE:
        k = e - group_start[g]
        places, weights = lay.offset_at[g], lay.weight_at[g]
        begin = lay.table_at[g] + (lay.offset[places + k] if places >= 0 else lay.stride[g] * k)
        w = lay.weight[weights + k] if weights >= 0 else 1.0
        if h & 1:
            soft_columns(table, begin, w, a[:senders], out[at : at + receivers], spare, eta)
        else:
            soft_rows(table, begin, w, a[:senders], out[at : at + receivers], eta)
    else:
        soft_message(lay, h, a[:senders], out[at : at + receivers], eta)


@njit(cache=True, nogil=True, fastmath=FAST)
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


@njit(cache=True, nogil=True, fastmath=FAST)
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


@njit(cache=True, nogil=True, fastmath=FAST)
def slack(size, d, sigma, rho, nu, eta):
    """ν_h = S_h - μ_i for the half-edges of the block; 0 on forbidden states."""
    for x in range(d):
        mu = exp_nonpositive(-eta * rho[x])
        for k in range(size):
            difference = exp_nonpositive(-eta * sigma[k * d + x]) - mu
            nu[k * d + x] = difference if rho[x] < np.inf else 0.0


@njit(cache=True, nogil=True, fastmath=FAST)
def minimise(size, d, y, sigma, rho):
    """Minimise L over the block, in place: Propositions "emp-update" and "smp-update" in one.

    λ'_h = y_h - σ_h + (ρ + Σ_{h'∈B} σ_h') / (|B| + 1), with σ and ρ normalised.
    """
    for x in range(d):
        shared = rho[x]
        for k in range(size):
            shared += sigma[k * d + x]
        shared /= size + 1
        for k in range(size):
            new = y[k * d + x] - sigma[k * d + x] + shared
            y[k * d + x] = new if rho[x] < np.inf else 0.0


@njit(cache=True, nogil=True, fastmath=FAST)
def descend(size, d, y, nu, eta):
    """Gradient step on the block, in place, of one over its curvature η (|B| + 1) / 2."""
    step = 2.0 / (eta * (size + 1))
    for k in range(size * d):
        y[k] += step * nu[k]
