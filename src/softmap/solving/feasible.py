"""Labels that obey the hard constraints, before anything else is tried.

Most runs find some on the way. Where constraints are tight, the relaxation does not help, and a
search that propagates and learns finds labels, or proves that there are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.labels.feasibility import TUNING as FEASIBILITY
from softmap.labels.feasibility import (
    FeasibleSearch,
    HardConstraints,
    complete_labels,
    infeasibility,
)
from softmap.solving.best import Best
from softmap.solving.budget import Budget
from softmap.solving.problem import Problem

__all__ = ["FirstLabels", "find_first_labels"]


@dataclass(frozen=True)
class FirstLabelsTuning:
    """Tuning numbers of the search for first labels.

    Attributes
    ----------
    nodes : int
        Largest number of nodes of a model that is searched before the relaxation.
    share : float
        Largest fraction of the time limit for a search before the relaxation.
    work : int
        Number of elementary steps of that search without a time limit.
    core : float
        Largest fraction of the time left for naming the constraints of a proof of infeasibility.
    """

    nodes: int = 20_000
    share: float = 0.4
    work: int = 10_000_000
    core: float = 0.3


TUNING = FirstLabelsTuning()


class FirstLabels:
    """A search for labels that obey the hard constraints of a problem; calls continue it.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._search: FeasibleSearch | None = None
        self.active = True

    def __call__(
        self,
        best: Best,
        preference: NDArray[np.float64] | None,
        *,
        seconds: float,
        work: int,
        stopped: Callable[[], object],
    ) -> None:
        """Offer labels if some are found; raise `InfeasibleModel` if there are none.

        Parameters
        ----------
        best : Best
            Receives the labels.
        preference : float64 array or None
            Labels of larger preference are tried first.
        seconds : float
            Time limit.
        work : int
            Limit on the number of elementary steps.
        stopped : function
            Called at short intervals; the search ends if it returns something true.
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
        self.active = not search.go_on(
            seconds=seconds, conflicts=work // FEASIBILITY.conflict_work, stopped=stopped
        )
        if search.infeasible:
            raise infeasibility(self.problem.given, search, TUNING.core * min(seconds, 10.0))
        if search.found and (labels := complete_labels(model, search.labels)) is not None:
            best.offer_labels(labels)


def find_first_labels(problem: Problem, best: Best, budget: Budget) -> bool:
    """Look for labels before the relaxation; return whether the search was run.

    Parameters
    ----------
    problem : Problem
    best : Best
        Receives the labels.
    budget : Budget
        The budget of the run.
    """
    model = problem.model
    if best.found or not model.has_forbidden or model.n > TUNING.nodes:
        return False
    FirstLabels(problem)(
        best,
        -np.minimum(model.unary, np.finfo(float).max),
        seconds=TUNING.share * budget.left,
        work=TUNING.work if math.isinf(budget.left) else 1 << 62,
        stopped=budget.stop,
    )
    if not best.found:
        return False
    best.offer_lam(best.lam)
    return True
