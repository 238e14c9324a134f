"""The best of a run so far: bounds with their proofs, a point with its cost, labels with theirs.

Everybody offers; what is better is kept. All numbers are in the units of the problem.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.improving import with_followers
from softmap.later import later, unmade
from softmap.model.layout import layout
from softmap.relaxation.dual import cost_scale
from softmap.relaxation.gaps import relative_gap, stated_primal
from softmap.relaxation.point import PrimalPoint
from softmap.solving.problem import Problem
from softmap.solving.proof import Proof
from softmap.solving.trace import PROVED, Status

if TYPE_CHECKING:
    from softmap.proof.search.exact import Log
    from softmap.proof.search.partial import PartialLog

__all__ = ["Best", "RelativeGaps", "Tolerances"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
GRAIN = 2.0**-50  # part of the largest cost that rounding may take off a bound per node and edge


class RelativeGaps(NamedTuple):
    """How far a run is from being done.

    Attributes
    ----------
    lp : float
        `primal - lp_bound`, relative: how well the LP relaxation is solved.
    map : float
        `energy - bound`, relative: how far the labelling can be from the best one.
    """

    lp: float
    map: float


class Tolerances(NamedTuple):
    """The relative gaps at which a run may stop."""

    lp_gap: float
    gap: float

    def labels_met(self, gaps: RelativeGaps) -> Status | None:
        """The status of a labelling that is proved well enough."""
        if not gaps.map <= self.gap:
            return None
        return Status.OPTIMAL if gaps.map <= PROVED else Status.GAP

    def met(self, gaps: RelativeGaps) -> Status | None:
        """The stop rule: the labelling is proved well enough, or the LP is solved."""
        return self.labels_met(gaps) or (Status.LP_GAP if gaps.lp <= self.lp_gap else None)


@later("lam", "point")
class Best:
    """The best bound, point and labelling of one problem.

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

    lam: Floats
    point: PrimalPoint | None

    def __init__(self, problem: Problem, upper_bound: float | None = None) -> None:
        model = problem.model
        self.problem = problem
        self.cutoff = math.inf if upper_bound is None else problem.cost(upper_bound)
        zero: Any = lambda: np.zeros(model.half_size)  # noqa: E731
        self.lp_bound, self.lam = -math.inf, zero
        self.point_cost: float = math.inf
        self.point = None
        self.labels: Labels = np.zeros(model.num_variables, dtype=np.int64)
        self.energy = math.inf
        self._proved, self._proof = -math.inf, Proof()
        self._log: Log | PartialLog | None = None
        self._rounded = False  # whether `lp_bound` is a method's own and may miss digits

    # --- what is known ----------------------------------------------------------------------------

    @property
    def bound(self) -> float:
        """The best lower bound on the MAP optimum."""
        return max(self.lp_bound, self._proved)

    @property
    def proof(self) -> Proof:
        """What `bound` rests on."""
        return self._proof if self._proved > self.lp_bound else Proof()

    @property
    def log(self) -> Log | PartialLog | None:
        """The records of the search that `bound` rests on, where they are kept."""
        return self._log if self._proved > self.lp_bound else None

    @property
    def primal(self) -> float:
        """The cost of the best point, a labelling included, as it is stated."""
        return stated_primal(self.point_cost, self.lp_bound, self.energy)

    @property
    def found(self) -> bool:
        """Whether a labelling is known that obeys the hard constraints."""
        return math.isfinite(self.energy)

    @property
    def gap(self) -> float:
        """`energy - bound`, at least 0."""
        return max(0.0, self.energy - self.bound)

    def gaps(self) -> RelativeGaps:
        """The relative gaps of the LP, and of the labelling or the upper bound below it."""
        lower, bound, unit = self.lp_bound, self.bound, self.problem.unit
        return RelativeGaps(
            relative_gap(self.point_cost - lower, unit(lower)),
            relative_gap(min(self.energy, self.cutoff) - bound, unit(bound)),
        )

    def labels_met(self, tolerances: Tolerances) -> Status | None:
        """Whether the labelling is proved well enough, or no labelling is below the upper bound."""
        status = tolerances.labels_met(self.gaps())
        return Status.NONE_BELOW if status and self.energy > self.cutoff else status

    def met(self, tolerances: Tolerances) -> Status | None:
        """The stop rule of the relaxation: as `labels_met`, or the LP is solved."""
        return self.labels_met(tolerances) or tolerances.met(self.gaps())

    # --- offers -----------------------------------------------------------------------------------

    def offer_lam(self, lam: Floats) -> float:
        """Work out what λ proves; returns that bound."""
        bound = self._bound_of(lam)
        if bound > self.lp_bound:
            self.lp_bound, self.lam, self._rounded = bound, lam, False
        return bound

    def offer_lp_bound(self, bound: float, lam: Any) -> bool:
        """Offer a bound that a method has worked out itself; whether it was kept.

        Parameters
        ----------
        bound : float
        lam : array, or a function that makes it
            The λ that proves it.
        """
        if not bound > self.lp_bound:
            return False
        self.lp_bound, self.lam, self._rounded = bound, lam, True
        self._sharpen()
        return True

    def offer_bound(self, bound: float, proof: Proof, log: Log | PartialLog | None = None) -> bool:
        """Offer a bound on the MAP optimum, with its proof; whether it was kept.

        Parameters
        ----------
        bound : float
        proof : Proof
        log : Log or PartialLog, optional
            The records of a search, where they are kept.
        """
        if not bound > self.bound:
            return False
        self._proved, self._proof, self._log = bound, proof, log
        return True

    def offer_point(self, cost: float, point: Any) -> bool:
        """Offer a point of the local polytope; whether it was kept.

        Parameters
        ----------
        cost : float
        point : PrimalPoint, or a function that makes it
        """
        if not cost < self.point_cost:
            return False
        self.point_cost, self.point = cost, point
        self._sharpen()
        return True

    def offer_labels(self, labels: Labels, energy: float | None = None) -> bool:
        """Offer a labelling, which is a point of the polytope, too; whether it was kept.

        Parameters
        ----------
        labels : int array
            One label per variable of the problem's model.
        energy : float, optional
            `model.energy(labels)`, where the caller has it.
        """
        model = self.problem.model
        labels = labels[: model.num_variables]
        energy = float(model.energy(labels)) if energy is None else energy
        labels, energy = with_followers(model, (labels, energy))
        # the first labels replace those that nobody has looked at, even at +inf
        if not energy < self.energy and self.found:
            return False
        better = energy < self.energy
        self.labels, self.energy = labels, energy
        if energy < self.point_cost:
            self.offer_point(energy, PrimalPoint(model, labels=labels))
        return better

    # --- storing ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything that is kept, for a checkpoint."""
        return {
            "lp_bound": self.lp_bound, "lam": self.lam, "point_cost": self.point_cost,
            "point": self.point, "labels": self.labels, "energy": self.energy,
            "proved": self._proved, "proof": self._proof,
        }  # fmt: skip

    def restore(self, kept: dict[str, Any]) -> None:
        """Go back to what `snapshot` gave."""
        self.lp_bound, self.lam = kept["lp_bound"], kept["lam"]
        self.point_cost, self.point = kept["point_cost"], kept["point"]
        self.labels, self.energy = kept["labels"], kept["energy"]
        self._proved, self._proof, self._log = kept["proved"], kept["proof"], None

    def unmade_lam(self) -> Any:
        """λ, or the function that makes it."""
        return unmade(self, "lam")

    # --- inside -----------------------------------------------------------------------------------

    def _bound_of(self, lam: Floats) -> float:
        model = self.problem.model
        return core.dual_bound(layout(model), lam, model.constant, self.problem.threads)

    def _sharpen(self) -> None:
        """Work out the bound of λ where what is left of the gap may be rounding.

        A method's own bound may miss digits of the largest cost, paid or not; that of λ misses
        only some of what is paid.
        """
        if self._rounded and self.point_cost - self.lp_bound <= self._grain():
            self.lp_bound = max(self.lp_bound, self._bound_of(self.lam))
            self._rounded = False

    def _grain(self) -> float:
        model = self.problem.model
        sizes = model.cost_sizes
        largest = math.ldexp(sizes.largest, sizes.exponent) or cost_scale(model)
        return GRAIN * (model.n + model.m) * largest
