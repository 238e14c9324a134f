"""The record SQUARES: squares and moved costs that bound a model of pairs (docs/proofs.md).

All costs are divided by the unit of the record, a power of two. Products and sums are computed in
floating point, and bounds on their rounding errors are subtracted; the rest is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.verification.exact import UNIT, exact_sum
from softmap.verification.integers import Flat, Given, flat_model
from softmap.verification.limit import Limits
from softmap.verification.records import Ints, Rejected

Floats = NDArray[np.float64]
MATRICES = 10  # that exist at a time, each with one entry for two labels
TINY = 1e-300  # more than all that underflows in one entry
SHORT = 1e-150  # more than the length of a row all of whose squares underflow


def squares_bound(flat: Flat, effort: Limits, unit: Ints, moved: Ints, factor: Ints) -> Fraction:
    """Return the bound that the record proves.

    Parameters
    ----------
    flat : Flat
        The model: factors of two variables.
    effort : Limits
        Limits the work.
    unit : int64 array
        The exponent of the unit.
    moved, factor : int64 array
        The bits of the moved costs and of the rows whose products are subtracted.
    """
    n, first = len(flat.unary), np.cumsum([0, *map(len, flat.unary)])
    labels, variable = int(first[-1]), np.repeat(np.arange(n), np.diff(first))
    if len(unit) != 1 or abs(int(unit[0])) > 5000:
        raise Rejected("the unit of the squares is outside 2^-5000..2^5000")
    if len(moved) != labels * n or len(factor) % labels:
        raise Rejected("a proof by squares has arrays of other sizes")
    power, rank = int(unit[0]), len(factor) // labels
    effort.spend([labels, labels], 8 + rank // 64, MATRICES)
    rows, amounts = (one.view(np.float64).reshape(labels, -1) for one in (factor, moved))
    amounts = np.where(variable[:, None] == np.arange(n), 0.0, amounts)
    unary, pairs = _scaled(np.concatenate(flat.unary), power), _pairs(flat, first, power)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        own = _own(unary, amounts, rows)
        rest = _rest(*pairs, amounts[:, variable], rows)
        rest[np.isinf(unary)] = rest[:, np.isinf(unary)] = np.inf
        rest = np.minimum.reduceat(np.minimum.reduceat(rest, first[:-1]), first[:-1], axis=1)
    terms = np.append(np.minimum.reduceat(own, first[:-1]), rest[np.triu_indices(n, 1)])
    if not np.isfinite(terms).all():
        raise Rejected("the bound of the squares is not finite")
    return exact_sum(terms.tolist()) * Fraction(2) ** power + flat.constant


def _own(costs: Floats, moved: Floats, rows: Floats) -> Floats:
    """What remains of single labels, less a bound on the rounding errors."""
    square, sizes = (rows * rows).sum(axis=1), np.abs(moved).sum(axis=1)
    sizes += square + np.where(np.isinf(costs), 0.0, np.abs(costs))
    error = 2 * UNIT * (rows.shape[1] + moved.shape[1] + 8) * sizes + TINY
    return np.asarray(costs - square + moved.sum(axis=1) - error)


def _rest(costs: Floats, sizes: Floats, moved: Floats, rows: Floats) -> Floats:
    """What remains of pairs, less a bound on the rounding errors; `sizes` is that of the costs."""
    length = np.sqrt((rows * rows).sum(axis=1)) + SHORT
    sizes = sizes + 8 * (np.abs(moved) + np.abs(moved.T))
    sizes += 4 * (rows.shape[1] + 8) * np.outer(length, length)
    return np.asarray(costs - 2 * (rows @ rows.T) - (moved + moved.T) - (UNIT * sizes + TINY))


def _pairs(flat: Flat, first: Ints, power: int) -> tuple[Floats, Floats]:
    """The costs of all pairs of labels, and a bound on their rounding errors, in 2^-53."""
    costs = np.zeros((first[-1], first[-1]))
    sizes, count = np.zeros_like(costs), np.zeros_like(costs)
    for scope, table in flat.factors:
        if len(scope) != 2 or scope[0] == scope[1]:
            raise Rejected("a proof by squares needs factors of pairs")
        (i, j), table = sorted(scope), _scaled(table, power)
        table = table if scope[0] == i else table.T
        at = np.s_[first[i] : first[i + 1], first[j] : first[j + 1]]
        costs[at] += table
        sizes[at] += np.where(np.isinf(table), 0.0, np.abs(table))
        count[at] += 1
    return costs, (8 + 2 * count) * sizes


def _scaled(costs: Floats, power: int) -> Floats:
    """Costs in units of 2^power; what underflows is part of `TINY`."""
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(costs, -power)
    if not np.array_equal(np.isfinite(scaled), np.isfinite(costs)):
        raise Rejected("the costs are too large for the unit of the squares")
    return scaled


class SquareProof:
    """Checks the one record of squares.

    Parameters
    ----------
    given : Given
        The model.
    """

    def __init__(self, given: Given) -> None:
        self._given = given.about_costs("squares")
        self._bound: Fraction | None = None

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check the record."""
        if name != "squares" or self._bound is not None:
            raise Rejected(f"{name} out of its place")
        self._bound = squares_bound(flat_model(self._given.model), self._given.effort, *arrays)

    def bound(self) -> Fraction:
        """The bound of the record."""
        assert self._bound is not None
        return self._bound
