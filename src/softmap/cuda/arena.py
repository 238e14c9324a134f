"""A model on a device: its tiles, costs and edges, as the kernels read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.cuda.devices import Device
from softmap.cuda.shapes import SHARED, Shape, shape_of
from softmap.cuda.tiling import LANES, Tiling
from softmap.errors import OptionError
from softmap.model import Model

__all__ = ["Arena"]

Ints = NDArray[np.int64]


class Arena:
    """The arrays of one model on a device, and the kernels of its shape.

    Attributes
    ----------
    shape : Shape
        What kernels over all tiles are compiled for.
    arguments : list
        The arrays that every kernel begins with.
    threads : int
        Of a kernel that visits all nodes.
    """

    def __init__(self, model: Model, device: Device, dtype: str) -> None:
        self.model, self.device, self.dtype = model, device, dtype
        self.tiling = Tiling.of(model)
        self.shape = shape_of(model, self.tiling, dtype)
        if not device.offers(self.shape):
            widest = getattr(device, "general", self.shape.labels)
            self.shape = Shape(dtype, -1, widest, 0, 0, 0, True, False)
            if not self.tiling.spread:
                self.tiling = _spread(self.tiling)
        if model.num_labels.max() > self.shape.labels:
            raise OptionError(f"{device.name}: kernels for {self.shape.labels} labels at most")
        self.tiles = len(self.tiling.tiles)
        self.threads = self.tiles * LANES
        self.blocks = max(1, -(-self.threads // device.block))
        self._check_room()
        self._offsets: tuple[Any, Any] | None = None
        self.arguments = self._uploaded()
        if self.shape.kind == core.KINDS.index("tables"):
            self._arrange_tables()

    def kernel(self, name: str, *more: str) -> str:
        """The name of a kernel for this shape."""
        return f"{name}<{', '.join([self.shape.name, *more])}>"

    def run(self, name: str, *arguments: Any) -> None:
        """Launch a kernel over all nodes; its last argument is the number of tiles."""
        self.device.launch(name, self.threads, [*self.arguments, *arguments, self.tiles])

    def bytes_needed(self) -> int:
        """What a run takes up on the device, costs and messages included."""
        item = np.dtype(self.dtype).itemsize
        slots, costs = len(self.tiling.mate), self.tiling.cost_size
        tables = self._table_size() * item + 8 * sum(
            a.size for p in self.model.potentials for a in p.arrays().values()
        )
        return int(
            5 * self.tiling.message_size * item  # messages, before, polished, and the best of two
            + costs * (8 + item + 4 + 3 * 8)
            + slots * (4 + 4 + 8 * 5)
            + tables
        )

    def _check_room(self) -> None:
        room, needed = self.device.room(), self.bytes_needed()
        if room is not None and needed > room:
            raise OptionError(
                f"backend='cuda': this model needs {needed:,} bytes on the device, and {room:,} "
                f"are free on {self.device.name}"
            )

    def _table_size(self) -> int:
        shape = self.shape
        if shape.kind != core.KINDS.index("tables"):
            return 1
        size = shape.labels**2
        room = size if shape.spread or size % 4 == 0 else size + 4 - size % 4
        return len(self.tiling.mate) * room

    def _uploaded(self) -> list[Any]:
        """The arrays of `SOFTMAP_ARENA_PARAMETERS` in ``src/core/cuda/arena.hpp``."""
        put, tiling, model = self.device.upload, self.tiling, self.model
        dtype = np.dtype(self.dtype)
        unary = _by_tile(model, tiling)
        narrow = np.where(np.isfinite(unary), unary, np.inf).astype(dtype)
        edges = _by_slot(model, tiling)
        general = self.shape.kind < 0
        none = put(np.zeros(1, dtype=np.int64))
        keep = {
            "weight": True,
            "cut": general or self.shape.kind in (2, 3),
            "kind": general,
            "side": True,
            "reach": general or self.shape.kind in (2, 3),
            "place": general or self.shape.kind in (0, SHARED),
        }
        by_slot = {name: put(edges[name]) if keep[name] else none for name in keep}
        self.arranged = self.device.zeros(self._table_size(), dtype)
        return [
            put(tiling.tiles), put(unary), put(narrow), put(tiling.mate), put(tiling.group_tile),
            by_slot["weight"], by_slot["cut"], self.arranged, by_slot["kind"], by_slot["side"],
            by_slot["reach"], by_slot["place"], put(edges["table"]), put(edges["maps"]),
        ]  # fmt: skip

    def _arrange_tables(self) -> None:
        name = self.kernel("arrange")
        self.device.prepare([name])
        self.run(name, self.arranged)

    def offsets(self) -> tuple[Any, Any]:
        """Where each slot's and each node's labels begin in the order of the model."""
        if self._offsets is None:
            half = np.zeros(max(len(self.tiling.mate), 1), dtype=np.int64)
            half[self.tiling.slot] = self.model.half_offset[:-1]
            node = np.zeros(self.threads, dtype=np.int64)
            node[self.tiling.place] = self.model.node_offset[:-1]
            self._offsets = self.device.upload(half), self.device.upload(node)
        return self._offsets


def _spread(tiling: Tiling) -> Tiling:
    """The same tiles with equal labels side by side."""
    from softmap.cuda.tiling import _arrange

    tiles = tiling.tiles.copy()
    _arrange(tiles, True)
    degree = tiles["early"].astype(np.int64) + tiles["late"]
    size = int((degree * tiles["width"] * LANES).sum())
    return replace(tiling, tiles=tiles, spread=True, message_size=size)


def _by_tile(model: Model, tiling: Tiling) -> NDArray[np.float64]:
    """Costs of the nodes in the order of tiles; lanes without a node cost nothing."""
    out = np.zeros(max(tiling.cost_size, 1))
    begin = tiling.tiles["unary"][tiling.place // LANES] + tiling.place % LANES
    node = np.repeat(np.arange(model.n), model.num_labels)
    label = np.arange(len(node)) - model.node_offset[node]
    out[begin[node] + label * LANES] = model.unary
    return out


def _by_slot(model: Model, tiling: Tiling) -> dict[str, NDArray[Any]]:
    """What the edges of all slots are, from both ends; and the tables and maps themselves."""
    slots = max(len(tiling.mate), 1)
    out: dict[str, NDArray[Any]] = {
        "weight": np.ones(slots), "cut": np.zeros(slots), "kind": np.zeros(slots, np.uint8),
        "side": np.zeros(slots, np.uint8), "reach": np.ones(slots, np.int32),
        "place": np.zeros(slots, np.int64),
    }  # fmt: skip
    out["side"][tiling.slot[1::2]] = 1
    tables: list[NDArray[Any]] = [np.zeros(1)]
    maps: list[NDArray[Any]] = [np.zeros(1, np.int32)]
    for first, last, potential in model.groups():
        rows, cols = model.end_labels(first, last)
        data = potential.kernel_data(rows, cols)
        both = tiling.slot.reshape(-1, 2)[first:last]
        out["kind"][both] = core.KINDS.index(data.kind)
        if data.weight is not None:
            out["weight"][both] = np.asarray(data.weight)[:, None]
        if data.truncation is not None:
            out["cut"][both] = np.asarray(data.truncation)[:, None]
            out["reach"][both] = potential.tile_key(rows, cols)[:, None]
        own = tables if data.table is not None else maps
        begin = sum(map(len, own))
        each = data.offset if data.offset is not None else data.stride * np.arange(last - first)
        out["place"][both] = (begin + np.asarray(each))[:, None]
        if data.table is not None:
            tables.append(data.table)
        if data.maps is not None:
            maps.append(data.maps)
    return out | {"table": np.concatenate(tables), "maps": np.concatenate(maps).astype(np.int32)}
