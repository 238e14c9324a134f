"""Exact costs of all labellings: floats become whole numbers of one unit, and these are added.

An oracle for small models: no sum and no product is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["AllCosts", "Units", "all_costs", "below"]

Part = tuple[Sequence[int], ArrayLike] | tuple[Sequence[int], ArrayLike, float]


class Units:
    """Tables of floats, or of products of two floats, as whole numbers of one unit.

    Parameters
    ----------
    tables : sequence of float arrays
        The tables; `+inf` and `-inf` become 0 and are no longer allowed.
    factors : sequence of float, optional
        A factor for each table; 1 by default.
    terms : int, optional
        The number of entries that are added up; by default one of each table.
    """

    def __init__(
        self,
        tables: Sequence[Any],
        factors: Sequence[float] | None = None,
        terms: int | None = None,
    ) -> None:
        given = [np.asarray(table, dtype=np.float64) for table in tables]
        flat = np.concatenate([table.ravel() for table in given]) if given else np.zeros(0)
        finite = np.isfinite(flat)
        ratios = [v.as_integer_ratio() for v in np.where(finite, flat, 0.0).tolist()]
        ends = np.cumsum([0, *(table.size for table in given)]).tolist()
        if factors is not None:
            for factor, begin, end in zip(factors, ends, ends[1:], strict=False):
                if factor != 1.0:
                    up, down = factor.as_integer_ratio()
                    ratios[begin:end] = [(up * n, down * d) for n, d in ratios[begin:end]]
        most = max((d for _, d in ratios), default=1)
        whole = [n * (most // d) for n, d in ratios]  # both are powers of two
        every = 0
        for number in whole:
            every |= abs(number)
        twos = max((every & -every).bit_length() - 1, 0)
        self.unit = Fraction(1 << twos, most)
        room = (every >> twos).bit_length() + (terms or len(given)).bit_length()
        kind = np.int64 if room < 63 else object  # no sum leaves the range
        found = np.array([number >> twos for number in whole], dtype=kind)
        pieces = list(zip(given, ends, ends[1:], strict=False))
        self.tables = [found[begin:end].reshape(table.shape) for table, begin, end in pieces]
        self.allowed = [finite[begin:end].reshape(table.shape) for table, begin, end in pieces]
        self.hard = not finite.all()


@dataclass(frozen=True)
class AllCosts:
    """The exact costs of all labellings of some variables.

    Attributes
    ----------
    units : int64 or object array
        The costs in units, with one axis per variable, or one entry per row of labels.
    allowed : bool array
        Whether a labelling has a finite cost, in the shape of `units`.
    unit : Fraction
        The unit.
    """

    units: NDArray[Any]
    allowed: NDArray[np.bool_]
    unit: Fraction

    @property
    def least(self) -> Fraction | None:
        """The least cost; None if no labelling is allowed."""
        found = self.units[self.allowed]
        return int(found.min()) * self.unit if found.size else None

    def each(self) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        """Yield the labels (indices of `units`) and the cost of each labelling that is allowed."""
        up, down = self.unit.numerator, self.unit.denominator
        for place in zip(*(axis.tolist() for axis in np.nonzero(self.allowed)), strict=True):
            yield place, Fraction(int(self.units[place]) * up, down)

    def above_least(self) -> NDArray[np.float64]:
        """By how much each labelling costs more than the least, rounded; `+inf` if forbidden."""
        own, found = self.units[self.allowed], np.full(self.units.shape, math.inf)
        size = self.unit.numerator / self.unit.denominator
        if 0.0 < size < math.inf and own.dtype != object:
            found[self.allowed] = (own - own.min()) * size
        else:
            least = own.min()
            found[self.allowed] = [float((int(v) - int(least)) * self.unit) for v in own]
        return found


def all_costs(sizes: Sequence[int], parts: Sequence[Part], constant: float = 0.0) -> AllCosts:
    """Return the costs of all labellings.

    Parameters
    ----------
    sizes : sequence of int
        The label counts of the variables.
    parts : sequence of (variables, table) or (variables, table, factor)
        Terms: the entry of the table at the labels of the variables, times the factor.
    constant : float, default 0
        A term of every labelling.
    """
    factors = [float(part[2]) if len(part) > 2 else 1.0 for part in parts]
    units = Units([*(part[1] for part in parts), [constant]], [*factors, 1.0])
    n = len(sizes)
    scopes = [tuple(part[0]) for part in parts]
    total, allowed = units.tables[-1].reshape(()), np.ones((), dtype=bool)
    for k in range(n):  # tables whose last variable is k, so that most sums are short
        total, allowed = total[..., None], allowed[..., None]
        for scope, table, fine in zip(scopes, units.tables, units.allowed, strict=False):
            if max(scope) == k:
                shape = [sizes[i] if i in scope else 1 for i in range(k + 1)]
                order = np.argsort(scope)
                total = total + table.transpose(order).reshape(shape)
                if units.hard:
                    allowed = allowed & fine.transpose(order).reshape(shape)
    whole = np.broadcast_to(total, tuple(sizes))
    return AllCosts(whole, np.broadcast_to(allowed, tuple(sizes)), units.unit)


def below(value: Fraction) -> Fraction:
    """The largest float64 that is at most a number."""
    near = float(value)
    return Fraction(near if near <= value else math.nextafter(near, -math.inf))
