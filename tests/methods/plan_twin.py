"""Schedules of passes by sorting in numpy: the plain twin of `core.plan`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.sweeps.planning import BLOCK, ROW
from softmap.model import Model
from softmap.model.layout import cost_arrays

Ints = NDArray[np.int64]
LANES = core.LANES
# By table entries: a tile with fewer edges than this wastes more lanes than it gains.
FILLED = ((16, 2), (64, 3), (1 << 60, 5))
LONGEST = 31 * LANES  # of a strip: its labels should lie in few pages, and in different cache sets


class Column(IntEnum):
    """Columns of blocks in this file."""

    KIND = 0
    GROUP = 1
    ORIENTATION = 2
    EARLY = 3
    LATE = 4
    REACH = 5
    COUNT = 6
    EARLY_AT = 7
    LATE_AT = 8
    STEP = 9
    TABLE_AT = 10
    LANE = 11
    STRAIGHT_EARLY = 12
    STRAIGHT_LATE = 13
    EARLY_FROM = 14
    LATE_FROM = 15


class Way(IntEnum):
    """How the messages into a row's nodes are collected."""

    ALONE = 0
    GATHERED = 1
    STRAIGHT = 2


class RowColumn(IntEnum):
    """Columns of rows in this file."""

    FIRST = 0
    NODES = 1
    LABELS = 2
    DEGREE = 3
    PLACE = 4
    STEP = 5
    WAY = 6


def _records(columns: Ints, names: type[IntEnum], kind: np.dtype[Any]) -> NDArray[np.void]:
    """The records of the compiled loops."""
    out = np.zeros(len(columns), kind)
    for name in names:
        out[name.name.lower()] = columns[:, name]
    return out


@dataclass(frozen=True)
class Plan:
    """The arrays of a schedule, and the sizes of costs by strip and of tables."""

    arrays: dict[str, NDArray[Any]]
    cost_size: int
    table_size: int


def leading(plan: Plan) -> Plan:
    """The plan with the places of messages into the first node of a straight row only."""
    return replace(plan, arrays=plan.arrays | _leading_pulls(plan.arrays))


def _leading_pulls(plan: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Of straight rows, only the places of messages into the first node: the others follow."""
    rows, at, step = plan["rows"].copy(), plan["pull_at"], plan["pull_step"]
    nodes = np.where(rows["way"] == Way.STRAIGHT, 1, rows["nodes"])
    kept = [
        np.arange(r["pulls"], r["pulls"] + c * r["degree"])
        for r, c in zip(rows, nodes, strict=True)
    ]
    of_kept = np.concatenate([*kept, np.zeros(0, dtype=int)]).astype(int)
    rows["pulls"] = _offsets(nodes * rows["degree"])[:-1]
    return {"rows": rows, "pull_at": at[of_kept], "pull_step": step[of_kept]}


def planned(model: Model, rank: Ints, level: Ints, keys: Ints) -> Plan:
    """A plan for edges that may lie side by side where their keys are equal, and not -1."""
    levels = int(level.max()) + 1
    strips = _Strips(model, level)
    nodes = strips.nodes
    packing = _Packing(model, rank, level, strips, keys)
    halves, pull_start = _pulls(model, nodes)
    pull_at, pull_step = packing.half_at[halves], packing.half_step[halves]
    rows = _rows(strips, model.network.graph.degree[nodes], pull_start, pull_at, pull_step)
    later = np.bincount(packing.early, minlength=model.network.n)
    earlier = np.bincount(packing.late, minlength=model.network.n)
    chains = np.where(earlier > later, -earlier, np.maximum(later, 1))
    bands = _Bands(packing, level, rows, nodes)
    forward = bands.sorted(packing.early, packing.late)
    backward = bands.sorted(packing.late, packing.early)
    arrays: dict[str, NDArray[Any]] = {
        "row_start": _starts(level[nodes[rows[:, RowColumn.FIRST]]], levels),
        "rows": _records(rows, RowColumn, ROW),
        "nodes": nodes.astype(np.int32),
        "chains": np.append(chains[nodes], np.ones(LANES)).astype(np.int32),
        "pull_at": pull_at,
        "pull_step": pull_step,
        "blocks": packing.records(),
        "edge": packing.edge.astype(np.int32),
        "early_at": packing.early_at,
        "early_step": packing.early_step,
        "late_at": packing.late_at,
        "late_step": packing.late_step,
        "forward_start": forward[0],
        "forward": forward[1],
        "forward_after": forward[2],
        "backward_start": backward[0],
        "backward": backward[1],
        "backward_after": backward[2],
    }
    arrays["rows"]["pulls"] = pull_start[rows[:, RowColumn.FIRST]]
    arrays["later"] = np.argsort(packing.late_level, kind="stable").astype(np.int32)
    return Plan(arrays, strips.size, packing.table_size)


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _starts(sorted_keys: Ints, count: int) -> Ints:
    return np.searchsorted(sorted_keys, np.arange(count + 1)).astype(np.int64)


def _padded(lengths: Ints) -> Ints:
    return -(-lengths // LANES) * LANES


class _Bands:
    """Bands of the rows of each level, and the bands that each band waits for."""

    def __init__(self, packing: _Packing, level: Ints, rows: Ints, nodes: Ints) -> None:
        self.packing, self.level, self.levels = packing, level, int(level.max()) + 1
        self.bands = 1
        while self.bands < 64 and 2 * self.bands * self.levels <= len(rows):
            self.bands *= 2
        of_row = level[nodes[rows[:, RowColumn.FIRST]]]
        count = np.bincount(of_row, minlength=self.levels)
        self.band = np.empty(len(nodes), dtype=np.int64)
        for r, row in enumerate(rows):
            among = count[of_row[r]]  # rows of this level, of which r is the `within`-th
            within = r - int(np.searchsorted(of_row, of_row[r]))
            cuts = [among * b // self.bands for b in range(self.bands + 1)]
            band = next(b for b in range(self.bands) if cuts[b] <= within < cuts[b + 1])
            self.band[nodes[row[0] : row[0] + row[1]]] = band

    def sorted(
        self, senders: Ints, receivers: Ints
    ) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint64]]:
        """Starts, blocks and sets of bands, by level and band; sets are made edge by edge."""
        lanes = self.packing.blocks[:, Column.LANE]
        first = senders[self.packing.edge[lanes]]
        after = [[0, 0] for _ in range(self.levels * self.bands)]
        for b, i in enumerate(first):
            for e in self.packing.edge[lanes[b] : lanes[b] + max(1, self._count(b))]:
                own, other = self.band[i], self.band[senders[e]]
                after[self.level[i] * self.bands + own][1] |= 1 << int(other)
                after[self._home(receivers[e])][0] |= 1 << int(own)
        heads = receivers[self.packing.edge[lanes]]
        waits = sum(after[self._home(j)][0].bit_count() for j in heads)
        if local := 2 * waits < self.bands * len(lanes):
            key = self.level[first] * self.bands + self.band[first]
        else:
            after = [[(1 << self.bands) - 1] * 2 for _ in after]
            key = self.level[first] * self.bands
        order = np.argsort(key, kind="stable")
        start = _starts(key[order], self.levels * self.bands)
        if not local:
            begin = start[:: self.bands]
            part = np.arange(self.bands) * np.diff(begin)[:, None] // self.bands
            start = np.append((begin[:-1, None] + part).ravel(), begin[-1])
        return start, order.astype(np.int32), np.array(after, dtype=np.uint64).ravel()

    def _count(self, b: int) -> int:
        return int(self.packing.blocks[b, Column.COUNT])

    def _home(self, i: int) -> int:
        return int(self.level[i] * self.bands + self.band[i])


def _narrowed(keys: NDArray[Any]) -> NDArray[Any]:
    """In half the memory, where the numbers are small enough."""
    small = keys.min(initial=0) >= -(2**31) and keys.max(initial=0) < 2**31
    return keys.astype(np.int32) if small else keys


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
        labels, degree = model.network.num_labels, model.network.graph.degree
        # boundary nodes last, so that the others line up with the strips of their edges
        self.nodes = np.argsort(_joined(level, labels, -degree), kind="stable")
        runs = _strip_runs(_joined(level, labels)[self.nodes])
        step = np.where(runs.length > 1, _padded(runs.length), 1)
        begin = _offsets((step * labels[self.nodes])[runs.first])
        self.strip, self.labels = runs.run, labels[self.nodes]
        self.at, self.step = np.empty((2, model.network.n), dtype=np.int64)
        self.at[self.nodes], self.step[self.nodes] = begin[runs.run] + runs.within, step
        self.size = int(begin[-1])


def _pulls(model: Model, nodes: Ints) -> tuple[Ints, Ints]:
    """Half-edges of the nodes, in their order, and where each node's begin."""
    graph = model.network.graph
    counts = graph.degree[nodes]
    start = _offsets(counts)
    within = np.arange(2 * model.network.m) - np.repeat(start[:-1], counts)
    return graph.half[np.repeat(graph.start[nodes], counts) + within], start


def _rows(strips: _Strips, degree: Ints, start: Ints, at: Ints, step: NDArray[np.int32]) -> Ints:
    """Runs of up to `LANES` nodes of one strip and degree, and how to collect their messages."""
    runs = _Runs.of(_joined(strips.strip, degree))
    first = np.flatnonzero(runs.within % LANES == 0)
    count = np.minimum(runs.length[first] - runs.within[first], LANES)
    row = np.repeat(np.arange(len(first)), count)
    lead = (
        np.repeat(start[:-1][first[row]], degree)
        + np.arange(len(at))
        - np.repeat(start[:-1], degree)
    )  # of each message, the like one into the first node of the row
    lane = np.repeat(np.arange(len(row)) - first[row], degree)
    odd = (at != at[lead] + lane) | (step != step[lead])
    crooked = np.bincount(np.repeat(row, degree)[odd], minlength=len(first)) > 0
    way = np.where(count == 1, Way.ALONE, np.where(crooked, Way.GATHERED, Way.STRAIGHT))
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

    def __init__(self, model: Model, rank: Ints, level: Ints, strips: _Strips, keys: Ints) -> None:
        self.kinds = cost_arrays(model.network)["kind"]
        edges = np.arange(model.network.m)
        side = (rank[model.network.edges[:, 0]] > rank[model.network.edges[:, 1]]).astype(np.int64)
        self.early, self.late = (
            model.network.edges[edges, side],
            model.network.edges[edges, 1 - side],
        )
        group = np.searchsorted(model.network.group_start, edges, side="right") - 1
        labels, early, late = model.network.num_labels, self.early, self.late
        columns = (
            level[early], level[late], group, side, labels[early], labels[late], keys
        )  # fmt: skip
        self.keys = np.stack([_narrowed(column) for column in columns])
        del columns, group, side
        code = _joined(*self.keys)
        order = _lined_up(code, strips.at[early])
        for row in self.keys:
            row[:] = row[order]
        self._cut_blocks(_strip_runs(code[order]))
        del code
        self._place(order)
        self._ends(strips)

    def records(self) -> NDArray[np.void]:
        blocks = self.blocks.copy()
        blocks[:, Column.REACH] = np.clip(blocks[:, Column.REACH], -1, 2**31 - 1)
        return _records(blocks, Column, BLOCK)

    def _cut_blocks(self, strips: _Runs) -> None:
        """Strips into tiles; what would fill too few lanes stays single."""
        lanes = np.minimum(strips.length - strips.within // LANES * LANES, LANES)
        entries = self.keys[4].astype(np.int64) * self.keys[5]
        enough = np.select([entries <= size for size, _ in FILLED], [need for _, need in FILLED])
        self.tiled = (self.keys[6] >= 0) & (lanes >= enough)
        self.head = np.flatnonzero(~self.tiled | (strips.within % LANES == 0))
        self.block = np.searchsorted(self.head, np.arange(len(lanes)), side="right") - 1
        # a strip holds its tiles; single edges behind them lie elsewhere
        tiled = np.bincount(strips.run, self.tiled, len(strips.first)).astype(np.int64)
        self.step = np.where(self.tiled, _padded(tiled)[strips.run], 1)[self.head]
        self.opens = (~self.tiled | (strips.within == 0))[self.head]
        self.tile = (strips.within // LANES)[self.head]

    def _place(self, order: Ints) -> None:
        head, block, step = self.head, self.block, self.step
        kind, tiled = self.kinds[self.keys[2, head]], self.tiled[head]
        opener = np.maximum.accumulate(np.where(self.opens, np.arange(len(head)), 0))
        sizes = _padded(np.where(self.opens, self.keys[4:6, head] * step, 0))
        begin = _offsets(sizes.ravel())[:-1].reshape(2, -1)[:, opener]
        begin += np.where(tiled, self.tile * LANES, 0)
        lane = _offsets(np.where(tiled, LANES, 1))
        packed = np.array([core.packed_size(k, 1, 1) for k in range(len(core.KINDS))])
        entries = packed[kind] * self.keys[4, head] * self.keys[5, head]
        table = _offsets(np.where(tiled, entries, 0))
        self.table_size = int(table[-1])
        count = np.where(tiled, np.bincount(block, minlength=len(head)), 0)
        unset = np.zeros_like(count)
        columns = [kind, *self.keys[2:, head], count, *begin, step, table[:-1], lane[:-1]]
        columns += [unset, unset, unset, unset]
        self.blocks = np.ascontiguousarray(np.column_stack(columns).astype(np.int64))
        self.early_level, self.late_level = self.keys[0, head], self.keys[1, head]
        within = np.arange(len(order)) - head[block]
        self.edge = np.full(int(lane[-1]), -1, dtype=np.int64)
        self.edge[lane[block] + within] = order
        half = 2 * order + self.keys[3]
        self.half_at = np.empty(2 * len(order), dtype=np.int64)
        self.half_at[half], self.half_at[half ^ 1] = begin[:, block] + within
        self.half_step = np.empty(2 * len(order), dtype=np.int32)
        self.half_step[half] = self.half_step[half ^ 1] = step[block]

    def _ends(self, strips: _Strips) -> None:
        """Where the costs of each lane's ends lie, and the blocks whose lanes lie side by side."""
        used = self.edge >= 0
        edges = self.edge[used]
        begin = self.blocks[:, Column.LANE]
        widths = np.diff(np.append(begin, len(used)))
        first = np.repeat(begin, widths)
        lane = np.arange(len(used)) - first
        found: list[NDArray[Any]] = []
        for column, place, nodes in (
            (Column.STRAIGHT_EARLY, Column.EARLY_FROM, self.early),
            (Column.STRAIGHT_LATE, Column.LATE_FROM, self.late),
        ):
            at = np.full(len(used), strips.size, dtype=np.int64)
            step = np.zeros(len(used), dtype=np.int32)
            at[used], step[used] = strips.at[nodes[edges]], strips.step[nodes[edges]]
            odd = (at != at[first] + lane) | (step != step[first])
            if len(used):
                self.blocks[:, column] = ~np.logical_or.reduceat(odd, begin)
            # of lanes side by side, the first tells where the others are
            kept = (lane == 0) | (np.repeat(self.blocks[:, column], widths) == 0)
            if len(used):
                self.blocks[:, place] = np.cumsum(kept)[begin] - 1
            found += [at[kept], step[kept]]
        self.early_at, self.early_step, self.late_at, self.late_step = found
