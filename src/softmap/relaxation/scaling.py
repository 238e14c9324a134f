"""Scaling of a model by a power of two, so that its costs are near 1.

Scaling by a power of two is exact. It allows very large and very small costs to be added, squared
and stored in single precision. A model whose costs are of ordinary size is used without a copy.
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
    model : Model
        The model with costs times `2**exponent` and constant 0.
    exponent : int
    largest : int
        The largest |cost| of `model` lies between `2**(largest - 1)` and `2**largest`.
    width : float
        Sum of the ranges of all tables of `model`.
    scale : float
        Mean of the ranges that are not 0.
    """

    model: Model
    exponent: int
    largest: int
    width: float
    scale: float


def scaled(model: Model) -> Scaled:
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


def _times(model: Model, exponent: int) -> Model:
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


def largest_cost(model: Model) -> str:
    """Return a phrase that names the largest cost and its table."""
    low, high = model.extremes()
    size = np.maximum(np.abs(low), np.abs(high))
    at = int(np.argmax(size))
    where = f"variable {at}" if at < model.n else f"edge {at - model.n}"
    return f"a cost of {size[at]:.3g} ({where})"
