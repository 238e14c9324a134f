"""Conversion of a `Network` to the flat arrays that the compiled kernels read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import ModelError
from softmap.model.network import Network
from softmap.model.potentials.base import is_one_value


def layout(model: Network) -> Any:
    """Return the model's arrays for the kernels, a `core.Layout`; computed once per model."""
    found = model.__dict__.get("_layout")
    if found is None:
        graph = model.graph
        arrays = cost_arrays(model) | {"start": graph.start, "half": graph.half}
        found = model.__dict__["_layout"] = core.Layout(arrays)
        model.__dict__.pop("_cost_layout", None)
    return found


def cost_layout(model: Network) -> Any:
    """Return the arrays for loops over all nodes and edges, a `core.Layout`.

    It has no half-edges of a node (`start` and `half` are zeros): to sort them takes longer than
    the first bound and labels of a large model. If they are known, this is `layout`.
    """
    if "graph" in model.__dict__:
        return layout(model)
    found = model.__dict__.get("_cost_layout")
    if found is None:
        none = {  # nobody reads or writes them, so that they take no memory
            "start": np.zeros(model.n + 1, dtype=np.int64),
            "half": np.zeros(2 * model.m, dtype=np.int32),
        }
        found = model.__dict__["_cost_layout"] = core.Layout(cost_arrays(model) | none)
    return found


def _kind(name: str) -> int:
    if name not in core.KINDS:
        raise ModelError(
            f"no compiled kernel reads potentials of kind {name!r}; "
            f"there are {', '.join(core.KINDS)}"
        )
    return core.KINDS.index(name)


def cost_arrays(model: Network) -> dict[str, NDArray[Any]]:
    """Return all arrays but those of the graph, by name; computed once per model."""
    found: dict[str, NDArray[Any]] | None = model.__dict__.get("_cost_arrays")
    if found is None:
        found = {name: np.ascontiguousarray(a) for name, a in _arrays(model).items()}
        model.__dict__["_cost_arrays"] = found
    return found


def _arrays(model: Network) -> dict[str, NDArray[Any]]:
    data = [p.kernel_data(*model.end_labels(first, last)) for first, last, p in model.groups()]
    double = np.dtype(np.float64)
    weight, weight_at, weight_step = _parameters([d.weight for d in data])
    truncation, truncation_at, truncation_step = _parameters([d.truncation for d in data])
    offset, offset_at = _join([d.offset for d in data], np.dtype(np.int64))
    table, in_table = _join([d.table for d in data], double)
    maps, in_maps = _join([d.maps for d in data], np.dtype(np.int32))
    return {
        "node": model.edges.reshape(-1),
        "num_labels": model.num_labels[:1] if model.is_even else model.num_labels,
        "node_offset": np.zeros(0, dtype=np.int64) if model.is_even else model.node_offset,
        "half_offset": np.zeros(0, dtype=np.int64) if model.is_even else model.half_offset,
        "unary": model.unary,
        "group_start": model.group_start,
        "kind": np.array([_kind(d.kind) for d in data], dtype=np.int64),
        "weight": weight,
        "weight_at": weight_at,
        "weight_step": weight_step,
        "truncation": truncation,
        "truncation_at": truncation_at,
        "truncation_step": truncation_step,
        "offset": offset,
        "offset_at": offset_at,
        "stride": np.array([d.stride for d in data], dtype=np.int64),
        "table": table,
        "maps": maps,
        "table_at": np.maximum(in_table, in_maps),
    }


def _parameters(
    parts: list[NDArray[Any] | None],
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Concatenate the parts, but one entry of those whose entries are equal (see `compact`).

    Also returned are the start of each part (-1 for None), and its stride: 0 for one entry.
    """
    steps = [int(part is not None and not is_one_value(part)) for part in parts]
    kept = [p if s or p is None else p[:1] for p, s in zip(parts, steps, strict=True)]
    return *_join(kept, np.dtype(np.float64)), np.array(steps, dtype=np.int64)


def _join(
    parts: list[NDArray[Any] | None], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Concatenate the parts; return their starts (-1 for None). A single part is not copied."""
    at = np.full(len(parts), -1, dtype=np.int64)
    present = [(g, p) for g, p in enumerate(parts) if p is not None]
    place = 0
    for g, part in present:
        at[g] = place
        place += len(part)
    arrays = [p.astype(dtype, copy=False) for _, p in present]
    joined = arrays[0] if len(arrays) == 1 else np.concatenate([*arrays, np.zeros(0, dtype)])
    return joined, at
