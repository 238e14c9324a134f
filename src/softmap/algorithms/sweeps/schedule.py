"""Cut an order of the nodes into levels, strips and blocks (see `kernels.schedule.Schedule`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.kernels.graph import depth_levels
from softmap.kernels.packing import pack_tables
from softmap.kernels.schedule import ALONE, FIRST, GATHERED, LANE, STRAIGHT, Schedule
from softmap.kernels.vectors import LANES, aligned
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Kind

__all__ = ["chain_schedule", "colour_schedule"]

Ints = NDArray[np.int64]
Nodes = NDArray[np.int32]
# (table entries up to, edges a tile needs at least): with fewer edges, single ones are faster.
FILLED = ((16, 2), (64, 3), (1 << 60, 5))
# Longest strip: its labels should lie in few memory pages, and in different sets of the cache.
LONGEST = 31 * LANES


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
    return plan._replace(share=np.ones_like(plan.share))


def _schedule(model: Model, level: Ints, dtype: DTypeLike) -> Schedule:
    """Blocks for nodes in levels that no edge stays within."""
    levels = int(level.max()) + 1
    strips = _Strips(model, level)
    nodes = strips.nodes
    packing = _Packing(model, level, strips, np.dtype(dtype))
    halves, pull_start = _pulls(model, nodes)
    pull_at, pull_step = packing.half_at[halves], packing.half_step[halves]
    rows = _rows(strips, model.graph.degree[nodes], pull_start, pull_at, pull_step)
    later = np.bincount(np.minimum(*model.edges.T), minlength=model.n)
    earlier = np.bincount(np.maximum(*model.edges.T), minlength=model.n)
    chains = np.maximum(np.maximum(later, earlier), 1)
    forward = _by_level(packing.early_level, levels)
    backward = _by_level(packing.late_level, levels)
    return Schedule(
        row_start=_starts(level[nodes[rows[:, FIRST]]], levels),
        rows=rows,
        nodes=nodes,
        node_at=strips.at,
        node_step=strips.step,
        unary=strips.arranged(model),
        share=np.append(1.0 / chains[nodes], np.zeros(LANES)),
        pull_start=pull_start,
        pull_at=pull_at,
        pull_step=pull_step,
        blocks=packing.blocks,
        edge=packing.edge,
        early_at=packing.early_at,
        early_step=packing.early_step,
        late_at=packing.late_at,
        late_step=packing.late_step,
        weight=packing.weight,
        ceiling=packing.ceiling,
        steepest=packing.steepest,
        table=packing.table,
        forward_start=forward[0],
        forward=forward[1],
        forward_ends=(chains - later).astype(np.float64),
        backward_start=backward[0],
        backward=backward[1],
        backward_ends=(chains - earlier).astype(np.float64),
        half_at=packing.half_at,
        half_step=packing.half_step,
    )


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _starts(sorted_keys: Ints, count: int) -> Ints:
    return np.searchsorted(sorted_keys, np.arange(count + 1)).astype(np.int64)


def _padded(lengths: Ints) -> Ints:
    return -(-lengths // LANES) * LANES


def _by_level(level: Ints, levels: int) -> tuple[Ints, Ints]:
    order = np.argsort(level, kind="stable")
    return _starts(level[order], levels), order.astype(np.int64)


def _joined(*keys: NDArray[Any]) -> Ints:
    """One key that orders like several, the first of them foremost: sorting it is much cheaper."""
    code, size = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        low = int(key.min(initial=0))
        width = int(key.max(initial=0)) - low + 1
        if size * width >= 1 << 62:
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            size = int(code.max()) + 1
        code, size = code * width + (key - low), size * width
    return code


@dataclass(frozen=True)
class _Runs:
    """Equal keys that follow each other."""

    first: Ints  # place of each run's first key
    run: Ints  # the run of each key
    within: Ints  # the place of each key within its run
    length: Ints  # the length of each key's run

    @classmethod
    def of(cls, keys: Ints) -> _Runs:
        count = len(keys)
        new = np.ones(count, dtype=bool)
        new[1:] = keys[1:] != keys[:-1]
        first, run = np.flatnonzero(new), np.cumsum(new) - 1
        length = np.diff(np.append(first, count))
        return cls(first, run, np.arange(count) - first[run], length[run])


def _strip_runs(keys: Ints) -> _Runs:
    """Runs of equal keys, cut so that none is longer than a strip may be."""
    return _Runs.of(_joined(keys, _Runs.of(keys).within // LONGEST))


class _Strips:
    """Nodes by level and label count: their order, and where their costs lie."""

    def __init__(self, model: Model, level: Ints) -> None:
        labels, degree = model.num_labels, model.graph.degree
        # boundary nodes last, so that the others line up with the strips of their edges
        self.nodes = np.argsort(_joined(level, labels, -degree), kind="stable")
        runs = _strip_runs(_joined(level, labels)[self.nodes])
        step = np.where(runs.length > 1, _padded(runs.length), 1)
        begin = _offsets((step * labels[self.nodes])[runs.first])
        self.strip, self.labels = runs.run, labels[self.nodes]
        self.at, self.step = np.empty((2, model.n), dtype=np.int64)
        self.at[self.nodes], self.step[self.nodes] = begin[runs.run] + runs.within, step
        self.size = int(begin[-1])

    def arranged(self, model: Model) -> NDArray[np.float64]:
        """The node costs of the model, by strip."""
        out = aligned(self.size + LANES)
        i = np.repeat(np.arange(model.n), model.num_labels)
        x = np.arange(len(i)) - model.node_offset[i]
        out[self.at[i] + x * self.step[i]] = model.unary
        return out


def _pulls(model: Model, nodes: Ints) -> tuple[Ints, Ints]:
    """Half-edges of the nodes, in their order, and where each node's begin."""
    graph = model.graph
    counts = graph.degree[nodes]
    start = _offsets(counts)
    within = np.arange(2 * model.m) - np.repeat(start[:-1], counts)
    return graph.half[np.repeat(graph.start[nodes], counts) + within], start


def _rows(strips: _Strips, degree: Ints, start: Ints, at: Ints, step: NDArray[np.int32]) -> Ints:
    """Runs of up to `LANES` nodes of one strip and degree, and how to collect their messages."""
    runs = _Runs.of(_joined(strips.strip, degree))
    first = np.flatnonzero(runs.within % LANES == 0)
    count = np.minimum(runs.length[first] - runs.within[first], LANES)
    row = np.repeat(np.arange(len(first)), count)
    # for each message, the corresponding one into the first node of its row
    lead = (
        np.repeat(start[:-1][first[row]], degree)
        + np.arange(len(at))
        - np.repeat(start[:-1], degree)
    )
    lane = np.repeat(np.arange(len(row)) - first[row], degree)
    odd = (at != at[lead] + lane) | (step != step[lead])
    crooked = np.bincount(np.repeat(row, degree)[odd], minlength=len(first)) > 0
    way = np.where(count == 1, ALONE, np.where(crooked, GATHERED, STRAIGHT))
    head = strips.nodes[first]
    columns = [first, count, strips.labels[first], degree[first]]
    columns += [strips.at[head], strips.step[head], way]
    return np.ascontiguousarray(np.column_stack(columns).astype(np.int64))


def _lined_up(keys: Ints, place: Ints) -> Ints:
    """Order of the edges by key and place of their early ends.

    Of several edges of one early end, all first ones come before all second ones: then neighbours
    in a strip of edges end at neighbours in a strip of nodes.
    """
    alike = _joined(keys, place)
    order = np.argsort(alike, kind="stable")
    turn = np.empty_like(place)
    turn[order] = _Runs.of(alike[order]).within
    return np.argsort(_joined(keys, turn, place), kind="stable")


class _Packing:
    """Edges in tiles and single blocks: where their messages, tables and lanes lie."""

    def __init__(self, model: Model, level: Ints, strips: _Strips, dtype: np.dtype[Any]) -> None:
        self.model, self.lay, self.dtype = model, layout(model, dtype), dtype
        side = (model.edges[:, 0] > model.edges[:, 1]).astype(np.int64)
        edges = np.arange(model.m)
        early, late = model.edges[edges, side], model.edges[edges, 1 - side]
        group = np.searchsorted(model.group_start, edges, side="right") - 1
        labels = model.num_labels
        self._distances(group, labels[early], labels[late])
        keys = np.stack(
            [level[early], level[late], group, side, labels[early], labels[late], self.reach]
        )
        code = _joined(*keys)
        order = _lined_up(code, strips.at[early])
        self.keys = keys[:, order]
        self._cut_blocks(_strip_runs(code[order]))
        self._place(order)
        self._ends(early, late, strips)
        self._lane_costs()
        self._tables()

    def _distances(self, group: Ints, early: Ints, late: Ints) -> None:
        """Weight and cost of far labels of every edge; a reach of -1 where no tile may take it."""
        lay, within = self.lay, np.arange(len(group)) - self.model.group_start[group]
        kind = lay.kind[group]
        self.costs = np.zeros((2, len(group)))
        weight, ceiling = self.costs
        weighed = np.isin(kind, (Kind.POTTS, Kind.LINEAR, Kind.QUADRATIC))
        weight[weighed] = lay.weight[lay.weight_at[group[weighed]] + within[weighed]]
        ceiling[:] = weight
        cut = weighed & (kind != Kind.POTTS)
        truncation = lay.truncation[lay.truncation_at[group[cut]] + within[cut]].astype(np.float64)
        linear, widest = kind[cut] == Kind.LINEAR, early[cut].astype(np.float64)
        reach = np.minimum(np.where(linear, truncation, np.sqrt(truncation)), widest)
        ceiling[cut] *= np.minimum(np.where(linear, widest, widest**2), truncation)
        self.reach = np.zeros(len(group), dtype=np.int64)
        self.reach[cut] = np.maximum(np.ceil(reach), 1.0).astype(np.int64)
        plain = (weight >= 0.0) & (weight < np.inf) & (~weighed | (early == late))
        self.reach[~plain | (kind == Kind.PROJECTION)] = -1

    def _cut_blocks(self, strips: _Runs) -> None:
        """Strips into tiles; what would fill too few lanes stays single."""
        lanes = np.minimum(strips.length - strips.within // LANES * LANES, LANES)
        entries = self.keys[4] * self.keys[5]
        enough = np.select([entries <= size for size, _ in FILLED], [need for _, need in FILLED])
        self.tiled = (self.keys[6] >= 0) & (lanes >= enough)
        self.head = np.flatnonzero(~self.tiled | (strips.within % LANES == 0))
        self.block = np.searchsorted(self.head, np.arange(len(lanes)), side="right") - 1
        # only tiled edges count for the length of a strip: single ones are stored elsewhere
        tiled = np.bincount(strips.run, self.tiled, len(strips.first)).astype(np.int64)
        self.step = np.where(self.tiled, _padded(tiled)[strips.run], 1)[self.head]
        self.opens = (~self.tiled | (strips.within == 0))[self.head]
        self.tile = (strips.within // LANES)[self.head]

    def _place(self, order: Ints) -> None:
        head, block, step = self.head, self.block, self.step
        kind, tiled = self.lay.kind[self.keys[2, head]], self.tiled[head]
        opener = np.maximum.accumulate(np.where(self.opens, np.arange(len(head)), 0))
        sizes = _padded(np.where(self.opens, self.keys[4:6, head] * step, 0))
        begin = _offsets(sizes.ravel())[:-1].reshape(2, -1)[:, opener]
        begin += np.where(tiled, self.tile * LANES, 0)
        lane = _offsets(np.where(tiled, LANES, 1))
        self.is_table = tiled & (kind == Kind.TABLE)
        entries = self.keys[4, head] * self.keys[5, head] * LANES
        table = _offsets(np.where(self.is_table, entries, 0))
        self.table_size = int(table[-1])
        count = np.where(tiled, np.bincount(block, minlength=len(head)), 0)
        unset = np.zeros_like(count)
        columns = [kind, *self.keys[2:, head], count, *begin, step, table[:-1], lane[:-1]]
        self.blocks = np.ascontiguousarray(
            np.column_stack([*columns, unset, unset]).astype(np.int64)
        )
        self.early_level, self.late_level = self.keys[0, head], self.keys[1, head]
        within = np.arange(len(order)) - head[block]
        self.edge = np.full(int(lane[-1]), -1, dtype=np.int64)
        self.edge[lane[block] + within] = order
        half = 2 * order + self.keys[3]
        self.half_at = np.empty(2 * len(order), dtype=np.int64)
        self.half_at[half], self.half_at[half ^ 1] = begin[:, block] + within
        self.half_step = np.empty(2 * len(order), dtype=np.int32)
        self.half_step[half] = self.half_step[half ^ 1] = step[block]

    def _ends(self, early: Nodes, late: Nodes, strips: _Strips) -> None:
        """Where the costs of each lane's ends lie, and the blocks whose lanes lie side by side."""
        used = self.edge >= 0
        edges = self.edge[used]
        first = np.repeat(self.blocks[:, LANE], np.diff(np.append(self.blocks[:, LANE], len(used))))
        lane = np.arange(len(used)) - first
        found = []
        for column, nodes in ((-2, early), (-1, late)):
            at = np.full(len(used), strips.size, dtype=np.int64)
            step = np.zeros(len(used), dtype=np.int32)
            at[used], step[used] = strips.at[nodes[edges]], strips.step[nodes[edges]]
            odd = (at != at[first] + lane) | (step != step[first])
            if len(used):
                self.blocks[:, column] = ~np.logical_or.reduceat(odd, self.blocks[:, LANE])
            found += [at, step]
        self.early_at, self.early_step, self.late_at, self.late_step = found

    def _lane_costs(self) -> None:
        """Weight and far cost of each lane; 0 for idle lanes and groups without any."""
        used = self.edge >= 0
        edges = self.edge[used]
        lanes = np.zeros((3, len(used)))
        lanes[:2, used] = self.costs[:, edges]
        lanes[2, used] = np.maximum(self.costs[0, edges] * self.reach[edges], self.costs[1, edges])
        self.weight, self.ceiling, steepest = lanes
        start = self.blocks[:, LANE]
        self.steepest = np.maximum.reduceat(steepest, start) if len(start) else steepest

    def _tables(self) -> None:
        """Tables of tiled edges, entry by entry across the lanes."""
        self.table = aligned(self.table_size, self.dtype)
        chosen = np.flatnonzero(self.is_table)
        pack_tables(self.lay, self.blocks, chosen, self.edge, self.table)
