"""`Assign`: linear assignments."""

from __future__ import annotations

from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Once, Outcome, Share, by_default
from softmap.run.trace import StageName

__all__ = ["Assign"]


class Assign(Once):
    """A linear assignment: unary costs, and labels that are all different."""

    name = StageName.LABELS

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Assign | None:
        fits = by_default(options) and len(problem.given.required) > 0
        return cls(problem, options) if fits else None

    def __call__(self, best: Best, share: Share) -> Outcome:
        from softmap.labels.assignment import solve_assignment  # imported late: few models need it

        found = solve_assignment(self.problem.model, self.problem.given, share.deadline)
        if found is None:
            return Outcome(active=False, ran=False)
        best.offer_labels(found[0])
        best.offer_lam(found[1])
        return Outcome(active=False)
