"""Labellings improved over random forests, each solved exactly with all other variables fixed.

Nodes of a forest have no edges but the forest's between them, so that dynamic programming finds
its best labels given the rest. Random costs of falling size make annealing out of it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.decode import conditional_costs, leaf
from softmap.kernels.messages import hard_message
from softmap.kernels.rng import below, next_word

INSIDE = -1  # of the forest
_MANTISSA = np.uint64(11)
_UNIT = 2.0**-53


@leaf
def grow(lay, words, links, parent, forest, frontier):
    """A random induced forest: its nodes, parents first, into `forest`; returns how many.

    `links[i]` counts the half-edges from `i` into the forest (`INSIDE` for its own nodes);
    `parent[i]` is the half-edge of `i` to its parent, -1 at a root. A node may join while it has at
    most one link; the one that does is drawn among all that could.
    """
    n = len(links)
    links[:] = 0
    size = 0
    first = below(words, n)
    for k in range(first, first + n):
        root = k if k < n else k - n
        if links[root] != 0:
            continue
        parent[root] = -1
        frontier[0] = root
        waiting = 1
        while waiting > 0:
            drawn = below(words, waiting)
            i = frontier[drawn]
            waiting -= 1
            frontier[drawn] = frontier[waiting]
            if links[i] > 1:
                continue
            links[i] = INSIDE
            forest[size] = i
            size += 1
            for t in range(lay.start[i], lay.start[i + 1]):
                h = lay.half[t] ^ 1
                j = lay.node[h]
                if links[j] == INSIDE:
                    continue
                links[j] += 1
                if links[j] == 1:
                    parent[j] = h
                    frontier[waiting] = j
                    waiting += 1
    return size


@leaf
def _add_noise(words, heat, costs):
    """Random costs, uniform in [-heat, 0): cheaper than Gumbel's, and no worse."""
    for x in range(len(costs)):
        costs[x] -= heat * _UNIT * np.float64(next_word(words) >> _MANTISSA)


@leaf
def _condition(lay, i, links, labels, costs, terms):
    """Add what the neighbours of `i` outside the forest charge for its labels."""
    for t in range(lay.start[i], lay.start[i + 1]):
        h = lay.half[t]
        j = lay.node[h ^ 1]
        if links[j] != INSIDE:
            conditional_costs(lay, h, labels[j], terms)
            for x in range(len(costs)):
                costs[x] += terms[x]


@leaf
def _gather(lay, words, heat, links, parent, forest, labels, costs, terms):
    """Min-sum from the leaves to the roots: `costs` become those of whole subtrees."""
    for i in forest:
        place = lay.node_offset[i]
        for x in range(place, place + lay.num_labels[i]):
            costs[x] = lay.unary[x]
    for k in range(len(forest) - 1, -1, -1):
        i = forest[k]
        d, place = lay.num_labels[i], lay.node_offset[i]
        own = costs[place : place + d]
        _condition(lay, i, links, labels, own, terms[:d])
        if heat > 0.0:
            _add_noise(words, heat, own)
        if parent[i] >= 0:
            g = parent[i] ^ 1
            j = lay.node[g]
            above = lay.node_offset[j]
            hard_message(lay, g, own, terms[: lay.num_labels[j]])
            for y in range(lay.num_labels[j]):
                costs[above + y] += terms[y]


@leaf
def _scatter(lay, parent, forest, labels, costs, terms):
    """From the roots to the leaves: each node's best label given its parent's, old ones at ties."""
    for i in forest:
        d, place = lay.num_labels[i], lay.node_offset[i]
        own = costs[place : place + d]
        h = parent[i]
        if h >= 0:
            conditional_costs(lay, h, labels[lay.node[h ^ 1]], terms[:d])
            for x in range(d):
                own[x] += terms[x]
        best = labels[i]
        for x in range(d):
            if own[x] < own[best]:
                best = x
        labels[i] = best


@njit(cache=True, nogil=True)
def forest_rounds(lay, labels, words, count, heat):
    """Solve `count` random forests in place, with noise that falls from `heat` to 0.

    Labels that obey the hard constraints do so all the way. Without noise no round raises the
    energy, but for rounding.
    """
    n = len(labels)
    links, parent = np.empty(n, np.int64), np.empty(n, np.int64)
    forest, frontier = np.empty(n, np.int64), np.empty(n, np.int64)
    costs, terms = np.empty(len(lay.unary)), np.empty(lay.num_labels.max())
    for k in range(count):
        size = grow(lay, words, links, parent, forest, frontier)
        now = heat * (1.0 - (k + 1.0) / count)
        _gather(lay, words, now, links, parent, forest[:size], labels, costs, terms)
        _scatter(lay, parent, forest[:size], labels, costs, terms)
