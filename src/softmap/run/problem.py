"""`Problem`: the user's model, the scaled network that methods work on, and the units between them.

Costs, λ and η are scaled exactly by a power of two (`softmap.relaxation.gaps`), so that costs
are near 1. The constant is removed, and so are states that hard constraints exclude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.model import Model, Network, raised
from softmap.model.potentials import Potential
from softmap.relaxation.consistency import require_possible, tighten
from softmap.relaxation.gaps import cost_step, largest_cost, scaled
from softmap.relaxation.polytope import ClusterBeliefs

__all__ = ["Problem"]

LARGEST_SINGLE = 100  # largest exponent of a cost in single precision
SMALLEST_NORMAL = 2.0**-1022  # products below it are rounded to fewer digits

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """One model to be solved.

    Attributes
    ----------
    posed : Model
        The user's model.
    scaled : Network
        Its network with costs times `2**exponent`, without the constant.
    model : Network
        `scaled` after arc consistency; methods work on it.
    exponent : int
    scale : float
        Scale of the costs of `scaled`.
    width : float
        Sum of the ranges of all costs: no λ needs to be larger.
    precision : "float64" or "float32"
        Precision of the messages; bounds and costs are always float64.
    threads : int
        Number of threads of compiled loops; results do not depend on it.
    """

    posed: Model
    scaled: Network
    model: Network
    exponent: int
    scale: float
    width: float
    precision: str = "float64"
    threads: int = 1

    @classmethod
    def of(cls, model: Model, *, precision: str = "float64", threads: int = 1) -> Problem:
        """Return the problem of a model, scaled and arc-consistent."""
        given = model.network
        found = scaled(given)
        if precision == "float32" and found.largest > LARGEST_SINGLE:
            raise OptionError(
                f"dtype='float32': {largest_cost(given)} is too large beside the other costs for "
                "single precision; use float64"
            )
        hard = found.model.has_forbidden
        tight = tighten(found.model, threads) if hard else found.model
        if given.required and not found.model.required:  # other units leave them behind
            require_possible(given, np.isfinite(tight.unary))
        return cls(
            model, found.model, tight, found.exponent, found.scale, found.width,
            precision, threads,
        )  # fmt: skip

    @classmethod
    def plain(cls, model: Network, *, threads: int = 1) -> Problem:
        """Return the problem of a network that is neither scaled nor pruned."""
        found = scaled(model)
        return cls(raised(model), model, model, 0, found.scale, math.inf, threads=threads)

    @classmethod
    def unrounded(cls, model: Model) -> Problem:
        """Return the arc-consistent problem of a model in units that round none of its costs.

        Its bounds are those of the given model: costs much smaller than others may be 0 in the
        units of `of`.
        """
        found = cls.of(model)
        if found.costs_survive_scaling():
            return found
        own = cls.unscaled(model, math.ldexp(found.scale, -found.exponent))
        return replace(own, model=tighten(own.model))

    @classmethod
    def unscaled(cls, model: Model, scale: float) -> Problem:
        """Return the problem of a model in its own units without hard constraints.

        Parameters
        ----------
        model : Model
            The model, with costs of ordinary size.
        scale : float
            Scale of its costs.
        """
        given = model.network
        plain = given if model.constant == 0 else given.replace(constant=0.0)
        return cls(model, plain, plain, 0, scale, math.inf)

    @property
    def given(self) -> Network:
        """The network of the user's model, in the user's units."""
        return self.posed.network

    # --- into the units of the problem ------------------------------------------------------------

    def eta(self, eta: float | None) -> float | None:
        """Convert the user's η to the units of the problem, within the range of its precision."""
        if eta is None:
            return None
        with np.errstate(over="ignore"):
            return self._within(float(np.ldexp(eta, -self.exponent)))

    def lam(self, lam: Floats) -> Floats:
        """Convert the user's λ to the units of the problem; clip entries of implausible size.

        A constant added to all labels of a half-edge changes nothing, so each half-edge is centred
        at 0. Entries larger than the sum of all ranges of costs are then clipped. This may weaken
        the bound, but the bound stays valid.
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
        """Convert λ of the user, or of a tightened model, to the units of the problem."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(lam, self.exponent)

    def cost(self, value: float) -> float:
        """A cost of the user in the units of the problem."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value - self.given.constant, self.exponent))

    # --- and back ---------------------------------------------------------------------------------

    def cost_back(self, value: float) -> float:
        """Convert a cost to the user's units."""
        return self._back(value) + self.given.constant

    def bound_back(self, value: float) -> float:
        """Convert a lower bound to the user's units, rounded down."""
        back = self._back(value)
        if self.exponent > 0 and np.ldexp(back, self.exponent) > value:
            back = math.nextafter(back, -math.inf)  # subnormal numbers may have been rounded up
        return float(core.lower_sum(np.array([back, self.given.constant])))

    def lam_back(self, lam: Any) -> Any:
        """Convert λ, or a function that returns it, to the user's units.

        Without scaling, `lam` is returned: a function stays one.
        """
        if not self.exponent:
            return lam
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(lam() if callable(lam) else lam, -self.exponent)

    def eta_back(self, eta: float) -> float:
        """Convert η to the user's units; the nearest finite number for extreme costs."""
        with np.errstate(over="ignore", under="ignore"):
            return _within(float(np.ldexp(eta, self.exponent)))

    def beliefs_back(self, given: ClusterBeliefs | None) -> ClusterBeliefs | None:
        """Convert beliefs of a tightened model to the user's units."""
        if given is None:
            return None
        coupling, eta = self.lam_back(given.coupling), self.eta_back(given.eta)
        return replace(given, coupling=coupling, eta=eta)

    def survives_scaling(self, lam: Floats | None) -> bool:
        """Whether scaling λ back and forth is exact."""
        if lam is None or not self.exponent:
            return True
        return np.array_equal(np.ldexp(self.lam_back(lam), self.exponent), lam)

    def costs_survive_scaling(self) -> bool:
        """Whether scaling was exact for all costs: the mantissas are those of the given costs.

        A product of a weight and a table entry is rounded alike in both units if it is a normal
        number in both.
        """
        if not self.exponent:
            return True
        if min(map(_least_product, (self.scaled, self.given))) < SMALLEST_NORMAL:
            return False
        pairs = zip(_costs(self.scaled), _costs(self.given), strict=True)
        return all(a is b or np.array_equal(np.frexp(a)[0], np.frexp(b)[0]) for a, b in pairs)

    def without_unsupported(self) -> Network:
        """Return the given model without the states that arc consistency removes."""
        excluded = np.isposinf(self.model.unary)
        if np.array_equal(excluded, np.isposinf(self.given.unary)):
            return self.given
        return self.given.replace(unary=np.where(excluded, np.inf, self.given.unary))

    # --- gaps -------------------------------------------------------------------------------------

    @cached_property
    def _constant(self) -> float:
        """The given constant in the units of the problem."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(self.given.constant, self.exponent))

    def unit(self, bound: float) -> float:
        """Return the unit of relative gaps to a bound, in the units of the problem."""
        size = min(abs(bound), abs(bound + self._constant))
        # cost_step is at most the scale of the costs: skip it if the bound is larger
        return size if size >= self.scale else max(size, cost_step(self.scaled))

    def _back(self, value: float) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value, -self.exponent))

    def _within(self, eta: float) -> float:
        """Limit η to the range of the precision of the messages."""
        if self.precision == "float32" and 0 < self.scale < math.inf:
            eta = min(max(eta, 1e-30 / self.scale), 1e30 / self.scale)
        return _within(eta)


def _within(eta: float, largest: float = 1e290) -> float:
    """Limit η so that products with degrees, and 1 / η, stay finite."""
    return min(max(eta, 1 / largest), largest)


def _costs(model: Network) -> list[NDArray[Any]]:
    return [model.unary, *(a for p in model.potentials for a in _floats(p))]


def _floats(potential: Potential) -> list[NDArray[Any]]:
    return [a for a in potential.arrays().values() if a.dtype.kind == "f"]


def _least_product(model: Network) -> float:
    """A lower bound on the absolute value of each product of two numbers that is not 0."""
    least = math.inf
    for potential in model.potentials:
        sizes = [np.abs(a[np.isfinite(a) & (a != 0)]).min(initial=1.0) for a in _floats(potential)]
        if len(sizes) > 1:
            least = min(least, math.prod(map(float, sizes)))
    return least
