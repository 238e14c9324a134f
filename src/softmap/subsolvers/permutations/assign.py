"""`Assign`: linear assignments."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from softmap import core
from softmap.labels.assignment import (
    AssignmentNumbers,
    assign,
    assignment_lam,
    solve_assignment,
)
from softmap.model import AllDifferent, Model
from softmap.model.chains import SIZES
from softmap.model.sums import careful_sums
from softmap.run.at_once import answer, may_answer
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.subsolver import Once, Outcome, Share, by_default

__all__ = ["Assign"]


class Assign(Once):
    """A linear assignment: unary costs, and labels that are all different."""

    name = "labels"
    number = 3

    @classmethod
    def at_once(cls, model: Model, options: Options) -> Result | None:
        """Return the result of a linear assignment if nothing needs its chains.

        λ, which proves the bound, and the marginals are lazily computed from the prices.
        """
        if not model.constraints or not may_answer(options):
            return None
        began, factor = time.perf_counter(), _different(model)
        if factor is None:
            return None
        costs = model.unary.reshape(model.n, -1)
        order, numbers = list(factor.variables), options.tuning.of(AssignmentNumbers)
        assigned = assign(costs[order], core.Deadline(options.seconds), numbers)
        if assigned is None:
            return None
        labels = np.empty(len(order), dtype=np.int64)
        labels[order] = assigned.labels
        chosen = costs[np.arange(len(labels)), labels]
        energy = float(careful_sums(np.append(chosen, model.constant)))
        bound = float(core.lower_sum(np.array([assigned.bound, model.constant])))
        lam = cache(lambda: assignment_lam(model.network, factor, assigned.prices))
        seconds = time.perf_counter() - began
        return answer(model, options, cls.name, labels, (energy, bound), lam, seconds)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Assign | None:
        fits = by_default(options) and len(problem.given.required) > 0
        return cls(problem, options) if fits else None

    def __call__(self, best: Best, share: Share) -> Outcome:
        numbers = self.tuning.of(AssignmentNumbers)
        found = solve_assignment(self.problem.model, self.problem.given, share.deadline, numbers)
        if found is None:
            return Outcome(active=False, ran=False)
        best.offer_labels(found[0])
        best.offer_lam(found[1])
        return Outcome(active=False)


def _different(model: Model) -> AllDifferent | None:
    """Return the constraint of a linear assignment: over all variables, with equal label counts.

    All other costs are those of single variables. A constraint of so few joint states that the
    network has a table for it is left to the run: λ is made from chains.
    """
    if len(model.constraints) != 1 or model.m or model.factors:
        return None
    factor, counts = model.constraints[0], model.num_labels
    if not isinstance(factor, AllDifferent) or len(factor.variables) != model.n:
        return None
    chained = model.n > 2 and float(counts[0]) ** model.n > SIZES.dense
    return factor if chained and bool((counts == counts[0]).all()) else None
