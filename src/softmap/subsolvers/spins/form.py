"""A model of two labels and pairs as a quadratic function of spins.

Label 0 is the spin +1, label 1 the spin -1. The linear terms are products with one more spin, the
reference, which is +1. Without linear terms the last variable is the reference: all spins can be
reversed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model import Network
from softmap.model.sums import float_below, last_bits
from softmap.relaxation.flat import flatten

__all__ = ["SpinForm"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EXACT = 2.0**50  # sums of multiples of a power of two are exact up to this number of them


@dataclass(frozen=True, eq=False)
class SpinForm:
    """The cost `constant + Σ_ij matrix[i, j] x_i x_j` of spins x, the last of which is +1.

    Attributes
    ----------
    matrix : float64 array (N, N)
        Symmetric, without a diagonal.
    constant : float
        Rounded down.
    lost : float
        Upper bound on all rounding errors of the matrix, and of adding up its rows; 0 if there are
        none.
    base, step : Fraction
        All costs are `base` plus a multiple of `step`; a step of 0 says that nothing is known.
    """

    matrix: Floats
    constant: float
    lost: float
    base: Fraction
    step: Fraction

    @classmethod
    def of(cls, model: Network) -> SpinForm | None:
        """Return the form of a model of two labels and pairs; None if it has hard constraints."""
        flat = flatten(model)
        n, ends = len(flat.num_labels), flat.scope.reshape(-1, 2)
        unary, tables = flat.unary.reshape(n, 2), flat.tables.reshape(-1, 2, 2)
        costs = np.concatenate([flat.unary, flat.tables])
        if not np.isfinite(costs).all():
            return None
        first, second = (tables[:, 0] - tables[:, 1]), (tables[:, :, 0] - tables[:, :, 1])
        field = (unary[:, 0] - unary[:, 1]) / 2
        field += np.bincount(ends[:, 0], first.sum(axis=1), n) / 4
        field += np.bincount(ends[:, 1], second.sum(axis=1), n) / 4
        product = (first[:, 0] - first[:, 1]) / 8  # each pair is twice in the matrix
        matrix = np.bincount(ends[:, 0] * n + ends[:, 1], product, n * n).reshape(n, n)
        matrix = matrix + matrix.T
        terms = np.concatenate([flat.unary / 2, flat.tables / 4, [flat.constant]])
        grain, size = _grain(costs), float(np.abs(costs).sum())
        exact = size < EXACT * grain
        lost = 0.0 if exact else 2.0**-50 * (n + 16) * size
        zeros = np.concatenate([unary[:, 0], tables[:, 0, 0]])
        steps = np.concatenate([-2 * field - 4 * matrix.sum(axis=1), 8 * product])
        base, step = (_exact(zeros.sum()) + _exact(flat.constant), _step(steps, grain))
        if field.any():
            matrix = np.block([[matrix, field[:, None] / 2], [field[None] / 2, np.zeros((1, 1))]])
        step = step if exact else Fraction(0)
        return cls(matrix.astype(np.float64), core.lower_sum(terms), lost, base, step)

    def labels(self, spins: Floats, variables: int) -> Ints:
        """The labels of spins of any sign."""
        return (spins[:variables] * spins[-1] < 0).astype(np.int64)

    def rounded(self, bound: float) -> float:
        """The bound rounded up to the next possible cost, as far as costs are known."""
        if not self.step or not math.isfinite(bound):
            return bound
        above = self.base - ((self.base - Fraction(bound)) // self.step) * self.step
        return float_below(above)


def _grain(costs: Floats) -> float:
    """The largest power of two that divides all costs; 0 if it is too small for a float."""
    used = costs[costs != 0]
    if not len(used):
        return 1.0
    return math.ldexp(1.0, int(last_bits(used).min()))


def _step(steps: Floats, grain: float) -> Fraction:
    units = np.abs(np.ldexp(steps, 1) / grain) if grain else np.zeros(0)
    if not len(units) or units.max() >= EXACT:
        return Fraction(0)
    return Fraction(int(np.gcd.reduce(units.astype(np.int64)))) * Fraction(grain) / 2


def _exact(value: float) -> Fraction:
    return Fraction(float(value))
