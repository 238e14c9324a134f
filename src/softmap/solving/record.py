"""The trace of a run in the user's units, and what the run tells while it goes on."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.solving.best import Best
from softmap.solving.budget import Budget
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.relax import Check, Relaxation
from softmap.solving.result import Result
from softmap.solving.trace import Row, Snapshot, StageName, Trace

__all__ = ["LOG", "Record", "watcher"]

LOG = logging.getLogger("softmap")
LOG.addHandler(logging.NullHandler())


class Record:
    """Writes the trace: one row per check of the relaxation and per turn of another stage.

    Attributes
    ----------
    trace : Trace
        In the user's units.
    """

    def __init__(self, problem: Problem, best: Best, budget: Budget, trace: Trace) -> None:
        self.trace = trace
        self._problem, self._best, self._budget = problem, best, budget
        self._priced: tuple[Any, float] = (None, math.inf)

    def note(
        self, relaxation: Relaxation, stage: StageName, check: Check | None = None
    ) -> Snapshot:
        """Add a row about where the run stands."""
        problem, best, check = self._problem, self._best, check or Check()
        energy = self.energy(best.labels, best.energy)
        primal = primal_back(problem, best.primal, best.energy, energy)
        if len(self.trace):  # the user's units may have rounded an earlier one down
            primal = min(primal, self.trace[-1].primal)
        row = Row(
            work=self._budget.work,
            sweeps=relaxation.sweeps,
            seconds=self._budget.seconds,
            eta=problem.eta_back(relaxation.at.eta),
            bound=problem.bound_back(best.bound),
            smoothed=math.nan if check.smoothed is None else problem.cost_back(check.smoothed),
            primal=primal,
            energy=energy,
            slack=check.slack,
            stage=stage,
        )
        self.trace.rows.append(row)
        LOG.debug("%s", row)
        return Snapshot(problem.given, row, best.labels)

    def energy(self, labels: NDArray[np.int64], energy: float) -> float:
        """The energy of labels in the user's units, given that in the units of the problem."""
        if not math.isfinite(energy) or self._problem.given is self._problem.scaled:
            return energy
        if labels is not self._priced[0]:  # the best labels stay the same for many checks
            self._priced = labels, float(self._problem.given.energy(labels))
        return self._priced[1]


def primal_back(problem: Problem, primal: float, energy: float, energy_back: float) -> float:
    """A primal value in the user's units: never above the energy."""
    return energy_back if primal >= energy else min(problem.cost_back(primal), energy_back)


class Watcher:
    """Shows a run to a person who asked for it."""

    def __init__(self, show: Callable[[Snapshot], Any], end: Callable[[Result], Any]) -> None:
        self.show, self.end = show, end


def watcher(problem: Problem, options: Options) -> Watcher:
    """Log that a run begins, and make what shows it: a progress bar, lines, or nothing."""
    LOG.info("solving %r by %s, goal %s", problem.given, options.method, options.goal)
    if not options.verbose and not options.progress:
        return Watcher(lambda snapshot: None, _log_end)
    from softmap.views.watching import Watching

    limits = {"time_limit": options.time_limit, "gap": options.gap}
    watching = Watching(verbose=options.verbose, progress=options.progress, limits=limits)

    def end(result: Result) -> None:
        _log_end(result)
        watching.end(result)

    return Watcher(watching, end)


def _log_end(result: Result) -> None:
    LOG.info("%r after %.3g s: %s", result, result.seconds, result.status)
