"""Labellings from λ, variable by variable, and their local improvement."""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.messages import hard_message, pair_cost


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _condition(lay, h, x, lam, reduced):
    """Replace the far end's share -λ of an edge by the edge's cost at the decided label `x`."""
    g = h ^ 1
    j = lay.node[g]
    at, place = lay.half_offset[g], lay.node_offset[j]
    for y in range(lay.num_labels[j]):
        cost = pair_cost(lay, h >> 1, x, y) if h & 1 == 0 else pair_cost(lay, h >> 1, y, x)
        reduced[place + y] += lam[at + y] + cost


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
        for k in range(lay.start[i], lay.start[i + 1]):
            h = lay.half[k]
            j = lay.node[h ^ 1]
            if labels[j] < 0:
                _far_costs(lay, h ^ 1, lam, reduced, num_variables, a)
                hard_message(lay, h, a[: lay.num_labels[j]], message[:d])
                for x in range(d):
                    belief[x] += lam[lay.half_offset[h] + x] + message[x]
        best = np.argmin(belief[:d])
        if belief[best] == np.inf:
            best = np.argmin(reduced[place : place + d])
        labels[i] = best
        for k in range(lay.start[i], lay.start[i + 1]):
            h = lay.half[k]
            if labels[lay.node[h ^ 1]] < 0:
                _condition(lay, h, best, lam, reduced)
    return labels


@njit(cache=True, nogil=True)
def _local_costs(lay, i, labels, stride, cost, broken):
    """Cost of each label of `i` given the rest, infinite terms counted apart in `broken`."""
    place, own = lay.node_offset[i], labels[i]
    for x in range(lay.num_labels[i]):
        cost[x], broken[x] = 0.0, 0
        finite = lay.unary[place + x] < np.inf
        cost[x] += lay.unary[place + x] if finite else 0.0
        broken[x] += 0 if finite else 1
    for k in range(lay.start[i], lay.start[i + 1]):
        h = lay.half[k]
        j = lay.node[h ^ 1]
        for x in range(lay.num_labels[i]):
            if stride[h] > 0:  # an auxiliary node follows its members
                c = lay.unary[lay.node_offset[j] + labels[j] + (x - own) * stride[h]]
            elif h & 1 == 0:
                c = pair_cost(lay, h >> 1, x, labels[j])
            else:
                c = pair_cost(lay, h >> 1, labels[j], x)
            if c < np.inf:
                cost[x] += c
            else:
                broken[x] += 1


@njit(cache=True, nogil=True)
def iterated_modes(lay, labels, stride, num_variables, max_sweeps):
    """Coordinate descent in place: fewer broken constraints first, then less cost.

    `stride[h]` is by how much the state of the auxiliary node across `h` moves with the label at
    `h`, 0 for ordinary neighbours. Only variables with a changed neighbour are looked at again.
    """
    widest = lay.num_labels.max()
    cost, broken = np.empty(widest), np.empty(widest, np.int64)
    dirty = np.ones(len(labels), np.bool_)
    for _ in range(max_sweeps):
        changed = False
        for i in range(num_variables):
            if not dirty[i]:
                continue
            dirty[i] = False
            _local_costs(lay, i, labels, stride, cost, broken)
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


@njit(cache=True, nogil=True)
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
