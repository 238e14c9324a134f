"""Units of costs: relative gaps between an energy (or a primal cost) and a bound, and scaling.

A relative gap is the gap divided by a unit, `max(min(|bound|, |bound - constant|), cost_step)`.
A large constant of the model hence hides no gap. The typical step of the costs (`cost_step`)
gives a model whose optimum is 0 a relative gap, too. The unit is proportional to the costs:
multiplying all costs by a positive number changes no relative gap.

A run solves the model scaled by a power of two, so that its costs are near 1. Scaling by a power of
two is exact. It allows very large and very small costs to be added, squared and stored in single
precision. A model whose costs are of ordinary size is used without a copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softmap.errors import ModelError
from softmap.model import Model, Network
from softmap.model.potentials.base import Costs, least_steps
from softmap.model.structure import CostSizes

PROVED = 1e-9
"""Relative gap up to which a labelling counts as proved optimal (rounding errors)."""
CLOSED = PROVED / 10
"""Relative gap at which a search stops whose labels are to be proved optimal."""


class Gaps:
    """What an energy and a bound of a model say together."""

    model: Model
    energy: float
    bound: float

    @property
    def gap_unit(self) -> float:
        """The number by which relative gaps are divided, see `softmap.relaxation.gaps`."""
        return model_unit(self.model.network, self.bound)

    @property
    def gap(self) -> float:
        """The gap `energy - bound`, at least 0; 0 proves the labelling optimal."""
        return max(0.0, self.energy - self.bound)

    def relative_gap(self, gap: float | None = None) -> float:
        """Return a gap divided by `gap_unit`, see `softmap.relaxation.gaps`.

        Parameters
        ----------
        gap : float, optional
            The gap, for example `lp_gap`; by default `gap`.
        """
        return relative_gap(self.gap if gap is None else gap, self.gap_unit)


def relative_gap(gap: float, unit: float) -> float:
    """The gap in units; 0 if there is none, +inf if there is one and the unit is 0 or infinite."""
    if gap <= 0:
        return 0.0
    return gap / unit if 0 < unit < math.inf else math.inf


def stated_primal(cost: float, bound: float, energy: float) -> float:
    """Return the primal value to report: the cost of the best point, labellings included.

    A cost that rounding took below the proved bound is replaced by the bound, or by the energy of
    the labels if rounding took that below the bound, too.
    """
    return min(max(cost, bound), energy)


def gap_unit(bound: float, constant: float = 0.0, step: float = 0.0) -> float:
    """Return the unit of gaps to a bound, `max(min(|bound|, |bound - constant|), step)`."""
    return max(min(abs(bound), abs(bound - constant)), step)


def model_unit(model: Network, bound: float) -> float:
    """Return the unit of gaps to a bound of this model."""
    size, sizes = min(abs(bound), abs(bound - model.constant)), model.cost_sizes
    # the step is at most the mean range of the tables: no need to compute it for a larger bound
    large = size > math.ldexp(sizes.scale, sizes.exponent)
    return size if large else gap_unit(bound, model.constant, cost_step(model))


def cost_step(model: Network) -> float:
    """Return a typical step of the costs, 0 if all tables are constant; computed once per model.

    It is the harmonic mean, over all tables with two distinct finite costs, of the difference
    between the two smallest. A few very large costs do not raise it.
    """
    cache = model.__dict__
    if "_cost_step" not in cache:
        cache["_cost_step"] = _harmonic_mean(cost_steps(model))
    step: float = cache["_cost_step"]
    return step


def cost_scale(model: Network) -> float:
    """Return the mean range of costs within a table; constants do not change it.

    If every table is constant, it is the largest |cost|, or 1 if all costs are 0.
    """
    sizes = model.cost_sizes
    return math.ldexp(sizes.scale or sizes.largest, sizes.exponent) or 1.0


def cost_steps(model: Network) -> Costs:
    """The difference between the two lowest costs of every node, then of every edge."""
    found = [least_steps(model.unary, model.node_offset[:-1])]
    for first, last, potential in model.groups():
        if last > first:
            found.append(potential.steps(*model.end_labels(first, last)))
    return np.concatenate(found)


def _harmonic_mean(steps: Costs) -> float:
    steps = steps[(steps > 0) & np.isfinite(steps)]
    if not steps.size:
        return 0.0
    least = steps.min()
    return float(least * (steps.size / (least / steps).sum()))


@dataclass(frozen=True)
class ScaleLimits:
    """Exponents that decide if and how costs are scaled.

    Attributes
    ----------
    ordinary : int
        Costs between 2**-ordinary and 2**ordinary are not scaled.
    largest : int
        Largest exponent of a cost after scaling.
    """

    ordinary: int = 40
    largest: int = 600


SCALING = ScaleLimits()


@dataclass(frozen=True)
class Scaled:
    """A model multiplied by a power of two, without its constant.

    Attributes
    ----------
    model : Network
        The model with costs times `2**exponent` and constant 0.
    exponent : int
    largest : int
        The largest |cost| of `model` lies between `2**(largest - 1)` and `2**largest`.
    width : float
        Sum of the ranges of all tables of `model`.
    scale : float
        Mean of the ranges that are not 0.
    """

    model: Network
    exponent: int
    largest: int
    width: float
    scale: float


def scaled(model: Network) -> Scaled:
    """Return the model scaled so that its costs are near 1; scaling it again changes nothing."""
    sizes = model.cost_sizes
    if sizes.total > 0 and math.log2(sizes.total) + sizes.exponent > 1023:
        raise ModelError(
            f"{largest_cost(model)} is so large that sums of costs overflow; divide all costs by "
            "a common number"
        )
    exponent = _exponent(sizes)
    largest = sizes.exponent + exponent
    width, scale = math.ldexp(sizes.width, largest), math.ldexp(sizes.scale, largest)
    return Scaled(_times(model, exponent), exponent, largest, width, scale)


def _times(model: Network, exponent: int) -> Network:
    if exponent == 0:
        return model if model.constant == 0 else model.replace(constant=0.0)
    half = exponent // 2  # two steps: 2**exponent itself may overflow
    first, second = 2.0**half, 2.0 ** (exponent - half)
    potentials = [p.scaled(first).scaled(second) for p in model.potentials]
    return model.replace(unary=model.unary * first * second, potentials=potentials, constant=0.0)


def _exponent(sizes: CostSizes) -> int:
    """Return the exponent of the power of two to scale by; 0 for costs of ordinary size."""
    if sizes.scale == 0:  # all tables are constant: only the largest cost matters
        return 0 if abs(sizes.exponent) <= SCALING.ordinary else -sizes.exponent
    typical = int(np.frexp(sizes.scale)[1]) + sizes.exponent
    if abs(typical) <= SCALING.ordinary and sizes.exponent <= SCALING.largest:
        return 0
    return min(-typical, SCALING.largest - sizes.exponent)


def largest_cost(model: Network) -> str:
    """Return a phrase that names the largest cost and its table."""
    low, high = model.extremes()
    size = np.maximum(np.abs(low), np.abs(high))
    at = int(np.argmax(size))
    where = f"variable {at}" if at < model.n else f"edge {at - model.n}"
    return f"a cost of {size[at]:.3g} ({where})"
