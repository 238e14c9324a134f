"""`Assign`: linear assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Once, Outcome, Share, by_default

if TYPE_CHECKING:
    from softmap.model import Model
    from softmap.run.result import Result

__all__ = ["Assign"]


class Assign(Once):
    """A linear assignment: unary costs, and labels that are all different."""

    name = "labels"
    number = 3

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Assign | None:
        fits = by_default(options) and len(problem.given.required) > 0
        return cls(problem, options) if fits else None

    @classmethod
    def at_once(cls, model: Model, options: Options) -> Result | None:
        if not model.constraints:
            return None
        from softmap.subsolvers.permutations.assigned import assigned  # imported late, too

        return assigned(model, options)

    def __call__(self, best: Best, share: Share) -> Outcome:
        from softmap.labels.assignment import (  # imported late: few models need it
            AssignmentNumbers,
            solve_assignment,
        )

        numbers = self.tuning.of(AssignmentNumbers)
        found = solve_assignment(self.problem.model, self.problem.given, share.deadline, numbers)
        if found is None:
            return Outcome(active=False, ran=False)
        best.offer_labels(found[0])
        best.offer_lam(found[1])
        return Outcome(active=False)
