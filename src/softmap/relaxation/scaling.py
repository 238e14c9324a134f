"""Models with costs near 1: what runs and points of the polytope are computed with.

Costs are multiplied by a power of two, which rounds nothing, so that costs near either end of the
float range can be added, squared and held in single precision. A model whose costs are of ordinary
size is left as it is, without a copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softmap.errors import ModelError
from softmap.model import Model
from softmap.model.structure import CostSizes

__all__ = ["Scaled", "largest_cost", "scaled"]


@dataclass(frozen=True)
class ScaleLimits:
    """Exponents of costs that are left as they are.

    Attributes
    ----------
    ordinary : int
        Costs between 2**-ordinary and 2**ordinary are taken as they are.
    largest : int
        Exponent that costs are scaled up to at most.
    """

    ordinary: int = 40
    largest: int = 600


SCALING = ScaleLimits()


@dataclass(frozen=True)
class Scaled:
    """A model times a power of two, without its constant.

    Attributes
    ----------
    model : Model
        Costs times `2**exponent`, no constant.
    exponent : int
    largest : int
        The largest size of a cost of `model` lies between `2**(largest - 1)` and `2**largest`.
    width, scale : float
        Sum of the ranges of all tables of `model`, and mean of those that are not 0.
    """

    model: Model
    exponent: int
    largest: int
    width: float
    scale: float


def scaled(model: Model) -> Scaled:
    """The model in units in which its costs are near 1; a scaled model comes back as it is."""
    sizes = model.cost_sizes
    if sizes.total > 0 and math.log2(sizes.total) + sizes.exponent > 1023:
        raise ModelError(
            f"{largest_cost(model)} is so large that sums of costs overflow; divide all costs by "
            "some number"
        )
    exponent = _exponent(sizes)
    largest = sizes.exponent + exponent
    width, scale = math.ldexp(sizes.width, largest), math.ldexp(sizes.scale, largest)
    return Scaled(_times(model, exponent), exponent, largest, width, scale)


def _times(model: Model, exponent: int) -> Model:
    if exponent == 0:
        return model if model.constant == 0 else model.replace(constant=0.0)
    half = exponent // 2  # the whole factor may be beyond the float range
    first, second = 2.0**half, 2.0 ** (exponent - half)
    potentials = [p.scaled(first).scaled(second) for p in model.potentials]
    return model.replace(unary=model.unary * first * second, potentials=potentials, constant=0.0)


def _exponent(sizes: CostSizes) -> int:
    """By which power of two to scale: costs of ordinary size by none."""
    if sizes.scale == 0:  # nothing to choose between: only the largest cost counts
        return 0 if abs(sizes.exponent) <= SCALING.ordinary else -sizes.exponent
    typical = int(np.frexp(sizes.scale)[1]) + sizes.exponent
    if abs(typical) <= SCALING.ordinary and sizes.exponent <= SCALING.largest:
        return 0
    return min(-typical, SCALING.largest - sizes.exponent)


def largest_cost(model: Model) -> str:
    """The table with the largest cost, in words."""
    low, high = model.extremes()
    size = np.maximum(np.abs(low), np.abs(high))
    at = int(np.argmax(size))
    where = f"variable {at}" if at < model.n else f"edge {at - model.n}"
    return f"a cost of {size[at]:.3g} ({where})"
