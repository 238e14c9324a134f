"""Batches on a GPU: the relaxations of many models at once, each with its limits and result."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.methods.policy import Checks
from softmap.model import Model
from softmap.model.joining import Joined, joined
from softmap.relaxation.gaps import cost_step, stated_primal
from softmap.relaxation.polytope import PrimalPoint
from softmap.solving.options import Options
from softmap.solving.proof import Proof
from softmap.solving.record import cautious
from softmap.solving.result import Result
from softmap.solving.trace import PROVED, Row, Status, Trace

__all__ = ["Relaxations", "batchable", "buckets", "relax_batch"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PRICED = 1e-11  # relative difference of a point's cost between host and device (rounding)
CHECKS = Checks()
ORDINARY = (2.0**-30, 2.0**30)  # range of costs that need no scaling in single precision


def batchable(model: Model) -> bool:
    """Whether a model can be in a batch: no auxiliary nodes or hard constraints, ordinary costs."""
    if not _joint(model) or model.has_forbidden:
        return False
    most = max(
        float(np.abs(model.unary).max()),
        *(p.largest(*model.end_labels(first, last)) for first, last, p in model.groups()),
    )
    return ORDINARY[0] < most < ORDINARY[1]


def buckets(models: Sequence[Model]) -> list[tuple[list[int], Joined]]:
    """Group models with the same families and label counts; return indices and unions."""
    alike: dict[Any, list[int]] = {}
    joint = [k for k, model in enumerate(models) if _joint(model)]
    for k, labels in zip(joint, _labels([models[k] for k in joint]), strict=True):
        alike.setdefault((frozenset(map(type, models[k].potentials)), labels), []).append(k)
    found = []
    for chosen in alike.values():
        whole = joined([models[k] for k in chosen])
        if not _ordinary(whole):  # check the models one by one
            chosen = [k for k in chosen if batchable(models[k])]
            whole = joined([models[k] for k in chosen]) if chosen else whole
        if chosen:
            found.append((chosen, whole))
    return found


def _joint(model: Model) -> bool:
    return bool(model.m) and not len(model.running) and not len(model.auxiliaries)


def _labels(models: Sequence[Model]) -> list[tuple[int, int]]:
    """Return the smallest and largest label count of each model."""
    if not models:
        return []
    start = np.cumsum([0, *(model.n for model in models[:-1])])
    every = np.concatenate([model.num_labels for model in models])
    both = (op.reduceat(every, start).tolist() for op in (np.minimum, np.maximum))
    return list(zip(*both, strict=True))


def _ordinary(whole: Joined) -> bool:
    """Whether all costs are finite and need no scaling in single precision."""
    if whole.model.has_forbidden:
        return False
    largest = whole.largest
    return bool(largest.min() > ORDINARY[0] and largest.max() < ORDINARY[1])


class _Asked(NamedTuple):
    """The limits and tolerances of each model."""

    max_work: Floats
    time_limit: Floats
    lp_gap: Floats
    gap: Floats


class _BatchProgress:
    """The models of a batch that are still running, and the status of the others."""

    def __init__(self, batch: Any, models: Sequence[Model], each: Sequence[Options]) -> None:
        self.batch, self.each = batch, each
        count = len(models)
        self.status: list[Status | None] = [None] * count
        self.passes = np.zeros(count, dtype=np.int64)
        self.work_of = 2.0 * np.array([model.m for model in models])
        self.asked = _Asked(
            np.array([_or_inf(o.max_work) for o in each]),
            np.array([_or_inf(o.time_limit) for o in each]),
            np.array([o.lp_gap for o in each]),
            np.array([o.gap for o in each]),
        )
        self.constant = np.array([model.constant for model in models])
        self.models = models
        self.best_gap, self.improved = np.full(count, np.inf), np.zeros(count)
        self.active = np.arange(count)
        self.ended = np.zeros(count, dtype=bool)

    def affordable(self, wanted: int) -> int:
        """Return the number of passes until the next check, or until a work limit."""
        active = self.active
        left = self.asked.max_work[active] / self.work_of[active] - self.passes[active]
        return max(1, int(min(wanted, left.min())))

    def passed(self, count: int) -> None:
        """Record passes of the running models."""
        self.passes[self.active] += count

    def stop(self, seconds: float) -> None:
        """Set the status of models that have ended, after a check."""
        batch, active, asked = self.batch, self.active, self.asked
        best, lower = batch.best, batch.best.bound[active]
        unit = np.minimum(np.abs(lower), np.abs(lower + self.constant[active]))
        small = unit < batch.scale[active]
        for k in np.flatnonzero(small):
            unit[k] = max(unit[k], cost_step(self.models[int(active[k])]))
        lp_gap = np.maximum(best.primal[active] - lower, 0.0) / np.maximum(unit, 1e-300)
        gap = np.maximum(best.energy[active] - lower, 0.0) / np.maximum(unit, 1e-300)
        better = lp_gap < CHECKS.progress * self.best_gap[active]
        self.best_gap[active[better]] = lp_gap[better]
        self.improved[active[better]] = batch.passes_done
        patience = np.maximum(CHECKS.patience, self.passes[active] // 2)
        reasons = (
            (Status.OPTIMAL, (gap <= asked.gap[active]) & (gap <= PROVED)),
            (Status.GAP, gap <= asked.gap[active]),
            (Status.LP_GAP, lp_gap <= np.maximum(asked.lp_gap[active] - PRICED, 0.0)),
            (
                Status.WORK_LIMIT,
                self.passes[active] * self.work_of[active] >= asked.max_work[active],
            ),
            (Status.TIME_LIMIT, seconds >= asked.time_limit[active]),
            (Status.STALLED, batch.passes_done - self.improved[active] > patience),
        )
        for status, holds in reasons:
            for k in active[holds & ~self.ended[active]].tolist():
                self.status[k], self.ended[k] = status, True
        self.active = active[~self.ended[active]]


def relax_batch(
    models: Sequence[Model], each: Sequence[Options], whole: Joined | None = None
) -> Relaxations:
    """Solve the relaxations of a group of models, one thread block per model."""
    from softmap.methods.cuda import find_device
    from softmap.methods.cuda.batch import Batch

    began = time.perf_counter()
    dtype = each[0].precision
    batch = Batch(models, find_device(), dtype, whole)
    setup, started = time.perf_counter() - began, time.perf_counter()
    progress, looks = _BatchProgress(batch, models, each), []
    while len(progress.active):
        done = batch.passes_done
        count = progress.affordable(CHECKS.passes_to_next(done, 1.0))
        batch.step(progress.active, count)
        progress.passed(count)
        looks.append(batch.look(progress.active, started))
        progress.stop(time.perf_counter() - started)
    return Relaxations(batch, progress, looks, setup)


class Relaxations:
    """The relaxations of a batch; results are computed lazily.

    The arrays of all models stay on the device until the first result is requested.
    """

    def __init__(
        self, batch: Any, progress: _BatchProgress, looks: list[Any], setup: float
    ) -> None:
        self._batch, self._progress, self._looks, self._setup = batch, progress, looks, setup

    def status(self, k: int) -> Status:
        """Return why model `k` was stopped."""
        return self._progress.status[k] or Status.STALLED

    @cached_property
    def _found(self) -> Any:
        found = self._batch.relaxed()
        self._batch = None  # frees its memory on the device
        return found

    def _rows(self, k: int) -> list[Row]:
        model, rows = self._progress.models[k], []
        constant = model.constant
        for look in self._looks:
            at = int(np.searchsorted(look.models, k))
            if at == len(look.models) or look.models[at] != k:
                break
            columns = (look.eta, look.bound, look.smoothed, look.primal, look.energy, look.slack)
            eta, bound, smoothed, primal, energy, slack = (float(c[at]) for c in columns)
            rows.append(
                Row(2 * model.m * look.passes, float(look.passes), look.seconds, eta,
                    _lowered(bound, constant), smoothed + constant, primal + constant,
                    energy + constant, slack)
            )  # fmt: skip
        return rows

    def _point(self, k: int, labels: Ints, energy: float) -> tuple[PrimalPoint, float]:
        """Return the better of the labels and the device's point, with its cost.

        The cost is recomputed on the host, because the device rounds differently.
        """
        found, model, whole = self._found, self._progress.models[k], self._found.whole
        plain = model if model.constant == 0 else model.replace(constant=0.0)
        ours = PrimalPoint(plain, labels=labels), energy
        if math.isinf(found.primal[k]):  # no feasible point
            return ours
        states = slice(int(whole.state[k]), int(whole.state[k + 1]))
        halves = slice(int(whole.half_state[k]), int(whole.half_state[k + 1]))
        coupling, eta = found.coupling[halves], float(found.eta[k])
        point = PrimalPoint(plain, found.nodes[states], None, coupling, eta)
        try:
            cost = point.make().cost + model.constant
        except OptionError:  # with hard constraints, rounding may leave no feasible coupling
            return ours
        return (point, cost) if cost < energy else ours

    def result(self, k: int) -> Result:
        """Return the result of model `k`."""
        found, model, options = self._found, self._progress.models[k], self._progress.each[k]
        whole, rows = found.whole, self._rows(k)
        nodes = slice(int(whole.node[k]), int(whole.node[k + 1]))
        halves = slice(int(whole.half_state[k]), int(whole.half_state[k + 1]))
        labels = found.labels[nodes].copy()
        energy = float(model.energy(labels))
        point, cost = self._point(k, labels, energy)
        bound = _lowered(float(found.bound[k]), model.constant)
        primal = stated_primal(cost, bound, energy)
        rows = [_no_better(row, bound, primal, energy) for row in rows[:-1]] + [
            replace(rows[-1], bound=bound, primal=primal, energy=energy)
        ]
        result = Result(
            model=model, method="anneal", status=self.status(k), labels=labels, energy=energy,
            bound=bound, primal=primal, lam=found.lam[halves], eta=rows[-1].eta,
            trace=Trace(rows), work=rows[-1].work, sweeps=rows[-1].sweeps,
            seconds=rows[-1].seconds, setup_seconds=self._setup, threads=1,
            messages=found.messages[halves], point=point, lp_bound=bound, proof=Proof(),
            tolerances=(options.lp_gap, options.gap),
        )  # fmt: skip
        return cautious(result)  # rounding may decide the status


def _no_better(row: Row, bound: float, primal: float, energy: float) -> Row:
    """Return a row of the trace that is not better than the result, whose rounding differs."""
    return replace(
        row,
        bound=min(row.bound, bound),
        primal=max(row.primal, primal),
        energy=max(row.energy, energy),
    )


def _or_inf(limit: float | None) -> float:
    return math.inf if limit is None else limit


def _lowered(value: float, constant: float) -> float:
    """Return `value + constant`, rounded down."""
    return float(core.lower_sum(np.array([value, constant])))
