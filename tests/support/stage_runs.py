"""Stages run by themselves, as the driver runs them: a problem, the best so far, a share."""

from __future__ import annotations

from typing import Any

import numpy as np

from softmap.model import Model
from softmap.proof.search.partial import PartialSearch
from softmap.solving.best import Best
from softmap.solving.budget import Budget, Share
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.stages import Tighten
from softmap.solving.tighten import Tightening

__all__ = ["begun", "finish", "partly_searched", "tightened", "tightening"]


def finish(steps: Any) -> Any:
    """Run a generator to its end; return its value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def begun(model: Model, lam: Any, labels: Any) -> Best:
    """The best so far of a model in its own units, without unsupported states."""
    best = Best(Problem.plain(model))
    best.offer_lam(np.asarray(lam, dtype=np.float64))
    best.offer_labels(np.asarray(labels, dtype=np.int64))
    return best


def tightening(model: Model, lam: Any, labels: Any) -> Tightening:
    """The loop of the tightening stage before its first pass."""
    return Tightening(Problem.plain(model), begun(model, lam, labels))


def tightened(model: Model, lam: Any, labels: Any, *, max_work: int) -> tuple[Best, Tighten]:
    """Turns of the tightening stage until it has nothing more to do, or the work is done."""
    best, budget = begun(model, lam, labels), Budget(max_work=max_work)
    stage = Tighten(best.problem, Options())
    while stage.active and not budget.stop():
        before = budget.work
        stage(best, Share(budget, work=max_work))
        if budget.work == before:
            break
    return best, stage


def partly_searched(model: Model, lam: Any, labels: Any, **limits: Any) -> Any:
    """The exact search of the part where λ does not decide the labels."""
    return PartialSearch(model, lam, labels).run(**limits)
