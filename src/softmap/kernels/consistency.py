"""Arc consistency: states that no neighbour supports are forbidden, to a fixed point."""

from __future__ import annotations

import numpy as np
from numba import njit

from softmap.kernels.messages import hard_message


@njit(cache=True, nogil=True)
def arc_consistency(lay, allowed):
    """Clear `allowed` in place; return a node that ran out of states, or -1.

    Nodes whose states shrank wait in a ring; a hard message of zeros and infinities tells which
    states of a neighbour they still support.
    """
    n = len(lay.num_labels)
    widest = 0
    for i in range(n):
        widest = max(widest, lay.num_labels[i])
    a, out = np.empty(widest), np.empty(widest)
    ring, waiting = np.arange(n), np.ones(n, np.bool_)
    head, count = 0, n
    while count > 0:
        i = ring[head]
        head, count = (head + 1) % n, count - 1
        waiting[i] = False
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
                    shrank = True
                left += allowed[place]
            if left == 0:
                return j
            if shrank and not waiting[j]:
                waiting[j] = True
                ring[(head + count) % n] = j
                count += 1
    return -1
