"""Exact transport between two small distributions, by successive shortest paths.

Masses are whole multiples of 2**-52, held in integers: a path always saturates something, nothing
is lost to rounding, and masses too small to matter are zero from the start.
"""

from __future__ import annotations

import numpy as np
from numba import njit

UNIT = 2.0**52


@njit(cache=True, nogil=True)
def _whole(mass, out):
    """Round to multiples of 1/UNIT that sum to UNIT, the difference going to the largest."""
    total = 0.0
    for x in range(len(mass)):
        total += mass[x]
    left = np.int64(UNIT)
    largest = 0
    for x in range(len(mass)):
        out[x] = np.int64(np.round(mass[x] / total * UNIT))
        left -= out[x]
        if out[x] > out[largest]:
            largest = x
    out[largest] += left


@njit(cache=True, nogil=True)
def _nearest_demand(root, cost, plan, u, v, demand, reach, back, done):
    """Dijkstra from row `root` in the residual graph; the nearest column with demand, or -1.

    `reach` are distances of columns, `back[y]` the row before column y. Rows hang on the column
    that ships to them at reduced cost 0, so only columns need a distance.
    """
    rows, cols = cost.shape
    reach[:] = np.inf
    done[:] = -1  # column through which a row was entered; `cols` marks the root
    done[root] = cols
    row, base = root, 0.0
    settled = np.zeros(cols, np.bool_)
    stack = np.empty(rows, np.int64)
    top = 0
    while True:
        for y in range(cols):
            if not settled[y]:
                step = base + max(0.0, cost[row, y] - u[row] - v[y])
                if step < reach[y]:
                    reach[y] = step
                    back[y] = row
        if top > 0:
            top -= 1
            row = stack[top]
            continue
        nearest, best = -1, np.inf
        for y in range(cols):
            if not settled[y] and reach[y] < best:
                nearest, best = y, reach[y]
        if nearest < 0 or demand[nearest] > 0:
            return nearest
        settled[nearest] = True
        base = best
        for x in range(rows):
            if plan[x, nearest] > 0 and done[x] < 0:
                done[x] = nearest
                stack[top] = x
                top += 1
        if top > 0:
            top -= 1
            row = stack[top]
        else:
            row = root  # nothing new hangs on this column: look for the next one


@njit(cache=True, nogil=True)
def _augment(target, plan, supply, demand, root, back, done):
    """Ship as much as the path allows; returns the amount."""
    amount = min(supply[root], demand[target])
    y = target
    while True:
        row = back[y]
        if row == root:
            break
        y = done[row]
        amount = min(amount, plan[row, y])
    y = target
    while True:
        row = back[y]
        plan[row, y] += amount
        if row == root:
            break
        y = done[row]
        plan[row, y] -= amount
    supply[root] -= amount
    demand[target] -= amount
    return amount


@njit(cache=True, nogil=True)
def _raise_prices(limit, u, v, reach, done):
    """Keep reduced costs non-negative, and zero where mass is shipped."""
    cols = len(v)
    for x in range(len(u)):
        if done[x] >= 0:
            u[x] += limit - (reach[done[x]] if done[x] < cols else 0.0)
    for y in range(cols):
        if reach[y] < limit:
            v[y] -= limit - reach[y]


@njit(cache=True, nogil=True)
def transport(cost, p, q, out):
    """Cheapest coupling of `p` and `q` into `out`; returns the mass that found no allowed pair."""
    rows, cols = cost.shape
    supply, demand = np.empty(rows, np.int64), np.empty(cols, np.int64)
    _whole(p, supply)
    _whole(q, demand)
    plan = np.zeros((rows, cols), np.int64)
    u, v = np.zeros(rows), np.zeros(cols)
    reach, back = np.empty(cols), np.empty(cols, np.int64)
    done = np.empty(rows, np.int64)
    for x in range(rows):
        least = np.inf
        for y in range(cols):
            least = min(least, cost[x, y])
        u[x] = least if least < np.inf else 0.0
    stranded = np.int64(0)
    for x in range(rows):
        while supply[x] > 0:
            y = _nearest_demand(x, cost, plan, u, v, demand, reach, back, done)
            if y < 0:
                stranded += supply[x]
                break
            _raise_prices(reach[y], u, v, reach, done)
            _augment(y, plan, supply, demand, x, back, done)
    for x in range(rows):
        for y in range(cols):
            out[x, y] = plan[x, y] / UNIT
    return stranded / UNIT


@njit(cache=True, nogil=True)
def transport_batch(cost, p, q, out, stranded):
    """`transport` for each of a stack of problems."""
    for k in range(len(cost)):
        stranded[k] = transport(cost[k], p[k], q[k], out[k])
