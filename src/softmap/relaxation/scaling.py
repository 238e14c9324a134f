"""Models with costs near 1: what runs and points of the polytope are computed with.

Costs are multiplied by a power of two, which rounds nothing, so that costs near either end of the
float range can be added, squared and held in single precision. A model whose costs are of ordinary
size is left as it is, without a copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model import Model

__all__ = ["Scaled", "largest_cost", "scaled"]

ORDINARY = 40  # costs between 2**-40 and 2**40 are taken as they are
LARGEST = 600  # exponent that costs are scaled up to at most

Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class _Sizes:
    """Sizes of a model's costs, in units of 2**exponent: the largest is between 1/2 and 1."""

    exponent: int
    width: float  # sum of the ranges of all tables
    scale: float  # mean of those that are not 0; 0 if all tables are constant
    total: float  # sum of the largest size in each table


def scaled(model: Model) -> Scaled:
    """The model in units in which its costs are near 1; a scaled model comes back as it is."""
    sizes = _sizes(model)
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


def _extremes(model: Model) -> tuple[Floats, Floats]:
    """Least and greatest finite cost of every variable, then of every edge."""
    start, top = model.node_offset[:-1], model.unary
    low = np.minimum.reduceat(model.unary, start)
    if np.isinf(top.max()):
        top = np.where(np.isinf(top), -np.inf, top)
    high = np.maximum.reduceat(top, start)
    barred = np.isinf(low)
    parts = [(np.where(barred, 0.0, low), np.where(barred, 0.0, high))]
    parts += [p.extremes(*model.end_labels(first, last)) for first, last, p in model.groups()]
    lows, highs = zip(*parts, strict=True)
    return np.concatenate(lows), np.concatenate(highs)


def _sizes(model: Model) -> _Sizes:
    low, high = _extremes(model)
    size = np.maximum(np.abs(low), np.abs(high))
    exponent = int(np.frexp(size.max())[1])
    low, high, size = (np.ldexp(part, -exponent) for part in (low, high, size))
    widths = high - low
    apart = widths[widths > 0]
    scale = float(apart.mean()) if apart.size else 0.0
    return _Sizes(exponent, float(widths.sum()), scale, float(size.sum()))


def _exponent(sizes: _Sizes) -> int:
    """By which power of two to scale: costs of ordinary size by none."""
    if sizes.scale == 0:  # nothing to choose between: only the largest cost counts
        return 0 if abs(sizes.exponent) <= ORDINARY else -sizes.exponent
    typical = int(np.frexp(sizes.scale)[1]) + sizes.exponent
    if abs(typical) <= ORDINARY and sizes.exponent <= LARGEST:
        return 0
    return min(-typical, LARGEST - sizes.exponent)


def largest_cost(model: Model) -> str:
    """The table with the largest cost, in words."""
    low, high = _extremes(model)
    size = np.maximum(np.abs(low), np.abs(high))
    at = int(np.argmax(size))
    where = f"variable {at}" if at < model.n else f"edge {at - model.n}"
    return f"a cost of {size[at]:.3g} ({where})"
