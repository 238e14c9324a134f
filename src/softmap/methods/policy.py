"""The policy of an annealed run: when η rises, when to check, what to ask, when to give up.

One rule for runs on the processor and on a GPU, for batches, for MPI and for tightening. It sees
numbers only; who computes them, and where, is the caller's business.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

__all__ = ["Annealing", "Ask", "Checks", "Cooling", "Schedule"]


@dataclass(frozen=True)
class Annealing:
    """How η rises, and how much momentum it allows.

    Attributes
    ----------
    first : float
        First η, times the scale of the costs.
    growth : float
        Factor by which η rises.
    ready : float
        η rises once the gap of the regularised problem is below this part of the LP gap: then the
        entropy, not the optimisation, makes most of the gap.
    settled : float
        Without a primal point, η rises once the smoothed dual gains less between two checks than
        this part of what smoothing costs the bound.
    momentum, least_momentum : float
        Nesterov's t is at most `momentum · √(η · scale)`, or `least_momentum` if that is more:
        beyond, marginals oscillate.
    """

    first: float = 100.0
    growth: float = 3.0
    ready: float = 0.65
    settled: float = 0.2
    momentum: float = 2.0
    least_momentum: float = 10.0

    def first_eta(self, scale: Any) -> Any:
        """The η to begin with; `scale` is the scale of the costs (a number, or one per model)."""
        return self.first / scale

    def longest_momentum(self, eta: Any, scale: Any) -> Any:
        """The largest t of Nesterov's momentum at this η."""
        return np.maximum(self.momentum * np.sqrt(eta * scale), self.least_momentum)

    def due(
        self, eta: Any, *, bound: Any, smoothed: Any, previous: Any, primal: Any, gap: Any,
        entropy: Any,
    ) -> Any:  # fmt: skip
        """Whether η should rise after a check: one answer, or one per model of a batch.

        Parameters
        ----------
        eta : float or array
            η of the check.
        bound, smoothed, previous
            Lower bound and smoothed dual of this check; smoothed dual of the check before.
        primal, entropy
            Cost and entropy of the point of the current marginals; +inf where there is none.
        gap
            LP gap to the best point of this check; +inf where there is none.
        """
        with np.errstate(invalid="ignore"):
            by_gap = primal - entropy / eta - smoothed < self.ready * gap
            by_dual = smoothed - previous <= self.settled * (bound - smoothed)
        return np.where(np.isfinite(gap), by_gap, by_dual)


@dataclass(kw_only=True)
class Cooling:
    """η of a run, and what the rule remembers from one check to the next.

    Attributes
    ----------
    eta : float
        Inverse temperature.
    smoothed, previous : float
        Smoothed dual of this check and of the one before; -inf after η has risen.
    gain : float
        Part of the LP gap that was left the last time the averaged marginals were priced, too.
    """

    eta: float
    smoothed: float = -math.inf
    previous: float = -math.inf
    gain: float = 1.0

    def observe(
        self, rule: Annealing, *, bound: float, primals: tuple[float, ...], entropy: float,
        averaged: bool,
    ) -> bool:  # fmt: skip
        """Raise η if the rule says so, and say whether it rose.

        Parameters
        ----------
        rule : Annealing
        bound, entropy : float
            Lower bound of this check; entropy of the current marginals.
        primals : tuple of float
            Cost of the point of the current marginals, and of the averaged ones if priced.
        averaged : bool
            Whether there are averaged marginals, priced or not.
        """
        gap, first = min(primals) - bound, primals[0] - bound
        if len(primals) == 1 and averaged:
            gap *= self.gain
        else:
            self.gain = gap / first if 0 < first < math.inf else 1.0
        rises = rule.due(
            self.eta, bound=bound, smoothed=self.smoothed, previous=self.previous,
            primal=primals[0], gap=gap, entropy=entropy,
        )  # fmt: skip
        self.previous = self.smoothed
        if rises:
            self.raise_by(rule.growth)
        return bool(rises)

    def raise_by(self, factor: float) -> None:
        """Multiply η."""
        self.eta *= factor
        self.previous = -math.inf


class Ask(IntEnum):
    """How much a check asks for; each costs more than the one before."""

    BOUND = 0  # a lower bound, and node marginals to round
    POINT = 1  # a point of the local polytope over the current marginals, too
    EVERYTHING = 2  # the bound after hard-min passes, and the point over averaged marginals, too


@dataclass(frozen=True)
class Checks:
    """When to check and what to ask, in passes.

    Attributes
    ----------
    early : tuple of int
        Passes of the first checks.
    hasty : int
        Passes up to which a run for the LP alone asks for a bound and labels only.
    hope : float
        Multiple of the gap asked for under which a check asks for everything.
    rivals : float
        Labels may become the best point while their gap is at most this times that of the point.
    steep : float
        No gap is expected to fall faster than passes to this power.
    far : float
        Multiple of the gap asked for beyond which checks are twice as rare.
    soon : int
        Least number of passes until the next check when the gap is nearly closed.
    margin : float
        Multiple of the passes that are missing if gaps fall like 1 / passes.
    interval : int
        Least number of passes between two ordinary checks.
    patience : int
        A run has stalled when neither gap has improved for this many passes, and for half of all.
    progress : float
        A gap has improved when it is below this part of its best value.
    """

    early: tuple[int, ...] = (5, 10, 20)
    hasty: int = 10
    hope: float = 4.0
    rivals: float = 1.5
    steep: float = 2.0
    far: float = 4.0
    soon: int = 5
    margin: float = 1.5
    interval: int = 20
    patience: int = 400
    progress: float = 0.99

    def passes_to_next(self, done: int, ratio: float) -> int:
        """Passes until the next check, where the gap is `ratio` times the one asked for.

        Intervals grow, so that checks stay a small part of the run. Early checks that come long
        before the gap can be closed are left out; the next one comes soon if little is missing.
        """
        hopeless = 0.75 * done * max(ratio, 1.0) ** (1 / self.steep) if done else 0.0
        for early in self.early:
            if done < early and (early >= hopeless or early == self.early[-1]):
                return early - done
        usual = max(self.interval, done // 4 if ratio > self.far else done // 8)
        missing = max(self.soon, done // 16, self.margin * done * (ratio - 1.0))
        return math.ceil(missing) if ratio > 1.0 and missing <= usual / 2 else usual


@dataclass(kw_only=True)
class Schedule:
    """Where a run stands in its checks; all counts are passes (or steps of a random method).

    Attributes
    ----------
    next_check : int
        When the next check is due.
    refined_at, decoded_at : int
        The last check that asked for everything; the last search for labels.
    improved_at : int
        When a gap last improved.
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
        """What a check asks for: everything where that may end the run, now and then, at the end.

        Parameters
        ----------
        done : int
            Passes so far.
        lp_ratio : float
            The LP gap over the one asked for.
        tight : bool
            Whether the best labelling is as good as the best point.
        last : bool
            Whether this is the last check of the run.
        """
        if not (last or lp_ratio <= rule.hope or tight or done >= 2 * self.refined_at):
            return Ask.POINT
        self.refined_at = done
        return Ask.EVERYTHING

    def labels_due(self, done: int, *, factor: int, wanted: bool, last: bool) -> bool:
        """Whether to search for labels: at intervals that grow by `factor`, and at the end."""
        due = last or (wanted and done >= factor * self.decoded_at)
        if due:
            self.decoded_at = done
        return due

    def stalled(self, rule: Checks, passes: int, lp_gap: float, gap: float) -> bool:
        """Note the gaps of a check; whether neither has improved for long."""
        if lp_gap < rule.progress * self.best_lp_gap or gap < rule.progress * self.best_gap:
            self.best_lp_gap, self.best_gap, self.improved_at = lp_gap, gap, passes
        return passes - self.improved_at > max(rule.patience, passes // 2)
