"""Stages run by themselves, as the driver runs them: a problem, the best so far, a share."""

from __future__ import annotations

from typing import Any

import numpy as np

from softmap.model import Model, checked_network
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Board, LacksMemory, Plan, Share, Subsolver, View
from softmap.subsolvers.clusters.tighten import Tighten
from softmap.subsolvers.clusters.tightening import Tightening
from softmap.tuning import TUNING

__all__ = ["begun", "finish", "planned", "suits", "tightened", "tightening"]


def finish(steps: Any) -> Any:
    """Run a generator to its end; return its value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def suits(kind: type[Subsolver], problem: Problem, options: Options | None = None) -> bool:
    """Whether a run with these options has a subsolver of this kind."""
    try:
        return kind.make(problem, options or Options()) is not None
    except LacksMemory:
        return False


def planned(
    subsolver: Subsolver,
    best: Best,
    board: Board | None = None,
    bound_seconds: float = 0.0,
    *,
    slow: bool = False,
) -> Plan | None:
    """The plan of a subsolver when the schedule chooses who is next."""
    return subsolver.plan(View(best, board or Board(), bound_seconds, slow=slow))


def begun(model: Model, lam: Any, labels: Any) -> Best:
    """The best so far of a model in its own units, without unsupported states."""
    best = Best(Problem.plain(checked_network(model)))
    best.offer_lam(np.asarray(lam, dtype=np.float64))
    best.offer_labels(np.asarray(labels, dtype=np.int64))
    return best


def tightening(model: Model, lam: Any, labels: Any) -> Tightening:
    """The loop of the tightening stage before its first pass."""
    return Tightening(Problem.plain(checked_network(model)), begun(model, lam, labels), TUNING)


def tightened(model: Model, lam: Any, labels: Any, *, max_work: int) -> tuple[Best, bool]:
    """Slices of the tightening stage until the work is done; whether the stage is still active."""
    best, stage = (
        begun(model, lam, labels),
        Tighten(Problem.plain(checked_network(model)), Options()),
    )
    active, done = True, 0
    while active and done < max_work:
        outcome = stage(best, Share(Budget(), work=max_work))
        active, done = outcome.active, done + (outcome.work or max_work)
    return best, active
