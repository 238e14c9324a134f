"""The best values of a run so far: bounds with proofs, a primal point, and a labelling.

All subsolvers offer values; `Best` keeps the better ones. Values are in the units of the problem.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.energies import energy_of
from softmap.labels.improving import with_chain_variables
from softmap.model import Network
from softmap.model.layout import layout
from softmap.model.potentials.base import is_one_value, offsets
from softmap.model.structure import PIECE
from softmap.relaxation.gaps import cost_scale
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.evidence import Evidence, Relaxation
from softmap.run.problem import Problem
from softmap.run.values import BestValues, Penalty

__all__ = ["Best", "checked_labels"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
GRAIN = 2.0**-50  # rounding error of a bound per node and edge, relative to the largest cost


class Best(BestValues):
    """The best bound, point and labelling of one problem, with the evidence for the bound.

    Parameters
    ----------
    problem : Problem
        The problem.
    upper_bound : float, optional
        The user's upper bound, see `cutoff`.

    Attributes
    ----------
    penalty
        Costs that stand for hard constraints, if there are any.
    """

    lam: Floats
    point: PrimalPoint | None
    labels: Labels

    def __init__(self, problem: Problem, upper_bound: float | None = None) -> None:
        cutoff = math.inf if upper_bound is None else problem.cost(upper_bound)
        labels = np.zeros(problem.model.num_variables, dtype=np.int64)
        self.problem = problem
        # λ = 0, made when asked for: it may be much larger than the model
        self._zeros: Any = partial(np.zeros, problem.model.half_size)
        super().__init__(problem.unit, self._zeros, labels, cutoff)
        # of the best bound that λ alone does not prove
        self._evidence: Evidence = Relaxation()
        # of a resumed run whose search has to be done again
        self._unrecorded: Evidence = Relaxation()
        self._aside: dict[str, Any] | None = None  # what a resumed run takes at its end
        self.penalty: Penalty | None = None
        self._rounded = False  # whether `lp_bound` is a method's own, which may be less accurate

    @property
    def evidence(self) -> Evidence:
        """What proves `bound`."""
        if self._evidence.value > self.lp_bound:
            return self._evidence
        return Relaxation(value=self.lp_bound)

    @property
    def bound(self) -> float:
        return max(self._evidence.value, self.lp_bound)

    @property
    def values(self) -> tuple[float, float, float, float]:
        """The values of both bounds, the point and the labelling."""
        return self.bound, self.lp_bound, self.point_cost, self.energy

    @property
    def unrecorded(self) -> bool:
        """Whether a search proved `bound` before the run was resumed, and none did again."""
        return self.evidence is self._unrecorded

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
        bound = _least_sum(model)
        if bound > self.lp_bound:
            self.lp_bound, self.lam, self._rounded = bound, self._zeros, False

    def offer_lp_bound(self, bound: float, lam: Any) -> bool:
        if not super().offer_lp_bound(bound, lam):
            return False
        self._rounded = True
        self._sharpen()
        return True

    def offer_bound(self, evidence: Evidence) -> bool:
        """Offer evidence for a bound on the MAP optimum; whether it was kept."""
        if not evidence.value > self.bound:
            return False
        self._evidence = evidence
        return True

    def offer_point(self, cost: float, point: Any) -> bool:
        if not super().offer_point(cost, point):
            return False
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
        labels, energy = with_chain_variables(model, (labels, energy))
        return self.offer_labelling(labels, energy, PrimalPoint(model, labels=labels))

    def offer_penalty(self, penalty: Penalty) -> None:
        """Offer what is known of costs that stand for hard constraints."""
        self.penalty = penalty

    # --- storing ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return all values, for a checkpoint."""
        evidence = max(self._evidence, self._unrecorded, key=lambda one: one.value)
        return {
            "lp_bound": self.lp_bound, "lam": self.lam, "point_cost": self.point_cost,
            "point": self.point, "labels": self.labels, "energy": self.energy,
            "evidence": evidence.plain, "rounded": self._rounded,
        }  # fmt: skip

    def restore(self, kept: dict[str, Any], *, recorded: bool = False) -> None:
        """Restore the values of `snapshot`.

        Parameters
        ----------
        kept : dict
            The values.
        recorded : bool, default False
            Whether a proof file is asked for: the bound of a search, whose records are not here,
            is set aside, so that the search is done again.
        """
        self.lp_bound, self.lam = kept["lp_bound"], kept["lam"]
        self.point_cost, self.point = kept["point_cost"], kept["point"]
        self.labels, self.energy = kept["labels"], kept["energy"]
        self._evidence, self._unrecorded = kept["evidence"], Relaxation()
        if recorded and self._evidence.stated:
            self._evidence, self._unrecorded = Relaxation(), self._evidence
        self._rounded = kept["rounded"]

    def set_aside(self, kept: dict[str, Any], *, recorded: bool = False) -> None:
        """Keep values of `snapshot` for the end of the run, which they do not influence before.

        Parameters
        ----------
        kept : dict
            The values.
        recorded : bool, default False
            As for `restore`.
        """
        self._aside = dict(kept)
        evidence = kept["evidence"]
        if recorded and evidence.stated and evidence.value > self._unrecorded.value:
            self._unrecorded = evidence
            self._aside["evidence"] = Relaxation()

    @property
    def aside(self) -> dict[str, Any] | None:
        """The values that were set aside, until they are taken."""
        return self._aside

    def take_aside(self) -> bool:
        """Offer the values that were set aside; return whether any of them is better."""
        kept, self._aside = self._aside, None
        if kept is None:
            return False
        before = self.values
        if kept["lp_bound"] > self.lp_bound:
            self.lp_bound, self.lam = kept["lp_bound"], kept["lam"]
            self._rounded = kept["rounded"]
        self.offer_bound(kept["evidence"])
        if math.isfinite(kept["energy"]):
            point = PrimalPoint(self.problem.model, labels=kept["labels"])
            self.offer_labelling(kept["labels"], kept["energy"], point)
        if kept["point"] is not None:
            self.offer_point(kept["point_cost"], kept["point"])
        return self.values != before

    def take_unrecorded(self) -> bool:
        """Take the bound that was set aside, if it is the better one; return whether it is."""
        better = self._unrecorded.value > self.bound
        if better:
            self._evidence = self._unrecorded
        return better

    # --- internal ---------------------------------------------------------------------------------

    def _bound_of(self, lam: Floats) -> float:
        model = self.problem.model
        return core.dual_bound(layout(model), lam, model.constant, self.problem.threads)

    def _sharpen(self) -> None:
        """Recompute the bound of λ if the remaining gap may be a rounding error.

        The error of a method's own bound is relative to the largest cost. The error of the
        recomputed bound is relative to the costs at the minima.
        """
        if not self._rounded:
            return
        model, sizes = self.problem.model, self.problem.model.cost_sizes
        largest = math.ldexp(sizes.largest, sizes.exponent) or cost_scale(model)
        if self.point_cost - self.lp_bound <= GRAIN * (model.n + model.m) * largest:
            self.lp_bound = max(self.lp_bound, self._bound_of(self.lam))
            self._rounded = False


def checked_labels(model: Network, stored: NDArray[Any]) -> Labels:
    """Return labels of a file; raise ValueError if they are not those of the model's variables."""
    if stored.dtype != np.int64 or stored.shape != (model.num_variables,):
        raise ValueError(f"labels: expected one per variable, found {stored.dtype}{stored.shape}")
    if (stored < 0).any() or (stored >= model.num_labels[: len(stored)]).any():
        raise ValueError("a label is out of its range")
    return stored


def _least_sum(model: Network) -> float:
    """The constant plus the least finite cost of each node and edge, rounded down."""
    start, sums = offsets(model.num_labels), [model.constant]
    for first in range(0, model.n, PIECE):
        rows = start[first : first + PIECE + 1]
        low, high = np.empty((2, len(rows) - 1))
        core.row_extremes(model.unary[rows[0] : rows[-1]], rows - rows[0], low, high)
        sums.append(core.lower_sum(low))
    for first, last, p in model.groups():
        low, _ = p.extremes(*model.end_labels(first, last))
        alike = len(low) > 1 and is_one_value(low)
        low = low[:1] if alike else low
        below = np.where(low == 0, low, np.nextafter(low, -np.inf))  # products are rounded
        sums.append(core.lower_sum(below))
        if alike and below[0] != 0:
            sums[-1] = np.nextafter((last - first) * below[0], -np.inf)
    return float(core.lower_sum(np.array(sums)))
