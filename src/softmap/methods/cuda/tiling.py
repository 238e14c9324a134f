"""Tiles: groups of 32 similar nodes of one level, processed by a warp of the GPU.

Nodes of one *level* share no edge. A *tile* is up to 32 nodes of a level with equal numbers of
labels and of half-edges to earlier and later levels. The j-th half-edges of its nodes are a *group*
of 32 *slots* (see ``src/core/cuda/arena.hpp``). On irregular graphs messages are stored by edge
(`TileLinks`; see ``src/core/cuda/links.hpp``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.machine import usable_cores
from softmap.model import Network
from softmap.model.graph import grid_width

Ints = NDArray[np.int64]

LANES = 32


@dataclass(frozen=True)
class TilingLimits:
    """Limits that decide the levels and tiles of nodes."""

    cycle: int = 16  # number of levels of a grid; more converge no better and are narrower
    most_levels: int = 12  # with more levels, graphs with cycles are coloured
    sorted_levels: int = 12  # with more levels, nodes are not sorted
    deepest: int = 1024  # any graph with more natural levels is coloured
    halves: int = 65536  # limit on half-edges per direction of a node in a ragged tile
    near: float = 0.5  # labels are spread if this fraction of edges joins adjacent lanes


LIMITS = TilingLimits()

TILE = np.dtype(
    [
        ("unary", np.int64), ("message", np.int64), ("group", np.int32), ("labels", np.int32),
        ("width", np.int32), ("early", np.int32), ("late", np.int32), ("used", np.int32),
        ("share", np.float64),
    ]
)  # fmt: skip


def levels_of(model: Network) -> Ints:
    """Return the level of each node; levels are wide, because a GPU works on one level at a time.

    Grids use cyclic diagonals, other graphs the order of the CPU solver. If that order has many
    levels and the graph many cycles, levels are colours, which are fewer and converge as well.
    """
    width = grid_width(model.edges)
    if width is not None:
        row = np.arange(-(-model.n // width))[:, None]
        cyclic: Ints = ((row + np.arange(width)) % LIMITS.cycle).reshape(-1)[: model.n]
        return cyclic
    level = model.graph.levels(np.arange(model.n))
    levels = int(level.max(initial=0)) + 1
    if levels > LIMITS.deepest or (levels > LIMITS.most_levels and model.m >= 2 * model.n):
        level = model.graph.colouring()
    return level.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Tiling:
    """The tiles and slots of a model, and the positions of costs and messages.

    Attributes
    ----------
    tiles : TILE[tiles]
        The tiles, by level.
    level_start : int64[levels + 1]
        First tile of each level.
    place : int64[n]
        Position (tile · 32 + lane) of each node.
    slot : uint32[2m]
        Slot of each half-edge.
    mate : uint32[slots]
        The slot of the other half-edge of the same edge; 0 for an unused lane.
    group_tile : int32[slots / 32]
        Tile of each group.
    halves : uint32[32 tiles]
        In ragged tiles, the number of half-edges to earlier levels, plus 65536 times the number to
        later levels, at each position.
    spread : bool
        Whether the same label of all slots of a group is contiguous; otherwise the labels of each
        slot are.
    ragged : bool
        Whether nodes of a tile may differ in the number of their half-edges.
    cost_size, message_size : int
        Lengths of arrays by node state, and of message arrays.
    """

    tiles: NDArray[np.void]
    level_start: Ints
    place: Ints
    slot: NDArray[np.uint32]
    mate: NDArray[np.uint32]
    group_tile: NDArray[np.int32]
    halves: NDArray[np.uint32]
    spread: bool
    ragged: bool
    cost_size: int
    message_size: int

    @classmethod
    def of(cls, model: Network, level: Ints | None = None, *, ragged: bool = False) -> Tiling:
        """Return the tiling of a model; no edge joins two nodes of a level."""
        level = levels_of(model) if level is None else level
        threads, graph = usable_cores(), model.graph
        number = np.empty(2 * model.m, dtype=np.int32)
        early = np.empty(model.n, dtype=np.int32)
        core.order_halves(
            graph.node, graph.start, graph.half, level, level, number, early, threads,
        )  # fmt: skip
        late = graph.degree - early
        last = late * (int(early.max(initial=0)) + 1) + early if ragged else _around(model, level)
        parts = [level, model.num_labels, *(() if ragged else (early, late)), last]
        order, tile_of, lane = _tiles(parts)
        place = np.empty(model.n, dtype=np.int64)
        place[order] = tile_of * LANES + lane
        first = order[lane == 0]
        tiles = np.zeros(len(first), TILE)
        tiles["labels"] = model.num_labels[first]
        tiles["early"], tiles["late"] = (
            _greatest(part, place, len(first)) for part in (early, late)
        )
        tiles["used"] = np.bincount(tile_of, minlength=len(first))
        degree = tiles["early"].astype(np.int64) + tiles["late"]
        tiles["group"] = _begins(degree)
        slot = np.empty(2 * model.m, dtype=np.uint32)
        mate = np.zeros(int(degree.sum()) * LANES, dtype=np.uint32)
        group, most = (np.ascontiguousarray(tiles[name]) for name in ("group", "early"))
        core.place_halves(graph.node, number, early, place, group, most, slot, mate, threads)
        near = int(np.count_nonzero(np.diff(mate.view(np.int32)) == 1))
        spread = near >= LIMITS.near * 2 * model.m
        _arrange(tiles, spread)
        levels = int(level.max()) + 1 if model.n else 0
        halves = np.zeros(len(first) * LANES if ragged else 1, dtype=np.uint32)
        if ragged:
            halves[place] = early + LIMITS.halves * late
        return cls(
            tiles=tiles,
            level_start=np.searchsorted(level[first], np.arange(levels + 1)),
            place=place,
            slot=slot,
            mate=mate,
            group_tile=np.repeat(np.arange(len(first), dtype=np.int32), degree),
            halves=halves,
            spread=spread,
            ragged=ragged,
            cost_size=int((tiles["labels"].astype(np.int64) * LANES).sum()),
            message_size=int((degree * tiles["width"] * LANES).sum()),
        )

    def spread_out(self) -> Tiling:
        """Return the same tiles with `spread` set."""
        if self.spread:
            return self
        tiles = self.tiles.copy()
        _arrange(tiles, True)
        degree = tiles["early"].astype(np.int64) + tiles["late"]
        size = int((degree * tiles["width"] * LANES).sum())
        return replace(self, tiles=tiles, spread=True, message_size=size)


def _begins(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


def _greatest(values: NDArray[Any], place: Ints, count: int) -> Ints:
    """Return the largest value among the nodes of each tile."""
    lanes = np.zeros(count * LANES, dtype=np.int64)
    lanes[place] = values
    most: Ints = lanes.reshape(-1, LANES).max(axis=1)
    return most


def _around(model: Network, level: Ints) -> Ints | None:
    """Return a key for the number of neighbours of each node in each level; None for many levels.

    Nodes with equal keys are put together. The 32 messages of a group then come from one level and
    are written at about the same time.
    """
    levels = int(level.max(initial=0)) + 1
    degree = int(model.graph.degree.max(initial=0)) + 1
    if levels > LIMITS.sorted_levels or degree**levels >= 1 << 53:
        return None
    weight = float(degree) ** np.arange(levels)
    node = model.graph.node.reshape(-1, 2)
    found = np.zeros(model.n)
    for end in (0, 1):
        found += np.bincount(
            node[:, end], weights=weight[level[node[:, 1 - end]]], minlength=model.n
        )
    return found.astype(np.int64)


def _tiles(parts: Sequence[Ints | None]) -> tuple[Ints, Ints, Ints]:
    """Return the nodes in the order of tiles, and the tile and lane of each.

    Nodes of a tile agree in all of `parts` except the last, which only sorts them.
    """
    *alike, last = parts
    key = _joined(alike)
    if not len(key):
        return key, key, key
    order: NDArray[Any] = np.empty(len(key), dtype=np.int32)
    core.order_by(key if last is None else _joined([key, last]), order)
    ordered = key[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    begin = np.flatnonzero(new)
    within = np.arange(len(order)) - begin[np.cumsum(new) - 1]
    return order, np.cumsum(within % LANES == 0) - 1, within % LANES


def _joined(parts: Sequence[Any]) -> Ints:
    """Return one integer per node that sorts nodes lexicographically by `parts`."""
    key = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        most, new = int(key.max(initial=0)), int(part.max(initial=0)) + 1
        if most >= (1 << 62) // new:  # the key would overflow: renumber the keys that occur
            key, part = (np.unique(a, return_inverse=True)[1] for a in (key, part))
            new = int(part.max(initial=0)) + 1
        key = key * new + part
    return key


def _arrange(tiles: NDArray[np.void], spread: bool) -> None:
    """Set the start of costs and messages of each tile, and the share of each chain."""
    labels = tiles["labels"].astype(np.int64)
    padded = (
        labels
        if spread
        else np.where((labels < 3) | (labels % 4 == 0), labels, -(-labels // 4) * 4)
    )
    early, late = tiles["early"].astype(np.int64), tiles["late"].astype(np.int64)
    chains = np.maximum(np.maximum(early, late), 1)
    tiles["width"] = padded
    tiles["unary"] = _begins(labels * LANES)
    tiles["message"] = _begins((early + late) * padded * LANES)
    tiles["share"] = 1.0 / chains


@dataclass(frozen=True, eq=False)
class TileLinks:
    """Edges sorted by the levels of both endpoints, then by the earlier endpoint.

    Message k goes to the later endpoint of edge k, message m + k to its earlier endpoint.

    Attributes
    ----------
    where : uint32[slots]
        The message into the node of each slot.
    receiver : uint32[2m]
        The position (tile · 32 + lane) of the node that receives each message.
    starts : int64[levels, levels + 1]
        `starts[a, b]` is the first edge from level a to level b; `starts[a, b + 1]` ends the range.
    """

    where: NDArray[np.uint32]
    receiver: NDArray[np.uint32]
    starts: Ints

    @classmethod
    def of(cls, tiling: Tiling, edges: NDArray[np.int32]) -> TileLinks:
        """Return the links of a tiling."""
        levels, m = len(tiling.level_start) - 1, len(edges)
        of_tile = np.repeat(np.arange(levels), np.diff(tiling.level_start))
        first, last = (tiling.place[edges[:, end]].astype(np.uint32) for end in (0, 1))
        turned = first > last  # tiles are in the order of levels
        early, late = np.minimum(first, last), np.maximum(first, last)
        pair = of_tile[early // LANES] * levels + of_tile[late // LANES]
        order = np.empty(m, dtype=np.int32)
        core.order_by(pair * (len(tiling.tiles) * LANES) + early, order)
        starts = np.zeros(levels * levels + 1, dtype=np.int64)
        np.cumsum(np.bincount(pair, minlength=levels * levels), out=starts[1:])
        where = np.zeros(max(len(tiling.mate), 1), dtype=np.uint32)
        late_half = 2 * order.astype(np.int64) + ~turned[order]
        where[tiling.slot[late_half]] = np.arange(m)
        where[tiling.slot[late_half ^ 1]] = np.arange(m, 2 * m)
        return cls(where, np.concatenate([late[order], early[order]]), starts)

    def stretches(self, level: int, forward: bool) -> list[tuple[int, int]]:
        """Return the ranges of edges along which a level sends forward, or backward."""
        levels = int(np.sqrt(len(self.starts) - 1))
        if forward:
            row = self.starts[level * levels : (level + 1) * levels + 1]
            return [(int(row[0]), int(row[-1]))] if row[-1] > row[0] else []
        pairs = [level + earlier * levels for earlier in range(level)]
        both = ((int(self.starts[k]), int(self.starts[k + 1])) for k in pairs)
        return [(first, last) for first, last in both if last > first]

    def chunks(self, level: int, forward: bool, block: int) -> NDArray[np.int32]:
        """Split `stretches` into one range per block: first edge, last edge + 1."""
        found = []
        for first, last in self.stretches(level, forward):
            begin = np.arange(first, last, block)
            found.append(np.stack([begin, np.minimum(begin + block, last)], axis=1))
        return np.concatenate([np.zeros((0, 2), int), *found]).astype(np.int32)
