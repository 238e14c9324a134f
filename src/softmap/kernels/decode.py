"""Labellings from λ, variable by variable, and their local improvement."""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.distances import POTTS, PROJECTION, TABLE, distance_cost
from softmap.kernels.messages import begin_of, group_of, hard_message, truncation_of, weight_of

# Without reference counts: a call that passes the layout would touch those of all its arrays, which
# takes ten times as long as the work done here. Such functions may not create arrays. Inlined, as
# handing over the hundred and more words of a layout takes three times as long as a small message.
leaf = njit(cache=True, nogil=True, _nrt=False, forceinline=True)
TIE = 1e-9  # relative difference under which labels count as equally good


@leaf
def conditional_costs(lay, h, far, out):
    """Costs of the labels at half-edge `h` when the far end has label `far`, into `out`.

    The edge's family is looked up once, not once per label as `pair_cost` would.
    """
    e = h >> 1
    g = group_of(lay, e)
    kind = lay.kind[g]
    if kind == TABLE:
        cols = lay.num_labels[lay.node[2 * e + 1]]
        first, step = (far, cols) if h & 1 == 0 else (far * cols, 1)
        first += begin_of(lay, g, e)
        w = weight_of(lay, g, e)
        for x in range(len(out)):
            out[x] = w * lay.table[first + x * step]
    elif kind == PROJECTION:
        begin = begin_of(lay, g, e)
        for x in range(len(out)):
            member, label = (lay.maps[begin + x], far) if h & 1 == 0 else (lay.maps[begin + far], x)
            out[x] = 0.0 if member == label else np.inf
    else:
        w = weight_of(lay, g, e)
        cut = truncation_of(lay, g, e) if kind != POTTS else w
        for x in range(len(out)):
            out[x] = distance_cost(kind, w, cut, abs(x - far))


@leaf
def _far_costs(lay, g, lam, reduced, num_variables, a):
    """What the undecided far end of half-edge `g ^ 1` says: λ there, +inf where it is barred.

    Auxiliary nodes speak for their whole factor, as decided and reparametrised so far.
    """
    j = lay.node[g]
    at, place = lay.half_offset[g], lay.node_offset[j]
    whole = j >= num_variables
    for y in range(lay.num_labels[j]):
        if reduced[place + y] == np.inf:
            a[y] = np.inf
        else:
            a[y] = lam[at + y] + (reduced[place + y] if whole else 0.0)


@leaf
def _condition(lay, h, x, lam, reduced, cost):
    """Replace the far end's share -λ of an edge by the edge's cost at the decided label `x`."""
    g = h ^ 1
    j = lay.node[g]
    at, place, d = lay.half_offset[g], lay.node_offset[j], lay.num_labels[j]
    conditional_costs(lay, g, x, cost[:d])
    for y in range(d):
        reduced[place + y] += lam[at + y] + cost[y]


@leaf
def _first_least(belief, tie):
    """The first label within `tie` of the least belief: ties are not left to rounding."""
    least = np.inf
    for x in range(len(belief)):
        least = min(least, belief[x])
    for x in range(len(belief)):
        if belief[x] <= least + tie:
            return x
    return 0


@njit(cache=True, nogil=True)
def sequential(lay, lam, reduced, order, num_variables):
    """Decide the nodes in `order`, each given those before it.

    `reduced` is C_i - Σ λ and is overwritten. A node minimises its reduced cost plus the minima of
    its undecided edges, over far labels that the decisions so far allow; where that leaves nothing,
    without looking ahead.
    """
    widest = lay.num_labels.max()
    belief, a, message = np.empty(widest), np.empty(widest), np.empty(widest)
    labels = np.full(len(lay.num_labels), -1, np.int64)
    for i in order:
        d, place = lay.num_labels[i], lay.node_offset[i]
        belief[:d] = reduced[place : place + d]
        size = 0.0
        for k in range(lay.start[i], lay.start[i + 1]):
            h = lay.half[k]
            j = lay.node[h ^ 1]
            if labels[j] < 0:
                _far_costs(lay, h ^ 1, lam, reduced, num_variables, a)
                hard_message(lay, h, a[: lay.num_labels[j]], message[:d])
                for x in range(d):
                    belief[x] += lam[lay.half_offset[h] + x] + message[x]
                    size = max(size, abs(lam[lay.half_offset[h] + x]))
        best = _first_least(belief[:d], TIE * size)
        if belief[best] == np.inf:
            best = np.argmin(reduced[place : place + d])
        labels[i] = best
        for k in range(lay.start[i], lay.start[i + 1]):
            h = lay.half[k]
            if labels[lay.node[h ^ 1]] < 0:
                _condition(lay, h, best, lam, reduced, a)
    return labels


@leaf
def _add_costs(terms, cost, broken):
    for x in range(len(terms)):
        if terms[x] < np.inf:
            cost[x] += terms[x]
        else:
            broken[x] += 1


@leaf
def _local_costs(lay, i, labels, stride, terms, cost, broken):
    """Cost of each label of `i` given the rest, infinite terms counted apart in `broken`."""
    place, d, own = lay.node_offset[i], lay.num_labels[i], labels[i]
    cost[:d] = 0.0
    broken[:d] = 0
    _add_costs(lay.unary[place : place + d], cost, broken)
    for k in range(lay.start[i], lay.start[i + 1]):
        h = lay.half[k]
        j = lay.node[h ^ 1]
        if stride[h] > 0:  # an auxiliary node follows its members
            base = lay.node_offset[j] + labels[j] - own * stride[h]
            for x in range(d):
                terms[x] = lay.unary[base + x * stride[h]]
        else:
            conditional_costs(lay, h, labels[j], terms[:d])
        _add_costs(terms[:d], cost, broken)


@njit(cache=True, nogil=True)
def iterated_modes(lay, labels, stride, num_variables, max_sweeps):
    """Coordinate descent in place: fewer broken constraints first, then less cost.

    `stride[h]` is by how much the state of the auxiliary node across `h` moves with the label at
    `h`, 0 for ordinary neighbours. Only variables with a changed neighbour are looked at again.
    """
    widest = lay.num_labels.max()
    terms, cost, broken = np.empty(widest), np.empty(widest), np.empty(widest, np.int64)
    dirty = np.ones(len(labels), np.bool_)
    for _ in range(max_sweeps):
        changed = False
        for i in range(num_variables):
            if not dirty[i]:
                continue
            dirty[i] = False
            _local_costs(lay, i, labels, stride, terms, cost, broken)
            own = labels[i]
            best = own
            for x in range(lay.num_labels[i]):
                fewer = broken[x] < broken[best]
                if fewer or (broken[x] == broken[best] and cost[x] < cost[best]):
                    best = x
            if best == own:
                continue
            labels[i] = best
            changed = True
            _spread(lay, i, best - own, labels, stride, dirty)
        if not changed:
            break


@leaf
def _spread(lay, i, step, labels, stride, dirty):
    """Move the auxiliary neighbours along, and mark who has to be looked at again."""
    for k in range(lay.start[i], lay.start[i + 1]):
        h = lay.half[k]
        j = lay.node[h ^ 1]
        if stride[h] == 0:
            dirty[j] = True
            continue
        labels[j] += step * stride[h]
        for t in range(lay.start[j], lay.start[j + 1]):
            member = lay.node[lay.half[t] ^ 1]
            dirty[member] = dirty[member] or member != i
