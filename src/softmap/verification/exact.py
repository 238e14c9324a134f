"""Sums of float64 arrays without loss: a value is kept as two numbers and a limit on the rest.

TwoSum (Knuth) gives the rounding error of an addition as a number of its own. Errors are added up
the same way, and what that loses, which is of third order, is kept as a limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["TINIEST", "Expansion", "exact_sum", "product", "sign_of_sum", "two_sum"]

Floats = NDArray[np.float64]

TINIEST = 5e-324  # the least float above 0


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """fl(a + b) and its error: together exactly a + b."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def product(a: Floats, b: Floats, shift: int = 0) -> Expansion:
    """a · b · 2**shift (Dekker), off only where the error is below the least float."""
    (m, e), (n, f) = np.frexp(a), np.frexp(b)
    high = m * n
    (m_top, m_end), (n_top, n_end) = _halves(m), _halves(n)
    low = ((m_top * n_top - high) + m_top * n_end + m_end * n_top) + m_end * n_end
    with np.errstate(under="ignore"):
        power = e + f + shift
        top, end = np.ldexp(high, power), np.ldexp(low, power)
        exact = (np.ldexp(top, -power) == high) & (np.ldexp(end, -power) == low)
    return Expansion(top, end, np.where(exact, 0.0, 2 * TINIEST))


def _halves(mantissa: Floats) -> tuple[Floats, Floats]:
    """Two numbers of 26 bits that add up to a mantissa."""
    big = (2.0**27 + 1) * mantissa
    top = big - (big - mantissa)
    return top, mantissa - top


@dataclass
class Expansion:
    """`high + low`, off by at most `rest`, element by element."""

    high: Floats
    low: Floats
    rest: Floats

    @classmethod
    def of(cls, values: Floats) -> Expansion:
        """The values themselves."""
        return cls(values.copy(), np.zeros_like(values), np.zeros_like(values))

    def add(self, values: Floats) -> Expansion:
        """The sum with an array."""
        high, error = two_sum(self.high, values)
        low, lost = two_sum(self.low, error)
        rest = np.nextafter(self.rest + np.abs(lost), np.inf, where=lost != 0, out=self.rest.copy())
        return Expansion(high, low, rest)

    def least(self, start: NDArray[np.int64], allowed: NDArray[np.bool_]) -> list[float]:
        """Numbers whose sum is at most the sum of the least allowed values of all blocks.

        Blocks begin at `start`. +inf for blocks in which nothing is allowed.
        """
        sizes = np.diff(np.append(start, self.high.size))
        high, low = two_sum(self.high, self.low)
        first = np.minimum.reduceat(np.where(allowed, high, np.inf), start)
        tied = allowed & (high == np.repeat(first, sizes))
        second = np.minimum.reduceat(np.where(tied, low, np.inf), start)
        if np.isinf(first).any():
            return [math.inf]
        # entries far above the least one cannot be it, whatever was lost there
        reach = 4 * (self.rest + 2.0**-52 * np.abs(high))
        near = allowed & (high - np.repeat(first, sizes) <= reach)
        lost = np.maximum.reduceat(np.where(near, self.rest, 0.0), start)
        return [*first.tolist(), *second.tolist(), *(-lost[lost > 0]).tolist()]


def exact_sum(terms: list[float]) -> Fraction:
    """The sum of finite numbers."""
    total, left = Fraction(0), list(terms)
    while part := math.fsum(left):  # what is left is smaller each time
        total += Fraction(part)
        left.append(-part)
    return total


def sign_of_sum(terms: list[float]) -> int:
    """Whether the exact sum is negative, zero or positive."""
    total = math.fsum(terms)  # rounded once, so its sign is that of the sum
    return (total > 0) - (total < 0)
