"""Graph cuts before the relaxation: exact for binary submodular models, else α-expansion.

A submodular model with two labels is solved by one minimum cut: the labels are optimal, and the
flow is λ that proves it. Runs on other large pairwise models start with expansion moves, which find
good labels long before the relaxation does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softmap.labels import cheapest
from softmap.labels.cuts import Fusion, solve_binary
from softmap.model import Model
from softmap.relaxation.flat import elimination_order
from softmap.solving.best import Best
from softmap.solving.budget import Budget
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.trace import StageName

__all__ = ["OpeningTuning", "eliminates_first", "open_run"]


@dataclass(frozen=True)
class OpeningTuning:
    """Tuning numbers of the first stage.

    Attributes
    ----------
    expanded : int
        Smallest number of variables for expansion moves.
    rounds : int
        Number of expansions of every label.
    share : float
        Largest fraction of the time limit for expansion moves.
    labels : int
        Largest number of labels for which every label is expanded.
    variables : int
        Largest number of variables for elimination before passes.
    states : int
        Smallest number of node states, auxiliary nodes included, for elimination before passes.
        Passes over fewer states take milliseconds, and often prove the labels by λ.
    per_state : float
        Largest number of table entries of elimination per node state for elimination before passes:
        with more, the first passes take less time.
    """

    expanded: int = 2_000
    rounds: int = 2
    share: float = 0.3
    labels: int = 256
    variables: int = 3_000
    states: int = 20_000
    per_state: float = 300.0


TUNING = OpeningTuning()


def eliminates_first(problem: Problem, options: Options) -> bool:
    """Whether variable elimination takes less time than the first passes over the model.

    This is so if factors of several variables have large tables: the relaxation has an auxiliary
    node with a state for each of their entries, elimination has not.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.
    """
    model = problem.model
    if not _default(options) or not len(model.auxiliaries):
        return False
    if model.num_variables > TUNING.variables or model.unary.size < TUNING.states:
        return False
    return elimination_order(model, TUNING.per_state * model.unary.size).found


def _default(options: Options) -> bool:
    searched = options.goal not in ("lp", "labels") and not options.whole_run
    return options.method == "anneal" and options.backend == "cpu" and searched


def open_run(problem: Problem, options: Options, best: Best, budget: Budget) -> StageName | None:
    """Solve the model by a cut, or find first labels by expansion moves.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.
    best : Best
        Receives the labels and λ.
    budget : Budget
        The budget of the run.

    Returns
    -------
    StageName or None
        The stage that ran; None if neither applies to the model and the options.
    """
    model = problem.model
    pairs = model.m > 0 and not len(model.auxiliaries) and not len(model.running)
    default = options.method == "anneal" and options.backend == "cpu" and options.goal != "lp"
    if not pairs or not default:
        return None
    if _cut(problem, best, budget):
        return StageName.CUT
    return StageName.LABELS if _expand(problem, best, budget) else None


def _barrier(model: Model) -> float:
    """The finite cost that stands for +inf: above all differences of costs together.

    It is a multiple of the costs, so that units change nothing. +inf if no cost is infinite.
    """
    if not model.has_forbidden:
        return math.inf
    sizes = model.cost_sizes
    return math.ldexp(2.0 * (sizes.largest + sizes.width), sizes.exponent) or 1.0


def _cut(problem: Problem, best: Best, budget: Budget) -> bool:
    """Solve a submodular model of two labels; whether it is one."""
    found = solve_binary(
        problem.model, barrier=_barrier(problem.model), seconds=min(budget.left, 1e9)
    )
    if found is None:
        return False
    labels, lam = found
    best.offer_lam(lam)
    best.offer_labels(labels)
    return True


def _expand(problem: Problem, best: Best, budget: Budget) -> bool:
    """Find labels of a large model by expansion moves; return whether they were run."""
    model = problem.model
    if model.num_variables < TUNING.expanded or int(model.num_labels.max()) > TUNING.labels:
        return False
    start = best.labels.copy() if best.found else cheapest(model, model.unary)
    labels = np.ascontiguousarray(start)
    seconds = min(1e9, TUNING.share * budget.left)
    Fusion(model, _barrier(model)).expand(labels, rounds=TUNING.rounds, seconds=seconds)
    best.offer_labels(labels)
    best.offer_lam(best.lam)
    return True
