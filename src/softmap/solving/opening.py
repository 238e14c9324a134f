"""What a run does before the relaxation: minimum cuts, where the model is made for them.

A submodular model of two labels is solved by one cut: its labels are optimal, and its flow is λ
that proves it. Other large models of pairs begin with expansion moves, which give good labels long
before the relaxation does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmap.labels import cheapest
from softmap.labels.cuts import Fusion, solve_binary
from softmap.solving.best import Best
from softmap.solving.budget import Budget
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.trace import StageName

__all__ = ["OpeningTuning", "begin_with_cuts"]


@dataclass(frozen=True)
class OpeningTuning:
    """Numbers of the first stage.

    Attributes
    ----------
    expanded : int
        Variables from which on a run begins with expansion moves.
    rounds : int
        How often every label is expanded.
    share : float
        Part of a time limit that expansion moves may take.
    labels : int
        Largest number of labels for which every label is expanded.
    """

    expanded: int = 2_000
    rounds: int = 2
    share: float = 0.3
    labels: int = 256


TUNING = OpeningTuning()


def begin_with_cuts(
    problem: Problem, options: Options, best: Best, budget: Budget
) -> StageName | None:
    """Solve the model by a cut, or find first labels by expansion moves.

    Parameters
    ----------
    problem : Problem
    options : Options
    best : Best
        To which labels and λ are offered.
    budget : Budget

    Returns
    -------
    StageName or None
        What was done; None if the model or the options ask for something else.
    """
    model = problem.model
    plain = not len(model.auxiliaries) and not len(model.running) and model.m > 0
    if options.goal == "lp" or options.method != "anneal" or options.backend != "cpu" or not plain:
        return None
    barrier = 2.0 * problem.width + 1.0 if model.has_forbidden else np.inf
    solved = solve_binary(model, barrier=barrier, seconds=min(budget.left, 1e9))
    if solved is not None:
        labels, lam = solved
        best.offer_lam(lam)
        best.offer_labels(labels)
        return StageName.CUT
    widest = int(model.num_labels.max())
    if model.num_variables < TUNING.expanded or widest > TUNING.labels:
        return None
    labels = np.ascontiguousarray(cheapest(model, model.unary))
    seconds = min(1e9, TUNING.share * budget.left)
    Fusion(model, barrier).expand(labels, rounds=TUNING.rounds, seconds=seconds)
    best.offer_labels(labels)
    best.offer_lam(best.lam)
    return StageName.LABELS
