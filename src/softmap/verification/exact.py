"""Sums of float64 arrays with certified error: two floats per value and a bound on the remainder.

TwoSum (Knuth) returns the rounding error of an addition as a float. The errors are summed by TwoSum
as well. The errors of that second sum are of third order; only a bound on them is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNIT = 2.0**-53  # largest relative error of one rounding
TINIEST = 5e-324  # the smallest positive float64


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return fl(a + b) and its rounding error, which add up to a + b exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def product(a: Floats, b: Floats, shift: int = 0) -> Expansion:
    """a · b · 2**shift by Dekker's product; exact unless the error underflows."""
    if not b.any():  # the tables of hard constraints
        return Expansion.of(np.zeros(np.broadcast_shapes(a.shape, b.shape)))
    high, low, power = _mantissas(a, b)
    with np.errstate(under="ignore"):
        power = power + shift
        top, end = np.ldexp(high, power), np.ldexp(low, power)
        exact = (np.ldexp(top, -power) == high) & (np.ldexp(end, -power) == low)
    return Expansion(top, end, np.where(exact, 0.0, 2 * TINIEST))


def rounded_down(a: Floats, b: Floats) -> Floats:
    """The largest float64 that is at most a · b; products must not overflow."""
    if not b.any():  # the tables of hard constraints
        return np.zeros(np.broadcast_shapes(a.shape, b.shape))
    high, low, power = _mantissas(a, b)
    with np.errstate(under="ignore"):
        top = np.ldexp(high, power)
    back = np.ldexp(top, -power)  # exact: the mantissa of `top`
    above = (back > high) | ((back == high) & (low < 0))
    return np.where(above, np.nextafter(top, -np.inf), top)


def _mantissas(a: Floats, b: Floats) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Return high, low and e with a · b = (high + low) · 2**e, without rounding."""
    (m, e), (n, f) = np.frexp(a), np.frexp(b)
    high = m * n
    (m_top, m_end), (n_top, n_end) = _halves(m), _halves(n)
    low = ((m_top * n_top - high) + m_top * n_end + m_end * n_top) + m_end * n_end
    return high, low, e + f


def _halves(mantissa: Floats) -> tuple[Floats, Floats]:
    """Split a mantissa into a sum of two floats of 26 bits each."""
    big = (2.0**27 + 1) * mantissa
    top = big - (big - mantissa)
    return top, mantissa - top


@dataclass
class Expansion:
    """Arrays of values `high + low` with an absolute error of at most `rest` per element."""

    high: Floats
    low: Floats
    rest: Floats

    @classmethod
    def of(cls, values: Floats) -> Expansion:
        """Return the expansion of exact values."""
        return cls(values.copy(), np.zeros_like(values), np.zeros_like(values))

    def take(self, index: NDArray[Any]) -> Expansion:
        """Return the values at some indices."""
        return Expansion(self.high[index], self.low[index], self.rest[index])

    def add(self, values: Floats) -> Expansion:
        """Return the sum of the expansion and an array."""
        high, error = two_sum(self.high, values)
        low, lost = two_sum(self.low, error)
        rest = np.nextafter(self.rest + np.abs(lost), np.inf, where=lost != 0, out=self.rest.copy())
        return Expansion(high, low, rest)

    def least(self, start: NDArray[np.int64], allowed: NDArray[np.bool_]) -> list[float]:
        """Return terms whose sum is at most Σ over blocks of the minimum over allowed entries.

        Blocks begin at the indices `start` of the flattened arrays. The term of a block without
        allowed entries is +inf.
        """
        sizes, allowed = np.diff(np.append(start, self.high.size)), allowed.ravel()
        high, low = two_sum(self.high.ravel(), self.low.ravel())
        rest = self.rest.ravel()
        first = np.minimum.reduceat(np.where(allowed, high, np.inf), start)
        tied = allowed & (high == np.repeat(first, sizes))
        second = np.minimum.reduceat(np.where(tied, low, np.inf), start)
        if np.isinf(first).any():
            return [math.inf]
        # entries far above the minimum cannot attain it, whatever their rounding error
        reach = 4 * (rest + 2.0**-52 * np.abs(high))
        near = allowed & (high - np.repeat(first, sizes) <= reach)
        lost = np.maximum.reduceat(np.where(near, rest, 0.0), start)
        return [*first.tolist(), *second.tolist(), *(-lost[lost > 0]).tolist()]


def rounded_sum(terms: Iterable[float]) -> float:
    """The exact sum, rounded once; nan if a term or a partial sum is not finite."""
    try:
        total = math.fsum(terms)
    except (OverflowError, ValueError):  # a partial sum is too large; ∞ - ∞
        return math.nan
    return total if math.isfinite(total) else math.nan


def exact_sum(terms: list[float]) -> Fraction:
    """The exact sum of finite floats."""
    total, left = Fraction(0), list(terms)
    while part := math.fsum(left):  # the remainder shrinks with each step
        total += Fraction(part)
        left.append(-part)
    return total


def sign_of_sum(terms: list[float]) -> int:
    """Return -1, 0 or 1, the sign of the exact sum of finite floats."""
    total = math.fsum(terms)  # rounded once, so its sign is that of the sum
    return (total > 0) - (total < 0)


def float_below(value: Fraction) -> float:
    """The largest float64 that is at most `value`; -inf if there is none."""
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    return near if near <= value else math.nextafter(near, -math.inf)
