"""What is solved: the model as given, the model that is worked on, and the units between them.

Costs, λ and η are scaled by a power of two (`softmap.relaxation.scaling`), which rounds nothing, so
that costs are near 1; the constant is left out, and so are states that hard constraints rule out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.model import Model
from softmap.relaxation.consistency import require_possible, tighten
from softmap.relaxation.gaps import cost_step
from softmap.relaxation.point import Beliefs
from softmap.relaxation.scaling import largest_cost, scaled

__all__ = ["Problem"]

LARGEST_SINGLE = 100  # exponent of the largest cost that single precision works with

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """One model to be solved.

    Attributes
    ----------
    given : Model
        As handed over.
    scaled : Model
        Costs times `2**exponent`, without the constant.
    model : Model
        The same without unsupported states (arc consistency): what is worked on.
    exponent : int
    scale : float
        Scale of the costs of `scaled`.
    width : float
        Ranges of all costs together: no λ needs to be larger.
    precision : "float64" or "float32"
        Of the iterates; bounds and costs are float64 in any case.
    threads : int
        Threads of compiled loops; nothing but the time depends on it.
    """

    given: Model
    scaled: Model
    model: Model
    exponent: int
    scale: float
    width: float
    precision: str = "float64"
    threads: int = 1

    @classmethod
    def of(cls, model: Model, *, precision: str = "float64", threads: int = 1) -> Problem:
        """The model, scaled and without unsupported states."""
        found = scaled(model)
        if precision == "float32" and found.largest > LARGEST_SINGLE:
            raise OptionError(
                f"dtype='float32': {largest_cost(model)} is too large beside the other costs for "
                "single precision; use float64"
            )
        tight = tighten(found.model)
        if model.required and not found.model.required:  # other units leave them behind
            require_possible(model, np.isfinite(tight.unary))
        return cls(
            model, found.model, tight, found.exponent, found.scale, found.width,
            precision, threads,
        )  # fmt: skip

    @classmethod
    def plain(cls, model: Model, *, threads: int = 1) -> Problem:
        """The model as it is: scaled and pruned already, or to be looked at in its own units."""
        found = scaled(model)
        return cls(model, model, model, 0, found.scale, math.inf, threads=threads)

    # --- into the units of the problem ------------------------------------------------------------

    def eta(self, eta: float | None) -> float | None:
        """η of the user in the units of the problem, within the range of its precision."""
        if eta is None:
            return None
        with np.errstate(over="ignore"):
            return self._within(float(np.ldexp(eta, -self.exponent)))

    def lam(self, lam: Floats) -> Floats:
        """λ of the user in the units of the problem; entries of absurd size are clipped.

        A constant added to all labels of a half-edge changes nothing, so the middle of each
        half-edge is moved to 0; what is then larger than all costs together is cut off. A bound
        may get worse by that, never wrong.
        """
        flat = self.lam_as_is(lam)
        if not np.isfinite(flat).all() or np.abs(flat).max(initial=0.0) > self.width:
            start = self.scaled.half_offset[:-1]
            sizes = np.diff(self.scaled.half_offset)
            quarter = np.ldexp(np.clip(flat, -(2.0**1020), 2.0**1020), -2)
            low, high = (op.reduceat(quarter, start) for op in (np.minimum, np.maximum))
            middle = np.repeat(2 * (low + high), sizes)
            flat = np.clip(4 * quarter - middle, -self.width, self.width)
        return flat

    def lam_as_is(self, lam: Floats) -> Floats:
        """λ of the user, or of a tightened model, in the units of the problem."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(lam, self.exponent)

    def cost(self, value: float) -> float:
        """A cost of the user in the units of the problem."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value - self.given.constant, self.exponent))

    # --- and back ---------------------------------------------------------------------------------

    def cost_back(self, value: float) -> float:
        """A cost in the user's units."""
        return self._back(value) + self.given.constant

    def bound_back(self, value: float) -> float:
        """A lower bound in the user's units, rounded down."""
        back = self._back(value)
        if self.exponent > 0 and np.ldexp(back, self.exponent) > value:
            back = math.nextafter(back, -math.inf)  # subnormal numbers may have been rounded up
        return float(core.lower_sum(np.array([back, self.given.constant])))

    def lam_back(self, values: Floats) -> Floats:
        """λ in the user's units."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(values, -self.exponent) if self.exponent else values

    def eta_back(self, eta: float) -> float:
        """η in the user's units; the nearest finite number where costs are extreme."""
        with np.errstate(over="ignore", under="ignore"):
            return _within(float(np.ldexp(eta, self.exponent)))

    def beliefs_back(self, given: Beliefs | None) -> Beliefs | None:
        """Beliefs of a tightened model in the user's units."""
        if given is None:
            return None
        coupling, eta = self.lam_back(given.coupling), self.eta_back(given.eta)
        return replace(given, coupling=coupling, eta=eta)

    def survives_scaling(self, lam: Floats | None) -> bool:
        """Whether λ is the same after scaling it back and forth: nothing was rounded."""
        if lam is None or not self.exponent:
            return True
        return np.array_equal(np.ldexp(self.lam_back(lam), self.exponent), lam)

    def costs_survive_scaling(self) -> bool:
        """Whether scaling has rounded no cost: all mantissas are those of the given costs."""
        pairs = zip(_costs(self.scaled), _costs(self.given), strict=True)
        return all(a is b or np.array_equal(np.frexp(a)[0], np.frexp(b)[0]) for a, b in pairs)

    def without_unsupported(self) -> Model:
        """The given model without the states that arc consistency rules out."""
        barred = np.isposinf(self.model.unary)
        if np.array_equal(barred, np.isposinf(self.given.unary)):
            return self.given
        return self.given.replace(unary=np.where(barred, np.inf, self.given.unary))

    # --- gaps -------------------------------------------------------------------------------------

    def unit(self, bound: float) -> float:
        """The unit of relative gaps to a bound of the problem: that of the user's bound, scaled."""
        with np.errstate(over="ignore"):
            constant = float(np.ldexp(self.given.constant, self.exponent))
        size = min(abs(bound), abs(bound + constant))
        # no step of the costs is larger than their scale, and most bounds are larger than both
        return size if size >= self.scale else max(size, cost_step(self.scaled))

    def _back(self, value: float) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value, -self.exponent))

    def _within(self, eta: float) -> float:
        """η that the precision of the iterates can work with, beside costs of this scale."""
        if self.precision == "float32" and 0 < self.scale < math.inf:
            eta = min(max(eta, 1e-30 / self.scale), 1e30 / self.scale)
        return _within(eta)


def _within(eta: float, largest: float = 1e290) -> float:
    """η that can still be multiplied by a degree, and divided by."""
    return min(max(eta, 1 / largest), largest)


def _costs(model: Model) -> list[NDArray[Any]]:
    arrays = [a for p in model.potentials for a in p.arrays().values()]
    return [model.unary, *(a for a in arrays if a.dtype.kind == "f")]
