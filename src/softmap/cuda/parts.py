"""Passes and judgements of one part of a model on a device.

The tiles of the part's own nodes come first, those of its halo last: no half pass goes through the
latter, and a judgement adds up what belongs to the former. What the halo sends, and its shares and
marginals, are written into its places by whoever knows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.algorithms.sweeps.sampling import RECENT
from softmap.cuda.devices import Device
from softmap.cuda.engine import CONTROL, ROWS, Engine, Heat, Row
from softmap.cuda.tiling import LANES, Tiling
from softmap.model import Model

__all__ = ["HaloEngine", "PartOrder"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RELAX = 0.75  # `relax` of src/core/cuda/passes.hpp


@dataclass(frozen=True, eq=False)
class PartOrder:
    """The order of a part: levels of its nodes, the halo's last, ranks, levels of each phase."""

    level: Ints
    rank: Ints
    phases: list[tuple[int, int]]

    @property
    def own_levels(self) -> int:
        """Levels of own nodes."""
        return self.phases[-1][1]


class HaloEngine(Engine):
    """Messages of one part on a device, and the passes of its own nodes, phase by phase."""

    def __init__(
        self, model: Model, device: Device, dtype: str, order: PartOrder, averaging: bool
    ) -> None:
        tiling = Tiling.of(model, order.level, rank=order.rank)
        super().__init__(model, device, dtype, averaging=averaging, tiling=tiling)
        self.best_lam = device.zeros(self.arena.tiling.message_size, dtype)
        self.phases = [self._levels[first:last] for first, last in order.phases]
        self.own_tiles = int(self.arena.tiling.level_start[order.own_levels])
        self.own_blocks = max(1, -(-self.own_tiles * LANES // device.block))
        self._product = device.zeros(1, np.float64)
        self.beta = 0.0

    # --- passes ---

    def set_clock(self, eta: float, beta: float, samples: int) -> None:
        """What the kernels of the next pass, sample or judgement read."""
        self.eta, self.beta = eta, beta
        given = {"eta": eta, "beta": beta, "samples": float(samples)}
        self.device.put(self.control, np.array([given.get(name, 0.0) for name in CONTROL]))

    def half_phase(self, phase: int, forward: bool, heat: Heat, msg: Any) -> None:
        """Let the own nodes of one phase send, onwards or back."""
        levels = self.phases[phase]
        if any(level.sends(forward) for level in levels):
            prev = msg if heat is Heat.HARD else self.prev
            key = ("phase", phase, forward, heat, msg is self.msg)
            self._kept(key, lambda: self._half(forward, heat, msg, prev, levels))()

    def product(self) -> float:
        """What the last backward half pass adds to the product that decides on restarts."""
        device, count = self.device, len(self._products)
        device.launch("totals", device.block, [self._products, self._product, count, 1, 1])
        return float(device.fetch(self._product)[0])

    def take(self, places: Any, values: NDArray[Any], *, momentum: bool, msg: Any) -> None:
        """Messages of the halo; with momentum, note what they replace as the sender does."""
        device, number = self.device, np.dtype(self.arena.dtype).type
        with device.working():
            new = device.upload(np.ascontiguousarray(values, dtype=number))
            if momentum:
                old, before = msg[places], self.prev[places]
                y = old + number(self.beta) * (old - before)
                self.prev[places] = old + number(RELAX) * (y - new)
            msg[places] = new

    def sample_own(self) -> None:
        """Let the marginals of the own nodes enter their mean."""
        self._own("sample", self.msg, self.control, self.mean, RECENT)

    # --- places ---

    def places(self, halves: Ints, labels: Ints, label: Ints) -> Ints:
        """Where the messages into half-edges lie, label by label."""
        tiling = self.arena.tiling
        slot = self.slots(halves)
        tile = tiling.group_tile[slot // LANES]
        tiles = tiling.tiles[tile]
        group, width = slot // LANES - tiles["group"], tiles["width"].astype(np.int64)
        lane = slot % LANES * (1 if tiling.spread else width)
        at = tiles["message"] + group * LANES * width + lane
        step = LANES if tiling.spread else 1
        found: Ints = np.repeat(at, labels) + step * label
        return found

    def slots(self, halves: Ints) -> Ints:
        """The slots of half-edges."""
        return self.arena.tiling.slot[halves].astype(np.int64)

    def state_places(self, nodes: Ints, labels: Ints, label: Ints) -> Ints:
        """Where the states of nodes lie in arrays by tile."""
        tiling = self.arena.tiling
        place = tiling.place[nodes]
        at = tiling.tiles["unary"][place // LANES] + place % LANES
        found_at: Ints = np.repeat(at, labels) + LANES * label
        return found_at

    def read(self, array: Any, places: Any) -> NDArray[Any]:
        """Entries of an array of the device."""
        with self.device.working():
            found = array[places]
        return self.device.fetch(found)

    def write(self, array: Any, places: Any, values: NDArray[Any]) -> None:
        """Set entries of an array of the device."""
        with self.device.working():
            array[places] = self.device.upload(values)

    # --- judgement ---

    def _own(self, name: str, *arguments: Any) -> None:
        """Launch a kernel over the own nodes; its last argument is the number of their tiles."""
        arena, tiles = self.arena, self.own_tiles
        self.device.launch(arena.kernel(name), tiles * LANES, [*arena.arguments, *arguments, tiles])

    def _row(self, row: Row) -> Any:
        return self._sums[int(row) * self.own_blocks :]

    def measure(self) -> None:
        """Shares, marginals and best labels of the own nodes."""
        self._own(
            "soft_nodes", self.msg, self.control, self.share, self.mu, self.label,
            self._row(Row.NODE_COST), self.own_blocks,
        )  # fmt: skip

    def average(self) -> None:
        """The mean of the own nodes' marginals, as marginals."""
        self._own("mean_nodes", self.mean, self.mean_mu, self._row(Row.MEAN_NODE_COST))

    def couple(self, averaged: bool) -> None:
        """Price the own edges; shares and marginals of the halo are in their places."""
        common = [self.msg, self.control, self.share]
        self._own(
            "couple_edges", *common, self.mu, self.shift, self._row(Row.EDGE_COST),
            self.own_blocks, 1,
        )  # fmt: skip
        if averaged:
            self._own(
                "couple_edges", *common, self.mean_mu, self.shift, self._row(Row.MEAN_EDGE_COST),
                self.own_blocks, 0,
            )  # fmt: skip

    def bound(self, msg: Any) -> float:
        """The own nodes' and edges' share of a bound, rounded down."""
        self._own("bounds", msg, self._row(Row.BOUND))
        return float(self.sums()[Row.BOUND])

    def sums(self) -> Floats:
        """All rows of sums; those that were not asked for mean nothing."""
        device = self.device
        device.launch(
            "totals", ROWS * device.block,
            [self._sums, self._totals, self.own_blocks, ROWS, int(Row.BOUND)],
        )  # fmt: skip
        found: Floats = device.fetch(self._totals)
        return found
