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

    def __init__(
        self, model: Model, device: Device, dtype: str, tiling: Tiling | None = None
    ) -> None:
        self.model, self.device, self.dtype = model, device, dtype
        self.tiling = tiling or Tiling.of(model)
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
        self._arrange_costs()
        if self._tables:
            self._arrange_tables()

    @property
    def _tables(self) -> bool:
        return self.shape.kind == core.KINDS.index("tables")

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
        both = item if self.shape.exact or not self._tables else item + 8
        tables = self._table_size() * both + 8 * sum(
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
        return len(self.tiling.mate) * self.shape.labels**2 if self._tables else 1

    def _uploaded(self) -> list[Any]:
        """The arrays of `SOFTMAP_ARENA_PARAMETERS` in ``src/core/cuda/arena.hpp``."""
        put, tiling, model = self.device.upload, self.tiling, self.model
        dtype = np.dtype(self.dtype)
        unary = self.device.zeros(tiling.cost_size, np.float64)
        narrow = self.device.zeros(tiling.cost_size, dtype)
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
        exact = not self._tables or self.shape.exact
        self.arranged_exact = self.device.zeros(1 if exact else self._table_size(), np.float64)
        return [
            put(tiling.tiles), unary, narrow, put(tiling.mate), put(tiling.group_tile),
            by_slot["weight"], by_slot["cut"], self.arranged, self.arranged_exact, by_slot["kind"],
            by_slot["side"], by_slot["reach"], by_slot["place"], put(edges["table"]),
            put(edges["maps"]),
        ]  # fmt: skip

    def _arrange_costs(self) -> None:
        """Costs of the nodes in the order of tiles, in both precisions."""
        given = self.device.upload(self.model.unary)
        narrow = {"float32": "float", "float64": "double"}[self.dtype]
        names = [self.kernel("node_order", kind) for kind in ("double", narrow)]
        self.device.prepare(names)
        for name, array in zip(names, self.arguments[1:3], strict=True):
            self.run(name, self.offsets()[1], array, given, 0)
        self.device.synchronize()

    def _arrange_tables(self) -> None:
        """Tables as slots read them; what was uploaded for that is not needed any more."""
        number = {"float32": "float", "float64": "double"}[self.dtype]
        name, exact = self.kernel("arrange", number), self.kernel("arrange", "double")
        self.device.prepare([name, exact])
        self.run(name, self.arranged)
        if not self.shape.exact:
            self.run(exact, self.arranged_exact)
        self.device.synchronize()
        self.arguments[-2] = self.arguments[-1]

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
