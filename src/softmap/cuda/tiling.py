"""Nodes in tiles of 32 that are alike, by level: what one warp of a GPU works on.

Nodes of one *level* share no edge. A *tile* is up to 32 nodes of a level with the same number of
labels and of half-edges to earlier and to later levels; the j-th half-edges of its nodes are a
*group* of 32 *slots* (see ``src/core/cuda/arena.hpp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model
from softmap.model.grids import grid_width

__all__ = ["LANES", "TILE", "Tiling", "levels_of"]

Ints = NDArray[np.int64]

LANES = 32
CYCLE = 16  # levels of a grid: more of them converge no better, and are less wide
MOST_LEVELS = 12  # of the natural order; a graph with more of them, and cycles, is coloured
DEEPEST = 1024  # levels of the natural order of any graph that is not
FEW_LEVELS = 12  # up to which nodes are sorted by the levels of their neighbours, too
HALVES = 65536  # half-edges in one direction that a node of a ragged tile has at most
NEAR = 0.5  # part of the edges whose ends lie side by side, from which on labels are spread

TILE = np.dtype(
    [
        ("unary", np.int64), ("message", np.int64), ("group", np.int32), ("labels", np.int32),
        ("width", np.int32), ("early", np.int32), ("late", np.int32), ("used", np.int32),
        ("share", np.float64),
    ]
)  # fmt: skip


def levels_of(model: Model, xp: Any = np) -> Ints:
    """The level of each node: wide ones, since a GPU works on a level at a time.

    Grids go by cyclic diagonals, other graphs in the order of the CPU solver. Where that has many
    levels and the graph many cycles, colours converge alike, and are fewer.
    """
    width = grid_width(xp.asarray(model.edges))
    if width is not None:
        node = xp.arange(model.n)
        cyclic: Ints = (node // width + node % width) % CYCLE
        return cyclic
    level = model.graph.levels(np.arange(model.n)).astype(np.int64)
    levels = int(level.max(initial=0)) + 1
    if levels > DEEPEST or (levels > MOST_LEVELS and model.m >= 2 * model.n):
        level = model.graph.colouring().astype(np.int64)
    found: Ints = xp.asarray(level)
    return found


@dataclass(frozen=True, eq=False)
class Tiling:
    """Tiles, slots, and where everything lies; what grows with the edges may be on a device.

    Attributes
    ----------
    tiles : TILE[tiles]
    level_start : int64[levels + 1]
        Where the tiles of each level begin.
    place : int64[n]
        Tile · 32 + lane of each node.
    slot : int64[2m]
        Of each half-edge.
    mate : uint32[slots]
        The slot of the other half-edge of the same edge; 0 where a lane is not used.
    group_tile : int32[slots / 32]
    halves : uint32[32 tiles]
        Half-edges to earlier and (times 65536) to later levels of each place, of ragged tiles.
    spread : bool
        Whether equal labels of a group lie side by side, or the labels of each slot.
    ragged : bool
        Whether nodes of a tile may differ in the number of their half-edges.
    cost_size, message_size : int
        Lengths of arrays by node state and of messages.
    ranked : bool
        Whether a rank was given: then it is part of a larger model, with a halo.
    """

    tiles: NDArray[np.void]
    level_start: Ints
    place: Ints
    slot: Ints
    mate: NDArray[np.uint32]
    group_tile: NDArray[np.int32]
    halves: NDArray[np.uint32]
    spread: bool
    ragged: bool
    cost_size: int
    message_size: int
    ranked: bool

    @classmethod
    def of(
        cls, model: Model, level: Ints | None = None, *, xp: Any = np, ragged: bool = False,
        rank: Ints | None = None,
    ) -> Tiling:  # fmt: skip
        """The tiling of a model, for levels that no edge stays within; arrays are made by `xp`.

        `rank` says which end of an edge is the earlier one where levels do not.
        """
        level = levels_of(model, xp) if level is None else xp.asarray(level)
        node = xp.asarray(model.edges).reshape(-1).astype(np.int64)
        far = xp.ascontiguousarray(node.reshape(-1, 2)[:, ::-1]).reshape(-1)
        turn = level if rank is None else xp.asarray(rank)
        later = turn[far] > turn[node]
        early, late = (xp.bincount(node[side], minlength=model.n) for side in (~later, later))
        labels = xp.asarray(model.num_labels)
        order, tile_of, lane = _tiles(
            level, labels, early, late, _Order(ragged, _surroundings(level, node, far, xp), xp)
        )
        place = xp.empty(model.n, dtype=np.int64)
        place[order] = tile_of * LANES + lane
        first = order[lane == 0]
        count = len(first)
        tiles = np.zeros(count, TILE)
        rich = [_greatest(part, place, count, xp) for part in (early, late)]
        tiles["labels"] = _here(labels[first])
        tiles["early"], tiles["late"] = map(_here, rich)
        tiles["used"] = _here(xp.bincount(tile_of, minlength=count))
        degree = tiles["early"].astype(np.int64) + tiles["late"]
        tiles["group"] = _begins(degree)
        turns = _ranks(_direction(level, node, far, later, xp), node, model.n, xp)
        tile = place[node] // LANES
        turns = xp.where(later, turns - early[node] + rich[0][tile], turns)
        slot = (xp.asarray(tiles["group"].astype(np.int64))[tile] + turns) * LANES
        slot += place[node] % LANES
        mate = xp.zeros(int(degree.sum()) * LANES, dtype=np.uint32)
        mate[slot] = xp.ascontiguousarray(slot.reshape(-1, 2)[:, ::-1]).reshape(-1)
        near = int(xp.count_nonzero(xp.diff(mate.view(np.int32)) == 1))
        spread = near >= NEAR * 2 * model.m
        _arrange(tiles, spread)
        levels = int(level.max()) + 1 if model.n else 0
        halves = xp.zeros(count * LANES if ragged else 1, dtype=np.uint32)
        if ragged:
            halves[place] = early + HALVES * late
        return cls(
            tiles=tiles,
            level_start=np.searchsorted(_here(level[first]), np.arange(levels + 1)),
            place=place,
            slot=slot,
            mate=mate,
            group_tile=np.repeat(np.arange(count, dtype=np.int32), degree),
            halves=halves,
            spread=spread,
            ragged=ragged,
            cost_size=int((tiles["labels"].astype(np.int64) * LANES).sum()),
            message_size=int((degree * tiles["width"] * LANES).sum()),
            ranked=rank is not None,
        )


def _here(array: Any) -> NDArray[Any]:
    """An array of a device, or of the host, on the host."""
    fetched: NDArray[Any] = array.get() if hasattr(array, "get") else array
    return fetched


def _begins(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


def _greatest(values: Ints, place: Ints, count: int, xp: Any) -> Ints:
    """The greatest value among the nodes of each tile."""
    lanes = xp.zeros(count * LANES, dtype=np.int64)
    lanes[place] = values
    most: Ints = lanes.reshape(-1, LANES).max(axis=1)
    return most


def _surroundings(level: Ints, node: Ints, far: Ints, xp: Any) -> Ints | None:
    """A number for how many neighbours each node has in each level; None where levels are many.

    Nodes that agree lie together: then the 32 messages of a group come from one level, and are
    written at about the same time.
    """
    levels = int(level.max()) + 1 if len(level) else 1
    degree = int(xp.bincount(node, minlength=1).max()) + 1
    if levels > FEW_LEVELS or degree**levels >= 1 << 62:
        return None
    weight = xp.asarray(float(degree) ** np.arange(levels))
    found: Ints = xp.bincount(node, weights=weight[level[far]], minlength=len(level))
    return found.astype(np.int64)


@dataclass(frozen=True)
class _Order:
    """How nodes of one level are ordered: whether edges decide about tiles, and what comes last."""

    ragged: bool
    around: Ints | None
    xp: Any


def _tiles(
    level: Ints, labels: Ints, early: Ints, late: Ints, how: _Order
) -> tuple[Ints, Ints, Ints]:
    """Nodes in the order of tiles, with the tile and the lane of each."""
    xp, key = how.xp, level.astype(np.int64)
    if not len(key):
        return key, key, key
    for part in (labels, *(() if how.ragged else (early, late))):
        key = key * (int(part.max()) + 1) + part
    last = late * (int(early.max()) + 1) + early if how.ragged else how.around
    order = xp.argsort(key, kind="stable") if last is None else xp.lexsort(xp.stack([last, key]))
    ordered = key[order]
    new = xp.ones(len(order), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    begin = xp.flatnonzero(new)
    within = xp.arange(len(order)) - begin[xp.cumsum(new) - 1]
    return order, xp.cumsum(within % LANES == 0) - 1, within % LANES


def _direction(level: Ints, node: Ints, far: Ints, later: NDArray[np.bool_], xp: Any) -> Ints:
    """What orders the half-edges of a node: earlier ends first, by level, then by neighbour."""
    n = len(level)
    levels = int(level.max()) + 1 if n else 1
    found: Ints = (later * levels + level[far]) * (2 * n + 1) + (far - node + n)
    return found


def _ranks(direction: Ints, node: Ints, n: int, xp: Any) -> Ints:
    """The number of each half-edge among those of its node, by direction."""
    order = xp.lexsort(xp.stack([direction, node]))
    start = xp.zeros(n + 1, dtype=np.int64)
    xp.cumsum(xp.bincount(node, minlength=n), out=start[1:])
    rank = xp.empty(len(node), dtype=np.int64)
    rank[order] = xp.arange(len(node)) - start[node[order]]
    return rank


def _arrange(tiles: NDArray[np.void], spread: bool) -> None:
    """Where costs and messages of each tile begin, and the share of each chain."""
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
