"""`Obey`: first labels that obey the hard constraints, or avoid the costs that stand for them.

Most runs find some on the way. If constraints are tight, the relaxation does not help, and a search
that propagates and learns finds labels, or proves that there are none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.feasibility import (
    FeasibilityNumbers,
    FeasibleSearch,
    HardConstraints,
    completed,
)
from softmap.labels.penalties import PenaltyNumbers, dominating_penalty
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Once, Outcome, Share, by_default
from softmap.run.values import Penalty
from softmap.subsolvers.labels.first_labels import FirstLabels
from softmap.subsolvers.labels.label_numbers import ObeyNumbers

__all__ = ["Obey"]


class Obey(Once):
    """First labels that obey the hard constraints, by a search that propagates and learns.

    If there are no hard constraints, but some costs exceed all others together, the labels should
    pay none of these costs (decision 55).
    """

    name = "labels"
    number = 3

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Obey | None:
        model, numbers = problem.model, options.tuning.of(ObeyNumbers)
        if not by_default(options) or not model.m or model.n > numbers.nodes:
            return None
        needed = float(numbers.entry_bytes * (model.unary.size + model.edge_size))
        return cls(problem, options).fitting(needed)

    def __call__(self, best: Best, share: Share) -> Outcome:
        before, numbers = best.energy, self.tuning.of(ObeyNumbers)
        if not self.problem.model.has_forbidden:
            self._avoid_penalties(best, share)
        elif not best.found:
            FirstLabels(self.problem, self.tuning)(
                best,
                self._preference,
                deadline=share.part(numbers.share),
                work=max(share.work, numbers.work),
            )
        if best.energy < before:
            best.offer_zero()
        return Outcome(active=False, ran=best.energy < before)

    @property
    def _preference(self) -> NDArray[np.float64]:
        """The preference for labels of low cost."""
        return -np.minimum(self.problem.model.unary, np.finfo(float).max)

    def _avoid_penalties(self, best: Best, share: Share) -> None:
        """Look for labels without costs that stand for hard constraints; offer what is known.

        The model is unchanged: its bounds and energies include these costs.
        """
        problem, tuning = self.problem, self.tuning
        numbers = tuning.of(ObeyNumbers)
        cost = dominating_penalty(problem.model, tuning.of(PenaltyNumbers))
        if cost is None:
            return
        try:
            constraints = HardConstraints.of(
                problem.model, problem.given, cost, share.deadline, tuning.of(FeasibilityNumbers)
            )
        except core.OutOfTime:
            return
        if constraints is None:
            return
        search = FeasibleSearch(constraints, self._preference)
        search.run(
            deadline=share.part(numbers.avoiding_share),
            conflicts=numbers.avoiding_conflicts,
        )
        verdict = "needed" if search.infeasible else "open"
        labels = completed(problem.model, search.labels) if search.found else None
        if labels is not None:
            best.offer_labels(labels)
            verdict = "avoided"
        best.offer_penalty(Penalty(cost, verdict))
