"""Factors of a search with the costs moved from them, and the minima that a check needs.

Costs are Python integers, which cannot overflow, in lists: most steps move a few of them, and then
lists are faster than arrays. Larger minima are computed by numpy, many at once (`Minima`).
"""

from __future__ import annotations

import numpy as np

from softmap.verification.integers import FORBIDDEN, along
from softmap.verification.limit import ITEM
from softmap.verification.records import Ints, Rejected

LARGEST_COST = 1 << 54  # moved from a factor to one label
FEW = 16  # entries: up to here a minimum of a list is faster than one of an array (decision 93)
MANY = 1 << 11  # rows: so many minima are computed at once (decision 93)
GONE = 1 << 61  # the cost of removed labels in arrays: above all others


class Factor:
    """A table over some variables, and the costs moved from it to the labels of each variable.

    The reduced cost of labels a, b of two variables is table[a, b] - moved(a) - moved(b).
    """

    __slots__ = ("active", "scope", "sides", "table")

    def __init__(self, scope: list[int], table: Ints) -> None:
        self.scope, self.table, self.active = scope, table, True
        self.sides: list[Side] = []

    def reduced(self, labels: dict[int, int | slice]) -> Ints:
        """The reduced costs of the labels chosen; those of labels removed before are arbitrary."""
        table = self.table[tuple([labels[v] for v in self.scope])]
        axis = 0
        for side in self.sides:
            chosen, moved = labels[side.x], side.moved
            if max(moved) > LARGEST_COST or min(moved) < -LARGEST_COST:
                raise Rejected("costs are too large")
            if isinstance(chosen, int):
                table = table - moved[chosen]
            else:
                table = table - along(np.array(moved), axis, table.ndim) if any(moved) else table
                axis += 1
        return table


class Side:
    """One axis of a factor: the costs moved to its labels, and those of its variable.

    Attributes
    ----------
    factor : Factor
        The factor.
    x : int
        The variable of this axis.
    first : int
        The number of the word of label 0.
    moved, costs : list of int
        The costs moved from the factor to each label, and the unary costs of each label.
    live : set of int
        The labels that are present.
    others : list of Side
        The other axes, in order.
    """

    __slots__ = (
        "_axis", "_minima", "_row", "_rows", "costs", "factor", "first", "live", "moved", "others",
        "x",
    )  # fmt: skip

    def __init__(
        self, factor: Factor, axis: int, first: int, costs: list[int], live: set[int]
    ) -> None:
        self.factor, self._axis, self.first = factor, axis, first
        self.x, self.costs, self.live = factor.scope[axis], costs, live
        self.moved = [0] * len(costs)
        self._rows: list[list[int]] = []  # empty until needed
        self._minima: Minima | None = None
        self._row = 0  # number of the first row in `_minima`
        self.others: list[Side] = []

    def require(self, labels: list[int], limits: list[int], own: int, said: str) -> None:
        """Reject unless labels cost enough in the factor, with whichever of its other labels.

        Parameters
        ----------
        labels : list of int
            Labels of this axis.
        limits : list of int
            What each of them has to cost.
        own : int
            0: costs moved to the other labels are subtracted; 1: their unary costs are added, too.
        said : str
            The message of the exception.
        """
        places: list[int] = []  # in a row of the table
        costs: list[int] = []  # of the other labels at each of them
        for k, side in enumerate(self.others):
            near, moved, unary = [*side.live], side.moved, side.costs
            more = [unary[b] - moved[b] for b in near] if own else [-moved[b] for b in near]
            places = [at * len(moved) + b for at in places for b in near] if k else near
            costs = [c + d for c in costs for d in more] if k else more
        if self._minima is not None and len(labels) * len(places) > FEW:
            self._minima.add([self._row + a for a in labels], limits, places, costs)
            return
        rows = self._rows or self._load()
        for a, limit in zip(labels, limits, strict=True):
            row = rows[a]
            sums = [row[at] + cost for at, cost in zip(places, costs)]  # noqa: B905 (they match)
            if min(sums, default=FORBIDDEN) < limit:
                raise Rejected(said)

    def work(self, labels: int) -> int:
        """The work of `require` for a number of labels, in entries of arrays."""
        row = self.factor.table.size // len(self.moved)
        rows = row if self._minima is not None else ITEM * row
        return 2 * ITEM * (8 + row + len(self.moved)) + labels * (rows + ITEM)

    def batch(self, minima: Minima) -> None:
        """Let minima over many entries be taken together with others."""
        self._minima, self._row = minima, minima.add_rows(self._matrix())

    def _matrix(self) -> Ints:
        """The table with one row for each label, its entries in row-major order."""
        return np.moveaxis(self.factor.table, self._axis, 0).reshape(len(self.moved), -1)

    def _load(self) -> list[list[int]]:
        """Return, and keep, the rows of the table as lists."""
        self._rows = self._matrix().tolist()
        return self._rows


class Minima:
    """Minima over rows of tables that have to reach limits: many of them are computed at once.

    A minimum is over the sums of a row and of the costs at the time when it was added, so that it
    may be computed at any later time.

    Parameters
    ----------
    size : int
        The length of a row.
    """

    def __init__(self, size: int) -> None:
        self._size, self._table = size, np.zeros((0, size), np.int64)
        self._added: list[Ints] = []  # rows that are not yet in the table
        self._count = 0
        self._clear()

    def _clear(self) -> None:
        self._rows: list[int] = []
        self._limits: list[int] = []
        self._costs: list[int] = []  # for each call of `add`, those of a row
        self._repeats: list[int] = []  # for each call of `add`, the number of rows

    def add_rows(self, rows: Ints) -> int:
        """Add rows of a table, and return the number of the first one."""
        self._added.append(rows)
        self._count += len(rows)
        return self._count - len(rows)

    def add(self, rows: list[int], limits: list[int], places: list[int], costs: list[int]) -> None:
        """Require that rows plus costs, at some places, have minima that reach limits."""
        own = [GONE] * self._size
        for at, cost in zip(places, costs, strict=True):
            own[at] = cost
        self._rows += rows
        self._limits += limits
        self._costs += own
        self._repeats.append(len(rows))
        if len(self._rows) >= MANY:
            self.compute()

    def compute(self) -> None:
        """Raise `Rejected` if a minimum added so far does not reach its limit."""
        if self._added:
            self._table = np.concatenate([self._table, *self._added])
            self._added = []
        costs = np.array(self._costs, np.int64).reshape(-1, self._size)
        if costs.size and max(costs.max(), -costs.min()) > GONE:  # sums with entries fit int64
            raise Rejected("costs are too large")
        least = (self._table[self._rows] + costs.repeat(self._repeats, axis=0)).min(axis=1)
        if (least < np.array(self._limits, np.int64)).any():
            raise Rejected(
                "in one of the last steps, more is moved from a factor than it costs, or a label "
                "is removed whose costs do not reach the cut"
            )
        self._clear()
