"""`Assign`: linear assignments."""

from __future__ import annotations

from softmap.solving.best import Best
from softmap.solving.stage import Once, Outcome, Share, Trait
from softmap.solving.trace import StageName

__all__ = ["Assign"]


class Assign(Once):
    """A linear assignment: unary costs, and labels that are all different."""

    name = StageName.LABELS
    needs = frozenset({Trait.DEFAULT, Trait.MANY})

    def __call__(self, best: Best, share: Share) -> Outcome:
        from softmap.labels.assignment import solve_assignment  # imported late: few models need it

        found = solve_assignment(self.problem.model, self.problem.given, share.deadline)
        if found is None:
            return Outcome(active=False, ran=False)
        best.offer_labels(found[0])
        best.offer_lam(found[1])
        return Outcome(active=False)
