"""The best values of a run so far: bounds with proofs, a primal point, and a labelling.

All stages offer values; `Best` keeps the better ones. Values are in the units of the problem.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.improving import with_followers
from softmap.labels.pricing import energy_of
from softmap.later import later, unmade
from softmap.model.layout import layout
from softmap.relaxation.dual import cost_scale
from softmap.relaxation.gaps import relative_gap, stated_primal
from softmap.relaxation.polytope import PrimalPoint
from softmap.solving.problem import Problem
from softmap.solving.proof import Penalty, Proof
from softmap.solving.trace import PROVED, Status

if TYPE_CHECKING:
    from softmap.labels.permutations import PermutationLog
    from softmap.proof.cores.search import CoreGuided
    from softmap.proof.search.exact import Log
    from softmap.proof.search.partial import PartialLog
    from softmap.proof.spins.tree import Leaf

    Logged: TypeAlias = Log | PartialLog | CoreGuided | PermutationLog | list[Leaf] | None

__all__ = ["Best", "RelativeGaps", "Tolerances"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
GRAIN = 2.0**-50  # rounding error of a bound per node and edge, relative to the largest cost


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


class _Proved(NamedTuple):
    """A bound on the MAP optimum, its proof, and the records of a search where they are kept."""

    bound: float = -math.inf
    proof: Proof = Proof()
    log: Logged = None


class Tolerances(NamedTuple):
    """The relative gaps at which a run may stop."""

    lp_gap: float
    gap: float

    def labels_met(self, gaps: RelativeGaps) -> Status | None:
        """Return the status if the MAP gap is within the tolerance, else None."""
        if not gaps.map <= self.gap:
            return None
        return Status.OPTIMAL if gaps.map <= PROVED else Status.GAP

    def met(self, gaps: RelativeGaps) -> Status | None:
        """Return the status if the MAP gap or the LP gap is within its tolerance, else None."""
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
    penalty
        Costs that stand for hard constraints, if there are any.
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
        self.lp_bound, self.lam = -math.inf, self._zeros()
        self.point_cost: float = math.inf
        self.point = None
        self.labels: Labels = np.zeros(model.num_variables, dtype=np.int64)
        self.energy = math.inf
        self._proved = _Proved()  # the best bound that λ alone does not prove
        self.penalty: Penalty | None = None
        self._rounded = False  # whether `lp_bound` is a method's own, which may be less accurate

    # --- current values ---------------------------------------------------------------------------

    @property
    def _best_proved(self) -> _Proved:
        return self._proved if self._proved.bound > self.lp_bound else _Proved(self.lp_bound)

    @property
    def bound(self) -> float:
        """The best lower bound on the MAP optimum."""
        return self._best_proved.bound

    @property
    def proof(self) -> Proof:
        """The proof of `bound`."""
        return self._best_proved.proof

    @property
    def log(self) -> Logged:
        """What `bound` rests on, for a proof file: records of a search, or leaves; else None."""
        return self._best_proved.log

    @property
    def primal(self) -> float:
        """The cost of the best point, labellings included (see `stated_primal`)."""
        return stated_primal(self.point_cost, self.lp_bound, self.energy)

    @property
    def found(self) -> bool:
        """Whether a labelling that satisfies the hard constraints is known."""
        return math.isfinite(self.energy)

    @property
    def gap(self) -> float:
        """The gap `energy - bound`, at least 0."""
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
        """Compute the bound that λ proves, keep it if it is better, and return it."""
        bound = self._bound_of(lam)
        if bound > self.lp_bound:
            self.lp_bound, self.lam, self._rounded = bound, lam, False
        return bound

    def offer_zero(self) -> None:
        """Offer the bound of λ = 0: the sum of the least costs of all tables, without making λ.

        With forbidden labels it is larger, because costs of their pairs do not count.
        """
        model = self.problem.model
        if model.has_forbidden:
            self.offer_lam(np.zeros(model.half_size))
            return
        terms = np.append(model.extremes()[0], model.constant)
        edges = terms[model.n : -1]
        np.nextafter(edges, -np.inf, out=edges, where=edges != 0)  # products may be rounded up
        bound = float(core.lower_sum(terms))
        if bound > self.lp_bound:
            self.lp_bound, self.lam, self._rounded = bound, self._zeros(), False

    def offer_lp_bound(self, bound: float, lam: Any) -> bool:
        """Offer a bound that a method has computed itself; return whether it was kept.

        Parameters
        ----------
        bound : float
        lam : float64 array or function
            The λ that proves the bound, or a function that returns it.
        """
        if not bound > self.lp_bound:
            return False
        self.lp_bound, self.lam, self._rounded = bound, lam, True
        self._sharpen()
        return True

    def offer_bound(self, bound: float, proof: Proof, log: Logged = None) -> bool:
        """Offer a bound on the MAP optimum, with its proof; whether it was kept.

        Parameters
        ----------
        bound : float
        proof : Proof
        log : Log, PartialLog, CoreGuided, PermutationLog or list of Leaf, optional
            The records of a search, or the leaves of a semidefinite bound, where they are kept.
        """
        if not bound > self.bound:
            return False
        self._proved = _Proved(bound, proof, log)
        return True

    def offer_point(self, cost: float, point: Any) -> bool:
        """Offer a point of the local polytope; return whether it was kept.

        Parameters
        ----------
        cost : float
            Cost of the point.
        point : PrimalPoint or function
            The point, or a function that returns it.
        """
        if not cost < self.point_cost:
            return False
        self.point_cost, self.point = cost, point
        self._sharpen()
        return True

    def offer_labels(self, labels: Labels, energy: float | None = None) -> bool:
        """Offer a labelling, which is also a point of the polytope; return whether it was kept.

        Parameters
        ----------
        labels : int array
            One label per variable of the problem's model.
        energy : float, optional
            `model.energy(labels)`, if the caller has computed it.
        """
        model = self.problem.model
        labels = labels[: model.num_variables]
        energy = energy_of(model, labels, self.problem.threads) if energy is None else energy
        labels, energy = with_followers(model, (labels, energy))
        # The first labels replace the initial ones, even if their energy is +inf.
        if not energy < self.energy and self.found:
            return False
        better = energy < self.energy
        self.labels, self.energy = labels, energy
        if energy < self.point_cost:
            self.offer_point(energy, PrimalPoint(model, labels=labels))
        return better

    def offer_penalty(self, penalty: Penalty) -> None:
        """Offer what is known of costs that stand for hard constraints."""
        self.penalty = penalty

    # --- storing ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return all values, for a checkpoint."""
        return {
            "lp_bound": self.lp_bound, "lam": self.lam, "point_cost": self.point_cost,
            "point": self.point, "labels": self.labels, "energy": self.energy,
            "proved": self._proved.bound, "proof": self._proved.proof, "rounded": self._rounded,
        }  # fmt: skip

    def restore(self, kept: dict[str, Any]) -> None:
        """Restore the values of `snapshot`."""
        self.lp_bound, self.lam = kept["lp_bound"], kept["lam"]
        self.point_cost, self.point = kept["point_cost"], kept["point"]
        self.labels, self.energy = kept["labels"], kept["energy"]
        self._proved = _Proved(kept["proved"], kept["proof"])
        self._rounded = kept["rounded"]

    def unmade_lam(self) -> Any:
        """Return λ, or the function that computes it."""
        return unmade(self, "lam")

    # --- internal ---------------------------------------------------------------------------------

    def _zeros(self) -> Any:
        """λ = 0, made when asked for: it may be much larger than the model."""
        size = self.problem.model.half_size
        return lambda: np.zeros(size)

    def _bound_of(self, lam: Floats) -> float:
        model = self.problem.model
        return core.dual_bound(layout(model), lam, model.constant, self.problem.threads)

    def _sharpen(self) -> None:
        """Recompute the bound of λ if the remaining gap may be a rounding error.

        The error of a method's own bound is relative to the largest cost. The error of the
        recomputed bound is relative to the costs at the minima.
        """
        if self._rounded and self.point_cost - self.lp_bound <= self._grain():
            self.lp_bound = max(self.lp_bound, self._bound_of(self.lam))
            self._rounded = False

    def _grain(self) -> float:
        model = self.problem.model
        sizes = model.cost_sizes
        largest = math.ldexp(sizes.largest, sizes.exponent) or cost_scale(model)
        return GRAIN * (model.n + model.m) * largest
