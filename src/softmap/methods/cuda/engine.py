"""Passes and checks of one model on a device: arrays, kernels and the order of their launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.cuda.arena import Arena
from softmap.methods.cuda.devices import Device
from softmap.methods.cuda.levels import Half, Heat, Heats, Levels
from softmap.methods.cuda.tiling import LANES
from softmap.methods.sweeps.anneal import AnnealNumbers
from softmap.methods.sweeps.loops import SAMPLED
from softmap.model import Network
from softmap.tuning import TUNING


@dataclass(frozen=True, eq=False)
class MessageArrays:
    """The messages of a run.

    Attributes
    ----------
    msg : array
        Current messages.
    prev : array
        Earlier backward messages, for momentum.
    polished : array
        MessageArrays after hard-min passes, whose bound is computed.
    shift : array
        Constant subtracted from each message by the last backward half pass.
    """

    msg: Any
    prev: Any
    polished: Any
    shift: Any

    @classmethod
    def of(cls, arena: Arena) -> MessageArrays:
        """Zeros."""
        zeros, dtype = arena.device.zeros, arena.dtype
        msg, prev, polished = (zeros(arena.message_size, dtype) for _ in range(3))
        return cls(msg, prev, polished, zeros(len(arena.tiling.mate), dtype))


@dataclass(frozen=True, eq=False)
class Points:
    """Node arrays that a check computes.

    Attributes
    ----------
    share : array
        Reduced cost of every node state, divided by the number of chains through the node.
    mu : array
        Node marginals.
    label : array
        The label of largest marginal of every node.
    decoded : array
        Labels decoded from the messages of the bound.
    mean : array or None
        The running average of marginals that passes update; None if nothing is averaged.
    mean_mu : array or None
        The averaged marginals, normalised.
    """

    share: Any
    mu: Any
    label: Any
    decoded: Any
    mean: Any = None
    mean_mu: Any = None

    @classmethod
    def of(cls, arena: Arena, averaging: bool) -> Points:
        """Zeros."""
        zeros, costs = arena.device.zeros, arena.tiling.cost_size
        means = (zeros(costs, np.float32), zeros(costs, np.float64)) if averaging else ()
        share, mu = (zeros(costs, np.float64) for _ in range(2))
        label, decoded = (zeros(arena.threads, np.int32) for _ in range(2))
        return cls(share, mu, label, decoded, *means)


@dataclass(frozen=True, eq=False)
class Kept:
    """The best of a run so far: messages of the bound and of the point, marginals, labels."""

    lam: Any
    msg: Any
    mu: Any
    label: Any

    @classmethod
    def of(cls, arena: Arena) -> Kept:
        """Zeros."""
        zeros = arena.device.zeros
        lam, msg = (zeros(arena.message_size, arena.dtype) for _ in range(2))
        return cls(
            lam, msg, zeros(arena.tiling.cost_size, np.float64), zeros(arena.threads, np.int32)
        )


class BlockSums:
    """Rows of sums over all nodes: partial sums per block, and the totals.

    Parameters
    ----------
    arena : Arena
    rows : int
        Number of rows.
    nearest : int
        The first rows, this many, are rounded to nearest; all further rows are rounded down.
    """

    def __init__(self, arena: Arena, rows: int, nearest: int) -> None:
        self._device, self._blocks, self._nearest = arena.device, arena.blocks, nearest
        self._parts = arena.device.zeros(rows * arena.blocks, np.float64)
        self._totals = arena.device.zeros(rows, np.float64)

    def row(self, number: int) -> Any:
        """Return the partial sums from a row on (a view)."""
        return self._parts[number * self._blocks :]

    def add_up(self) -> None:
        """Compute the totals on the device."""
        rows = len(self._totals)
        given = [self._parts, self._totals, self._blocks, rows, self._nearest]
        self._device.launch("totals", rows * self._device.block, given)

    def totals(self) -> Any:
        """Return the totals, on the host."""
        return self._device.fetch(self._totals)


Floats = NDArray[np.float64]


class CheckedSum(IntEnum):
    """Rows of the sums that a check computes."""

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
    BOUND = 13  # after the sums of `couple_edges`, which take four rows


@dataclass(frozen=True)
class Found:
    """The values of a check, as the device computed them.

    `primals` are the costs of the points of the current marginals and, if any, of the averaged
    ones.
    """

    bound: float
    primals: tuple[float, ...]
    smoothed: float
    node_entropy: float
    edge_entropy: float
    slack: float
    energy: float


class DeviceClock:
    """η, momentum and the number of passes of a run, on the device and on the host.

    Attributes
    ----------
    control : array
        `DeviceClock` of ``src/core/cuda/passes.hpp``.
    eta : float
        Inverse temperature η.
    passes, samples : int
        Number of passes and of samples of the average so far.
    """

    members = ("eta", "t", "restarts", "product", "beta", "longest", "passes", "samples")
    first = (1.0, 0.0, 0.0, -1.0, 0.0, 10.0, 0.0, 0.0)

    def __init__(self, device: Device) -> None:
        self._device, self.control = device, device.zeros(len(self.members), np.float64)
        self.eta, self.passes, self.samples = self.first[0], 0, 0

    def start(self) -> None:
        """Reset to the first pass."""
        self._device.put(self.control, np.array(self.first))
        self.passes = self.samples = 0

    def set_eta(self, eta: float, longest: float) -> None:
        """Set η, and the upper limit of Nesterov's t, of the next passes."""
        self.eta = eta
        for name, value in (("eta", eta), ("longest", longest)):
            self._device.put(self.control[self.members.index(name) :], np.array([value]))

    def set_counts(self, passes: int, samples: int) -> None:
        """Set the numbers of passes and samples of a resumed run."""
        self.passes, self.samples = passes, samples


class Recorder:
    """Sequences of launches that a run repeats, recorded at the first use."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._known: dict[Any, Callable[[], None]] = {}

    def of(self, key: Any, work: Callable[[], None]) -> Callable[[], None]:
        """Return the recorded sequence with this key; record it if it is new."""
        if key not in self._known:
            self._known[key] = self._device.recorded(work)
        return self._known[key]


class DeviceEngine:
    """The annealed chain passes of one model on a device.

    Parameters
    ----------
    model : Network
    device : Device
    dtype : {"float32", "float64"}
        Precision of the messages.
    averaging : bool
        Whether to average marginals over the run.
    keeping : bool
        Whether to keep the best arrays of the run on the device.
    deadline : core.Deadline, optional
        The end of the run: set-up raises `core.OutOfTime` once it has passed.
    recent : float, optional
        Exponent of the weights of the averaged marginals: that of the run.

    Attributes
    ----------
    arena : Arena
    messages : MessageArrays
    points : Points
    kept : Kept or None
    clock : DeviceClock
    found : Found
        The values of the last check.
    """

    found: Found

    def __init__(
        self,
        model: Network,
        device: Device,
        dtype: str = "float32",
        *,
        averaging: bool = False,
        keeping: bool = False,
        deadline: core.Deadline | None = None,
        recent: float | None = None,
    ) -> None:
        self._recent = TUNING.of(AnnealNumbers).recent if recent is None else recent
        self.arena = arena = Arena(model, device, dtype, deadline=deadline)
        self.messages, self.points = MessageArrays.of(arena), Points.of(arena, averaging)
        self.kept = Kept.of(arena) if keeping else None
        self.clock = DeviceClock(device)
        self._heats, self._levels = Heats.of(arena), Levels(arena)
        self._sums = BlockSums(arena, CheckedSum.BOUND + 1, CheckedSum.BOUND)
        self._recorder = Recorder(device)
        device.prepare([*self._kernels(), *self._levels.kernels(self._heats.coldest)])

    @property
    def model(self) -> Network:
        """The model."""
        return self.arena.model

    @property
    def device(self) -> Device:
        """The device."""
        return self.arena.device

    # --- launches ---

    def _kernels(self) -> list[str]:
        """The kernels that a run needs from its start, in the order of first use."""
        arena, passes = self.arena, self._levels.kernels
        averaging = self.points.mean is not None
        names = ["tick", *passes(self._heats.at(self.clock.eta))]
        if averaging:
            names += [arena.kernel("sample"), "sampled"]
        every = ["couple_edges", "soft_nodes", "bounds", "energies"]
        every += ["mean_nodes"] if averaging else []
        every += ["decide"] if self.kept is not None else []
        names += [*(arena.kernel(name) for name in every), "totals", *passes(Heat.HARD)]
        names += [arena.kernel(name) for name in ("to_lam", "from_lam")]
        return [*dict.fromkeys(names), arena.kernel("node_order", "double")]

    def _pass(self, heat: Heat) -> None:
        m, control, products = self.messages, self.clock.control, self._levels.products
        self.device.launch("tick", 1, [control, products, len(products)])
        self._levels.run(Half(True, heat, m.msg, m.prev, control))
        self._levels.run(Half(False, heat, m.msg, m.prev, control, m.shift))

    def ready(self, deadline: core.Deadline | None = None) -> None:
        """Block until the kernels of passes at the current η can be launched.

        Raises `core.OutOfTime` if the deadline passes first.
        """
        self.device.require(self._levels.kernels(self._heats.at(self.clock.eta)), deadline)

    def record(self) -> None:
        """Record the launches that a run repeats, in advance; block until they are compiled."""
        self.device.require(self._kernels())
        self._several_of(self._heats.at(self.clock.eta))
        averaging = self.points.mean is not None
        for averaged in {False, averaging}:
            self._look_of(averaged)
        if averaging:
            self._recorder.of("sample", self._sample)

    def _several_of(self, heat: Heat) -> Callable[[], None]:
        return self._recorder.of(("passes", heat), lambda: self._several(heat))

    def _look_of(self, averaged: bool) -> Callable[[], None]:
        return self._recorder.of(("look", averaged), lambda: self._judge(averaged))

    # --- a run ---

    def start(self, lam: Floats | None = None) -> None:
        """Initialise the messages from λ (0 if None)."""
        device, arena = self.device, self.arena
        if lam is not None:
            given = device.upload(lam)
            arena.run(arena.kernel("from_lam"), given, arena.offsets.half, self.messages.msg)
            device.synchronize()
        device.copy(self.messages.msg, self.messages.prev)
        self.clock.start()

    def passes(self, count: int) -> None:
        """Do `count` passes with momentum; every few passes the marginals are averaged."""
        clock, heat = self.clock, self._heats.at(self.clock.eta)
        while count > 0:
            now = min(count, SAMPLED - clock.passes % SAMPLED)
            if now == SAMPLED:
                self._several_of(heat)()
            else:
                for _ in range(now):
                    self._recorder.of(("pass", heat), lambda: self._pass(heat))()
            count -= now
            sampled = self.points.mean is not None and (clock.passes + now) % SAMPLED == 0
            if sampled:
                self._recorder.of("sample", self._sample)()
            clock.set_counts(clock.passes + now, clock.samples + sampled)

    def _several(self, heat: Heat) -> None:
        for _ in range(SAMPLED):
            self._pass(heat)

    def _sample(self) -> None:
        arena, control = self.arena, self.clock.control
        arena.run(
            arena.kernel("sample"), self.messages.msg, control, self.points.mean, self._recent
        )
        self.device.launch("sampled", 1, [control])

    # --- checks ---

    @property
    def averaged(self) -> bool:
        """Whether enough samples were averaged for a point."""
        return self.points.mean is not None and self.clock.samples > 1

    def look(self) -> Found:
        """Check the current messages; return the values, also kept as `found`."""
        averaged = self.averaged
        self._look_of(averaged)()
        total = self._sums.totals()
        constant = self.model.constant
        primals = [total[CheckedSum.NODE_COST] + total[CheckedSum.EDGE_COST] + constant]
        if averaged:
            primals.append(
                total[CheckedSum.MEAN_NODE_COST] + total[CheckedSum.MEAN_EDGE_COST] + constant
            )
        self.found = Found(
            bound=_lower(float(total[CheckedSum.BOUND]), constant),
            primals=tuple(float(p) if np.isfinite(p) else np.inf for p in primals),
            smoothed=float(total[CheckedSum.NODE_SOFT] + total[CheckedSum.EDGE_SHIFT] + constant),
            node_entropy=float(total[CheckedSum.NODE_ENTROPY]),
            edge_entropy=float(total[CheckedSum.EDGE_ENTROPY]),
            slack=float(total[CheckedSum.EDGE_SLACK]),
            energy=float(total[CheckedSum.ENERGY] + constant),
        )
        return self.found

    def _judge(self, averaged: bool) -> None:
        self._polish()
        arena, blocks, row = self.arena, self.arena.blocks, self._sums.row
        m, p, control = self.messages, self.points, self.clock.control
        arena.run(arena.kernel("bounds"), m.polished, row(CheckedSum.BOUND))
        arena.run(
            arena.kernel("soft_nodes"), m.msg, control, p.share, p.mu, p.label,
            row(CheckedSum.NODE_COST), blocks,
        )  # fmt: skip
        couple = arena.kernel("couple_edges")
        arena.run(
            couple, m.msg, control, p.share, p.mu, m.shift, row(CheckedSum.EDGE_COST), blocks, 1
        )  # fmt: skip
        arena.run(arena.kernel("energies"), p.label, row(CheckedSum.ENERGY))
        if averaged:
            arena.run(arena.kernel("mean_nodes"), p.mean, p.mean_mu, row(CheckedSum.MEAN_NODE_COST))
            arena.run(
                couple, m.msg, control, p.share, p.mean_mu, m.shift,
                row(CheckedSum.MEAN_EDGE_COST), blocks, 0,
            )  # fmt: skip
        self._sums.add_up()

    def decode(self) -> NDArray[np.int64]:
        """Return labels decoded from the messages of the last check, level by level.

        Pairs of labels must not be forbidden: labels are not looked at one edge ahead.
        """
        self._recorder.of("decode", self._decode)()
        return self.arena.labels(self.points.decoded)

    def _decode(self) -> None:
        arena, start = self.arena, self.arena.tiling.level_start.tolist()
        for first, last in reversed(list(pairwise(start))):
            given = [arena.record, self.messages.polished, self.points.decoded]
            self.device.launch(
                arena.kernel("decide"), (last - first) * LANES, [*given, first, last - first]
            )

    def _polish(self) -> None:
        """Do hard-min passes, and half of one, on a copy of the messages, for the bound."""
        m = self.messages
        self.device.copy(m.msg, m.polished)
        for forward in (True, False, True):
            self._levels.run(Half(forward, Heat.HARD, m.polished, m.polished, self.clock.control))


def _lower(value: float, constant: float) -> float:
    """Return `value` + `constant`, rounded down."""
    total = value + constant
    part = total - value
    error = (value - (total - part)) + (constant - part)
    return float(np.nextafter(total, -np.inf)) if error < 0 else total
