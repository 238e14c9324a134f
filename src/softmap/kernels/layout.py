"""The flat arrays of a model that every kernel takes as its first argument."""

from __future__ import annotations

from typing import Any, NamedTuple


class Layout(NamedTuple):
    """Nodes, half-edges and edge costs as arrays; built by `softmap.layout.layout`.

    Edge `e` of group `g` reads `weight[weight_at[g] + k]`, `truncation[truncation_at[g] + k]` and
    its table (or map) from `table_at[g] + (offset[offset_at[g] + k] or stride[g] * k)`, where
    `k = e - group_start[g]`; a negative `..._at` says that the group has none.
    """

    node: Any
    num_labels: Any
    node_offset: Any
    half_offset: Any
    unary: Any
    start: Any
    half: Any
    group_start: Any
    kind: Any
    weight: Any
    weight_at: Any
    truncation: Any
    truncation_at: Any
    offset: Any
    offset_at: Any
    stride: Any
    table: Any
    maps: Any
    table_at: Any
