"""`Assign`: linear assignments."""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from softmap import core
from softmap.labels.assignment import Assignment, assign, assignment_lam, solve_assignment
from softmap.machine import usable_cores
from softmap.model import AllDifferent, Model
from softmap.model.potentials.base import Ints
from softmap.model.sums import careful_sums
from softmap.relaxation.dual import Floats
from softmap.relaxation.gaps import PROVED
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.best import Best
from softmap.run.evidence import Relaxation
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.subsolver import Once, Outcome, Share, by_default
from softmap.run.trace import Row, Status, Trace

__all__ = ["Assign"]

OTHER_STAGES = (
    "max_work", "updates", "warm_start", "initial", "upper_bound", "checkpoint", "proof",
    "on_snapshot", "eta",
)  # fmt: skip
"""Options that need the stages of a run, and the chains of the model."""


class Assign(Once):
    """A linear assignment: unary costs, and labels that are all different."""

    name = "labels"
    number = 3

    @classmethod
    def at_once(cls, model: Model, options: Options) -> Result | None:
        """Return the result of a linear assignment if nothing needs its chains.

        λ, which proves the bound, and the marginals are lazily computed from the prices.
        """
        begin = time.perf_counter()
        factor = _different(model) if _is_plain(options) else None
        if factor is None:
            return None
        costs = model.unary.reshape(model.n, -1)
        order = list(factor.variables)
        found = assign(costs[order], core.Deadline(options.seconds))
        if found is None:
            return None
        labels = np.empty(len(order), dtype=np.int64)
        labels[order] = found.labels
        chosen = costs[np.arange(len(labels)), labels]
        energy = float(careful_sums(np.append(chosen, model.constant)))
        bound = min(energy, float(core.lower_sum(np.array([found.bound, model.constant]))))
        # this unit is at most that of `softmap.relaxation.gaps`, which needs costs of the chains
        if energy - bound > PROVED * min(abs(bound), abs(bound - model.constant)):
            return None
        answer = _Found(factor, labels, found, energy, bound, time.perf_counter() - begin)
        return answer.result(model, options)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Assign | None:
        fits = by_default(options) and len(problem.given.required) > 0
        return cls(problem, options) if fits else None

    def __call__(self, best: Best, share: Share) -> Outcome:
        found = solve_assignment(self.problem.model, self.problem.given, share.deadline)
        if found is None:
            return Outcome(active=False, ran=False)
        best.offer_labels(found[0])
        best.offer_lam(found[1])
        return Outcome(active=False)


def _different(model: Model) -> AllDifferent | None:
    """Return the constraint of a linear assignment: over all variables, with equal label counts.

    All other costs are those of single variables.
    """
    if len(model.constraints) != 1 or model.m or model.factors:
        return None
    factor, counts = model.constraints[0], model.num_labels
    if not isinstance(factor, AllDifferent) or len(factor.variables) != model.n:
        return None
    return factor if bool((counts == counts[0]).all()) else None


def _is_plain(options: Options) -> bool:
    shown = options.verbose or options.progress
    default = options.method == "anneal" and options.backend == "cpu" and options.goal != "lp"
    return default and not shown and all(getattr(options, name) is None for name in OTHER_STAGES)


class _Found(NamedTuple):
    """Labels and prices of a linear assignment, with their cost, bound and time in seconds."""

    factor: AllDifferent
    labels: Ints
    found: Assignment
    energy: float
    bound: float
    seconds: float

    def result(self, model: Model, options: Options) -> Result:
        """Return the result of the run."""

        @cache
        def made() -> Floats:
            return assignment_lam(model.network, self.factor, self.found.prices)

        lam: Any = made  # `Result` calls it at the first access
        point: Any = self._point(model)
        row = Row(
            work=0, sweeps=0.0, seconds=self.seconds, eta=1.0, bound=self.bound, smoothed=math.nan,
            primal=self.energy, energy=self.energy, slack=math.nan, stage="labels",
        )  # fmt: skip
        return Result(
            model=model, method=options.method, status=Status.OPTIMAL, labels=self.labels,
            energy=self.energy, bound=self.bound, primal=self.energy, lam=lam, messages=lam,
            eta=row.eta, trace=Trace([row]), work=0, sweeps=0.0, seconds=self.seconds,
            setup_seconds=0.0, threads=options.threads or usable_cores(), point=point,
            lp_bound=self.bound, proof=Relaxation(value=self.bound),
            tolerances=(options.lp_gap, options.gap),
        )  # fmt: skip

    def _point(self, model: Model) -> Any:
        """Return a function that returns the vertex of the labels."""
        return lambda: PrimalPoint(model.network, labels=self.labels)
