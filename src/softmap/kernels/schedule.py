"""An order of the nodes, cut into levels of independent nodes and batches of like messages."""

from __future__ import annotations

from typing import Any, NamedTuple


class Schedule(NamedTuple):
    """What one pass over the graph does, level by level; built by `softmap.algorithms.order`.

    Nodes of one level share no edge. The messages a level sends onwards are sorted into batches:
    one group of edges, one direction along the edge, one pair of label counts, so that a batch is a
    plain loop. `forward` batches send to later levels, `backward` ones to earlier levels.

    `level_start` cuts `nodes`; `position` is a node's place within its level. Row b of
    `forward` (and `backward`) is (group, side of the sender, sending labels, receiving labels,
    first, last): the sending half-edges are `forward_half[first:last]`, by position of the sender.
    `share[i]` is one over the number of chains through node i, `forward_ends[i]` how many of
    them end there in the forward direction (`backward_ends` likewise).
    """

    level_start: Any
    nodes: Any
    position: Any
    share: Any
    forward_start: Any
    forward: Any
    forward_half: Any
    forward_ends: Any
    backward_start: Any
    backward: Any
    backward_half: Any
    backward_ends: Any
