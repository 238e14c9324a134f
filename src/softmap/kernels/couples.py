"""What a λ proves of `LANES` edges at a time: their least reduced costs, and the costs of their
projected marginals. The same numbers, to rounding, as edge by edge in `kernels.judge`.

The lanes are edges that follow each other in the model and are alike in family and label counts.
Numbers of a tile lie in one scratch array, entry (x, y) of all lanes side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.distances import LINEAR, POTTS, PROJECTION, TABLE
from softmap.kernels.messages import begin_of, group_of, truncation_of, weight_of
from softmap.kernels.transport import BARRED, EXCHANGED, ROUNDS
from softmap.kernels.vectors import (
    LANES,
    choose,
    exp,
    gather,
    greatest,
    inlined,
    jit,
    least,
    load,
    log,
    spread,
    store,
    store_some,
    unless_infinite,
)

WIDEST = 64  # labels up to which edges are taken together: scratch memory stays in the cache
NEGLIGIBLE = 1e-15  # mass that rounding alone explains
TRACE = 1e-150  # mass that is left out: products of such are slow, being too small for a float
# rows of the places that a tile reads from
COSTS, ROW, COL, NODE_I, NODE_J, ONE = range(6)


@njit(cache=True, nogil=True)
def room_for(labels):
    """Scratch memory for tiles of up to so many labels: (numbers, places, weights)."""
    labels = min(labels, WIDEST)
    places = np.ones((6, LANES), np.int64)
    return np.empty((2 * labels * labels + 6 * labels) * LANES), places, np.zeros(2 * LANES)


@jit
def alike(lay, e, last):
    """How many edges from `e` on, under `last`, make one tile; 0 if `e` itself fits in none."""
    g = group_of(lay, e)
    rows, cols = lay.num_labels[lay.node[2 * e]], lay.num_labels[lay.node[2 * e + 1]]
    if lay.kind[g] == PROJECTION or max(rows, cols) > WIDEST:
        return 0
    last = min(last, e + LANES, lay.group_start[g + 1])
    for f in range(e, last):
        same = lay.num_labels[lay.node[2 * f]] == rows
        same = same and lay.num_labels[lay.node[2 * f + 1]] == cols
        if lay.kind[g] != TABLE:
            same = same and 0.0 <= weight_of(lay, g, f) < np.inf
        if not same:
            return f - e
    return last - e


@jit
def _locate(lay, e, count, places, weights):
    """Where the lanes' tables, half-edges and nodes begin; their weights and truncations."""
    g = group_of(lay, e)
    kind = lay.kind[g]
    for k in range(LANES):
        f = e + min(k, count - 1)
        i, j = lay.node[2 * f], lay.node[2 * f + 1]
        places[ROW, k], places[COL, k] = lay.half_offset[2 * f], lay.half_offset[2 * f + 1]
        places[NODE_I, k], places[NODE_J, k] = lay.node_offset[i], lay.node_offset[j]
        weights[k] = weight_of(lay, g, f)
        if kind == TABLE:
            places[COSTS, k] = begin_of(lay, g, f)
        elif kind != POTTS:
            weights[LANES + k] = truncation_of(lay, g, f)
    return kind


@inlined
def _read(array, places, row, x):
    return gather(array, places[row], places[ONE], 0, 1, x, LANES)


@inlined
def _entry(lay, kind, places, weights, cols, x, y):
    """Cost of the pair (x, y) in every lane."""
    weight = load(weights, 0)
    if kind == TABLE:
        return weight * _read(lay.table, places, COSTS, x * cols + y)
    if kind == POTTS:
        return weight * (1.0 if x != y else 0.0)
    far = abs(x - y) if kind == LINEAR else (x - y) * (x - y)
    return weight * least(spread(float(far)), load(weights, LANES))


@inlined
def _ends(lay, lam, places, node, half, labels, room, at):
    """λ of one end's labels, +inf where the model forbids them."""
    for x in range(labels):
        barred = _read(lay.unary, places, node, x)
        free = _read(lam, places, half, x)
        store(room, at + LANES * x, choose(barred, spread(np.inf), free, spread(np.inf)))


@jit
def minima_tile(lay, lam, e, count, rows, cols, room, places, weights, out):
    """min C_e + λ_i + λ_j of edges `e..e+count-1`."""
    kind = _locate(lay, e, count, places, weights)
    row, col = 0, LANES * rows
    _ends(lay, lam, places, NODE_I, ROW, rows, room, row)
    _ends(lay, lam, places, NODE_J, COL, cols, room, col)
    low = spread(np.inf)
    if kind == POTTS:
        # unequal labels: even if the best two are the same one, their sum is no less than that
        far, near = load(room, row), load(room, col)
        for x in range(1, rows):
            far = least(load(room, row + LANES * x), far)
        for y in range(1, cols):
            near = least(load(room, col + LANES * y), near)
        low = far + near + load(weights, 0)
        for x in range(min(rows, cols)):
            low = least(load(room, row + LANES * x) + load(room, col + LANES * x), low)
    else:
        for x in range(rows):
            a = load(room, row + LANES * x)
            for y in range(cols):
                value = a + load(room, col + LANES * y)
                low = least(value + _entry(lay, kind, places, weights, cols, x, y), low)
    store_some(out, e, low, count)


@jit
def _marginals(lay, kind, places, weights, cost, plan, row, col, rows, cols, eta, room):
    """plan ∝ exp(-η (C + row + col)), and C into `cost`; the entropy of the plan is returned."""
    low = spread(np.inf)
    for x in range(rows):
        a = load(room, row + LANES * x)
        for y in range(cols):
            k = LANES * (x * cols + y)
            c = _entry(lay, kind, places, weights, cols, x, y)
            store(room, cost + k, c)
            value = c + a + load(room, col + LANES * y)
            store(room, plan + k, value)
            low = least(value, low)
    total, mean = spread(0.0), spread(0.0)
    for k in range(plan, plan + LANES * rows * cols, LANES):
        value = load(room, k)
        excess = least(value - low, spread(BARRED))
        mass = exp(-eta * excess)
        mass = choose(spread(TRACE), mass, unless_infinite(value, mass), spread(0.0))
        store(room, k, mass)
        total = total + mass
        mean = mean + mass * excess
    scale = 1.0 / total
    for k in range(plan, plan + LANES * rows * cols, LANES):
        store(room, k, load(room, k) * scale)
    return eta * mean * scale + log(total)


@inlined
def _size(a):
    return greatest(a, 0.0 - a)


@jit
def _shrink(plan, p, q, rest_p, rest_q, rows, cols, room):
    """Scale rows, then columns, down to at most p and q; what is missing goes into `rest_*`.

    The first half of Algorithm 2 of Altschuler et al.; returns the slack before.
    """
    slack, one = spread(0.0), spread(1.0)
    for x in range(rows):
        have, want = spread(0.0), load(room, p + LANES * x)
        for y in range(cols):
            have = have + load(room, plan + LANES * (x * cols + y))
        slack = slack + _size(have - want)
        scale = least(want / have, one)
        for y in range(cols):
            k = plan + LANES * (x * cols + y)
            store(room, k, load(room, k) * scale)
        store(room, rest_p + LANES * x, want)
    for y in range(cols):
        have, want = spread(0.0), load(room, q + LANES * y)
        for x in range(rows):
            have = have + load(room, plan + LANES * (x * cols + y))
        slack = slack + _size(have - want)
        scale = least(want / have, one)
        for x in range(rows):
            k = plan + LANES * (x * cols + y)
            mass = load(room, k) * scale
            store(room, k, mass)
            store(room, rest_p + LANES * x, load(room, rest_p + LANES * x) - mass)
        store(room, rest_q + LANES * y, greatest(want - have * scale, spread(0.0)))
    return slack


@jit
def _complete(plan, rest_p, rest_q, rows, cols, room):
    """Add the rank-one correction: the second half of Algorithm 2 of Altschuler et al."""
    missing, none = spread(0.0), spread(0.0)
    for x in range(rows):
        rest = greatest(load(room, rest_p + LANES * x), none)
        store(room, rest_p + LANES * x, rest)
        missing = missing + rest
    scale = choose(spread(NEGLIGIBLE), missing, 1.0 / missing, none)
    for x in range(rows):
        a = load(room, rest_p + LANES * x) * scale
        for y in range(cols):
            k = plan + LANES * (x * cols + y)
            store(room, k, load(room, k) + a * load(room, rest_q + LANES * y))


@jit
def _exchange(cost, plan, ahead, rows, cols, room):
    """Lower the cost of a plan by moves among two rows and two columns, which keep all sums.

    `transport.exchange` for all lanes; `ahead` is room for what each column costs more in row x
    than in row z.
    """
    none, barred = spread(0.0), spread(BARRED)
    for x in range(1, rows):
        for z in range(x):
            upper, lower = LANES * x * cols, LANES * z * cols
            for y in range(0, LANES * cols, LANES):
                more = least(load(room, cost + upper + y), barred)
                more = more - least(load(room, cost + lower + y), barred)
                store(room, ahead + y, more)
            for y in range(LANES, LANES * cols, LANES):
                here = load(room, ahead + y)
                a, d = load(room, plan + upper + y), load(room, plan + lower + y)
                for w in range(0, y, LANES):
                    c, b = load(room, plan + upper + w), load(room, plan + lower + w)
                    gain = here - load(room, ahead + w)
                    back = choose(gain, none, 0.0 - least(c, d), none)
                    moved = choose(none, gain, least(a, b), back)
                    a, d = a - moved, d + moved
                    store(room, plan + upper + w, c + moved)
                    store(room, plan + lower + w, b - moved)
                store(room, plan + upper + y, a)
                store(room, plan + lower + y, d)


@jit
def _cost(cost, plan, size, room):
    """Cost of a plan; +inf if it needs a forbidden pair."""
    total, none = spread(0.0), spread(0.0)
    for k in range(0, LANES * size, LANES):
        mass = load(room, plan + k)
        total = total + choose(none, mass, mass * load(room, cost + k), none)
    return total


@jit
def _potts_kept(p, q, labels, room):
    """Mass that the cheapest transport between p and q leaves where it is."""
    kept = spread(0.0)
    for x in range(labels):
        kept = kept + least(load(room, p + LANES * x), load(room, q + LANES * x))
    return kept


@jit
def projected_tile(
    lay, coupling, eta, nodes, e, count, rows, cols, room, places, weights, cost_of, entropy, slack
):
    """Edges `e..e+count-1` of `judge.projected_costs`."""
    kind = _locate(lay, e, count, places, weights)
    size = LANES * rows * cols
    cost, plan = 0, size
    row, col = 2 * size, 2 * size + LANES * rows
    p, q = col + LANES * cols, col + LANES * (cols + rows)
    rest_p, rest_q = q + LANES * cols, q + LANES * (cols + rows)
    _ends(lay, coupling, places, NODE_I, ROW, rows, room, row)
    _ends(lay, coupling, places, NODE_J, COL, cols, room, col)
    for x in range(rows):
        store(room, p + LANES * x, _read(nodes, places, NODE_I, x))
    for y in range(cols):
        store(room, q + LANES * y, _read(nodes, places, NODE_J, y))
    spent = _marginals(lay, kind, places, weights, cost, plan, row, col, rows, cols, eta, room)
    store_some(entropy, e, spent, count)
    store_some(slack, e, _shrink(plan, p, q, rest_p, rest_q, rows, cols, room), count)
    if kind == POTTS:
        moved = greatest(1.0 - _potts_kept(p, q, min(rows, cols), room), spread(0.0))
        store_some(cost_of, e, load(weights, 0) * moved, count)
        return
    _complete(plan, rest_p, rest_q, rows, cols, room)
    before = _cost(cost, plan, rows * cols, room)
    if rows * cols <= EXCHANGED:
        for _ in range(ROUNDS):
            _exchange(cost, plan, rest_q, rows, cols, room)
        after = _cost(cost, plan, rows * cols, room)
        before = choose(before, spread(np.inf), after, before)
    store_some(cost_of, e, before, count)
