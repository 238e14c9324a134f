"""The relaxations of many small models at once, one thread block per model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.cuda.arena import Arena, Lam
from softmap.methods.cuda.devices import Device
from softmap.methods.cuda.engine import DeviceClock, Kept, MessageArrays, Points
from softmap.methods.cuda.levels import Heat, Heats
from softmap.methods.cuda.tiling import LIMITS, Tiling, levels_of
from softmap.methods.policy import AnnealingRule, eta_rises, longest_momentum
from softmap.methods.sweeps.anneal import AnnealNumbers, easily_coupled
from softmap.methods.sweeps.loops import SAMPLED
from softmap.model import Network
from softmap.model.joining import Joined, joined
from softmap.relaxation.gaps import cost_scale
from softmap.tuning import TUNING, Tuning

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Keep(IntFlag):
    """Flags of the arrays that `batch_keep` stores; see ``src/core/cuda/batches.hpp``."""

    LAM = 1
    POINT = 2
    MEAN = 4
    LABELS = 8


class Sum(IntEnum):
    """Columns of the sums that a check computes; see ``src/core/cuda/batches.hpp``."""

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
    """A check of the active models: its values, η, and the best bound, primal and energy so far."""

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
    """The results of a batch for all models, without the constants of the models."""

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


class _BlockLaunches:
    """Kernel launches with one thread block per model.

    Attributes
    ----------
    controls : array
        The clock of every model: `DeviceClock` of ``src/core/cuda/passes.hpp``.
    """

    def __init__(self, arena: Arena, count: int, levels: int) -> None:
        self._arena, self._levels = arena, levels
        start = np.full(count * levels + 1, arena.tiles)
        known = arena.tiling.level_start  # it ends at the last level that has a node
        start[: len(known)] = known
        self._start = arena.device.upload(start.astype(np.int32))
        self.controls = arena.device.upload(np.tile(DeviceClock.first, count))

    def launch(self, kernel: str, active: Any, arguments: Sequence[Any], *more: Any) -> None:
        """Launch a kernel with one block per active model."""
        given = [self._arena.record, *arguments, active, self._start, self._levels, *more]
        self._arena.device.launch_blocks(kernel, len(active), given)


@dataclass(frozen=True, eq=False)
class _Bests:
    """The best values of every model so far, and η of its best point."""

    bound: Floats
    primal: Floats
    energy: Floats
    eta: Floats

    @classmethod
    def of(cls, count: int) -> _Bests:
        """Return initial values (no bound, no point)."""
        high = np.full(count, np.inf)
        return cls(-high, high.copy(), high, np.ones(count))

    def offer(self, active: Ints, found: Floats, means: Floats, eta: Floats) -> Ints:
        """Update the best values; return the `Keep` flags of each active model."""
        best = np.minimum(found[:, Sum.COST], means)
        what = np.where(found[:, Sum.BOUND] > self.bound[active], Keep.LAM, 0)
        better = best < self.primal[active]
        point = np.where(means < found[:, Sum.COST], Keep.MEAN, Keep.POINT)
        what |= np.where(better, point, 0)
        what |= np.where(found[:, Sum.ENERGY] < self.energy[active], Keep.LABELS, 0)
        self.bound[active] = np.maximum(self.bound[active], found[:, Sum.BOUND])
        self.primal[active] = np.minimum(self.primal[active], best)
        self.energy[active] = np.minimum(self.energy[active], found[:, Sum.ENERGY])
        self.eta[active[better]] = eta[active[better]]
        return what


class Batch:
    """Models on a device; each is annealed and checked independently.

    Attributes
    ----------
    best : _Bests
        The best bound, primal cost and energy of every model so far.
    scale : float64 array
        The scale of the costs of every model.
    passes_done : int
        Number of passes so far.
    """

    def __init__(
        self, models: Sequence[Network], device: Device, dtype: str, whole: Joined | None = None,
        deadline: core.Deadline | None = None, tuning: Tuning = TUNING,
    ) -> None:  # fmt: skip
        self._annealing = tuning.of(AnnealingRule)
        self._recent = tuning.of(AnnealNumbers).recent
        self._whole = whole = whole or joined(models)
        count = len(models)
        part = np.repeat(np.arange(count), np.diff(whole.node))
        level = _levels(whole.model)
        levels = int(level.max()) + 1
        # tiles are ragged unless a node has more half-edges than their counters can hold
        ragged = int(whole.model.graph.degree.max(initial=0)) < LIMITS.halves
        tiling = Tiling.of(whole.model, part * levels + level, ragged=ragged)
        self.arena = arena = Arena(whole.model, device, dtype, tiling, deadline)
        self._messages, self._kept = MessageArrays.of(arena), Kept.of(arena)
        self._points = Points.of(arena, easily_coupled(whole.model))
        self._heats, self._blocks = Heats.of(arena), _BlockLaunches(arena, count, levels)
        self._found = device.zeros(count * len(Sum), np.float64)
        self.scale = _scales(models, whole)
        self._eta = self._annealing.first / self.scale
        self.best, self.passes_done = _Bests.of(count), 0
        device.synchronize()
        names = [self._passes(self._heat)]
        names += [arena.kernel(name) for name in ("batch_look", "batch_keep", "to_lam")]
        names.append(arena.kernel("node_order", "double"))
        device.prepare([*names, self._passes(self._heats.coldest)])
        device.require(names)

    def _passes(self, heat: Heat) -> str:
        return self.arena.kernel("batch_passes", str(int(heat)))

    @property
    def _heat(self) -> Heat:
        return self._heats.at(float(self._eta.max()))

    def ready(self, deadline: core.Deadline | None = None) -> None:
        """Block until the kernel of the next passes can be launched.

        Raises `core.OutOfTime` if the deadline passes first.
        """
        self.arena.device.require([self._passes(self._heat)], deadline)

    def step(self, active: Ints, count: int) -> None:
        """Do `count` passes of the active models, at the η of the last check."""
        eta, m, upload = self._eta[active], self._messages, self.arena.device.upload
        longest = longest_momentum(self._annealing, eta, self.scale[active])
        heats = upload(np.stack([eta, longest], axis=1))
        given = [m.msg, m.prev, self._blocks.controls, heats, m.shift, self._points.mean]
        self._blocks.launch(
            self._passes(self._heat), upload(active.astype(np.int32)), [*given, self._recent],
            count,
        )  # fmt: skip
        self.passes_done += count

    def wait(self) -> None:
        """Block until all passes are done."""
        self.arena.device.synchronize()

    def look(self, active: Ints, began: float) -> Judged:
        """Check the active models, keep the best arrays, and raise η if the rule says so.

        `began` is the start time of the run (`time.perf_counter`).
        """
        m, p, device = self._messages, self._points, self.arena.device
        chosen = device.upload(active.astype(np.int32))
        self._blocks.launch(
            self.arena.kernel("batch_look"),
            chosen,
            [m.msg, m.polished, self._blocks.controls, m.shift, p.share, p.mu, p.label, p.mean,
             p.mean_mu, self._found],
        )  # fmt: skip
        found = device.fetch(self._found).reshape(-1, len(Sum))[active]
        averaged = p.mean is not None and self.passes_done >= 2 * SAMPLED
        means = found[:, Sum.MEAN_COST] if averaged else np.full(len(active), np.inf)
        self._keep(chosen, self.best.offer(active, found, means, self._eta))
        judged = Judged(
            active, self.passes_done, time.perf_counter() - began, self._eta[active].copy(),
            found[:, Sum.SMOOTHED], found[:, Sum.SLACK], self.best.bound[active],
            self.best.primal[active], self.best.energy[active],
        )  # fmt: skip
        self._observe(active, found, np.minimum(found[:, Sum.COST], means))
        return judged

    def _keep(self, chosen: Any, what: Ints) -> None:
        m, p, kept = self._messages, self._points, self._kept
        self._blocks.launch(
            self.arena.kernel("batch_keep"),
            chosen,
            [m.msg, m.polished, p.mu, p.mean_mu, p.label, kept.lam, kept.msg, kept.mu, kept.label,
             self.arena.device.upload(what.astype(np.int32))],
        )  # fmt: skip

    def _observe(self, active: Ints, found: Floats, best: Floats) -> None:
        """Apply the annealing rule to all active models (see `Annealed.observe`)."""
        due = eta_rises(
            self._annealing,
            self._eta[active],
            bound=found[:, Sum.BOUND],
            smoothed=found[:, Sum.SMOOTHED],
            previous=-np.inf,  # η is raised only by the rule for points
            primal=found[:, Sum.COST],
            gap=best - found[:, Sum.BOUND],
            entropy=found[:, Sum.EDGE_ENTROPY] - found[:, Sum.NODE_ENTROPY],
        )
        self._eta[active[due]] *= self._annealing.growth

    def relaxed(self) -> Relaxed:
        """Return all results, on the host."""
        arena, kept, best = self.arena, self._kept, self.best
        return Relaxed(
            self._whole, best.bound, best.primal, best.energy, best.eta,
            arena.lam(kept.lam, Lam.CUT), arena.lam(self._messages.msg, Lam.PLAIN),
            arena.labels(kept.label), arena.by_node(kept.mu),
            arena.lam(kept.msg, Lam.COUPLINGS),
        )  # fmt: skip


def _levels(model: Network) -> Ints:
    """Return the level of each node; few levels, because a block synchronises after each."""
    if model.m >= 2 * model.n:
        return model.graph.colouring().astype(np.int64)
    return levels_of(model)


def _scales(models: Sequence[Network], whole: Joined) -> Floats:
    """Return `cost_scale` of every model."""
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
