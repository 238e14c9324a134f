"""The units a run works in: costs near 1 and no constant, whatever the user's costs are.

Costs, λ and η are scaled by a power of two (`softmap.relaxation.scaling`), which rounds nothing;
results are taken back by its inverse.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.later import unmade
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation.gaps import cost_step, relative_gap
from softmap.relaxation.point import Beliefs
from softmap.relaxation.scaling import largest_cost, scaled
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.result import Result
from softmap.solving.trace import PROVED, Row, Snapshot, Status, Trace

__all__ = ["Units", "cautious"]

LARGEST_ETA = 1e290  # of a run, and 1 over the least one
LARGEST_SINGLE_ETA = 1e30  # the same where messages are in single precision
SINGLE = 100  # exponent of the largest cost that single precision works with

Floats = NDArray[np.float64]


class Units:
    """How one model is scaled.

    Attributes
    ----------
    given, model : Model
        As handed over, and as the run sees it: costs times `2**exponent`, no constant.
    """

    def __init__(self, model: Model, dtype: str = "float64") -> None:
        found = scaled(model)
        if dtype == "float32" and found.largest > SINGLE:
            raise OptionError(
                f"dtype='float32': {largest_cost(model)} is too large beside the other costs for "
                "single precision; use float64"
            )
        self.given, self.model, self.exponent = model, found.model, found.exponent
        self._priced: tuple[Any, float] = (None, math.inf)
        self.scale = found.scale
        self._most = LARGEST_SINGLE_ETA if dtype == "float32" else LARGEST_ETA
        with np.errstate(over="ignore"):
            self._constant = float(np.ldexp(model.constant, found.exponent))
        self.width = found.width  # no λ needs to be larger than the ranges of all costs together

    # --- into the units of the run ----------------------------------------------------------------

    def eta(self, eta: float | None) -> float | None:
        """η of the user, for the run."""
        with np.errstate(over="ignore"):
            return (
                None if eta is None else _within(float(np.ldexp(eta, -self.exponent)), self._most)
            )

    def warm(self, lam: Floats) -> Floats:
        """λ of the user, for the run; entries of absurd size are mended, which costs no proof.

        A constant added to all labels of a half-edge changes nothing, so the middle of each
        half-edge is moved to 0; and what is then larger than all costs together is cut off.
        """
        with np.errstate(over="ignore", under="ignore"):
            flat = np.ldexp(lam, self.exponent)
        if not np.isfinite(flat).all() or np.abs(flat).max(initial=0.0) > self.width:
            start = self.model.half_offset[:-1]
            sizes = np.diff(self.model.half_offset)
            quarter = np.ldexp(np.clip(flat, -(2.0**1020), 2.0**1020), -2)
            low, high = (op.reduceat(quarter, start) for op in (np.minimum, np.maximum))
            middle = np.repeat(2 * (low + high), sizes)
            flat = np.clip(4 * quarter - middle, -self.width, self.width)
        return flat

    # --- and back ---------------------------------------------------------------------------------

    def cost(self, value: float) -> float:
        """A cost as the user counts it."""
        return self._back(value) + self.given.constant

    def bound(self, value: float) -> float:
        """A lower bound as the user counts it, rounded down."""
        back = self._back(value)
        if self.exponent > 0 and np.ldexp(back, self.exponent) > value:
            back = math.nextafter(back, -math.inf)  # among the least numbers there are, it rounded
        constant = self.given.constant
        total = back + constant
        part = total - back
        error = (back - (total - part)) + (constant - part)
        return math.nextafter(total, -math.inf) if error < 0 else total

    def unit(self, bound: float) -> float:
        """The unit of relative gaps to a bound of the run: that of the user's bound, scaled."""
        size = min(abs(bound), abs(bound + self._constant))
        # no step of the costs is larger than their scale, and most bounds are larger than both
        return size if size >= self.scale else max(size, cost_step(self.model))

    def snapshot(self, row: Row, labels: NDArray[np.int64]) -> Snapshot:
        """A row of the run and the best labels, for the user."""
        energy = self.energy(labels, row.energy)
        outside = replace(
            row,
            eta=self._eta_back(row.eta),
            bound=self.bound(row.bound),
            smoothed=self.cost(row.smoothed),
            primal=self._primal(row.primal, row.energy, energy),
            energy=energy,
        )
        return Snapshot(self.given, outside, labels)

    def energy(self, labels: NDArray[np.int64], energy: float) -> float:
        """The energy of labels as the user counts it, given that in the run."""
        if not math.isfinite(energy) or self.given is self.model:
            return energy
        if labels is not self._priced[0]:  # a run keeps its best labels for many checks
            self._priced = labels, float(self.given.energy(labels))
        return self._priced[1]

    def result(self, inside: Result, tight: Model) -> Result:
        """A result of the run on the model `tight`, as one of the model that was given.

        Its η, trace and model are those of the user already; `point` stays in the run's units.
        """
        if self.given is self.model:
            return inside
        lam, messages = (self._back_later(inside, name) for name in ("lam", "messages"))
        energy = self.energy(inside.labels, inside.energy)
        return cautious(
            replace(
                inside,
                energy=energy,
                **self._bounds(inside, tight),
                primal=self._primal(inside.primal, inside.energy, energy),
                lam=lam,
                messages=messages,
            )
        )

    def _back_later(self, inside: Result, name: str) -> Any:
        """λ as the user counts it; where that is as it was, it may still have to be made."""
        return self._array_back(getattr(inside, name)) if self.exponent else unmade(inside, name)

    def _bounds(self, inside: Result, tight: Model) -> dict[str, Any]:
        """Bounds and proof; from λ and the user's costs alone where scaling has rounded either."""
        costs = self._exact() or not math.isfinite(inside.bound)
        if costs and (not self.exponent or self._kept(inside.lam)):
            lower = self.bound(inside.lp_bound)
        else:
            outer = _without(self.given, tight)
            back = self._array_back(inside.lam)
            lower = float(core.dual_bound(layout(outer), back, outer.constant, inside.threads))
        proof, best = inside.proof, self.bound(inside.bound)
        if proof.kind is ProofKind.RELAXATION or not costs or not self._kept(proof.lam):
            proof, best = Proof(), lower
        elif proof.lam is not None:
            beliefs = self._beliefs_back(proof.beliefs)
            proof = replace(proof, lam=self._array_back(proof.lam), beliefs=beliefs)
        if lower >= best:
            proof, best = Proof(), lower
        return {"bound": best, "lp_bound": lower, "proof": proof}

    def _kept(self, lam: Floats | None) -> bool:
        """Whether λ of the run is the same when scaled back, not rounded."""
        if lam is None or not self.exponent:
            return True
        return np.array_equal(np.ldexp(self._array_back(lam), self.exponent), lam)

    def _exact(self) -> bool:
        """Whether scaling has rounded no cost: all have the digits of the cost that was given.

        A potential may have put parts of the factor into several of its arrays.
        """
        pairs = zip(_costs(self.model), _costs(self.given), strict=True)
        return all(a is b or np.array_equal(np.frexp(a)[0], np.frexp(b)[0]) for a, b in pairs)

    def _primal(self, primal: float, energy: float, outside: float) -> float:
        """A primal value for the user, given the energy in the run and outside: no larger."""
        return outside if primal >= energy else min(self.cost(primal), outside)

    def _back(self, value: float) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value, -self.exponent))

    def _array_back(self, values: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(values, -self.exponent) if self.exponent else values

    def _beliefs_back(self, given: Beliefs | None) -> Beliefs | None:
        if given is None:
            return None
        coupling, eta = self._array_back(given.coupling), self._eta_back(given.eta)
        return replace(given, coupling=coupling, eta=eta)

    def _eta_back(self, eta: float) -> float:
        """η for the user; the nearest there is where costs are too near an end of the range."""
        with np.errstate(over="ignore", under="ignore"):
            return _within(float(np.ldexp(eta, self.exponent)), LARGEST_ETA)


def cautious(result: Result) -> Result:
    """A result whose trace and status say no more than its bounds prove."""
    rows = [replace(row, bound=min(row.bound, result.bound)) for row in result.trace]
    tolerances = dict(zip((Status.LP_GAP, Status.GAP), result.tolerances, strict=True))
    most = (tolerances | {Status.OPTIMAL: PROVED}).get(result.status, math.inf)
    gap = result.lp_gap if result.status is Status.LP_GAP else result.gap
    if math.isfinite(result.bound):
        gap -= 4 * math.ulp(result.bound)  # the constant was added, which may have rounded
    held = relative_gap(gap, result.unit) <= most
    large = {name: unmade(result, name) for name in ("lam", "messages")}
    status = result.status if held else Status.EXHAUSTED
    return replace(result, trace=Trace(rows), status=status, **large)


def _within(eta: float, most: float) -> float:
    """η that still can be multiplied by a degree, and divided by."""
    return min(max(eta, 1.0 / most), most)


def _costs(model: Model) -> list[NDArray[Any]]:
    arrays = [a for p in model.potentials for a in p.arrays().values()]
    return [model.unary, *(a for a in arrays if a.dtype.kind == "f")]


def _without(model: Model, tight: Model) -> Model:
    """The model without the states that the tightened one forbids."""
    barred = np.isposinf(tight.unary)
    if np.array_equal(barred, np.isposinf(model.unary)):
        return model
    return model.replace(unary=np.where(barred, np.inf, model.unary))
