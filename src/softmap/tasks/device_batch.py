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
from softmap.drive.assembly import Spent, assembled, cautious
from softmap.labels.energies import energy_of
from softmap.methods.policy import Checks, passes_to_next
from softmap.model import Model, Network
from softmap.model.joining import Joined, joined
from softmap.relaxation.gaps import PROVED, cost_step
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.best import Best
from softmap.run.judge import Judge
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.trace import Row, Status, Trace

__all__ = ["Relaxations", "batchable", "buckets", "relax_batch"]

Floats = NDArray[np.float64]
PRICED = 1e-11  # relative difference of a point's cost between host and device (rounding)
ORDINARY = (2.0**-30, 2.0**30)  # range of costs that need no scaling in single precision


def batchable(model: Network) -> bool:
    """Whether a model can be in a batch: no auxiliary nodes or hard constraints, ordinary costs."""
    if not _joint(model) or model.has_forbidden:
        return False
    most = max(
        float(np.abs(model.unary).max()),
        *(p.largest(*model.end_labels(first, last)) for first, last, p in model.groups()),
    )
    return ORDINARY[0] < most < ORDINARY[1]


def buckets(models: Sequence[Network]) -> list[tuple[list[int], Joined]]:
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


def _joint(model: Network) -> bool:
    return bool(model.m) and model.is_plain


def _labels(models: Sequence[Network]) -> list[tuple[int, int]]:
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
        self._best, self._checks = batch.best, each[0].tuning.of(Checks)
        self.models, self.each, self.scale = models, each, batch.scale
        count = len(models)
        self.status: list[Status | None] = [None] * count
        self.passes = np.zeros(count, dtype=np.int64)
        self.work_of = 2.0 * np.array([model.m for model in models])
        self.asked = _Asked(
            np.array([_or_inf(o.max_work) for o in each]),
            np.array([o.seconds for o in each]),
            np.array([o.lp_gap for o in each]),
            np.array([o.gap for o in each]),
        )
        self.constant = np.array([model.constant for model in models])
        self.best_gap, self.improved = np.full(count, np.inf), np.zeros(count)
        self.active = np.arange(count)
        self.ended = np.zeros(count, dtype=bool)

    def to_next_check(self, done: int) -> int:
        """Return the number of passes until the next check, or until a work limit."""
        active = self.active
        left = self.asked.max_work[active] / self.work_of[active] - self.passes[active]
        return max(1, int(min(passes_to_next(self._checks, done, 1.0), left.min())))

    def end(self, began: float) -> float:
        """Return when the first time limit of a running model passes, if it counts from `began`."""
        return began + float(self.asked.time_limit[self.active].min())

    def passed(self, count: int) -> None:
        """Record passes of the running models."""
        self.passes[self.active] += count

    def stop(self, done: int, seconds: float) -> None:
        """Set the status of models that have ended, after a check.

        This is `BestValues.met` and `CheckTimes.has_stalled` over arrays: one call per model would
        take longer than the passes.
        """
        best, active, asked, checks = self._best, self.active, self.asked, self._checks
        lower = best.bound[active]
        unit = np.minimum(np.abs(lower), np.abs(lower + self.constant[active]))
        small = unit < self.scale[active]
        for k in np.flatnonzero(small):
            unit[k] = max(unit[k], cost_step(self.models[int(active[k])].network))
        lp_gap = np.maximum(best.primal[active] - lower, 0.0) / np.maximum(unit, 1e-300)
        gap = np.maximum(best.energy[active] - lower, 0.0) / np.maximum(unit, 1e-300)
        better = lp_gap < checks.progress * self.best_gap[active]
        self.best_gap[active[better]] = lp_gap[better]
        self.improved[active[better]] = done
        patience = np.maximum(checks.patience, self.passes[active] // 2)
        reasons = (
            (Status.OPTIMAL, (gap <= asked.gap[active]) & (gap <= PROVED)),
            (Status.GAP, gap <= asked.gap[active]),
            (Status.LP_GAP, lp_gap <= np.maximum(asked.lp_gap[active] - PRICED, 0.0)),
            (
                Status.WORK_LIMIT,
                self.passes[active] * self.work_of[active] >= asked.max_work[active],
            ),
            (Status.TIME_LIMIT, seconds >= asked.time_limit[active]),
            (Status.STALLED, done - self.improved[active] > patience),
        )
        for status, holds in reasons:
            for k in active[holds & ~self.ended[active]].tolist():
                self.status[k], self.ended[k] = status, True
        self.active = active[~self.ended[active]]


def relax_batch(
    models: Sequence[Model], each: Sequence[Options], whole: Joined | None = None,
    began: float | None = None,
) -> Relaxations:  # fmt: skip
    """Solve the relaxations of a group of models, one thread block per model.

    Time limits count from `began` (`time.perf_counter`), by default from now. Raises
    `core.OutOfTime` if all of them pass before the device is ready.
    """
    began = time.perf_counter() if began is None else began
    from softmap.methods.cuda.batch import Batch
    from softmap.methods.cuda.cupy_device import chosen_device, find_device, require_cupy
    from softmap.methods.cuda.waiting import Aside

    require_cupy()
    limit, dtype = max(options.seconds for options in each), each[0].precision
    deadline = None if limit == math.inf else core.Deadline().at(began + limit)
    number = chosen_device()
    networks = [model.network for model in models]
    tuning = each[0].tuning
    batch = Aside()(
        lambda: Batch(networks, find_device(number), dtype, whole, deadline, tuning), deadline
    )
    setup = time.perf_counter() - began
    progress, looks, passes = _BatchProgress(batch, models, each), [], BatchPasses(batch, deadline)
    closing = math.inf  # the least time of a check so far, in seconds
    while len(progress.active):
        kept = 0.0 if closing == math.inf else closing
        wanted = progress.to_next_check(batch.passes_done)
        progress.passed(passes.make(progress.active, wanted, progress.end(began) - kept))
        looked = time.perf_counter()
        looks.append(batch.look(progress.active, began + setup))
        now = time.perf_counter()
        closing = min(closing, now - looked)
        progress.stop(batch.passes_done, now - began + closing)
    return Relaxations(batch, progress, looks, setup)


class BatchPasses:
    """The launches of passes of a batch: short ones if a time limit has to be kept.

    Parameters
    ----------
    batch : Batch
        The models on the device.
    deadline : core.Deadline or None
        The last of the time limits; None if no model has one.
    """

    def __init__(self, batch: Any, deadline: core.Deadline | None) -> None:
        self._batch, self._deadline = batch, deadline

    def make(self, active: Any, wanted: int, end: float) -> int:
        """Make passes of the active models; return how many.

        Parameters
        ----------
        active : int array
            The models.
        wanted : int
            The number of passes.
        end : float
            Time of `time.perf_counter` after which no launch begins; there is one in any case.
        """
        from softmap.methods.cuda.waiting import UNSEEN  # imported late: few batches are on a GPU

        batch, done = self._batch, 0
        try:
            batch.ready(self._deadline)
        except core.OutOfTime:
            return 0
        at_once = wanted if end == math.inf else 1
        while done < wanted:
            at_once, began = min(at_once, wanted - done), time.perf_counter()
            batch.step(active, at_once)
            done += at_once
            if end < math.inf:
                batch.wait()
                each = (time.perf_counter() - began) / at_once
                at_once = max(1, int(UNSEEN / max(each, 1e-9)))
                if time.perf_counter() >= end:
                    break
        return done


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

    def _rows(self, k: int, problem: Problem) -> list[Row]:
        rows, cost = [], problem.cost_back
        for look in self._looks:
            at = int(np.searchsorted(look.models, k))
            if at == len(look.models) or look.models[at] != k:
                break
            columns = (look.eta, look.bound, look.smoothed, look.primal, look.energy, look.slack)
            eta, bound, smoothed, primal, energy, slack = (float(c[at]) for c in columns)
            rows.append(
                Row(2 * problem.model.m * look.passes, float(look.passes), look.seconds, eta,
                    problem.bound_back(bound), cost(smoothed), cost(primal), cost(energy), slack)
            )  # fmt: skip
        return rows

    def _best(self, k: int, problem: Problem) -> Best:
        """The best values of model `k`.

        Costs are computed again on the host, because the device rounds differently.
        """
        found, best = self._found, Best(problem)
        whole, eta = found.whole, float(found.eta[k])
        at = {name: slice(*getattr(whole, name)[k : k + 2]) for name in ("node", "state")}
        halves = slice(*whole.half_state[k : k + 2])
        best.offer_lp_bound(float(found.bound[k]), found.lam[halves])
        best.offer_labels(found.labels[at["node"]].copy())
        if math.isfinite(found.primal[k]):
            nodes, coupling = found.nodes[at["state"]], found.coupling[halves]
            Judge(best).point(PrimalPoint(problem.model, nodes, None, coupling, eta))
        return best

    def result(self, k: int) -> Result:
        """Return the result of model `k`."""
        model, options = self._progress.models[k], self._progress.each[k]
        problem = Problem.unscaled(model, float(self._progress.scale[k]))
        best, rows = self._best(k, problem), self._rows(k, problem)
        priced, last = (best.labels, energy_of(problem.given, best.labels)), rows[-1]
        spent = Spent(last.work, last.sweeps, last.seconds, self._setup)
        halves = slice(*self._found.whole.half_state[k : k + 2])
        messages, trace = self._found.messages[halves], Trace(rows)
        result = assembled(options, best, priced, trace, spent, messages, self.status(k))
        trace.rows[-1] = replace(
            last, bound=result.bound, lp_bound=result.lp_bound, primal=result.primal,
            energy=result.energy,
        )  # fmt: skip
        return cautious(result)  # rounding may decide the status


def _or_inf(limit: float | None) -> float:
    return math.inf if limit is None else limit
