"""Cut an order of the nodes into levels and blocks (see `kernels.schedule.Schedule`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.kernels.graph import depth_levels
from softmap.kernels.packing import pack_tables
from softmap.kernels.schedule import Schedule
from softmap.kernels.tiles import LANES
from softmap.layout import layout
from softmap.model import Model
from softmap.potentials import Kind

__all__ = ["chain_schedule", "colour_schedule"]

Ints = NDArray[np.int64]
# By table entries: a tile with fewer edges than this wastes more lanes than it gains.
FILLED = ((16, 3), (64, 5), (1 << 60, 10))


def chain_schedule(model: Model, dtype: DTypeLike = np.float64) -> Schedule:
    """Monotonic chains in the natural order of the nodes, with independent nodes by level.

    Node i lies on `max(#earlier neighbours, #later neighbours)` chains.
    """
    graph = model.graph
    level = depth_levels(graph.node, graph.start, graph.half, np.arange(model.n))
    return _schedule(model, level.astype(np.int64), dtype)


def colour_schedule(model: Model, dtype: DTypeLike = np.float64) -> Schedule:
    """Stars by colour: levels are colours, and nodes keep the whole of their costs."""
    plan = _schedule(model, model.graph.colouring().astype(np.int64), dtype)
    return plan._replace(share=np.ones(model.n))


def _schedule(model: Model, level: Ints, dtype: DTypeLike) -> Schedule:
    """Blocks for nodes in levels that no edge stays within."""
    nodes = np.argsort(level, kind="stable")
    levels = int(level.max()) + 1
    at = _offsets(model.num_labels[nodes])
    node_at = np.empty(model.n, dtype=np.int64)
    node_at[nodes] = at[:-1]
    later = np.bincount(np.minimum(*model.edges.T), minlength=model.n)
    earlier = np.bincount(np.maximum(*model.edges.T), minlength=model.n)
    chains = np.maximum(np.maximum(later, earlier), 1)
    packing = _Packing(model, level, node_at, int(at[-1]), np.dtype(dtype))
    halves, pull_start = _pulls(model, nodes)
    forward = _by_level(packing.early_level, levels)
    backward = _by_level(packing.late_level, levels)
    return Schedule(
        level_start=_starts(level[nodes], levels),
        nodes=nodes,
        node_at=node_at,
        share=1.0 / chains,
        pull_start=pull_start,
        pull_at=packing.half_at[halves],
        pull_stride=packing.half_stride[halves],
        blocks=packing.blocks,
        edge=packing.edge,
        early_at=packing.early_at,
        late_at=packing.late_at,
        weight=packing.weight,
        truncation=packing.truncation,
        table=packing.table,
        forward_start=forward[0],
        forward=forward[1],
        forward_ends=(chains - later).astype(np.float64),
        backward_start=backward[0],
        backward=backward[1],
        backward_ends=(chains - earlier).astype(np.float64),
        half_at=packing.half_at,
        half_stride=packing.half_stride,
    )


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _starts(sorted_keys: Ints, count: int) -> Ints:
    return np.searchsorted(sorted_keys, np.arange(count + 1)).astype(np.int64)


def _by_level(level: Ints, levels: int) -> tuple[Ints, Ints]:
    order = np.argsort(level, kind="stable")
    return _starts(level[order], levels), order.astype(np.int64)


def _pulls(model: Model, nodes: Ints) -> tuple[Ints, Ints]:
    """Half-edges of the nodes, in level order, and where each node's begin."""
    graph = model.graph
    counts = graph.degree[nodes]
    start = _offsets(counts)
    within = np.arange(2 * model.m) - np.repeat(start[:-1], counts)
    return graph.half[np.repeat(graph.start[nodes], counts) + within], start


class _Packing:
    """Edges in tiles and single blocks: where their messages, tables and lanes lie."""

    def __init__(
        self, model: Model, level: Ints, node_at: Ints, spare: int, dtype: np.dtype[Any]
    ) -> None:
        self.model, self.lay, self.dtype = model, layout(model, dtype), dtype
        side = (model.edges[:, 0] > model.edges[:, 1]).astype(np.int64)
        edges = np.arange(model.m)
        early, late = model.edges[edges, side], model.edges[edges, 1 - side]
        group = np.searchsorted(model.group_start, edges, side="right") - 1
        labels = model.num_labels
        keys = np.stack([level[early], level[late], group, side, labels[early], labels[late]])
        order = np.lexsort((node_at[early], *keys[::-1]))
        self.keys = keys[:, order]
        self.kind = self.lay.kind[self.keys[2]]
        self._cut_blocks()
        self._place(order, node_at[early[order]], node_at[late[order]], spare)
        self._lane_costs()
        self._tables()

    def _cut_blocks(self) -> None:
        """Runs of equal keys into tiles of sixteen; what would fill too few lanes stays single."""
        keys, count = self.keys, self.model.m
        new = np.ones(count, dtype=bool)
        new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        first, run = np.flatnonzero(new), np.cumsum(new) - 1
        within = np.arange(count) - first[run]
        length = np.diff(np.append(first, count))[run]
        lanes = np.minimum(length - within // LANES * LANES, LANES)
        entries = keys[4] * keys[5]
        enough = np.select([entries <= size for size, _ in FILLED], [need for _, need in FILLED])
        square = (self.kind != Kind.PROJECTION) & (keys[4] == keys[5])
        self.tiled = ((self.kind == Kind.TABLE) | square) & (lanes >= enough)
        begins = ~self.tiled | (within % LANES == 0)
        self.head = np.flatnonzero(begins)
        self.block = np.cumsum(begins) - 1

    def _place(self, order: Ints, early: Ints, late: Ints, spare: int) -> None:
        head, block, keys = self.head, self.block, self.keys
        wide = np.where(self.tiled[head], LANES, 1)
        d_early, d_late = keys[4, head], keys[5, head]
        message, lane = _offsets((d_early + d_late) * wide), _offsets(wide)
        self.is_table = self.tiled[head] & (self.kind[head] == Kind.TABLE)
        table = _offsets(np.where(self.is_table, d_early * d_late * LANES, 0))
        count = np.where(self.tiled[head], np.bincount(block, minlength=len(head)), 0)
        columns = [self.kind[head], *keys[2:, head], count, message[:-1], table[:-1], lane[:-1]]
        self.blocks = np.ascontiguousarray(np.column_stack(columns).astype(np.int64))
        self.early_level, self.late_level = keys[0, head], keys[1, head]
        self.table_size = int(table[-1])
        within = np.arange(len(order)) - head[block]
        at, begin = lane[block] + within, message[block] + within
        self.edge = np.full(int(lane[-1]), -1, dtype=np.int64)
        self.edge[at] = order
        self.early_at = np.full(int(lane[-1]), spare, dtype=np.int64)
        self.late_at = self.early_at.copy()
        self.early_at[at], self.late_at[at] = early, late
        half = 2 * order + keys[3]
        self.half_at = np.empty(2 * len(order), dtype=np.int64)
        self.half_at[half] = begin
        self.half_at[half ^ 1] = begin + d_early[block] * wide[block]
        self.half_stride = np.empty(2 * len(order), dtype=np.int32)
        self.half_stride[half] = self.half_stride[half ^ 1] = wide[block]

    def _lane_costs(self) -> None:
        """Weight and truncation of each lane; 0 for idle lanes and groups without any."""
        self.weight = np.zeros(len(self.edge), self.dtype)
        self.truncation = np.zeros(len(self.edge), self.dtype)
        used = np.flatnonzero(self.edge >= 0)
        start, edges, lay = self.model.group_start, self.edge[used], self.lay
        group = np.searchsorted(start, edges, side="right") - 1
        for values, source, where in (
            (self.weight, lay.weight, lay.weight_at),
            (self.truncation, lay.truncation, lay.truncation_at),
        ):
            has = where[group] >= 0
            values[used[has]] = source[where[group][has] + edges[has] - start[group][has]]

    def _tables(self) -> None:
        """Tables of tiled edges, entry by entry across the lanes."""
        self.table = np.zeros(self.table_size, self.dtype)
        chosen = np.flatnonzero(self.is_table)
        pack_tables(self.lay, self.blocks, chosen, self.edge, self.table)
