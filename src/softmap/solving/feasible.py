"""Labels that obey the hard constraints, before anything else is tried.

Most runs find some on the way. Where constraints are tight, the relaxation does not help, and a
search that propagates and learns finds labels, or proves that there are none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.feasibility import (
    FeasibleSearch,
    HardConstraints,
    complete_labels,
    infeasibility,
)
from softmap.labels.penalties import dominating_penalty
from softmap.model import Model
from softmap.solving.best import Best
from softmap.solving.problem import Problem
from softmap.solving.proof import Penalty
from softmap.solving.stage import Share
from softmap.tuning import Tuning

__all__ = ["FirstLabels", "find_first_labels"]


class FirstLabels:
    """A search for labels that obey the hard constraints of a problem; calls continue it.

    Parameters
    ----------
    problem : Problem
    tuning : Tuning
    """

    def __init__(self, problem: Problem, tuning: Tuning) -> None:
        self.problem, self.tuning = problem, tuning
        self._search: FeasibleSearch | None = None
        self.active = True

    def __call__(
        self,
        best: Best,
        preference: NDArray[np.float64] | None,
        *,
        deadline: core.Deadline,
        work: int,
    ) -> None:
        """Offer labels if some are found; raise `InfeasibleModel` if there are none.

        Parameters
        ----------
        best : Best
            Receives the labels.
        preference : float64 array or None
            Labels of larger preference are tried first.
        deadline : core.Deadline
            When to stop.
        work : int
            Limit on the number of elementary steps.
        """
        if not self.active:
            return
        model = self.problem.model
        if self._search is None:
            constraints = HardConstraints.of(model, self.problem.given)
            self.active = constraints is not None
            if constraints is None:
                return
            self._search = FeasibleSearch(constraints, preference)
        search = self._search
        conflicts = work // self.tuning.conflict_entries
        self.active = not search.run(deadline=deadline, conflicts=conflicts)
        if search.infeasible:
            raise infeasibility(self.problem.given, deadline.within(deadline.left / 2))
        if search.found and (labels := complete_labels(model, search.labels)) is not None:
            best.offer_labels(labels)


def find_first_labels(problem: Problem, best: Best, share: Share, tuning: Tuning) -> bool:
    """Look for labels before the relaxation; return whether some were found.

    If there are no hard constraints, but some costs exceed all others together, the labels should
    pay none of these costs (decision 55).

    Parameters
    ----------
    problem : Problem
    best : Best
        Receives the labels.
    share : Share
        The slice for it.
    tuning : Tuning
    """
    model, before = problem.model, best.energy
    if model.n > tuning.large or not model.m:
        return False
    if not model.has_forbidden:
        _avoid_penalties(problem, best, share, tuning)
    elif not best.found:
        FirstLabels(problem, tuning)(
            best,
            _cheap(model),
            deadline=share.part(tuning.first_share),
            work=max(share.work, tuning.obeyed_work),
        )
    if not best.energy < before:
        return False
    best.offer_zero()
    return True


def _cheap(model: Model) -> NDArray[np.float64]:
    """The preference for labels of low cost."""
    return -np.minimum(model.unary, np.finfo(float).max)


def _avoid_penalties(problem: Problem, best: Best, share: Share, tuning: Tuning) -> None:
    """Look for labels without costs that stand for hard constraints; offer what is known of them.

    The model stays as it is: its bounds and energies include these costs.
    """
    model = problem.model
    cost = dominating_penalty(model)
    constraints = None
    if cost is not None:
        constraints = HardConstraints.of(model, problem.given, barrier=cost)
    if cost is None or constraints is None:
        return
    search = FeasibleSearch(constraints, _cheap(model))
    search.run(
        deadline=share.part(tuning.first_share),
        conflicts=tuning.obeyed_work // tuning.conflict_entries,
    )
    verdict = "needed" if search.infeasible else "open"
    if search.found and (labels := complete_labels(model, search.labels)) is not None:
        best.offer_labels(labels)
        verdict = "avoided"
    best.offer_penalty(Penalty(cost, verdict))
