"""A model in device memory: its tiles, costs and edges, as the kernels read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.methods.cuda.devices import Device
from softmap.methods.cuda.shapes import NUMBERS, SHARED, TRUNCATED, Shape, room_of, shape_of
from softmap.methods.cuda.tiling import LANES, TileLinks, Tiling
from softmap.model import Network

Floats = NDArray[np.float64]

# `Arena` of ``src/core/cuda/arena.hpp``: addresses of the arrays, and the number of edges.
ARENA = np.dtype(
    [
        *(
            (name, np.uint64)
            for name in (
                "tiles", "unary", "unary_single", "mate", "group_tile", "weight", "cut",
                "arranged", "arranged_exact", "kind", "side", "reach", "place", "table", "maps",
                "halves", "where",
            )
        ),
        ("edges", np.int32),
    ],
    align=True,
)  # fmt: skip


class Lam(IntEnum):
    """The conversion of messages to half-edge arrays; see ``src/core/cuda/transfer.hpp``."""

    PLAIN = 0  # λ = -M
    CUT = 1  # λ of the bound: θ̂_i / n_i - M on half-edges that lead forward, else -M
    COUPLINGS = 2  # κ of the edge marginals


@dataclass(frozen=True, eq=False)
class Offsets:
    """The start of the labels of each slot and of each lane in the model's order."""

    half: Any
    node: Any


class Arena:
    """The arrays of one model on a device, and the kernels of its shape.

    Parameters
    ----------
    model : Network
    device : Device
    dtype : {"float32", "float64"}
        Precision of the messages.
    tiling : Tiling, optional
        The tiles; by default those of `Tiling.of`.
    deadline : core.Deadline, optional
        Raises `core.OutOfTime` before a step that would begin after this.

    Attributes
    ----------
    shape : Shape
        The compile-time parameters of kernels over all tiles.
    links : TileLinks or None
        Positions of messages, if they are stored by edge.
    arrays : dict
        The arrays that every kernel reads, by name.
    record : ARENA[]
        Their addresses: the first argument of every kernel.
    offsets : Offsets
        Start of the labels of each slot and lane in the model's order.
    """

    def __init__(
        self, model: Network, device: Device, dtype: str, tiling: Tiling | None = None,
        deadline: core.Deadline | None = None,
    ) -> None:  # fmt: skip
        self.model, self.device = model, device
        require = deadline.require if deadline is not None else bool
        require()
        number = NUMBERS[dtype]
        rounded = [f"rounded_apart<{number}>"] if _has_tables(model) else []
        device.prepare([*rounded, *SCATTER.values()])  # compiled while tiles are made
        with device.working():
            self.tiling, self.links = tiling or Tiling.of(model), None
            require()
            self.shape = shape_of(model, self.tiling, dtype)
            self._check_room(replace(self.shape, exact=True))
            raw = _Raw(model, device)
            require()
            if self._tables:
                self.shape = replace(self.shape, exact=raw.representable(dtype))
            self._choose_shape()
            kinds = ["node_order", "arrange"] if self._tables else ["node_order"]
            device.prepare([self.kernel(k, n) for k in kinds for n in ("double", number)])
            if self.shape.linked:
                self.links = TileLinks.of(self.tiling, model.edges)
                require()
            self._check_room(self.shape)
            slots = device.upload(self.tiling.slot)
            self.arrays = self._uploaded(raw, slots)
            self.record = self._recorded()
            self.offsets = self._offsets(slots)
            self._arrange_costs()
            if self._tables:
                self._arrange_tables()

    def _choose_shape(self) -> None:
        """Choose the general shape if the device has no kernels for that of the model."""
        device = self.device
        if not device.offers(self.shape):
            widest = getattr(device, "general", room_of(self.shape.labels))
            self.shape = Shape(
                self.shape.doubles, labels=widest, spread=True, ragged=self.tiling.ragged
            )
            self.tiling = self.tiling.spread_out()
        if self.model.num_labels.max() > self.shape.labels:
            raise OptionError(
                f"{device.name}: a variable has {self.model.num_labels.max()} labels; kernels take "
                f"at most {self.shape.labels}"
            )

    @property
    def dtype(self) -> str:
        """The precision of the messages."""
        return "float64" if self.shape.doubles else "float32"

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return len(self.tiling.tiles)

    @property
    def threads(self) -> int:
        """The number of threads of a kernel over all nodes."""
        return self.tiles * LANES

    @property
    def blocks(self) -> int:
        """The number of blocks of a kernel over all nodes."""
        return max(1, -(-self.threads // self.device.block))

    @property
    def message_size(self) -> int:
        """The length of the message array; without padding if messages are stored by edge."""
        if self.links is None:
            return self.tiling.message_size
        return 2 * self.model.m * self.shape.labels

    @property
    def _tables(self) -> bool:
        return self.shape.kind == core.KINDS.index("tables")

    def kernel(self, name: str, *more: str) -> str:
        """Return the name of a kernel for this shape."""
        return f"{name}<{', '.join([self.shape.name, *more])}>"

    def run(self, name: str, *arguments: Any) -> None:
        """Launch a kernel over all nodes; its last argument is the number of tiles."""
        self.device.launch(name, self.threads, [self.record, *arguments, self.tiles])

    def lam(self, messages: Any, what: Lam) -> Floats:
        """Return λ, or the quantity that `what` names, in the order of the model."""
        size = int(self.model.half_offset[-1])
        out = self.device.zeros(size, np.float64)
        self.run(self.kernel("to_lam"), messages, self.offsets.half, out, int(what))
        found: Floats = self.device.fetch(out)
        return found[:size]

    def by_node(self, array: Any) -> Floats:
        """Return marginals in the order of the model."""
        out = self.device.zeros(self.model.unary.size, np.float64)
        self.run(self.kernel("node_order", "double"), self.offsets.node, array, out, 1)
        found: Floats = self.device.fetch(out)
        return found

    def labels(self, label: Any) -> NDArray[np.int64]:
        """Return the labels of the nodes in the order of the model."""
        return self.device.fetch(label)[self.tiling.place].astype(np.int64)

    def bytes_needed(self, shape: Shape | None = None) -> int:
        """Return the memory of a run on the device, in bytes, costs and messages included."""
        shape, item = shape or self.shape, np.dtype(self.dtype).itemsize
        slots, costs = len(self.tiling.mate), self.tiling.cost_size
        both = item if shape.exact or not self._tables else item + 8
        tables = self._table_size() * both + 8 * sum(
            a.size for p in self.model.potentials for a in p.arrays().values()
        )
        return int(
            5 * self.message_size * item  # msg, prev, polished, and the best of bound and point
            + costs * (8 + item + 4 + 3 * 8)
            + slots * (4 + 4 + 8 * 5)
            + tables
        )

    def _check_room(self, shape: Shape) -> None:
        room, needed = self.device.room(), self.bytes_needed(shape)
        if room is not None and needed > room:
            raise OptionError(
                f"backend='cuda': this model needs {needed:,} bytes on the device, and {room:,} "
                f"are free on {self.device.name}"
            )

    def _table_size(self) -> int:
        if not self._tables:
            return 1
        readers = -(-self.model.m // LANES) * LANES if self.shape.linked else len(self.tiling.mate)
        return readers * self.shape.labels**2

    def _uploaded(self, raw: _Raw, slots: Any) -> dict[str, Any]:
        """Upload the arrays of `ARENA`, except those that no kernel of this shape reads."""
        device, tiling, kind = self.device, self.tiling, self.shape.kind
        zeros, put = device.zeros, device.upload
        truncated = kind < 0 or kind in TRUNCATED
        wanted = {
            "weight": True, "cut": truncated, "kind": kind < 0, "reach": truncated,
            "place": kind < 0 or kind == SHARED or self._tables,
        }  # fmt: skip
        names = [name for name, keep in wanted.items() if keep]
        rounded = self._tables and not self.shape.exact
        return {
            "tiles": put(tiling.tiles), "mate": put(tiling.mate),
            "group_tile": put(tiling.group_tile), "halves": put(tiling.halves),
            "unary": zeros(tiling.cost_size, np.float64),
            "unary_single": zeros(tiling.cost_size, self.dtype),
            "arranged": zeros(self._table_size(), self.dtype),
            "arranged_exact": zeros(self._table_size() if rounded else 1, np.float64),
            "table": raw.table, "maps": raw.maps,
            **({"where": put(self.links.where)} if self.links else {}),
            **raw.by_slot(slots, len(tiling.mate), names),
        }  # fmt: skip

    def _recorded(self) -> NDArray[np.void]:
        record = np.zeros((), ARENA)
        for name, array in self.arrays.items():
            record[name] = self.device.address(array)
        record["edges"] = self.model.m
        return record

    def _arrange_costs(self) -> None:
        """Arrange the costs of nodes in the order of tiles, in both precisions."""
        given = self.device.upload(self.model.unary)
        names = [self.kernel("node_order", kind) for kind in ("double", NUMBERS[self.dtype])]
        for name, array in zip(names, ("unary", "unary_single"), strict=True):
            self.run(name, self.offsets.node, self.arrays[array], given, 0)
        self.device.synchronize()

    def _arrange_tables(self) -> None:
        """Arrange the tables in the order of slots; the uploaded originals are freed."""
        number = NUMBERS[self.dtype]
        name, exact = self.kernel("arrange", number), self.kernel("arrange", "double")
        self.run(name, self.arrays["arranged"])
        if not self.shape.exact:
            self.run(exact, self.arrays["arranged_exact"])
        self.device.synchronize()
        del self.arrays["table"]
        self.record = self._recorded()

    def _offsets(self, slots: Any) -> Offsets:
        device, model, tiling = self.device, self.model, self.tiling
        half = device.zeros(len(tiling.mate), np.int64)
        node = device.zeros(self.threads, np.int64)
        places = device.upload(tiling.place.astype(np.uint32))
        for offset, at, out in (
            (model.half_offset, slots, half), (model.node_offset, places, node),
        ):  # fmt: skip
            scatter(device, device.upload(offset[:-1]), at, out, 1, len(offset) - 1)
        device.synchronize()  # before the uploaded arrays are freed
        return Offsets(half, node)


SCATTER = {
    "float64": "scatter<double>", "uint8": "scatter<unsigned char>", "int32": "scatter<int>",
    "int64": "scatter<long long>",
}  # fmt: skip


def scatter(device: Device, values: Any, at: Any, out: Any, share: int, count: int) -> None:
    """Compute ``out[at[k]] = values[k // share]`` on a device, for k in 0..count-1."""
    device.launch(SCATTER[out.dtype.name], count, [values, at, out, share, count])


@dataclass(frozen=True)
class _Column:
    """A parameter of every edge, and its value for families without it."""

    default: float
    dtype: str


COLUMNS = {
    "weight": _Column(1.0, "float64"), "cut": _Column(0.0, "float64"),
    "kind": _Column(0, "uint8"), "reach": _Column(1, "int32"), "place": _Column(0, "int64"),
}  # fmt: skip


class _Raw:
    """The costs of edges in the model's order, on a device, and the kind of every edge."""

    def __init__(self, model: Network, device: Device) -> None:
        self.model, self.device = model, device
        self._edges: list[dict[str, Any]] = []
        tables: list[NDArray[Any]] = []
        maps: list[NDArray[Any]] = []
        for first, last, potential in model.groups():
            rows, cols = model.end_labels(first, last)
            data = potential.kernel_data(rows, cols)
            found: dict[str, Any] = {"kind": core.KINDS.index(data.kind)}
            if data.weight is not None:
                found["weight"] = data.weight
            if data.truncation is not None:
                found |= {"cut": data.truncation, "reach": potential.tile_key(rows, cols)}
            own = tables if data.table is not None else maps
            each = data.offset if data.offset is not None else data.stride * np.arange(last - first)
            found["place"] = sum(map(len, own)) + np.asarray(each)
            self._edges.append(found)
            if data.table is not None:
                tables.append(data.table)
            if data.maps is not None:
                maps.append(data.maps)
        self.table = _joined(tables, np.float64, device)
        self.maps = _joined(maps, np.int32, device)

    def by_slot(self, slots: Any, size: int, names: Sequence[str]) -> dict[str, Any]:
        """Return the edge parameters of all slots, and the endpoint (`side`) of each slot."""
        device, m = self.device, self.model.m
        out = {"side": device.zeros(size, np.uint8)}
        ends = device.upload(np.tile(np.array([0, 1], dtype=np.uint8), m))
        scatter(device, ends, slots, out["side"], 1, 2 * m)
        for name in names:
            column = COLUMNS[name]
            out[name] = device.zeros(size, column.dtype)
            for (first, last, _), found in zip(self.model.groups(), self._edges, strict=True):
                values = np.atleast_1d(np.asarray(found.get(name, column.default), column.dtype))
                halves = 2 * (last - first)
                share = 2 if len(values) == last - first else halves + 1  # one value for all edges
                given = device.upload(np.ascontiguousarray(values))
                scatter(device, given, slots[2 * first : 2 * last], out[name], share, halves)
        device.synchronize()  # before the uploaded arrays are freed
        return out

    def representable(self, dtype: str, at_once: int = 1 << 24) -> bool:
        """Whether all table entries are exactly representable in `dtype`."""
        kernel = f"rounded_apart<{NUMBERS[dtype]}>"
        apart = self.device.zeros(1, np.int32)
        for k in range(0, len(self.table), at_once):
            part = self.table[k : k + at_once]
            self.device.launch(kernel, len(part), [part, apart, len(part)])
        return not int(self.device.fetch(apart)[0])


def _has_tables(model: Network) -> bool:
    return any(potential.family == "tables" for potential in model.potentials)


def _joined(parts: list[NDArray[Any]], dtype: DTypeLike, device: Device) -> Any:
    """Concatenate arrays on a device; a single array is not copied on the host."""
    if len(parts) == 1:
        return device.upload(parts[0].astype(dtype, copy=False))
    return device.upload(np.concatenate([*parts, np.zeros(1)]).astype(dtype))
