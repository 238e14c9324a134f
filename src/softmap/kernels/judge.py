"""What a λ proves, edge by edge: minima of the reduced costs, and costs of projected marginals.

The numpy twins are `certificate.dual_bound` and `polytope.proj`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels import couples
from softmap.kernels.distances import POTTS, PROJECTION
from softmap.kernels.fastmath import FAST, exp_nonpositive, log_positive
from softmap.kernels.messages import begin_of, edge_costs, group_of, hard_message, weight_of
from softmap.kernels.transport import EXCHANGED, exchange

jit = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
leaf = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy", _nrt=False)
NEGLIGIBLE = 1e-15  # mass that rounding alone explains


@jit
def edge_minima(lay, lam, out, first, last):
    """min C_e + λ_i + λ_j of edges `first..last-1`, over allowed states; `out` is (edges,)."""
    widest = lay.num_labels.max()
    a, message = np.empty(widest), np.empty(widest)
    room, places, weights = couples.room_for(widest)
    e = first
    while e < last:
        rows, cols = lay.num_labels[lay.node[2 * e]], lay.num_labels[lay.node[2 * e + 1]]
        count = couples.alike(lay, e, last)
        if count > 1:
            couples.minima_tile(lay, lam, e, count, rows, cols, room, places, weights, out)
        else:
            count = 1
            out[e] = _edge_minimum(lay, lam, e, a[:cols], message[:rows])
        e += count


@leaf
def _edge_minimum(lay, lam, e, a, message):
    h, g = 2 * e, 2 * e + 1
    i, j = lay.node[h], lay.node[g]
    for y in range(len(a)):
        barred = lay.unary[lay.node_offset[j] + y] == np.inf
        a[y] = np.inf if barred else lam[lay.half_offset[g] + y]
    hard_message(lay, h, a, message)
    least = np.inf
    for x in range(len(message)):
        if lay.unary[lay.node_offset[i] + x] < np.inf:
            least = min(least, lam[lay.half_offset[h] + x] + message[x])
    return least


@leaf
def _coupling(cost, row, col, plan, rows, cols, eta):
    """plan ∝ exp(-η (C + row + col)); returns the entropy of the plan."""
    least = np.inf
    for x in range(rows):
        for y in range(cols):
            value = cost[x * cols + y] + row[x] + col[y]
            plan[x * cols + y] = value
            least = min(least, value)
    total, mean = 0.0, 0.0
    for k in range(rows * cols):
        excess = min(plan[k] - least, 1e300)
        mass = exp_nonpositive(-eta * excess)
        if plan[k] == np.inf:
            mass = 0.0
        plan[k] = mass
        total += mass
        mean += mass * excess if mass > 1e-300 else 0.0
    for k in range(rows * cols):
        plan[k] /= total
    return eta * mean / total + log_positive(total)


@leaf
def _shrink(plan, p, q, rest_p, rest_q, rows, cols):
    """Scale rows, then columns, down to at most p and q; what is missing goes into `rest_*`.

    The first half of Algorithm 2 of Altschuler et al.; returns (slack before, missing mass).
    """
    slack = 0.0
    for x in range(rows):
        have = 0.0
        for y in range(cols):
            have += plan[x * cols + y]
        slack += abs(have - p[x])
        scale = p[x] / have if have > p[x] else 1.0
        for y in range(cols):
            plan[x * cols + y] *= scale
    for y in range(cols):
        have = 0.0
        for x in range(rows):
            have += plan[x * cols + y]
        scale = q[y] / have if have > q[y] else 1.0
        slack += abs(have - q[y])
        for x in range(rows):
            plan[x * cols + y] *= scale
        rest_q[y] = max(q[y] - have * scale, 0.0)
    missing = 0.0
    for x in range(rows):
        have = 0.0
        for y in range(cols):
            have += plan[x * cols + y]
        rest_p[x] = max(p[x] - have, 0.0)
        missing += rest_p[x]
    return slack, missing


@leaf
def _complete(plan, rest_p, rest_q, missing, rows, cols):
    """Add the rank-one correction: the second half of Algorithm 2 of Altschuler et al."""
    if missing > NEGLIGIBLE:
        for x in range(rows):
            for y in range(cols):
                plan[x * cols + y] += rest_p[x] * rest_q[y] / missing


@leaf
def _plan_cost(cost, plan, size):
    """+inf if the plan needs a forbidden pair."""
    total = 0.0
    for k in range(size):
        if plan[k] > 0.0:
            total += plan[k] * cost[k]
    return total


@leaf
def _potts_cost(weight, p, q, rows, cols):
    """Exact transport: keep min(p, q) on the diagonal."""
    kept = 0.0
    for x in range(min(rows, cols)):
        kept += min(p[x], q[x])
    return weight * max(1.0 - kept, 0.0)


@leaf
def _tie(maps, begin, row, col, plan, have, p, q, rows, cols, eta):
    """A projection edge: one pair per joint state, cost 0; (entropy, slack) of its marginals."""
    least = np.inf
    for s in range(rows):
        plan[s] = row[s] + col[maps[begin + s]]
        least = min(least, plan[s])
    total, mean = 0.0, 0.0
    for s in range(rows):
        excess = min(plan[s] - least, 1e300)
        mass = exp_nonpositive(-eta * excess) if plan[s] < np.inf else 0.0
        plan[s] = mass
        total += mass
        mean += mass * excess if mass > 1e-300 else 0.0
    slack = 0.0
    for y in range(cols):
        have[y] = 0.0
    for s in range(rows):
        have[maps[begin + s]] += plan[s] / total
        slack += abs(plan[s] / total - p[s])
    for y in range(cols):
        slack += abs(have[y] - q[y])
    return eta * mean / total + log_positive(total), slack


@jit
def projected_costs(lay, coupling, eta, nodes, out, first, last):
    """Edges `first..last-1` of the point that Proj makes of given node marginals.

    The edge marginals exp(-η (C + κ_i + κ_j)) with κ = `coupling` are moved to `nodes` by
    Algorithm 4, and small ones improved by `exchange`. Auxiliary nodes agree with their members
    already, so their ties cost nothing.
    Rows of `out`, by edge: cost, entropy before the move, slack ‖ν‖₁ of both ends.
    """
    widest, largest = lay.num_labels.max(), 0
    for e in range(first, last):
        rows, cols = lay.num_labels[lay.node[2 * e]], lay.num_labels[lay.node[2 * e + 1]]
        tie = lay.kind[group_of(lay, e)] == PROJECTION
        largest = max(largest, rows if tie else rows * cols)
    numbers = np.empty(2 * largest + 4 * widest)
    room, places, weights = couples.room_for(widest)
    e = first
    while e < last:
        rows, cols = lay.num_labels[lay.node[2 * e]], lay.num_labels[lay.node[2 * e + 1]]
        count = couples.alike(lay, e, last)
        if count > 1:
            couples.projected_tile(
                lay, coupling, eta, nodes, e, count, rows, cols, room, places, weights,
                out[0], out[1], out[2],
            )  # fmt: skip
        else:
            count = 1
            _projected_edge(lay, coupling, eta, nodes, e, rows, cols, largest, numbers, out)
        e += count


@leaf
def _projected_edge(lay, coupling, eta, nodes, e, rows, cols, largest, numbers, out):
    """One edge of `projected_costs`."""
    cost, plan, rest = numbers[:largest], numbers[largest : 2 * largest], numbers[2 * largest :]
    row, rest_p = rest[:rows], rest[rows : 2 * rows]
    col, rest_q = rest[2 * rows : 2 * rows + cols], rest[2 * rows + cols : 2 * rows + 2 * cols]
    h, g = 2 * e, 2 * e + 1
    at_i, at_j = lay.node_offset[lay.node[h]], lay.node_offset[lay.node[g]]
    p, q = nodes[at_i : at_i + rows], nodes[at_j : at_j + cols]
    for x in range(rows):
        barred = lay.unary[at_i + x] == np.inf
        row[x] = np.inf if barred else coupling[lay.half_offset[h] + x]
    for y in range(cols):
        barred = lay.unary[at_j + y] == np.inf
        col[y] = np.inf if barred else coupling[lay.half_offset[g] + y]
    group = group_of(lay, e)
    if lay.kind[group] == PROJECTION:
        begin = begin_of(lay, group, e)
        out[0, e] = 0.0
        out[1, e], out[2, e] = _tie(lay.maps, begin, row, col, plan, rest_q, p, q, rows, cols, eta)
        return
    edge_costs(lay, e, cost)
    out[1, e] = _coupling(cost, row, col, plan, rows, cols, eta)
    out[2, e], missing = _shrink(plan, p, q, rest_p, rest_q, rows, cols)
    if lay.kind[group] == POTTS and 0.0 <= weight_of(lay, group, e) < np.inf:
        out[0, e] = _potts_cost(weight_of(lay, group, e), p, q, rows, cols)
        return
    _complete(plan, rest_p, rest_q, missing, rows, cols)
    out[0, e] = _plan_cost(cost, plan, rows * cols)
    if rows * cols <= EXCHANGED and out[0, e] < np.inf:
        exchange(cost, plan, rows, cols)
        out[0, e] = _plan_cost(cost, plan, rows * cols)


@njit(cache=True, nogil=True, fastmath=False)
def careful_sum(values):
    """Σ values with a carried rounding error (Neumaier): as good as rounded once, unlike `sum`.

    Compiled without fast maths, which would take the compensation for zero. The error is at most
    one rounding of the result plus (n u)² Σ|values|, u = 2⁻⁵³: far under `bound_rounding`.
    """
    total, carried = 0.0, 0.0
    for k in range(len(values)):
        value = values[k]
        following = total + value
        if abs(total) >= abs(value):
            carried += (total - following) + value
        else:
            carried += (value - following) + total
        total = following
    return total + carried
