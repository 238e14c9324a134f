"""Passes and judgements of one model on a device: what is launched, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.methods.cuda.arena import Arena
from softmap.methods.cuda.devices import Device
from softmap.methods.cuda.levels import Half, Heat, Level, levels_for
from softmap.methods.cuda.shapes import steepest
from softmap.methods.cuda.tiling import Tiling
from softmap.methods.sweeps.sampling import RECENT, SAMPLE
from softmap.model import Model

__all__ = ["CONTROL", "Engine", "Found", "Heat"]

Floats = NDArray[np.float64]

# the members of `Control` in src/core/cuda/passes.hpp
CONTROL = ("eta", "t", "restarts", "product", "beta", "longest", "passes", "samples")
START = (1.0, 0.0, 0.0, -1.0, 0.0, 10.0, 0.0, 0.0)
SAFE = {"float32": 80.0, "float64": 600.0}  # `safe` of src/core/cuda/numbers.hpp, at worst
WIDE = 600.0


class Row(IntEnum):
    """Rows of sums that a judgement adds up."""

    NODE_COST = 0
    NODE_ENTROPY = 1
    NODE_SOFT = 2
    EDGE_COST = 3
    EDGE_ENTROPY = 4
    EDGE_SHIFT = 5
    EDGE_SLACK = 6
    ENERGY = 7
    MEAN_NODE_COST = 8
    MEAN_EDGE_COST = 9
    BOUND = 13  # those of couple_edges take four


ROWS = 14


@dataclass(frozen=True)
class Found:
    """What the messages of a run prove, as the device computed it.

    `primals` are those of the current and of the mean marginals; the second may be missing.
    """

    bound: float
    primals: tuple[float, ...]
    smoothed: float
    node_entropy: float
    edge_entropy: float
    slack: float
    energy: float


class Engine:
    """Messages of one model on a device."""

    def __init__(
        self,
        model: Model,
        device: Device,
        dtype: str = "float32",
        *,
        averaging: bool = False,
        keeping: bool = False,
        tiling: Tiling | None = None,
    ) -> None:
        self.model, self.device, self.averaging = model, device, averaging
        self.arena = arena = Arena(model, device, dtype, tiling)
        size, costs = arena.message_size, arena.tiling.cost_size
        self.msg, self.prev, self.polished = (device.zeros(size, dtype) for _ in range(3))
        self.shift = device.zeros(len(arena.tiling.mate), dtype)
        self.control = device.zeros(len(CONTROL), np.float64)
        self.share, self.mu = device.zeros(costs, np.float64), device.zeros(costs, np.float64)
        self.mean = device.zeros(costs if averaging else 1, np.float32)
        self.mean_mu = device.zeros(costs if averaging else 1, np.float64)
        self.label = device.zeros(arena.threads, np.int32)
        if keeping:
            self.best_lam, self.best_msg = (device.zeros(size, dtype) for _ in range(2))
            self.best_mu = device.zeros(costs, np.float64)
        self._steepest = steepest(model)
        self._levels = levels_for(arena)
        products = sum(level.blocks for level in self._levels)
        self._products = device.zeros(products, np.float64)
        self._sums = device.zeros(ROWS * arena.blocks, np.float64)
        self._totals = device.zeros(ROWS, np.float64)
        self._recorded: dict[Any, Callable[[], None]] = {}
        self._parts: dict[int, Any] = {}
        self.eta = START[0]
        self.passes_done = self.samples = 0
        device.prepare(self._kernels())

    # --- what is launched ---

    def _kernels(self) -> list[str]:
        """What a run may launch, in the order in which it will: passes, checks, colder passes."""
        arena = self.arena

        def passes(heat: Heat) -> list[str]:
            halves = (Half(forward, heat) for forward in (True, False))
            return [
                name for half in halves for level in self._levels if level.sends(half.forward)
                for name in level.kernels(half)
            ]  # fmt: skip

        names = ["tick", *passes(self.heat)]
        if self.averaging:
            names += [arena.kernel("sample"), "sampled"]
        every = ["couple_edges", "soft_nodes", "bounds", "energies"]
        every += ["mean_nodes"] if self.averaging else []
        names += [*(arena.kernel(name) for name in every), "totals", *passes(Heat.HARD)]
        names += [arena.kernel(name) for name in ("to_lam", "from_lam")]
        names += [arena.kernel("node_order", "double"), *passes(self.coldest)]
        return list(dict.fromkeys(names))

    def _half(
        self, forward: bool, heat: Heat, msg: Any, prev: Any, levels: list[Level] | None = None
    ) -> None:
        """A half pass: the levels (or some) in turn; those that send nothing are left out."""
        shift = None if forward or heat is Heat.HARD else self.shift
        half = Half(forward, heat, msg, prev, self.control, shift)
        levels = self._levels if levels is None else levels
        for level in levels if forward else levels[::-1]:
            if level.sends(forward):
                for kernel, threads, given in level.launches(half, self._part(level)):
                    self.device.launch(kernel, threads, [self.arena.record, *given])

    def _part(self, level: Level) -> Any:
        """The products of one level's blocks: a view, kept as long as the engine."""
        if level.block not in self._parts:
            last = level.block + level.blocks
            self._parts[level.block] = self._products[level.block : last]
        return self._parts[level.block]

    def _pass(self, heat: Heat) -> None:
        products = self._products
        self.device.launch("tick", 1, [self.control, products, len(products)])
        self._half(True, heat, self.msg, self.prev)
        self._half(False, heat, self.msg, self.prev)

    def record(self) -> None:
        """Record what a run will repeat, so that it does not have to wait for that."""
        self._several_of(self.heat)
        if not self.device.prepared():  # passes begin while the rest is still being compiled
            return
        for averaged in {False, self.averaging}:
            self._look_of(averaged)
        if self.averaging:
            self._kept("sample", self._sample)

    def _kept(self, key: Any, work: Callable[[], None]) -> Callable[[], None]:
        """Work, recorded the first time."""
        if key not in self._recorded:
            self._recorded[key] = self.device.recorded(work)
        return self._recorded[key]

    def _several_of(self, heat: Heat) -> Callable[[], None]:
        return self._kept(("passes", heat), lambda: self._several(heat))

    def _look_of(self, averaged: bool) -> Callable[[], None]:
        return self._kept(("look", averaged), lambda: self._judge(averaged))

    # --- a run ---

    def start(self, lam: Floats | None = None) -> None:
        """Begin at λ (0 if None)."""
        device, arena = self.device, self.arena
        if lam is not None:
            given = device.upload(lam)
            arena.run(arena.kernel("from_lam"), given, arena.offsets.half, self.msg)
            device.synchronize()
        device.copy(self.msg, self.prev)
        device.put(self.control, np.array(START))
        self.passes_done = self.samples = 0

    def set_eta(self, eta: float, longest: float) -> None:
        """The inverse temperature of the passes to come, and how long momentum may remember."""
        self.eta = eta
        self._set("eta", eta)
        self._set("longest", longest)

    def _set(self, name: str, value: float) -> None:
        place = CONTROL.index(name)
        self.device.put(self.control[place:], np.array([value]))

    @property
    def coldest(self) -> Heat:
        """The last of the ways to make messages; for most families there is one for every η."""
        return Heat.COLD if self.arena.shape.heats else Heat.MILD

    @property
    def heat(self) -> Heat:
        """Whether all closed forms are within the range of numbers at this η."""
        linear = self.arena.shape.kind == 2
        safe = WIDE if linear else SAFE[self.arena.dtype]
        return Heat.MILD if self.eta * self._steepest <= safe else self.coldest

    def passes(self, count: int) -> None:
        """`count` passes with momentum; every few of them the marginals enter the mean."""
        heat = self.heat
        while count > 0:
            now = min(count, SAMPLE - self.passes_done % SAMPLE)
            if now == SAMPLE:
                self._several_of(heat)()
            else:
                for _ in range(now):
                    self._kept(("pass", heat), lambda: self._pass(heat))()
            self.passes_done += now
            count -= now
            if self.averaging and self.passes_done % SAMPLE == 0:
                self._kept("sample", self._sample)()
                self.samples += 1

    def _several(self, heat: Heat) -> None:
        for _ in range(SAMPLE):
            self._pass(heat)

    def _sample(self) -> None:
        arena = self.arena
        arena.run(arena.kernel("sample"), self.msg, self.control, self.mean, RECENT)
        self.device.launch("sampled", 1, [self.control])

    # --- judgement ---

    @property
    def averaged(self) -> bool:
        """Whether there is a mean of marginals worth a look."""
        return self.averaging and self.samples > 1

    def look(self) -> Found:
        """Judge where the messages stand; the answer is kept as `found`."""
        averaged = self.averaged
        self._look_of(averaged)()
        total = self.device.fetch(self._totals)
        constant = self.model.constant
        primals = [total[Row.NODE_COST] + total[Row.EDGE_COST] + constant]
        if averaged:
            primals.append(total[Row.MEAN_NODE_COST] + total[Row.MEAN_EDGE_COST] + constant)
        self.found = Found(
            bound=_lower(float(total[Row.BOUND]), constant),
            primals=tuple(float(p) if np.isfinite(p) else np.inf for p in primals),
            smoothed=float(total[Row.NODE_SOFT] + total[Row.EDGE_SHIFT] + constant),
            node_entropy=float(total[Row.NODE_ENTROPY]),
            edge_entropy=float(total[Row.EDGE_ENTROPY]),
            slack=float(total[Row.EDGE_SLACK]),
            energy=float(total[Row.ENERGY] + constant),
        )
        return self.found

    def _judge(self, averaged: bool) -> None:
        self._polish()
        arena, blocks, device = self.arena, self.arena.blocks, self.device
        rows = [self._sums[k * blocks :] for k in range(ROWS)]
        arena.run(arena.kernel("bounds"), self.polished, rows[Row.BOUND])
        arena.run(
            arena.kernel("soft_nodes"), self.msg, self.control, self.share, self.mu, self.label,
            rows[Row.NODE_COST], blocks,
        )  # fmt: skip
        couple = arena.kernel("couple_edges")
        arena.run(
            couple, self.msg, self.control, self.share, self.mu, self.shift,
            rows[Row.EDGE_COST], blocks, 1,
        )  # fmt: skip
        arena.run(arena.kernel("energies"), self.label, rows[Row.ENERGY])
        if averaged:
            arena.run(arena.kernel("mean_nodes"), self.mean, self.mean_mu, rows[Row.MEAN_NODE_COST])
            arena.run(
                couple, self.msg, self.control, self.share, self.mean_mu, self.shift,
                rows[Row.MEAN_EDGE_COST], blocks, 0,
            )  # fmt: skip
        device.launch(
            "totals", ROWS * device.block, [self._sums, self._totals, blocks, ROWS, int(Row.BOUND)]
        )

    def _polish(self) -> None:
        """Hard passes, and half of one, on a copy of the messages: what the bound is read off."""
        self.device.copy(self.msg, self.polished)
        for forward in (True, False, True):
            self._half(forward, Heat.HARD, self.polished, self.polished)

    # --- to the host ---

    def lam(self, messages: Any, what: int) -> Floats:
        """λ in the order of the model: -M (0), as the bound cuts it (1), or couplings κ (2)."""
        arena, device = self.arena, self.device
        out = device.zeros(int(self.model.half_offset[-1]), np.float64)
        arena.run(arena.kernel("to_lam"), messages, arena.offsets.half, out, what)
        found: Floats = device.fetch(out)
        return found[: int(self.model.half_offset[-1])]

    def by_node(self, array: Any) -> Floats:
        """An array over node states, in the order of the model."""
        arena, device = self.arena, self.device
        kind = "float" if array.dtype == np.float32 else "double"
        out = device.zeros(self.model.unary.size, np.float64)
        arena.run(arena.kernel("node_order", kind), arena.offsets.node, array, out, 1)
        found: Floats = device.fetch(out)
        return found

    def labels(self, label: Any) -> NDArray[np.int64]:
        """Labels of the nodes."""
        return self.device.fetch(label)[self.arena.tiling.place].astype(np.int64)


def _lower(value: float, constant: float) -> float:
    """`value` + `constant`, rounded down."""
    total = value + constant
    part = total - value
    error = (value - (total - part)) + (constant - part)
    return float(np.nextafter(total, -np.inf)) if error < 0 else total
