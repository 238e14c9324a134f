"""Stages run by themselves, as the driver runs them: a problem, the best so far, a share."""

from __future__ import annotations

from typing import Any

import numpy as np

from softmap.model import Model
from softmap.solving.best import Best
from softmap.solving.budget import Budget
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.stage import Share, Stage, traits
from softmap.solving.stages.tighten import Tighten
from softmap.solving.tightening import Tightening
from softmap.tuning import TUNING

__all__ = ["begun", "finish", "suits", "tightened", "tightening"]


def finish(steps: Any) -> Any:
    """Run a generator to its end; return its value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def suits(kind: type[Stage], problem: Problem, options: Options | None = None) -> bool:
    """Whether a run with these options has a stage of this kind."""
    given = options or Options()
    return kind.needs <= traits(problem, given) and kind(problem, given).applies()


def begun(model: Model, lam: Any, labels: Any) -> Best:
    """The best so far of a model in its own units, without unsupported states."""
    best = Best(Problem.plain(model))
    best.offer_lam(np.asarray(lam, dtype=np.float64))
    best.offer_labels(np.asarray(labels, dtype=np.int64))
    return best


def tightening(model: Model, lam: Any, labels: Any) -> Tightening:
    """The loop of the tightening stage before its first pass."""
    return Tightening(Problem.plain(model), begun(model, lam, labels), TUNING)


def tightened(model: Model, lam: Any, labels: Any, *, max_work: int) -> tuple[Best, bool]:
    """Slices of the tightening stage until the work is done; whether the stage is still active."""
    best, stage = begun(model, lam, labels), Tighten(Problem.plain(model), Options())
    active, done = stage.applies(), 0
    while active and done < max_work:
        outcome = stage(best, Share(Budget(), work=max_work))
        active, done = outcome.active, done + (outcome.work or max_work)
    return best, active
