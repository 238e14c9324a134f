"""`Cut`: submodular models of two labels, solved by one minimum cut."""

from __future__ import annotations

from softmap.labels.cuts import solve_binary
from softmap.solving.best import Best
from softmap.solving.stage import Once, Outcome, Share, Trait
from softmap.solving.trace import StageName

__all__ = ["Cut"]


class Cut(Once):
    """The minimum cut of a submodular model of two labels; its flow is λ that proves the labels."""

    name = StageName.CUT
    needs = frozenset({Trait.DEFAULT, Trait.PAIRS, Trait.TWO_LABELS})

    def __call__(self, best: Best, share: Share) -> Outcome:
        found = solve_binary(
            self.problem.model, deadline=share.deadline, threads=self.problem.threads
        )
        if found is None:
            return Outcome(active=False, ran=False)
        best.offer_labels(found[0])
        best.offer_lam(found[1])
        return Outcome(active=False)
