"""Soft-min and hard-min messages along one half-edge, for every kind of potential.

`h` is the half-edge that *receives*; `a` are costs on the labels of the far end `h ^ 1`, and
`out[y] = softmin_x a(x) + C(x, y)` with `softmin f = -(1/η) log Σ exp(-η f)` (or min). +inf means
forbidden and comes out where no far label supports `y`. The numpy twins are the verbs
`soft_message` and `hard_message` of `softmap.potentials`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.distances import (
    POTTS,
    PROJECTION,
    TABLE,
    bare,
    distance_cost,
    hard_potts,
    hard_window,
    soft_distance,
    soft_potts,
)
from softmap.kernels.fastmath import FAST, exp_nonpositive, log_positive

jit = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")


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
    if lay.kind[g] == PROJECTION:
        for x in range(rows):
            for y in range(cols):
                out[x * cols + y] = pair_cost(lay, e, x, y)
        return
    kind, w = lay.kind[g], weight_of(lay, g, e)
    cut = truncation_of(lay, g, e) if kind != POTTS else w
    for x in range(rows):
        for y in range(cols):
            out[x * cols + y] = distance_cost(kind, w, cut, abs(x - y))


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
        soft_potts(weight_of(lay, g, e), a, out, eta)
    elif kind == PROJECTION:
        begin = begin_of(lay, g, e)
        states = len(out) if side == 0 else len(a)
        _project_soft(lay.maps[begin : begin + states], side, a, out, eta, scratch)
    else:
        weight, cut = weight_of(lay, g, e), truncation_of(lay, g, e)
        soft_distance(kind, weight, cut, a, out, eta, scratch)


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
        hard_potts(weight_of(lay, g, e), a, out)
    elif kind == PROJECTION:
        begin = begin_of(lay, g, e)
        states = len(out) if side == 0 else len(a)
        _project_hard(lay.maps[begin : begin + states], side, a, out)
    else:
        hard_window(kind, weight_of(lay, g, e), truncation_of(lay, g, e), a, out)
