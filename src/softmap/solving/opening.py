"""Graph cuts before the relaxation: exact for binary submodular models, else expansion moves.

A submodular model with two labels is solved by one minimum cut: the labels are optimal, and the
flow is λ that proves it. Runs on other large pairwise models start with labels of one pass of
messages and expansion moves, which are good long before those of the relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmap.labels import cheapest, first_labels
from softmap.labels.cuts import Expansions, Fusion, Labels, solve_binary
from softmap.solving.best import Best
from softmap.solving.budget import Budget
from softmap.solving.memory import room_beside
from softmap.solving.options import Options
from softmap.solving.problem import Problem

__all__ = ["Opening", "OpeningTuning"]


@dataclass(frozen=True)
class OpeningTuning:
    """Tuning numbers of the first stage.

    Attributes
    ----------
    expanded : int
        Smallest number of variables for expansion moves.
    rounds : int
        Largest number of rounds of expansions.
    first : float
        Largest fraction of the time limit for the messages of first labels.
    share : float
        Largest fraction of the time limit for first labels and expansion moves together.
    labels : int
        Largest number of labels for which every label is expanded.
    """

    expanded: int = 2_000
    rounds: int = 2
    first: float = 0.4
    share: float = 0.3
    labels: int = 256


TUNING = OpeningTuning()


class Opening:
    """What a run does before the passes of its relaxation.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.

    Attributes
    ----------
    possible : bool
        Whether cuts may run first, for this model and these options.
    expansions : Expansions or None
        The expansion moves, for later stages to continue; None if there were none.
    """

    def __init__(self, problem: Problem, options: Options) -> None:
        model = problem.model
        pairs = model.m > 0 and not len(model.auxiliaries) and not len(model.running)
        default = options.method == "anneal" and options.backend == "cpu" and options.goal != "lp"
        self._problem = problem
        self._room = room_beside(model, options.precision, options.memory_limit)
        self.possible = pairs and default
        self.expansions: Expansions | None = None

    def cut(self, best: Best, budget: Budget) -> bool:
        """Solve a submodular model of two labels by a minimum cut; return whether it is one.

        Parameters
        ----------
        best : Best
            Receives the labels and λ.
        budget : Budget
            The budget of the run.
        """
        if not self.possible:
            return False
        found = solve_binary(
            self._problem.model,
            seconds=min(budget.left, 1e9),
            stop=lambda: budget.interrupts.noted,
        )
        if found is None:
            return False
        labels, lam = found
        best.offer_lam(lam)
        best.offer_labels(labels)
        return True

    def expand(self, best: Best, budget: Budget) -> bool:
        """Find labels of a large model by expansion moves; return whether they were run.

        Parameters
        ----------
        best : Best
            Receives the labels.
        budget : Budget
            The budget of the run.
        """
        model = self._problem.model
        few = int(model.num_labels.max()) <= TUNING.labels
        if not self.possible or model.num_variables < TUNING.expanded or not few:
            return False
        whole, fusion = budget.left, Fusion(model)
        labels = self._first(fusion, best, min(1e9, TUNING.first * whole))
        self.expansions = Expansions(fusion)
        self.expansions.run(
            labels,
            rounds=TUNING.rounds,
            seconds=min(1e9, TUNING.share * whole - (whole - budget.left)) if whole < 1e9 else 1e9,
            stop=lambda: budget.interrupts.noted,
        )
        best.offer_labels(labels)
        return True

    def _first(self, fusion: Fusion, best: Best, seconds: float) -> Labels:
        """Labels to start from: those of one pass of messages, fused with given ones.

        If memory does not allow that: given ones, or those of lowest node cost.
        """
        model = self._problem.model
        messages = 2 * model.half_size  # bytes: one number in single precision per edge and label
        if messages + Fusion.takes(model) > self._room:
            return np.array(best.labels if best.found else cheapest(model, model.unary))
        found = first_labels(model, seconds=seconds)
        if best.found:
            fusion.fuse(found, best.labels, seconds=seconds)
            if not model.energy(found) < best.energy:
                return best.labels.copy()
        return found
