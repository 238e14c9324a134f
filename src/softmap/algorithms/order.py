"""Cut an order of the nodes into levels and batches (see `kernels.schedule.Schedule`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.kernels.graph import depth_levels
from softmap.kernels.schedule import Schedule
from softmap.model import Model

__all__ = ["chain_schedule"]

Ints = NDArray[np.int64]


def chain_schedule(model: Model, rank: Ints | None = None) -> Schedule:
    """Monotonic chains along `rank` (natural order if None), with independent nodes by level.

    Node i lies on `max(#earlier neighbours, #later neighbours)` chains.
    """
    graph = model.graph
    place = np.arange(model.n) if rank is None else rank
    level = depth_levels(graph.node, graph.start, graph.half, place).astype(np.int64)
    nodes = np.lexsort((place, level))
    level_start = _starts(level[nodes], int(level.max()) + 1)
    position = np.empty(model.n, dtype=np.int64)
    position[nodes] = np.arange(model.n) - level_start[level[nodes]]
    ahead = place[graph.node] < place[graph.node[np.arange(2 * model.m) ^ 1]]
    later = np.bincount(graph.node[ahead], minlength=model.n)
    earlier = np.bincount(graph.node[~ahead], minlength=model.n)
    chains = np.maximum(np.maximum(later, earlier), 1)
    forward = _batches(model, np.flatnonzero(ahead), level, position, len(level_start) - 1)
    backward = _batches(model, np.flatnonzero(~ahead), level, position, len(level_start) - 1)
    return Schedule(
        level_start=level_start,
        nodes=nodes,
        position=position,
        share=1.0 / chains,
        forward_start=forward[0],
        forward=forward[1],
        forward_half=forward[2],
        forward_ends=(chains - later).astype(np.float64),
        backward_start=backward[0],
        backward=backward[1],
        backward_half=backward[2],
        backward_ends=(chains - earlier).astype(np.float64),
    )


def _starts(sorted_keys: Ints, count: int) -> Ints:
    return np.searchsorted(sorted_keys, np.arange(count + 1)).astype(np.int64)


def _batches(
    model: Model, halves: Ints, level: Ints, position: Ints, levels: int
) -> tuple[Ints, NDArray[Any], Ints]:
    """Sort sending half-edges by level, then by what makes a plain loop, then by sender."""
    node = model.graph.node
    group = np.searchsorted(model.group_start, halves >> 1, side="right") - 1
    sender, receiver = node[halves], node[halves ^ 1]
    keys = np.stack(
        [
            level[sender],
            group,
            halves & 1,
            model.num_labels[sender],
            model.num_labels[receiver],
        ]
    )
    order = np.lexsort((position[sender], *keys[::-1]))
    halves, keys = halves[order], keys[:, order]
    new = np.ones(len(halves), dtype=bool)
    new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(halves))[: len(first)]
    rows = np.column_stack([keys[1:, first].T, first, last]).astype(np.int64)
    return _starts(keys[0, first], levels), np.ascontiguousarray(rows), halves
