"""Soft-min and hard-min messages along one half-edge, for every kind of potential.

`h` is the half-edge that *receives*; `a` are costs on the labels of the far end `h ^ 1`, and
`out[y] = softmin_x a(x) + C(x, y)` with `softmin f = -(1/η) log Σ exp(-η f)` (or min). +inf means
forbidden and comes out where no far label supports `y`. The numpy twins are the verbs
`soft_message` and `hard_message` of `softmap.potentials`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.fastmath import FAST, exp_nonpositive, log_positive

# the values of softmap.potentials.Kind, as numbers that numba can fold
TABLE, POTTS, LINEAR, QUADRATIC, PROJECTION = 0, 1, 2, 3, 4
SAFE = 600.0  # exp(-SAFE) is far from underflow even when multiplied by a few of its like
jit = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
# For functions that create no arrays: counting references to every array of a layout at every call
# would cost more than a small message.
bare = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)


@bare
def group_of(lay, e):
    """The group of edge `e`; groups are few, so a scan beats a search."""
    g = 0
    while lay.group_start[g + 1] <= e:
        g += 1
    return g


@bare
def weight_of(lay, g, e):
    """Weight of edge `e`, 1 where its group has none."""
    at = lay.weight_at[g]
    return lay.weight[at + e - lay.group_start[g]] if at >= 0 else lay.unary.dtype.type(1.0)


@bare
def truncation_of(lay, g, e):
    """Truncation of edge `e` of a truncated group."""
    return lay.truncation[lay.truncation_at[g] + e - lay.group_start[g]]


@bare
def begin_of(lay, g, e):
    """Where the table or map of edge `e` begins."""
    k = e - lay.group_start[g]
    at = lay.offset_at[g]
    return lay.table_at[g] + (lay.offset[at + k] if at >= 0 else lay.stride[g] * k)


@bare
def distance_cost(kind, weight, truncation, k):
    """Cost of a label difference `k >= 0`."""
    if kind == POTTS:
        return weight if k > 0 else 0.0 * k
    if kind == LINEAR:
        return weight * min(float(k), truncation)
    return weight * min(float(k * k), truncation)


@bare
def pair_cost(lay, e, x, y):
    """Cost of edge `e` at labels x (first end) and y (second end)."""
    g = group_of(lay, e)
    kind = lay.kind[g]
    if kind == TABLE:
        place = begin_of(lay, g, e) + x * lay.num_labels[lay.node[2 * e + 1]] + y
        return float(weight_of(lay, g, e) * lay.table[place])
    if kind == PROJECTION:
        return 0.0 if lay.maps[begin_of(lay, g, e) + x] == y else np.inf
    cut = truncation_of(lay, g, e) if kind != POTTS else lay.unary.dtype.type(0)
    return float(distance_cost(kind, weight_of(lay, g, e), cut, abs(x - y)))


@bare
def edge_costs(lay, e, out):
    """Dense costs of edge `e`, row-major, into `out`."""
    rows, cols = lay.num_labels[lay.node[2 * e]], lay.num_labels[lay.node[2 * e + 1]]
    g = group_of(lay, e)
    if lay.kind[g] == TABLE:
        begin, w = begin_of(lay, g, e), weight_of(lay, g, e)
        for k in range(rows * cols):
            out[k] = w * lay.table[begin + k]
        return
    for x in range(rows):
        for y in range(cols):
            out[x * cols + y] = pair_cost(lay, e, x, y)


# --- dense tables -------------------------------------------------------------------------------


@bare
def soft_rows(table, begin, weight, a, out, eta):
    """Receiver on the rows: each row is one contiguous reduction."""
    rows, cols = len(out), len(a)
    for x in range(rows):
        row = begin + x * cols
        least = np.inf
        for y in range(cols):
            least = min(least, a[y] + weight * table[row + y])
        if least == np.inf:
            out[x] = np.inf
            continue
        total = 0.0
        for y in range(cols):
            total += exp_nonpositive(-eta * (a[y] + weight * table[row + y] - least))
        out[x] = least - log_positive(total) / eta


@bare
def soft_columns(table, begin, weight, a, out, total, eta):
    """Receiver on the columns: rows are added one by one, contiguous over the receiver's labels."""
    rows, cols = len(a), len(out)
    hard_columns(table, begin, weight, a, out)
    for y in range(cols):
        total[y] = 0.0
    for x in range(rows):
        if a[x] == np.inf:
            continue
        row = begin + x * cols
        for y in range(cols):
            # inf - inf would be NaN: an unsupported label has no reference point of its own
            least = min(out[y], 1e300)
            total[y] += exp_nonpositive(-eta * (a[x] + weight * table[row + y] - least))
    for y in range(cols):
        if out[y] < np.inf:
            out[y] -= log_positive(total[y]) / eta


@bare
def hard_rows(table, begin, weight, a, out):
    """`soft_rows` as η → ∞."""
    rows, cols = len(out), len(a)
    for x in range(rows):
        row = begin + x * cols
        least = np.inf
        for y in range(cols):
            least = min(least, a[y] + weight * table[row + y])
        out[x] = least


@bare
def hard_columns(table, begin, weight, a, out):
    """`soft_columns` as η → ∞."""
    rows, cols = len(a), len(out)
    for y in range(cols):
        out[y] = np.inf
    for x in range(rows):
        row = begin + x * cols
        for y in range(cols):
            out[y] = min(out[y], a[x] + weight * table[row + y])


# --- costs of the label difference --------------------------------------------------------------


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
def _soft_potts(weight, a, out, eta):
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
def _hard_potts(weight, a, out):
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
def _hard_window(kind, weight, truncation, a, out):
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


# --- projections --------------------------------------------------------------------------------


@bare
def _project_soft(maps, side, a, out, eta, scratch):
    """One pass over the joint states."""
    if side == 0:
        for s in range(len(out)):
            out[s] = a[maps[s]]
        return
    out[:] = np.inf
    total = scratch[: len(out)]
    total[:] = 0.0
    for s in range(len(a)):
        out[maps[s]] = min(out[maps[s]], a[s])
    for s in range(len(a)):
        if a[s] < np.inf:
            total[maps[s]] += exp_nonpositive(-eta * (a[s] - out[maps[s]]))
    for y in range(len(out)):
        if out[y] < np.inf:
            out[y] -= log_positive(total[y]) / eta


@bare
def _project_hard(maps, side, a, out):
    if side == 0:
        for s in range(len(out)):
            out[s] = a[maps[s]]
        return
    out[:] = np.inf
    for s in range(len(a)):
        out[maps[s]] = min(out[maps[s]], a[s])


# --- the verbs ----------------------------------------------------------------------------------


@bare
def _soft_distance(kind, weight, truncation, a, out, eta, scratch):
    if a[argmin(a)] == np.inf:
        out[:] = np.inf
    elif weight < 0.0:
        _soft_dense_distance(kind, weight, truncation, a, out, eta)
    elif kind == LINEAR and len(a) == len(out) and eta * weight * min(truncation, len(a)) <= SAFE:
        _soft_linear(weight, truncation, a, out, eta, scratch)
    else:
        _soft_window(kind, weight, truncation, a, out, eta, scratch)


@bare
def soft_message_into(lay, h, a, out, eta, scratch):
    """`soft_message` with scratch memory of `scratch_size` numbers: allocates nothing."""
    e, side = h >> 1, h & 1
    g = group_of(lay, e)
    kind = lay.kind[g]
    if kind == TABLE:
        begin, w = begin_of(lay, g, e), weight_of(lay, g, e)
        if side == 0:
            soft_rows(lay.table, begin, w, a, out, eta)
        else:
            soft_columns(lay.table, begin, w, a, out, scratch, eta)
    elif kind == POTTS:
        _soft_potts(weight_of(lay, g, e), a, out, eta)
    elif kind == PROJECTION:
        begin = begin_of(lay, g, e)
        states = len(out) if side == 0 else len(a)
        _project_soft(lay.maps[begin : begin + states], side, a, out, eta, scratch)
    else:
        weight, cut = weight_of(lay, g, e), truncation_of(lay, g, e)
        _soft_distance(kind, weight, cut, a, out, eta, scratch)


@bare
def scratch_size(widest):
    """Room for the sums of any soft message between nodes of up to `widest` labels."""
    return 5 * (widest + 2)


@jit
def soft_message(lay, h, a, out, eta):
    """`out[y] = -(1/η) log Σ_x exp(-η (a(x) + C(x, y)))` for the labels y of half-edge `h`."""
    soft_message_into(lay, h, a, out, eta, np.empty(scratch_size(max(len(a), len(out)))))


@bare
def hard_message(lay, h, a, out):
    """`out[y] = min_x a(x) + C(x, y)` for the labels y of half-edge `h`."""
    e, side = h >> 1, h & 1
    g = group_of(lay, e)
    kind = lay.kind[g]
    if kind == TABLE:
        begin, w = begin_of(lay, g, e), weight_of(lay, g, e)
        if side == 0:
            hard_rows(lay.table, begin, w, a, out)
        else:
            hard_columns(lay.table, begin, w, a, out)
    elif kind == POTTS:
        _hard_potts(weight_of(lay, g, e), a, out)
    elif kind == PROJECTION:
        begin = begin_of(lay, g, e)
        states = len(out) if side == 0 else len(a)
        _project_hard(lay.maps[begin : begin + states], side, a, out)
    else:
        _hard_window(kind, weight_of(lay, g, e), truncation_of(lay, g, e), a, out)
