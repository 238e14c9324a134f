"""An order of the nodes, cut into levels of independent nodes and blocks of like messages."""

from __future__ import annotations

from typing import Any, NamedTuple


class Schedule(NamedTuple):
    """What one pass over the graph does, level by level; built by `softmap.algorithms.order`.

    Nodes of one level share no edge. Edges between the same two levels, of one group, one
    orientation and one pair of label counts, are taken sixteen at a time as *tiles*: message x of
    lane k lies at `msg_at + 16 x + k`, so that one SIMD instruction serves many edges. Edges left
    over are blocks of their own, with their labels side by side.

    Row b of `blocks` is (kind, group, orientation, early labels, late labels, lanes, message,
    table, lane): the end in the earlier level has its messages at `message`, the later end right
    behind; `orientation` is the side of the edge that the earlier end is. `lane` points into the
    lane arrays: `edge`, where the ends' costs lie in node arrays by level (`early_at`, `late_at`),
    `weight`, `truncation`. Lanes without an edge point at a spare node whose costs are 0.

    `forward` lists the blocks by level of their early end, `backward` by their late end, each cut
    by its `..._start`. `nodes` are in level order, cut by `level_start`; `place` says where the
    messages into each node lie (`message`, `stride`), by the rows `pull_start`.
    """

    level_start: Any
    nodes: Any
    node_at: Any
    share: Any
    pull_start: Any
    pull_at: Any
    pull_stride: Any
    blocks: Any
    edge: Any
    early_at: Any
    late_at: Any
    weight: Any
    truncation: Any
    table: Any
    forward_start: Any
    forward: Any
    forward_ends: Any
    backward_start: Any
    backward: Any
    backward_ends: Any
    half_at: Any
    half_stride: Any


# columns of `Schedule.blocks`
KIND, GROUP, ORIENTATION, EARLY, LATE, COUNT, MESSAGE, TABLE_AT, LANE = range(9)
