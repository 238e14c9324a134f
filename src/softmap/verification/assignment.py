"""The lower bound that multipliers of assignment problems prove, if all labels differ."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softmap.model import AllDifferent, Network
from softmap.verification.integers import Flat, flat_model
from softmap.verification.records import Ints, Rejected
from softmap.verification.report import Statement, Verdict

if TYPE_CHECKING:
    from softmap.run.result import Result

LARGEST = 1 << 52  # absolute value of a multiplier or cost in units: sums stay within 64 bits
MOST_LABELS = 1_000

Table = NDArray[np.float64]
Pairs = dict[tuple[int, int], Table]


def assignment_bound(
    model: Network, shape: Ints, rows: Ints, columns: Ints, labels: Ints
) -> Fraction:
    """Return the lower bound that multipliers prove; raise `Rejected` if they prove none.

    Parameters
    ----------
    model : Network
        The model.
    shape : int64[3]
        Number of variables n, of labels d, and the exponent of the unit.
    rows : int64[n * d * n]
        Multipliers of variable j if variable i has label p, in the order of (i, p, j).
    columns : int64[n * d * d]
        Multipliers of label q if variable i has label p, in the order of (i, p, q).
    labels : int64[d]
        Multipliers of the labels.
    """
    n, d, exponent = _shape(model, shape)
    check_sizes(n, d, rows, columns, labels)
    if n < d and ((columns > 0).any() or (labels > 0).any()):
        raise Rejected("the multiplier of a label that may stay unused is positive")
    row, column = rows.reshape(n, d, n), columns.reshape(n, d, d)
    flat = flat_model(model)
    unary, pairs = _different(model, flat, n, d)
    grid = _Grid(exponent)
    total = int(labels.sum())
    for i in range(n):
        own = row[i].sum(axis=1) - row[i, :, i] + column[i].sum(axis=1) - column[i].diagonal()
        costs = grid.units(unary[i])
        size = len(costs)
        open_labels = np.isfinite(unary[i])
        if not open_labels.any():
            raise Rejected("a variable has no label")
        total += int((costs + own[:size] - labels[:size])[open_labels].min())
    for (i, j), table in pairs.items():
        _require_paid(grid.units(table), table, (row[i], column[i]), (row[j], column[j]), (i, j))
    return Fraction(grid.raised(total)) * Fraction(2) ** exponent + flat.constant


def check_sizes(n: int, d: int, rows: Ints, columns: Ints, labels: Ints) -> None:
    """Raise `Rejected` unless there is a multiplier for each constraint, none of them too large."""
    if len(rows) != n * d * n or len(columns) != n * d * d or len(labels) != d:
        raise Rejected("expected one multiplier for each constraint")
    # not by absolute values: that of -2^63 is -2^63 in 64 bits
    if any(((part > LARGEST) | (part < -LARGEST)).any() for part in (rows, columns, labels)):
        raise Rejected("a multiplier is too large")


class AssignmentCosts:
    """The costs of a permutation as arrays, in units.

    Parameters
    ----------
    model : Network
        The model, whose labels all differ.
    shape : int64[3]
        Number of variables, of labels, and the exponent of the unit.
    """

    def __init__(self, model: Network, shape: Ints) -> None:
        n, d, self._exponent = _shape(model, shape)
        self.shape = n, d
        flat = flat_model(model)
        self._constant = flat.constant
        self._unary, self._pairs = _different(model, flat, n, d)
        self._grid = _Grid(self._exponent)

    def arrays(self) -> tuple[Ints, Ints, NDArray[np.bool_], NDArray[np.bool_]]:
        """Return costs of labels [n, d] and pairs [n, d, n, d], and which are forbidden."""
        n, d = self.shape
        unary, pair = np.zeros((n, d), np.int64), np.zeros((n, d, n, d), np.int64)
        gone, apart = np.ones((n, d), bool), np.ones((n, d, n, d), bool)
        for i, costs in enumerate(self._unary):
            unary[i, : len(costs)] = self._grid.units(costs)
            gone[i, : len(costs)] = ~np.isfinite(costs)
        for (i, j), table in self._pairs.items():
            a, b = table.shape
            pair[i, :a, j, :b] = self._grid.units(table)
            apart[i, :a, j, :b] = ~np.isfinite(table)
            pair[j, :, i], apart[j, :, i] = pair[i, :, j].T, apart[i, :, j].T
        return unary, pair, gone, apart

    def value(self, units: int) -> Fraction:
        """Return a lower bound in units as a cost, rounded up to a possible one."""
        return self._grid.raised(units) * Fraction(2) ** self._exponent + self._constant


def _shape(model: Network, shape: Ints) -> tuple[int, int, int]:
    n, d, exponent = (int(x) for x in shape) if len(shape) == 3 else (0, 0, 0)
    if n != len(model.visible_counts) or not n <= d <= MOST_LABELS or abs(exponent) > 5000:
        raise Rejected("the numbers of variables and labels are not those of a permutation")
    if int(model.num_labels[:n].max(initial=0)) > d:
        raise Rejected("a variable has more labels than the permutation")
    return n, d, exponent


def _pairs(flat: Flat, n: int) -> Pairs:
    """The tables of all pairs i < j of the first n variables; other costs must be at least 0.

    Labels that a variable cannot have count as forbidden.
    """
    possible = [np.isfinite(costs) for costs in flat.unary]
    pairs: Pairs = {}
    for scope, table in flat.factors:
        if len(scope) == 2 and max(scope) < n:
            i, j = sorted(scope)
            if (i, j) in pairs:
                raise Rejected("two variables have more than one table")
            pairs[i, j] = table if scope == (i, j) else table.T
        elif (table < 0).any():
            raise Rejected("a factor outside of the permutation has negative costs")
    if any((costs < 0).any() for costs in flat.unary[n:]):
        raise Rejected("a variable outside of the permutation has negative costs")
    for i, j in combinations(range(n), 2):
        both = possible[i][:, None] & possible[j]
        pairs[i, j] = np.where(both, pairs.get((i, j), 0.0), np.inf)
    return pairs


def _different(model: Network, flat: Flat, n: int, d: int) -> tuple[list[Table], Pairs]:
    """Costs of labels and pairs in which all labels differ; raise `Rejected` if they may not.

    If there are n labels more than any variable has, a single label may be shared: variable i has
    label d - n + i of its own instead.
    """
    unary, pairs = [*flat.unary[:n]], _pairs(flat, n)
    whole = any(
        isinstance(factor, AllDifferent) and {*factor.variables} == {*range(n)}
        for factor in model.required
    )
    tables = [] if whole else pairs.values()
    shared = {p for table in tables for p in np.flatnonzero(np.isfinite(table.diagonal())).tolist()}
    if len(shared) > 1 or (shared and d != n + max(map(len, unary))):
        raise Rejected("two variables may have the same label")
    for label in shared:
        unary = [_separated(costs, label, i, n, d) for i, costs in enumerate(unary)]
        for (i, j), table in pairs.items():
            rows = _separated(table, label, i, n, d)
            pairs[i, j] = _separated(rows.T, label, j, n, d).T
    for table in pairs.values():
        equal = np.arange(min(table.shape))
        table[equal, equal] = np.inf
    return unary, pairs


def _separated(costs: Table, label: int, variable: int, n: int, d: int) -> Table:
    """Costs of d labels, of which the variable's own one replaces a shared one."""
    out = np.full((d, *costs.shape[1:]), np.inf)
    out[: len(costs)] = costs
    if label < len(costs):
        out[d - n + variable] = costs[label]
        out[label] = np.inf
    return out


def _require_paid(costs: Ints, table: Any, first: Any, second: Any, pair: tuple[int, int]) -> None:
    """Raise `Rejected` if the multipliers of a pair exceed one of its costs."""
    (i, j), (a, b) = pair, table.shape
    one = first[0][:a, j][:, None] + first[1][:a, :b]
    two = second[0][:b, i][None, :] + second[1][:b, :a].T
    if (costs - one - two < 0)[np.isfinite(table)].any():
        raise Rejected(f"the multipliers of variables {i} and {j} exceed their costs")


class _Grid:
    """Costs in units of a power of two, rounded down, and the distance of possible sums.

    Parameters
    ----------
    exponent : int
        Exponent of the unit.
    """

    def __init__(self, exponent: int) -> None:
        self._exponent, self._exact = exponent, True
        self._first, self._step = 0, 0

    def units(self, costs: NDArray[np.float64]) -> Ints:
        """Return finite costs in units, and 0 for forbidden entries."""
        finite = np.isfinite(costs)
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(np.where(finite, costs, 0.0), -self._exponent)
            back = np.ldexp(scaled, self._exponent)
        if not np.array_equal(back[finite], costs[finite]) or (np.abs(scaled) > LARGEST).any():
            raise Rejected("a cost is not a multiple of the unit, or too large")
        whole = np.floor(scaled)
        self._exact = self._exact and np.array_equal(whole, scaled)
        units = whole.astype(np.int64)
        if finite.any():
            low = int(units[finite].min())
            self._first += low
            self._step = math.gcd(self._step, int(np.gcd.reduce(units[finite] - low)))
        return units

    def raised(self, total: int) -> int:
        """The smallest sum of one entry of each table that is at least `total`, or less."""
        if not self._exact:
            return total
        if not self._step:
            return max(total, self._first)
        return self._first + -(-(total - self._first) // self._step) * self._step


def check(result: Result, proof: Any) -> Statement:
    """Check that multipliers of assignment problems prove the bound."""
    given = proof.multipliers
    try:
        if given is None:
            raise Rejected("there are none")
        shape = np.array([*given.columns.shape[:2], given.exponent])
        arrays = (given.rows.ravel(), given.columns.ravel(), given.labels)
        found = assignment_bound(result.model.network, shape, *arrays)
    except (Rejected, ValueError) as error:
        return Statement("bound", Verdict.FALSE, f"the multipliers prove nothing: {error}")
    said = f"{result.bound!r} stated, multipliers of assignment problems prove {float(found)!r}"
    proved = math.isfinite(result.bound) and found >= Fraction(result.bound)
    return Statement("bound", Verdict.of(proved), said)
