"""Exact arithmetic with floats: sums that are rounded once, units, last bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap import core
from softmap.model.potentials.base import Costs, Ints

if TYPE_CHECKING:
    from fractions import Fraction


def careful_sums(terms: Costs) -> Any:
    """Return exact sums over the last axis, each rounded once: a float, or an array for a batch."""
    if terms.ndim == 1:
        return float(core.careful_sum(np.ascontiguousarray(terms)))
    rows = np.ascontiguousarray(terms).reshape(-1, terms.shape[-1])
    sums = np.array([core.careful_sum(row) for row in rows], dtype=np.float64)
    return sums.reshape(terms.shape[:-1])


def exact_terms(values: Costs, piece: int = 1 << 14) -> list[float]:
    """Return a few floats with the same exact sum as `values`; +inf stays +inf.

    The leading bits of all values, down to a common position, are summed without rounding. The
    same is done with the remainders until they are zero.

    Parameters
    ----------
    values : float64 array
        Absolute values must be below 2⁹⁰⁰ or infinite.
    piece : int
        Number of values that are summed at once; they should fit into the cache.
    """
    found: list[float] = []
    for begin in range(0, len(values), piece):
        rest = values[begin : begin + piece]
        while (largest := float(np.abs(rest).max(initial=0.0))) > 0.0:
            if math.isinf(largest):
                found.append(float(rest.sum()))
                break
            # `unit` exceeds the sum of all leading parts, so that the sum is exact
            unit = math.ldexp(1.0, math.frexp(largest)[1] + len(rest).bit_length() + 1)
            leading = (rest + unit) - unit
            found.append(float(leading.sum()))
            rest = rest - leading
    return found


def units_below(costs: Costs, exponent: int) -> Costs:
    """Return finite costs in units of `2**exponent`, rounded down to whole numbers.

    Parameters
    ----------
    costs : float64 array
        The costs.
    exponent : int
        The exponent of the unit.
    """
    scaled = np.ldexp(costs, -exponent)
    # the quotient of a small negative cost and a large unit underflows to 0
    return np.where((scaled == 0.0) & (costs < 0.0), -1.0, np.floor(scaled))


def last_bits(costs: Costs) -> Ints:
    """Return the exponents of the last bits of floats that are not 0."""
    fraction, exponent = np.frexp(costs)
    digits = np.ldexp(fraction, 53).astype(np.int64)
    return exponent - 54 + np.frexp((digits & -digits).astype(np.float64))[1].astype(np.int64)


def float_below(value: Fraction | int) -> float:
    """Return the nearest float, or the next smaller one if that is above the value."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)
