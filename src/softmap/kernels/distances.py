"""Messages of costs that depend on the label difference only: Potts, truncated linear, quadratic.

The conventions are those of `kernels.messages`, which calls these.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.fastmath import FAST, exp_nonpositive, log_positive

# the values of softmap.potentials.Kind, as numbers that numba can fold
TABLE, POTTS, LINEAR, QUADRATIC, PROJECTION = 0, 1, 2, 3, 4
SAFE = 600.0  # exp(-SAFE) is far from underflow even when multiplied by a few of its like
# For functions that create no arrays: counting references to every array of a layout at every call
# would cost more than a small message.
bare = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)


@bare
def distance_cost(kind, weight, truncation, k):
    """Cost of a label difference `k >= 0`."""
    if kind == POTTS:
        return weight if k > 0 else 0.0 * k
    if kind == LINEAR:
        return weight * min(float(k), truncation)
    return weight * min(float(k * k), truncation)


@bare
def argmin(a):
    """Place of the least entry."""
    best = 0
    for x in range(1, len(a)):
        if a[x] < a[best]:
            best = x
    return best


@bare
def second_least(a, best):
    """Least entry of `a` apart from place `best`."""
    least = np.inf
    for x in range(len(a)):
        if x != best:
            least = min(least, a[x])
    return least


@bare
def soft_potts(weight, a, out, eta):
    """O(d): all far labels but one's own cost `weight`.

    The far labels other than the best are summed apart, relative to the second best: exact for the
    best label itself, where a difference of sums would cancel.
    """
    best = argmin(a)
    least, second = a[best], second_least(a, best)
    if least == np.inf:
        out[:] = np.inf
        return
    rest = 0.0
    if second < np.inf:
        for x in range(len(a)):
            if x != best:
                rest += exp_nonpositive(-eta * (a[x] - second))
    behind = exp_nonpositive(-eta * (second - least)) * rest
    q = np.exp(-eta * weight)
    plain = abs(eta * weight) <= SAFE
    for y in range(len(out)):
        own = exp_nonpositive(-eta * (a[y] - least)) if y < len(a) else 0.0
        if plain:
            others = behind if y == best else 1.0 + behind - own
            out[y] = least - log_positive(own + q * others) / eta
            continue
        near, far = np.inf if y >= len(a) else a[y], weight + least
        if y != best:
            far -= np.log(max(1.0 + behind - own, 1.0)) / eta
        elif rest > 0.0:
            far = weight + second - np.log(rest) / eta
        else:
            far = np.inf
        low, high = min(near, far), max(near, far)
        out[y] = low - np.log1p(np.exp(-eta * (high - low))) / eta if high < np.inf else low


@bare
def hard_potts(weight, a, out):
    """`soft_potts` as η → ∞."""
    best = argmin(a)
    second = second_least(a, best)
    for y in range(len(out)):
        near = a[y] if y < len(a) else np.inf
        out[y] = min(near, weight + (second if y == best else a[best]))


@bare
def reach_of(kind, truncation, widest):
    """First label difference whose cost is the truncated one (at most `widest`)."""
    cut = truncation if kind == LINEAR else np.sqrt(truncation)
    return widest if cut >= widest else max(1, int(np.ceil(cut)))


@bare
def _soft_dense_distance(kind, weight, truncation, a, out, eta):
    """Any sign of the weight: plain O(d²), for the rare concave costs."""
    for y in range(len(out)):
        least = np.inf
        for x in range(len(a)):
            least = min(least, a[x] + distance_cost(kind, weight, truncation, abs(x - y)))
        total = 0.0
        for x in range(len(a)):
            cost = distance_cost(kind, weight, truncation, abs(x - y))
            total += exp_nonpositive(-eta * (a[x] + cost - least)) if least < np.inf else 1.0
        out[y] = least - log_positive(total) / eta if least < np.inf else np.inf


@bare
def _soft_window(kind, weight, truncation, a, out, eta, scratch):
    """Near labels one by one, all far ones through prefix sums: O(d · window)."""
    d = len(a)
    reach = reach_of(kind, truncation, max(d, len(out)))
    ceiling = distance_cost(kind, weight, truncation, reach)
    least = a[argmin(a)]
    before, after = scratch[: d + 1], scratch[d + 1 : 2 * d + 2]  # Σ exp over x < k and x >= k
    before[0] = 0.0
    after[d] = 0.0
    for x in range(d):
        before[x + 1] = before[x] + exp_nonpositive(-eta * (a[x] - least))
    for x in range(d - 1, -1, -1):
        after[x] = after[x + 1] + exp_nonpositive(-eta * (a[x] - least))
    for y in range(len(out)):
        first, last = min(max(y - reach + 1, 0), d), min(y + reach, d)
        low = least + ceiling
        for x in range(first, last):
            low = min(low, a[x] + distance_cost(kind, weight, truncation, abs(x - y)))
        total = (before[first] + after[last]) * exp_nonpositive(-eta * (least + ceiling - low))
        for x in range(first, last):
            cost = distance_cost(kind, weight, truncation, abs(x - y))
            total += exp_nonpositive(-eta * (a[x] + cost - low))
        out[y] = low - log_positive(total) / eta


@bare
def _soft_linear(weight, truncation, a, out, eta, scratch):
    """O(d) two-way recursion over sums of exponentials; needs η · weight · truncation <= SAFE.

    Terms past the truncation are taken out of the recursion again; what they are replaced by is
    larger, so nothing is lost to cancellation.
    """
    d = len(a)
    reach = reach_of(LINEAR, truncation, d)
    least = a[argmin(a)]
    q, ceiling = np.exp(-eta * weight), np.exp(-eta * weight * min(truncation, float(d)))
    falling = np.exp(-eta * weight * reach)
    size = d + 1
    up, down = scratch[:size], scratch[size : 2 * size]  # Σ q^|y-x| E(x) over x <= y, over x >= y
    before, after = scratch[2 * size : 3 * size], scratch[3 * size : 4 * size]
    e = scratch[4 * size : 4 * size + d]
    up[0], before[0], down[d], after[d] = 0.0, 0.0, 0.0, 0.0
    for x in range(d):
        e[x] = exp_nonpositive(-eta * (a[x] - least))
        up[x + 1] = e[x] + q * up[x]
        before[x + 1] = before[x] + e[x]
    for x in range(d - 1, -1, -1):
        down[x] = e[x] + q * down[x + 1]
        after[x] = after[x + 1] + e[x]
    for y in range(d):
        total = up[y + 1] + q * down[y + 1]
        if y - reach + 1 > 0:
            total += ceiling * before[y - reach + 1] - falling * up[y - reach + 1]
        if y + reach < d:
            total += ceiling * after[y + reach] - falling * down[y + reach]
        out[y] = least - log_positive(max(total, 1e-300)) / eta


@bare
def hard_window(kind, weight, truncation, a, out):
    """Truncated costs at η = ∞: distance transform where linear, else near labels one by one."""
    d = len(a)
    if weight < 0.0:
        for y in range(len(out)):
            out[y] = np.inf
            for x in range(d):
                out[y] = min(out[y], a[x] + distance_cost(kind, weight, truncation, abs(x - y)))
        return
    if kind == LINEAR and len(out) == d:
        ceiling = a[argmin(a)] + weight * min(truncation, float(d))
        out[0] = a[0]
        for y in range(1, d):
            out[y] = min(a[y], out[y - 1] + weight)
        for y in range(d - 2, -1, -1):
            out[y] = min(out[y], out[y + 1] + weight)
        for y in range(d):
            out[y] = min(out[y], ceiling)
        return
    reach = reach_of(kind, truncation, max(d, len(out)))
    ceiling = a[argmin(a)] + distance_cost(kind, weight, truncation, reach)
    for y in range(len(out)):
        out[y] = ceiling
        for x in range(min(max(y - reach + 1, 0), d), min(y + reach, d)):
            out[y] = min(out[y], a[x] + distance_cost(kind, weight, truncation, abs(x - y)))


@bare
def soft_distance(kind, weight, truncation, a, out, eta, scratch):
    """Truncated costs at η, by the cheapest way that is exact."""
    if a[argmin(a)] == np.inf:
        out[:] = np.inf
    elif weight < 0.0:
        _soft_dense_distance(kind, weight, truncation, a, out, eta)
    elif kind == LINEAR and len(a) == len(out) and eta * weight * min(truncation, len(a)) <= SAFE:
        _soft_linear(weight, truncation, a, out, eta, scratch)
    else:
        _soft_window(kind, weight, truncation, a, out, eta, scratch)
