"""Nodes in tiles of 32 that are alike, by level: what one warp of a GPU works on.

Nodes of one *level* share no edge. A *tile* is up to 32 nodes of a level with the same number of
labels and of half-edges to earlier and to later levels; the j-th half-edges of its nodes are a
*group* of 32 *slots* (see ``src/core/cuda/arena.hpp``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model
from softmap.model.graph import Graph

__all__ = ["LANES", "TILE", "Tiling", "grid_width", "levels_of"]

Ints = NDArray[np.int64]

LANES = 32
CYCLE = 16  # levels of a grid: more of them converge no better, and are less wide
MOST_LEVELS = 12  # of the natural order; a graph with more of them, and cycles, is coloured
DEEPEST = 1024  # levels of the natural order of any graph that is not
FEW_LEVELS = 12  # up to which nodes are sorted by the levels of their neighbours, too
FEW_HALVES = 16  # of a node, up to which they are sorted node by node
NEAR = 0.5  # part of the edges whose ends lie side by side, from which on labels are spread

TILE = np.dtype(
    [
        ("unary", np.int64), ("message", np.int64), ("group", np.int32), ("labels", np.int32),
        ("width", np.int32), ("early", np.int32), ("late", np.int32), ("used", np.int32),
        ("share", np.float64), ("forward_ends", np.float64), ("backward_ends", np.float64),
    ]
)  # fmt: skip


def grid_width(model: Model) -> int | None:
    """Columns of a grid numbered row by row whose edges join neighbours; None for other graphs."""
    if not model.m:
        return None
    low = model.edges.min(axis=1).astype(np.int64)
    step = model.edges.max(axis=1) - low
    width = int(step.max())
    if width < 2 or not ((step == 1) | (step == width)).all():
        return None
    crosses = (step == 1) & (low % width == width - 1)
    return None if crosses.any() else width


def levels_of(model: Model) -> Ints:
    """The level of each node: wide ones, since a GPU works on a level at a time.

    Grids go by cyclic diagonals, other graphs in the order of the CPU solver. Where that has many
    levels and the graph many cycles, colours converge alike, and are fewer.
    """
    width = grid_width(model)
    if width is not None:
        node = np.arange(model.n)
        return (node // width + node % width) % CYCLE
    level = model.graph.levels(np.arange(model.n)).astype(np.int64)
    levels = int(level.max(initial=0)) + 1
    if levels > DEEPEST or (levels > MOST_LEVELS and model.m >= 2 * model.n):
        level = model.graph.colouring().astype(np.int64)
    return level


@dataclass(frozen=True, eq=False)
class Tiling:
    """Tiles, slots, and where everything lies.

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
    spread : bool
        Whether equal labels of a group lie side by side, or the labels of each slot.
    cost_size, message_size : int
        Lengths of arrays by node state and of messages.
    """

    tiles: NDArray[np.void]
    level_start: Ints
    place: Ints
    slot: Ints
    mate: NDArray[np.uint32]
    group_tile: NDArray[np.int32]
    spread: bool
    cost_size: int
    message_size: int

    @classmethod
    def of(cls, model: Model, level: Ints | None = None) -> Tiling:
        """The tiling of a model, for levels that no edge stays within."""
        level = levels_of(model) if level is None else level
        node = model.graph.node.astype(np.int64)
        far = node.reshape(-1, 2)[:, ::-1].reshape(-1)
        later = level[far] > level[node]
        early = np.bincount(node[~later], minlength=model.n)
        late = np.bincount(node[later], minlength=model.n)
        around = _surroundings(level, node, far)
        order, tile_of, lane = _tiles(level, model.num_labels, early, late, around)
        place = np.empty(model.n, dtype=np.int64)
        place[order] = tile_of * LANES + lane
        first = order[lane == 0]
        tiles = np.zeros(len(first), TILE)
        tiles["labels"], tiles["early"], tiles["late"] = (
            a[first] for a in (model.num_labels, early, late)
        )
        tiles["used"] = np.bincount(tile_of, minlength=len(first))
        degree = tiles["early"].astype(np.int64) + tiles["late"]
        tiles["group"] = _begins(degree)
        direction = _direction(level, node, far, later)
        slot = _slots(model.graph, direction, place, tiles["group"].astype(np.int64))
        mate = np.zeros(int(degree.sum()) * LANES, dtype=np.uint32)
        mate[slot] = slot.reshape(-1, 2)[:, ::-1].reshape(-1)
        near = np.count_nonzero(np.diff(mate.view(np.int32)) == 1)
        spread = bool(near >= NEAR * 2 * model.m)
        _arrange(tiles, spread)
        levels = int(level.max(initial=-1)) + 1
        return cls(
            tiles=tiles,
            level_start=np.searchsorted(level[first], np.arange(levels + 1)).astype(np.int64),
            place=place,
            slot=slot,
            mate=mate,
            group_tile=np.repeat(np.arange(len(tiles), dtype=np.int32), degree),
            spread=spread,
            cost_size=int((tiles["labels"].astype(np.int64) * LANES).sum()),
            message_size=int((degree * tiles["width"] * LANES).sum()),
        )


def _begins(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


def _surroundings(level: Ints, node: Ints, far: Ints) -> Ints:
    """A number for how many neighbours each node has in each level; 0 where levels are many.

    Nodes that agree lie together: then the 32 messages of a group come from one level, and are
    written at about the same time.
    """
    n, levels = len(level), int(level.max(initial=0)) + 1
    degree = int(np.bincount(node, minlength=1).max()) + 1
    if levels > FEW_LEVELS or degree**levels >= 1 << 62:
        return np.zeros(n, dtype=np.int64)
    weight = degree ** np.arange(levels, dtype=np.int64)
    return np.bincount(node, weights=weight[level[far]], minlength=n).astype(np.int64)


def _tiles(
    level: Ints, labels: Ints, early: Ints, late: Ints, around: Ints
) -> tuple[Ints, Ints, Ints]:
    """Nodes in the order of tiles, with the tile and the lane of each."""
    key = level.astype(np.int64)
    for part in (labels, early, late):
        key = key * (int(part.max(initial=0)) + 1) + part
    order = np.lexsort((around, key)) if around.any() else np.argsort(key, kind="stable")
    ordered = key[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    begin = np.flatnonzero(new)
    within = np.arange(len(order)) - begin[np.cumsum(new) - 1]
    starts = within % LANES == 0
    return order, np.cumsum(starts) - 1, within % LANES


def _direction(level: Ints, node: Ints, far: Ints, later: NDArray[np.bool_]) -> Ints:
    """What orders the half-edges of a node: earlier ends first, by level, then by neighbour."""
    n, levels = len(level), int(level.max(initial=0)) + 1
    return (later * levels + level[far]) * (2 * n + 1) + (far - node + n)


def _slots(graph: Graph, direction: Ints, place: Ints, group: Ints) -> Ints:
    """The slot of each half-edge: those of a node by direction."""
    half, degree = graph.half, graph.degree
    node = np.repeat(np.arange(len(degree)), degree)
    widest = int(degree.max(initial=0))
    if widest <= FEW_HALVES:  # rows of a matrix are sorted much faster than all at once
        within = np.arange(len(half)) - np.repeat(graph.start[:-1], degree)
        rows = np.full((len(degree), widest), np.iinfo(np.int64).max)
        rows[node, within] = direction[half]
        order = np.argsort(rows, axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(widest)[None, :], axis=1)
        rank = rank[node, within]
    else:
        order = np.lexsort((direction[half], node))
        half = half[order]
        rank = np.arange(len(half)) - np.repeat(graph.start[:-1], degree)
    slot = np.empty(len(half), dtype=np.int64)
    at = place[node]
    slot[half] = (group[at // LANES] + rank) * LANES + at % LANES
    return slot


def _arrange(tiles: NDArray[np.void], spread: bool) -> None:
    """Where costs and messages of each tile begin, and what it has of the chains."""
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
    tiles["forward_ends"], tiles["backward_ends"] = chains - late, chains - early
