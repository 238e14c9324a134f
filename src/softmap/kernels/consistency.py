"""Arc consistency: states that no neighbour supports are forbidden, to a fixed point."""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.messages import hard_message


@njit(cache=True, nogil=True)
def propagate(lay, allowed, ring, waiting, count, trail, used):
    """Forbid what the nodes in `ring[:count]` no longer support; note each entry in `trail`.

    Returns a node that ran out of states (or -1) and the length of the trail. A hard message of
    zeros and infinities tells which states of a neighbour are still supported.
    """
    n = len(lay.num_labels)
    widest = lay.num_labels.max()
    a, out = np.empty(widest), np.empty(widest)
    head, empty = 0, -1
    while count > 0:
        i = ring[head]
        head, count = (head + 1) % n, count - 1
        waiting[i] = False
        if empty >= 0:
            continue  # only to leave no node marked as waiting
        d = lay.num_labels[i]
        for x in range(d):
            a[x] = 0.0 if allowed[lay.node_offset[i] + x] else np.inf
        for k in range(lay.start[i], lay.start[i + 1]):
            h = lay.half[k] ^ 1
            j = lay.node[h]
            hard_message(lay, h, a[:d], out[: lay.num_labels[j]])
            left, shrank = 0, False
            for y in range(lay.num_labels[j]):
                place = lay.node_offset[j] + y
                if allowed[place] and out[y] == np.inf:
                    allowed[place] = False
                    trail[used] = place
                    used += 1
                    shrank = True
                left += allowed[place]
            if left == 0:
                empty = j
                break
            if shrank and not waiting[j]:
                waiting[j] = True
                ring[(head + count) % n] = j
                count += 1
    return empty, used


@njit(cache=True, nogil=True)
def arc_consistency(lay, allowed):
    """Clear `allowed` in place; return a node that ran out of states, or -1."""
    n = len(lay.num_labels)
    trail = np.empty(len(allowed), np.int64)
    return propagate(lay, allowed, np.arange(n), np.ones(n, np.bool_), n, trail, 0)[0]


@njit(cache=True, nogil=True)
def decide(lay, preference, allowed, order):
    """Labels one by one, arc consistency kept after each; False in front if that fails.

    Node i takes its allowed state of greatest `preference`; if that empties another node, the state
    is forbidden instead, and the next one tried. There is no going back further.
    """
    n = len(lay.num_labels)
    ring, waiting = np.empty(n, np.int64), np.zeros(n, np.bool_)
    trail = np.empty(len(allowed), np.int64)
    labels = np.zeros(n, np.int64)
    for i in order:
        begin, d = lay.node_offset[i], lay.num_labels[i]
        while True:
            best = -1
            for x in range(d):
                better = best < 0 or preference[begin + x] > preference[begin + best]
                if allowed[begin + x] and better:
                    best = x
            if best < 0:
                return False, labels
            used = 0
            for x in range(d):
                if x != best and allowed[begin + x]:
                    allowed[begin + x] = False
                    trail[used] = begin + x
                    used += 1
            ring[0], waiting[i] = i, True
            empty, used = propagate(lay, allowed, ring, waiting, 1, trail, used)
            if empty < 0:
                labels[i] = best
                break
            for k in range(used):
                allowed[trail[k]] = True
            allowed[begin + best] = False
            ring[0], waiting[i] = i, True
            empty, used = propagate(lay, allowed, ring, waiting, 1, trail, 0)
            if empty >= 0:
                return False, labels
    return True, labels
