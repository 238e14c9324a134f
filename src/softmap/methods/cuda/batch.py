"""The relaxations of many small models at once, one block of threads per model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.methods.cuda.arena import Arena
from softmap.methods.cuda.devices import Device
from softmap.methods.cuda.engine import SAFE, START, WIDE, Heat
from softmap.methods.cuda.shapes import steepest
from softmap.methods.cuda.tiling import HALVES, Tiling, levels_of
from softmap.methods.sweeps.anneal import RULE, easily_coupled
from softmap.methods.sweeps.sampling import RECENT
from softmap.model import Model
from softmap.model.joining import Joined, joined
from softmap.relaxation.dual import cost_scale

__all__ = ["Batch", "Judged", "Relaxed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LAM, POINT, MEAN, LABELS = 1, 2, 4, 8  # what `batch_keep` keeps


class Sum(IntEnum):
    """Columns of what a look finds; see ``src/core/cuda/batches.hpp``."""

    COST = 0
    NODE_ENTROPY = 1
    SMOOTHED = 2
    EDGE_ENTROPY = 3
    SLACK = 4
    ENERGY = 5
    MEAN_COST = 6
    BOUND = 7


@dataclass
class Judged:
    """One look at the active models: their numbers, η then, and the best of each so far."""

    models: Ints
    passes: int
    seconds: float
    eta: Floats
    smoothed: Floats
    slack: Floats
    bound: Floats
    primal: Floats
    energy: Floats


@dataclass
class Relaxed:
    """What a batch has found, for all models; without the constants of the models."""

    whole: Joined
    bound: Floats
    primal: Floats
    energy: Floats
    eta: Floats
    lam: Floats
    messages: Floats
    labels: Ints
    nodes: Floats
    coupling: Floats


class Batch:
    """Models on a device, annealed and judged each by itself."""

    def __init__(
        self, models: Sequence[Model], device: Device, dtype: str, whole: Joined | None = None
    ) -> None:
        self.device, self.count = device, len(models)
        self.whole = whole = whole or joined(models)
        part = np.repeat(np.arange(self.count), np.diff(whole.node))
        level = _levels(whole.model)
        self.levels = int(level.max()) + 1
        tiling = Tiling.of(whole.model, part * self.levels + level, ragged=_few_halves(whole))
        self.arena = arena = Arena(whole.model, device, dtype, tiling)
        size, costs = arena.message_size, arena.tiling.cost_size
        self.averaging = easily_coupled(whole.model)
        names = ("msg", "prev", "polished", "best_lam", "best_msg")
        self.messages = {name: device.zeros(size, dtype) for name in names}
        self.shift = device.zeros(len(arena.tiling.mate), dtype)
        self.share, self.mu, self.best_mu = (device.zeros(costs, np.float64) for _ in range(3))
        self.mean = device.zeros(costs, np.float32) if self.averaging else None
        self.mean_mu = device.zeros(costs, np.float64) if self.averaging else None
        self.label, self.best_label = (device.zeros(arena.threads, np.int32) for _ in range(2))
        self.found = device.zeros(self.count * len(Sum), np.float64)
        start = np.full(self.count * self.levels + 1, len(arena.tiling.tiles))
        known = arena.tiling.level_start  # up to the last level that has a node
        start[: len(known)] = known
        self.level_start = device.upload(start.astype(np.int32))
        self.scale = _scales(models, whole)
        self._steepest = steepest(whole.model)
        self._begin()
        device.prepare(self._kernels())

    def _begin(self) -> None:
        count = self.count
        self.eta = RULE.first_eta(self.scale)
        self.passes_done = 0
        self.bound, self.primal = np.full(count, -np.inf), np.full(count, np.inf)
        self.energy, self.point_eta = np.full(count, np.inf), np.ones(count)
        self.controls = self.device.upload(np.tile(START, count))
        self.device.synchronize()

    def _kernels(self) -> list[str]:
        kernel = self.arena.kernel
        names = [kernel("batch_passes", str(int(self.heat)))]
        names += [kernel(name) for name in ("batch_look", "batch_keep", "to_lam")]
        names += [kernel("node_order", "double")]
        return [*names, kernel("batch_passes", str(int(self.coldest)))]

    def _launch(self, kernel: str, active: Any, arguments: Sequence[Any], *more: Any) -> None:
        """A kernel with one block per active model."""
        self.device.launch_blocks(
            kernel,
            len(active),
            [self.arena.record, *arguments, active, self.level_start, self.levels, *more],
        )

    @property
    def coldest(self) -> Heat:
        """The last of the ways to make messages."""
        return Heat.COLD if self.arena.shape.heats else Heat.MILD

    @property
    def heat(self) -> Heat:
        """Whether all closed forms are within the range of numbers."""
        safe = WIDE if self.arena.shape.kind == 2 else SAFE[self.arena.dtype]
        return Heat.MILD if float(self.eta.max()) * self._steepest <= safe else self.coldest

    def step(self, active: Ints, count: int) -> None:
        """`count` passes of the active models, at η as the last judgement has set it."""
        eta, m = self.eta[active], self.messages
        longest = RULE.longest_momentum(eta, self.scale[active])
        self._launch(
            self.arena.kernel("batch_passes", str(int(self.heat))),
            self.device.upload(active.astype(np.int32)),
            [m["msg"], m["prev"], self.controls,
             self.device.upload(np.stack([eta, longest], axis=1)), self.shift, self.mean, RECENT],
            count,
        )  # fmt: skip
        self.passes_done += count

    def look(self, active: Ints, began: float) -> Judged:
        """Judge the active models, keep the best, and raise η where it is time."""
        m, chosen = self.messages, self.device.upload(active.astype(np.int32))
        self._launch(
            self.arena.kernel("batch_look"),
            chosen,
            [m["msg"], m["polished"], self.controls, self.shift, self.share, self.mu, self.label,
             self.mean, self.mean_mu, self.found],
        )  # fmt: skip
        found = self.device.fetch(self.found).reshape(self.count, len(Sum))[active]
        averaged = self.averaging and self.passes_done >= 10
        means = found[:, Sum.MEAN_COST] if averaged else np.full(len(active), np.inf)
        self._keep(active, chosen, found, means)
        judged = Judged(
            active, self.passes_done, time.perf_counter() - began, self.eta[active].copy(),
            found[:, Sum.SMOOTHED], found[:, Sum.SLACK], self.bound[active], self.primal[active],
            self.energy[active],
        )  # fmt: skip
        self._heed(active, found, np.minimum(found[:, Sum.COST], means))
        return judged

    def _keep(self, active: Ints, chosen: Any, found: Floats, means: Floats) -> None:
        best = np.minimum(found[:, Sum.COST], means)
        what = np.where(found[:, Sum.BOUND] > self.bound[active], LAM, 0)
        better = best < self.primal[active]
        what |= np.where(better, np.where(means < found[:, Sum.COST], MEAN, POINT), 0)
        what |= np.where(found[:, Sum.ENERGY] < self.energy[active], LABELS, 0)
        self.bound[active] = np.maximum(self.bound[active], found[:, Sum.BOUND])
        self.primal[active] = np.minimum(self.primal[active], best)
        self.energy[active] = np.minimum(self.energy[active], found[:, Sum.ENERGY])
        self.point_eta[active[better]] = self.eta[active[better]]
        m = self.messages
        self._launch(
            self.arena.kernel("batch_keep"),
            chosen,
            [m["msg"], m["polished"], self.mu, self.mean_mu, self.label, m["best_lam"],
             m["best_msg"], self.best_mu, self.best_label,
             self.device.upload(what.astype(np.int32))],
        )  # fmt: skip

    def _heed(self, active: Ints, found: Floats, best: Floats) -> None:
        """As `Annealed.heed`, for all models at once."""
        due = RULE.due(
            self.eta[active],
            bound=found[:, Sum.BOUND],
            smoothed=found[:, Sum.SMOOTHED],
            previous=-np.inf,  # η waits for a point
            primal=found[:, Sum.COST],
            gap=best - found[:, Sum.BOUND],
            entropy=found[:, Sum.EDGE_ENTROPY] - found[:, Sum.NODE_ENTROPY],
        )
        self.eta[active[due]] *= RULE.growth

    def relaxed(self) -> Relaxed:
        """Everything found, on the host."""
        m = self.messages
        return Relaxed(
            self.whole, self.bound, self.primal, self.energy, self.point_eta,
            self._lam(m["best_lam"], 1), self._lam(m["msg"], 0),
            self._labels(),
            self._by_node(self.best_mu), self._lam(m["best_msg"], 2),
        )  # fmt: skip

    def _labels(self) -> Ints:
        found: Ints = self.device.fetch(self.best_label)[self.arena.tiling.place]
        return found.astype(np.int64)

    def _lam(self, messages: Any, what: int) -> Floats:
        arena = self.arena
        out = self.device.zeros(int(self.whole.model.half_offset[-1]), np.float64)
        arena.run(arena.kernel("to_lam"), messages, arena.offsets.half, out, what)
        found: Floats = self.device.fetch(out)
        return found

    def _by_node(self, array: Any) -> Floats:
        arena = self.arena
        out = self.device.zeros(self.whole.model.unary.size, np.float64)
        arena.run(arena.kernel("node_order", "double"), arena.offsets.node, array, out, 1)
        found: Floats = self.device.fetch(out)
        return found


def _levels(model: Model) -> Ints:
    """Few levels rather than wide ones: a block waits for its threads after each."""
    if model.m >= 2 * model.n:
        return model.graph.colouring().astype(np.int64)
    return levels_of(model)


def _few_halves(whole: Joined) -> bool:
    """Whether tiles may be ragged: no node has more half-edges than they can count."""
    return int(whole.model.graph.degree.max(initial=0)) < HALVES


def _scales(models: Sequence[Model], whole: Joined) -> Floats:
    """`cost_scale` of every model."""
    count = len(models)
    of = np.concatenate(
        [np.repeat(np.arange(count), np.diff(starts)) for starts in (whole.node, whole.edge)]
    )
    low, high = whole.extremes
    width = high - low
    total = np.bincount(of, weights=width, minlength=count)
    number = np.bincount(of[width > 0], minlength=count)
    scales = total / np.maximum(number, 1)
    for k in np.flatnonzero(number == 0).tolist():
        scales[k] = cost_scale(models[k])
    return scales
