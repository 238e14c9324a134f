"""Loops over the half-edge incidence: colouring, levels of an order."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def greedy_colouring(node, start, half):
    """First-fit colours in node order."""
    n = len(start) - 1
    colour = np.full(n, -1, np.int32)
    widest = 0
    for i in range(n):
        widest = max(widest, start[i + 1] - start[i])
    taken = np.full(widest + 1, -1, np.int64)
    for i in range(n):
        for k in range(start[i], start[i + 1]):
            c = colour[node[half[k] ^ 1]]
            if c >= 0:
                taken[c] = i
        c = 0
        while taken[c] == i:
            c += 1
        colour[i] = c
    return colour


@njit(cache=True, nogil=True)
def depth_levels(node, start, half, rank):
    """Depth of each node in the graph directed along `rank`: nodes of one level share no edge."""
    n = len(start) - 1
    order = np.argsort(rank)
    level = np.zeros(n, np.int32)
    for i in order:
        for k in range(start[i], start[i + 1]):
            j = node[half[k] ^ 1]
            if rank[j] < rank[i]:
                level[i] = max(level[i], level[j] + 1)
    return level
