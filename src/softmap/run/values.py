"""The best bound, point and labelling of a run, their relative gaps, and the stop rule.

The subsolvers of a run, runs over parts and batches on a GPU keep their best values here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from softmap.later import later
from softmap.relaxation.gaps import PROVED, relative_gap, stated_primal
from softmap.run.trace import Status

__all__ = ["BestValues", "Penalty", "RelativeGaps", "Tolerances"]


class RelativeGaps(NamedTuple):
    """The relative gaps of a run.

    Attributes
    ----------
    lp : float
        Relative `primal - lp_bound`: the accuracy of the LP solution.
    map : float
        Relative `energy - bound`: an upper bound on the suboptimality of the labelling.
    """

    lp: float
    map: float


class Tolerances(NamedTuple):
    """The relative gaps at which a run may stop."""

    lp_gap: float
    gap: float


@dataclass(frozen=True)
class Penalty:
    """Costs that stand for hard constraints, because they exceed all other costs together.

    Attributes
    ----------
    cost : float
        The least of these costs, counted from the least entry of its table.
    verdict : str
        "avoided": the labels pay none of them. "needed": every labelling pays one, by a proof.
        "open": neither is known.
    """

    cost: float
    verdict: str


@later("lam", "point")
class BestValues:
    """The best bound, point and labelling of one model, however they are stored.

    Parameters
    ----------
    unit : function
        Returns the unit of relative gaps to a bound.
    lam : object
        λ = 0, or a function that returns it.
    labels : object
        Labels of any energy, until some are offered.
    cutoff : float, default inf
        Only labellings that cost less are looked for.

    Attributes
    ----------
    lp_bound, lam
        Best bound on the LP optimum and the λ that proves it; λ may be made when asked for.
    point_cost, point
        Best point of the local polytope and its cost; None and +inf until one was offered.
    labels, energy
        Best labelling; the energy is +inf until one obeys the hard constraints.
    cutoff
        The user's upper bound: only labellings that cost less are looked for. Bounds stay bounds on
        all labellings; the run may stop when they reach it.
    """

    lam: Any
    point: Any

    def __init__(
        self, unit: Callable[[float], float], lam: Any, labels: Any, cutoff: float = math.inf
    ) -> None:
        self._unit, self.cutoff = unit, cutoff
        self.lp_bound, self.lam = -math.inf, lam
        self.point_cost: float = math.inf
        self.point = None
        self.labels, self.energy = labels, math.inf

    @property
    def bound(self) -> float:
        """The best lower bound on the MAP optimum."""
        return self.lp_bound

    @property
    def primal(self) -> float:
        """The cost of the best point, labellings included (see `stated_primal`)."""
        return stated_primal(self.point_cost, self.lp_bound, self.energy)

    @property
    def found(self) -> bool:
        """Whether a labelling that satisfies the hard constraints is known."""
        return math.isfinite(self.energy)

    @property
    def tight(self) -> bool:
        """Whether the labels are as good as the best point of the polytope."""
        return self.energy <= self.point_cost < math.inf

    @property
    def gap(self) -> float:
        """The gap `energy - bound`, at least 0."""
        return max(0.0, self.energy - self.bound)

    def gaps(self) -> RelativeGaps:
        """The relative gaps of the LP, and of the labelling or the upper bound below it."""
        lower, bound = self.lp_bound, self.bound
        return RelativeGaps(
            relative_gap(self.point_cost - lower, self._unit(lower)),
            relative_gap(min(self.energy, self.cutoff) - bound, self._unit(bound)),
        )

    def may_be_best(self) -> bool:
        """Whether labels may become the best point: their gap is at most twice as large."""
        gap = self.point_cost - self.lp_bound
        return not self.energy - self.lp_bound > 2.0 * gap

    def labels_met(self, tolerances: Tolerances) -> Status | None:
        """The status if the MAP gap is within its tolerance, else None."""
        gap = self.gaps().map
        if not gap <= tolerances.gap:
            return None
        if self.energy > self.cutoff:  # it is the gap between the bound and the upper bound
            return Status.NONE_BELOW
        return Status.OPTIMAL if gap <= PROVED else Status.GAP

    def met(self, tolerances: Tolerances) -> Status | None:
        """The status if the MAP gap or the LP gap is within its tolerance, else None."""
        solved = self.gaps().lp <= tolerances.lp_gap
        return self.labels_met(tolerances) or (Status.LP_GAP if solved else None)

    # --- offers -----------------------------------------------------------------------------------

    def offer_lp_bound(self, bound: float, lam: Any) -> bool:
        """Offer a bound on the LP optimum that was computed from λ; return whether it was kept.

        Parameters
        ----------
        bound : float
        lam : object or function
            The λ that proves the bound, or a function that returns it.
        """
        if not bound > self.lp_bound:
            return False
        self.lp_bound, self.lam = bound, lam
        return True

    def offer_point(self, cost: float, point: Any) -> bool:
        """Offer a point of the local polytope; return whether it was kept.

        Parameters
        ----------
        cost : float
            Cost of the point.
        point : object or function
            The point, or a function that returns it.
        """
        if not cost < self.point_cost:
            return False
        self.point_cost, self.point = cost, point
        return True

    def offer_labelling(self, labels: Any, energy: float, point: Any = None) -> bool:
        """Offer a labelling, which is also a point of the polytope; whether it is better.

        The first labels replace the initial ones, even if their energy is +inf.

        Parameters
        ----------
        labels : object
            The labels.
        energy : float
            Their energy.
        point : object, optional
            The labels as a point of the polytope.
        """
        if not energy < self.energy and self.found:
            return False
        better = energy < self.energy
        self.labels, self.energy = labels, energy
        self.offer_point(energy, point)
        return better
