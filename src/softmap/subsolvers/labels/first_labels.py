"""`FirstLabels`: a search for labels that obey the hard constraints, which subsolvers share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.feasibility import (
    FeasibilityNumbers,
    FeasibleSearch,
    HardConstraints,
    complete_labels,
    infeasibility,
)
from softmap.run.best import Best
from softmap.run.problem import Problem
from softmap.subsolvers.labels.label_numbers import ObeyNumbers
from softmap.tuning import Tuning

__all__ = ["FirstLabels"]


class FirstLabels:
    """A search for labels that obey the hard constraints of a problem; calls continue it.

    Parameters
    ----------
    problem : Problem
    tuning : Tuning
    """

    def __init__(self, problem: Problem, tuning: Tuning) -> None:
        self.problem, self.tuning = problem, tuning
        self._numbers = tuning.of(FeasibilityNumbers)
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
            try:
                constraints = HardConstraints.of(
                    model, self.problem.given, deadline=deadline, numbers=self._numbers
                )
            except core.OutOfTime:  # a later call sets it up
                return
            self.active = constraints is not None
            if constraints is None:
                return
            self._search = FeasibleSearch(constraints, preference)
        search = self._search
        conflicts = work // self.tuning.of(ObeyNumbers).conflict_work
        self.active = not search.run(deadline=deadline, conflicts=conflicts)
        if search.infeasible:
            end = deadline.within(deadline.left / 2)
            raise infeasibility(self.problem.given, end, self._numbers)
        if search.found and (labels := complete_labels(model, search.labels)) is not None:
            best.offer_labels(labels)
