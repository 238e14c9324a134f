"""An order of the nodes, cut into levels of independent nodes and blocks of like messages."""

from __future__ import annotations

from typing import Any, NamedTuple

from softmap.kernels.vectors import LANES


class Schedule(NamedTuple):
    """What one pass over the graph does, level by level; built by `softmap.algorithms.order`.

    Nodes of one level share no edge. Those with equally many labels form *strips*, in which cost x
    of node k lies at `place + step x + k`; so do edges between the same two levels that are alike
    in group, orientation, label counts and reach. `LANES` edges of a strip are a *tile*: one SIMD
    instruction serves them all. Edges left over are blocks of their own, with their labels side by
    side (a step of 1).

    Row b of `blocks` is (kind, group, orientation, early labels, late labels, reach, lanes, message
    into the early end, into the late end, step, table, lane, straight early, straight late);
    `orientation` is the side of the edge that the earlier end is. Messages into early ends come
    first in an array of messages, then those into late ends. Costs of the label difference are
    constant from `reach` on, and their exponents are at most η `steepest[b]`. `lane` points into
    the lane arrays: `edge`, where the ends' costs lie in arrays by strip (`early_at`,
    `early_step`, ...), `weight`, `ceiling` (the cost of far labels). Lanes without an edge point at
    a spare number 0. An end is straight if all its lanes lie side by side.

    `forward` lists the blocks by level of their early end, `backward` by their late end, each cut
    by its `..._start`. `nodes` are in the order of strips. The costs of node i lie at `node_at[i]`,
    `node_step[i]`, those of the model itself in `unary`. For the k-th of `nodes`, `share[k]` is
    1 / n_i, and the messages into it lie at `pull_at`, `pull_step` from `pull_start[k]` on. `rows`
    are runs of up to `LANES` nodes of one strip and degree (first, nodes, labels, degree, place,
    step, way), cut into levels by `row_start`.
    """

    row_start: Any
    rows: Any
    nodes: Any
    node_at: Any
    node_step: Any
    unary: Any
    share: Any
    pull_start: Any
    pull_at: Any
    pull_step: Any
    blocks: Any
    edge: Any
    early_at: Any
    early_step: Any
    late_at: Any
    late_step: Any
    weight: Any
    ceiling: Any
    steepest: Any
    table: Any
    forward_start: Any
    forward: Any
    forward_ends: Any
    backward_start: Any
    backward: Any
    backward_ends: Any
    half_at: Any
    half_step: Any


# columns of `Schedule.blocks`
KIND, GROUP, ORIENTATION, EARLY, LATE, REACH = range(6)
COUNT, EARLY_AT, LATE_AT, STEP, TABLE_AT, LANE, STRAIGHT_EARLY, STRAIGHT_LATE = range(6, 14)
# columns of `Schedule.rows`
FIRST, NODES, LABELS, DEGREE, PLACE, ROW_STEP, WAY = range(7)
# ways to collect the messages into a row's nodes: one node alone, lane by lane, side by side
ALONE, GATHERED, STRAIGHT = range(3)


def cost_size(plan: Schedule) -> int:
    """Length of an array of costs by strip, with a spare 0 that idle lanes look at."""
    ends = plan.rows[:, PLACE] + plan.rows[:, LABELS] * plan.rows[:, ROW_STEP]
    return int(ends.max()) + 1 + LANES


def message_size(plan: Schedule) -> int:
    """Length of an array of messages, with room for a vector that begins at the last of them."""
    ends = plan.blocks[:, LATE_AT] + plan.blocks[:, LATE] * plan.blocks[:, STEP]
    return int(ends.max(initial=0)) + LANES


def back_size(plan: Schedule) -> int:
    """Length of the part that holds the messages into early ends."""
    return int(plan.blocks[:, LATE_AT].min()) if len(plan.blocks) else 0
