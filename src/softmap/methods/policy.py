"""The policy of an annealed run: when to raise η, when and what to check, when to stop.

The same rules are used on the CPU, on a GPU, for batches, over MPI and in tightening. They depend
on numbers only, not on how the caller computes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from softmap.tuning import Numbers


@dataclass(frozen=True)
class AnnealingRule(Numbers):
    """When the relaxation raises η, and the limit of its momentum."""

    first: float = 100.0  # first η, in 1 / cost scale; D7
    growth: float = 3.0  # factor by which η rises; D7
    ready: float = 0.65  # gap of the regularised problem, in LP gaps, for η to rise; D7
    settled: float = 0.2  # gain between checks, in smoothing, for η to rise without a point; D7
    momentum: float = 2.0  # most t of Nesterov's momentum, in √(η · cost scale); D7
    calmer: float = 16.0  # divisor of that after the smoothed dual fell; D20


@dataclass(frozen=True)
class Checks(Numbers):
    """When a run checks its bound, what a check computes, and when the run has stalled."""

    first: int = 5  # passes before the first check; D53
    second: int = 10  # passes before the second check; D53
    early: int = 20  # passes before the third check; D53
    interval: int = 20  # least passes between two later checks of an open gap; D53
    shortest: int = 5  # least passes to a check at which the gap may be closed; D53
    near: float = 4.0  # gap, in tolerances, up to which checks are frequent; D22
    thorough: float = 4.0  # gap, in tolerances, up to which each check computes everything; D22
    patience: int = 400  # least passes without progress to stall; later, a share of the run; D22
    progress: float = 0.99  # a gap of at most this fraction of the best one is progress; D22


def longest_momentum(rule: AnnealingRule, eta: Any, scale: Any) -> Any:
    """Return the largest t of Nesterov's momentum at η: marginals oscillate above it.

    Parameters
    ----------
    rule : AnnealingRule
    eta : float or array
        η, one per model of a batch.
    scale : float or array
        The scale of the costs, likewise.
    """
    return np.maximum(rule.momentum * np.sqrt(eta * scale), 1.0)


def eta_rises(
    rule: AnnealingRule, eta: Any, *, bound: Any, smoothed: Any, previous: Any, primal: Any,
    gap: Any, entropy: Any,
) -> Any:  # fmt: skip
    """Whether to raise η after a check.

    With a point: once most of the LP gap comes from the entropy, not from the optimisation. Without
    one: once the smoothed dual gains little beside its difference to the bound. All parameters are
    numbers, or arrays with one entry per model of a batch.

    Parameters
    ----------
    rule : AnnealingRule
    eta : float or array
        η of the check.
    bound : float or array
        Lower bound of the check.
    smoothed, previous : float or array
        Smoothed dual of this check and of the check before.
    primal, entropy : float or array
        Cost and entropy of the point of the current marginals; +inf if there is none.
    gap : float or array
        LP gap to the best point of this check; +inf if there is none.
    """
    with np.errstate(invalid="ignore"):
        by_gap = primal - entropy / eta - smoothed < rule.ready * gap
        by_dual = smoothed - previous <= rule.settled * (bound - smoothed)
    return np.where(np.isfinite(gap), by_gap, by_dual)


@dataclass(kw_only=True)
class Cooling:
    """η of a run, and the state of the annealing rule between two checks.

    Attributes
    ----------
    eta : float
        Inverse temperature η.
    smoothed, previous : float
        Smoothed dual of this check and of the check before; -inf after η was raised.
    gain : float
        LP gap with averaged marginals divided by that without, at the last check that had both.
    """

    eta: float
    smoothed: float = -math.inf
    previous: float = -math.inf
    gain: float = 1.0

    def observe(
        self, rule: AnnealingRule, *, bound: float, primals: tuple[float, ...], entropy: float,
        averaged: bool,
    ) -> bool:  # fmt: skip
        """Raise η if the rule says so; return whether it was raised.

        Parameters
        ----------
        rule : AnnealingRule
        bound : float
            Lower bound of this check.
        primals : tuple of float
            Cost of the point of the current marginals, and of the averaged ones if computed.
        entropy : float
            Entropy of the current marginals.
        averaged : bool
            Whether there are averaged marginals, their cost computed or not.
        """
        gap, first = min(primals) - bound, primals[0] - bound
        if len(primals) == 1 and averaged:
            gap *= self.gain
        else:
            self.gain = gap / first if 0 < first < math.inf else 1.0
        rises = eta_rises(
            rule, self.eta, bound=bound, smoothed=self.smoothed, previous=self.previous,
            primal=primals[0], gap=gap, entropy=entropy,
        )  # fmt: skip
        self.previous = self.smoothed
        if rises:
            self.raise_by(rule.growth)
        return bool(rises)

    def raise_by(self, factor: float) -> None:
        """Multiply η by a factor."""
        self.eta *= factor
        self.previous = -math.inf


class Ask(IntEnum):
    """What a check computes; each level takes more time than the one before."""

    BOUND = 0  # a lower bound, and node marginals for rounding
    POINT = 1  # also a point of the local polytope over the current marginals
    EVERYTHING = 2  # also the bound after hard-min passes, and the point over averaged marginals


def passes_to_next(rule: Checks, done: int, ratio: float) -> int:
    """Return the number of passes until the next check.

    Intervals grow, so that checks take a small part of the run. Early checks are skipped if the
    gap cannot be closed by then: gaps fall at most like 1 / passes². If the gap is nearly closed
    the next check comes soon.

    Parameters
    ----------
    rule : Checks
    done : int
        Number of passes so far.
    ratio : float
        The gap divided by the tolerance.
    """
    earliest = 0.75 * done * math.sqrt(max(ratio, 1.0)) if done else 0.0
    for early in (rule.first, rule.second, rule.early):
        if done < early and (early >= earliest or early == rule.early):
            return early - done
    usual = max(rule.interval, done // 4 if ratio > rule.near else done // 8)
    missing = max(rule.shortest, done // 16, done * (ratio - 1.0))
    return math.ceil(missing) if ratio > 1.0 and missing <= usual / 2 else usual


@dataclass(kw_only=True)
class CheckTimes:
    """The state of the checks of a run; times are pass numbers (steps for a randomised method).

    Attributes
    ----------
    next_check : int
        Time of the next check.
    refined_at : int
        Time of the last check that computed everything.
    decoded_at : int
        Time of the last search for labels.
    improved_at : int
        Time at which a gap last improved.
    best_lp_gap, best_gap : float
        The best relative gaps so far.
    """

    next_check: int = 0
    refined_at: int = 0
    decoded_at: int = 0
    improved_at: int = 0
    best_lp_gap: float = math.inf
    best_gap: float = math.inf

    def ask(self, rule: Checks, done: int, *, lp_ratio: float, tight: bool, last: bool) -> Ask:
        """Return what a check computes.

        It computes everything if that may end the run, at growing intervals, and at the end.

        Parameters
        ----------
        rule : Checks
        done : int
            Number of passes so far.
        lp_ratio : float
            The LP gap divided by the tolerance.
        tight : bool
            Whether the best labelling is as good as the best point.
        last : bool
            Whether this is the last check of the run.
        """
        if not (last or lp_ratio <= rule.thorough or tight or done >= 2 * self.refined_at):
            return Ask.POINT
        self.refined_at = done
        return Ask.EVERYTHING

    def labels_due(self, done: int, *, factor: int, wanted: bool, last: bool) -> bool:
        """Whether to search for labels: at times that grow by `factor`, and at the end."""
        due = last or (wanted and done >= factor * self.decoded_at)
        if due:
            self.decoded_at = done
        return due

    def has_stalled(self, rule: Checks, passes: int, lp_gap: float, gap: float) -> bool:
        """Record the gaps of a check; return whether the run has stalled (see `Checks`)."""
        if lp_gap < rule.progress * self.best_lp_gap or gap < rule.progress * self.best_gap:
            self.best_lp_gap, self.best_gap, self.improved_at = lp_gap, gap, passes
        return passes - self.improved_at > max(rule.patience, passes // 2)
