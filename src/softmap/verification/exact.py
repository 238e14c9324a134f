"""Sums of float64 arrays without rounding errors: several floats per value.

TwoSum (Knuth) returns the rounding error of an addition as a float. The errors are summed by TwoSum
as well, and so are the errors of that sum, as long as there are any.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNIT = 2.0**-53  # largest relative error of one rounding
TINIEST = 5e-324  # the smallest positive float64
MANY = 8  # arrays of an expansion from which on they are compacted


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return fl(a + b) and its rounding error, which add up to a + b exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


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


class Expansion:
    """Arrays of exact values: each one is a sum of floats, the largest first in most cases.

    Parameters
    ----------
    parts : list of arrays
        The terms of the sums, at least two arrays of one shape.
    """

    def __init__(self, parts: list[Floats]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, values: Floats) -> Expansion:
        """Return the expansion of float values."""
        return cls([values, np.zeros_like(values)])

    def take(self, index: NDArray[Any]) -> Expansion:
        """Return the values at some indices."""
        return Expansion([part[index] for part in self.parts])

    def put(self, index: NDArray[np.int64], values: Expansion) -> None:
        """Replace the values at some indices."""
        while len(self.parts) < len(values.parts):
            self.parts.append(np.zeros_like(self.parts[0]))
        for k, part in enumerate(self.parts):
            part[index] = values.parts[k] if k < len(values.parts) else 0.0

    def add(self, values: Floats) -> Expansion:
        """Return the sum of the expansion and an array."""
        parts = []
        for part in self.parts:
            total, values = two_sum(part, values)
            parts.append(total)
        if values.any():
            parts.append(values)
        return Expansion(_compact(parts) if len(parts) > MANY else parts)

    def value(self, k: int) -> Fraction:
        """The exact value of one element of the flattened arrays."""
        return sum((Fraction(float(part.flat[k])) for part in self.parts), Fraction(0))

    def nonnegative(self) -> NDArray[np.bool_]:
        """Whether each value of flat arrays is at least 0."""
        high, _, rest = self._rounded()  # `high` has the sign of the sum of the first two parts
        signs = high >= 0
        for k in np.flatnonzero((rest > 0) & (np.abs(high) <= 2 * rest)).tolist():
            signs[k] = self.value(k) >= 0
        return signs

    def _rounded(self) -> tuple[Floats, Floats, Floats]:
        """Return the first two parts, normalised and flat, and the absolute value of all others."""
        high, low = two_sum(self.parts[0].ravel(), self.parts[1].ravel())
        rest = np.zeros_like(high)
        for part in self.parts[2:]:
            rest += np.abs(part.ravel())
        return high, low, rest * (1 + 2.0**-40)

    def least(self, start: NDArray[np.int64], allowed: NDArray[np.bool_]) -> list[float]:
        """Return floats whose exact sum is Σ over blocks of the minimum over allowed entries.

        Blocks begin at the indices `start` of the flattened arrays. The term of a block without
        allowed entries is +inf, and so is that of a sum that overflows.
        """
        high, low, rest = self._rounded()
        sizes, allowed = np.diff(np.append(start, high.size)), allowed.ravel()
        first = np.minimum.reduceat(np.where(allowed, high, np.inf), start)
        largest = np.maximum.reduceat(np.where(allowed, rest, 0.0), start)
        if not np.isfinite([first, largest]).all():
            return [math.inf]
        tied = allowed & (high == np.repeat(first, sizes))
        second = np.minimum.reduceat(np.where(tied, low, np.inf), start)
        terms: list[float] = []
        for block in np.flatnonzero(largest > 0).tolist():
            inside = slice(start[block], start[block] + sizes[block])
            # entries far above the minimum cannot attain it, whatever their other parts are
            reach = 4 * (largest[block] + 2.0**-52 * np.abs(high[inside]))
            near = np.flatnonzero(allowed[inside] & (high[inside] - first[block] <= reach))
            terms += floats_of(min(self.value(int(start[block]) + k) for k in near.tolist()))
            first[block] = second[block] = 0.0
        return [*first.tolist(), *second.tolist(), *terms]


def _compact(parts: list[Floats]) -> list[Floats]:
    """The same sums with larger parts first, and without arrays of zeros."""
    parts = list(parts)
    for k in range(len(parts) - 1, 0, -1):
        parts[k - 1], parts[k] = two_sum(parts[k - 1], parts[k])
    stack = np.array(parts)
    order = np.argsort(stack == 0, axis=0, kind="stable")
    kept = np.take_along_axis(stack, order, axis=0)
    return [part for k, part in enumerate(kept) if k < 2 or part.any()]


def floats_of(value: Fraction) -> list[float]:
    """Floats whose sum is `value`, a sum of floats."""
    terms: list[float] = []
    while value:
        terms.append(float(value))
        value -= Fraction(terms[-1])
    return terms


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
