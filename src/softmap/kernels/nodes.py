"""What the judge wants to know of nodes: least reduced costs, and soft marginals."""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.couples import TRACE
from softmap.kernels.fastmath import FAST
from softmap.kernels.vectors import (
    LANES,
    choose,
    exp,
    gather,
    jit,
    least,
    log,
    scatter,
    spread,
    store_some,
    unless_infinite,
)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def node_minima(lay, lam, out, first, last):
    """min C_i - Σ λ of nodes `first..last-1`; `out` is (nodes,)."""
    total = np.empty(lay.num_labels.max())
    for i in range(first, last):
        d, at = lay.num_labels[i], lay.node_offset[i]
        for x in range(d):
            total[x] = lay.unary[at + x]
        for k in range(lay.start[i], lay.start[i + 1]):
            at = lay.half_offset[lay.half[k]]
            for x in range(d):
                total[x] -= lam[at + x]
        out[i] = total[:d].min()


@jit
def soft_nodes(lay, at, step, share, eta, out, entropy, minimum, first, last):
    """μ_i ∝ exp(-η s_i) of nodes `first..last-1`, s_i(x) being `share[at[i] + x step[i]]`.

    Also the entropies of the μ_i, and the soft minima of the s_i.
    """
    i = first
    while i < last:
        d, place, count = lay.num_labels[i], lay.node_offset[i], 1
        while count < LANES and i + count < last and lay.num_labels[i + count] == d:
            count += 1
        low = gather(share, at, step, i, 1, 0, count)
        for x in range(1, d):
            low = least(gather(share, at, step, i, 1, x, count), low)
        total, mean = spread(0.0), spread(0.0)
        for x in range(d):
            cost = gather(share, at, step, i, 1, x, count)
            excess = least(cost - low, spread(1e300))
            total = total + unless_infinite(cost, exp(-eta * excess))
        scale = 1.0 / total
        for x in range(d):
            cost = gather(share, at, step, i, 1, x, count)
            excess = least(cost - low, spread(1e300))
            mass = exp(-eta * excess)
            mass = choose(spread(TRACE), mass, unless_infinite(cost, mass), spread(0.0)) * scale
            mean = mean + mass * excess
            scatter(out, place + x, d, mass, count)
        logarithm = log(total)
        store_some(entropy, i, eta * mean + logarithm, count)
        store_some(minimum, i, low - logarithm * (1.0 / eta), count)
        i += count
