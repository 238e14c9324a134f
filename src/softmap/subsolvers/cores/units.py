"""Costs as integers: multiples of one unit, rounded down."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from softmap.model.potentials.base import Costs, Ints
from softmap.model.sums import float_below, last_bits, units_below

__all__ = ["FORBIDDEN", "Units", "units_of"]

FORBIDDEN = 1 << 62
"""Stands for a cost of +inf."""
LARGEST = 2.0**58  # of the sum of all costs, so that sums of integers do not overflow


@dataclass(frozen=True)
class Units:
    """A unit of costs: a whole number times a power of two.

    Attributes
    ----------
    whole : int
        The whole number.
    exponent : int
        The exponent of two.
    """

    whole: int
    exponent: int

    def floors(self, costs: Costs) -> Ints:
        """Return the number of units in each cost, rounded down; `FORBIDDEN` for +inf."""
        finite = np.isfinite(costs)
        whole = units_below(np.where(finite, costs, 0.0), self.exponent).astype(np.int64)
        return np.where(finite, whole // self.whole, FORBIDDEN)

    def above(self, cost: float) -> int:
        """Return the least number of units that is not below a finite cost."""
        return math.ceil(Fraction(cost) / self._fraction)

    def lower(self, units: int) -> float:
        """Return the largest float that is not above a number of units."""
        return float_below(units * self._fraction)

    @property
    def _fraction(self) -> Fraction:
        return Fraction(self.whole) * Fraction(2) ** self.exponent


def units_of(costs: Costs, tables: int) -> Units:
    """Return the unit of some costs: exact if their multiples are small enough.

    Parameters
    ----------
    costs : float64 array
        The costs; +inf is left out.
    tables : int
        The number of tables that they come from: one cost of each is added up.
    """
    some = np.unique(costs[np.isfinite(costs) & (costs != 0.0)])
    if not len(some):
        return Units(1, 0)
    most = float(np.abs(some).max())
    room = math.floor(math.log2(LARGEST / max(tables, 1)))
    coarse = math.frexp(most)[1] - room  # multiples of at most 2^room
    exponent = max(int(last_bits(some).min()), coarse)
    units = Units(1, exponent)
    if exponent == coarse:  # some costs are rounded
        return units
    return Units(int(np.gcd.reduce(units.floors(some))), exponent)
