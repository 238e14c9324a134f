"""What one pass over the graph does, level by level: the arrays the compiled loops follow.

Nodes of one *level* share no edge. Those with equally many labels form *strips*, in which cost x of
node k lies at `place + step * x + k`. Edges between the same two levels that are alike in group,
orientation, label counts and key (see `Potential.tile_key`) form strips too; `core.LANES` edges of
a strip are a *tile*, computed side by side, one in each *lane*. Edges that fill no tile are single
blocks, with their labels side by side (a step of 1).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core

__all__ = ["Column", "RowColumn", "Schedule", "Way", "aligned"]

Ints = NDArray[np.int64]
Steps = NDArray[np.int32]
Floats = NDArray[np.float64]


class Column(IntEnum):
    """Columns of `Schedule.blocks`: the members of `Block` in `src/core/base/schedule.hpp`."""

    KIND = 0
    GROUP = 1
    ORIENTATION = 2
    EARLY = 3
    LATE = 4
    KEY = 5
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


class RowColumn(IntEnum):
    """Columns of `Schedule.rows`: the members of `Row` in `src/core/base/schedule.hpp`."""

    FIRST = 0
    NODES = 1
    LABELS = 2
    DEGREE = 3
    PLACE = 4
    STEP = 5
    WAY = 6


class Way(IntEnum):
    """How the messages into a row's nodes are collected."""

    ALONE = 0
    GATHERED = 1
    STRAIGHT = 2


@dataclass(frozen=True, eq=False)
class Schedule:
    """One order of the nodes; built by `planning`.

    Attributes
    ----------
    rank : int64[n]
        Place of each node in the order; the *early* end of an edge is the one of lower rank.
    row_start : int64[levels + 1]
        Where the rows of each level begin.
    rows : int64[rows, 7]
        Runs of up to `core.LANES` nodes of one strip and degree; see `RowColumn`.
    nodes : int64[n]
        Nodes in the order of strips.
    node_at, node_step : int64[n]
        Cost x of node i lies at `node_at[i] + x * node_step[i]` in arrays by strip.
    unary : float64[by strip]
        Costs of the nodes.
    share : float64[n + LANES]
        1 / n_i for the k-th of `nodes`, n_i being the number of chains through it.
    pull_start, pull_at, pull_step : int64[n + 1], int64[pulls], int32[pulls]
        Messages into the k-th of `nodes` lie at `pull_at`, `pull_step` from `pull_start[k]` on. In
        chain schedules, straight rows have those of their first node only.
    blocks : int64[blocks, 16]
        Tiles and single edges; see `Column`.
    edge : int64[lanes]
        Edge of each lane, -1 for lanes without one.
    early_at, late_at : int64[ends]; early_step, late_step : int32[ends]
        Where the costs of each lane's ends lie in arrays by strip; a spare 0 for idle lanes. Blocks
        whose lanes lie side by side have that of their first lane only.
    weight, truncation : float64[lanes]
        Parameters of each lane's edge, 0 where there are none; no truncation if no edge has one.
    table : float[packed tables]
        Tables of tiles, equal entries of all lanes side by side.
    forward_start, forward, forward_ends : int64[levels + 1], int64[blocks], int32[n]
        Blocks by level of their early end; chains that end at each node in this direction.
    backward_start, backward, backward_ends
        Blocks by level of their late end; likewise.

    Messages into early ends come first.
    """

    rank: Ints
    row_start: Ints
    rows: Ints
    nodes: Ints
    node_at: Ints
    node_step: Ints
    unary: Floats
    share: Floats
    pull_start: Ints
    pull_at: Ints
    pull_step: Steps
    blocks: Ints
    edge: Ints
    early_at: Ints
    early_step: Steps
    late_at: Ints
    late_step: Steps
    weight: Floats
    truncation: Floats
    table: NDArray[Any]
    forward_start: Ints
    forward: Ints
    forward_ends: Steps
    backward_start: Ints
    backward: Ints
    backward_ends: Steps

    @cached_property
    def native(self) -> Any:
        """The schedule as the compiled loops take it."""
        make = core.Schedule if self.table.dtype == np.float64 else core.SingleSchedule
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        return make({name: np.ascontiguousarray(a).reshape(-1) for name, a in arrays.items()})

    @cached_property
    def half_places(self) -> tuple[Ints, Ints]:
        """Where the message into each half-edge begins, and how far apart its entries are."""
        block = np.repeat(np.arange(len(self.blocks)), _lanes_of(self.blocks, len(self.edge)))
        used = np.flatnonzero(self.edge >= 0)
        of, edge = self.blocks[block[used]], self.edge[used]
        half = 2 * edge + of[:, Column.ORIENTATION]
        at, step = np.empty((2, 2 * len(edge)), dtype=np.int64)
        within = used - of[:, Column.LANE]
        at[half] = of[:, Column.EARLY_AT] + within
        at[half ^ 1] = of[:, Column.LATE_AT] + within
        step[half] = step[half ^ 1] = of[:, Column.STEP]
        return at, step

    @property
    def cost_size(self) -> int:
        """Length of an array of costs by strip, with a spare 0 that idle lanes look at."""
        rows = self.rows
        ends = rows[:, RowColumn.PLACE] + rows[:, RowColumn.LABELS] * rows[:, RowColumn.STEP]
        return int(ends.max()) + 1 + core.LANES

    @property
    def message_size(self) -> int:
        """Length of an array of messages, with room for a vector that begins at the last one."""
        blocks = self.blocks
        ends = blocks[:, Column.LATE_AT] + blocks[:, Column.LATE] * blocks[:, Column.STEP]
        return int(ends.max(initial=0)) + core.LANES

    @property
    def back_size(self) -> int:
        """Length of the part that holds the messages into early ends."""
        return int(self.blocks[:, Column.LATE_AT].min()) if len(self.blocks) else 0


def _lanes_of(blocks: Ints, lanes: int) -> Ints:
    """How many lanes each block has."""
    begin = blocks[:, Column.LANE]
    return np.diff(np.append(begin, lanes))


def aligned(size: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros that begin at a cache line, so that no vector lies across two."""
    item = np.dtype(dtype).itemsize
    raw = np.zeros(size + 64 // item, dtype)
    first = -raw.ctypes.data % 64 // item
    return raw[first : first + size]
