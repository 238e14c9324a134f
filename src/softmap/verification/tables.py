"""The integer tables of a model, from which presolve steps take variables and factors.

Table entries are nonnegative after `normalise`; entries of `FORBIDDEN` are in no labelling below
the cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from softmap.verification.integers import FORBIDDEN, HALF, Flat, Scale
from softmap.verification.limit import CALL, Held, Limits
from softmap.verification.records import Ints, Rejected

Scope = tuple[int, ...]
Part = tuple[Scope, Ints]  # a cost table over variables in increasing order


BLOCK = 1 << 18  # entries for which a result and a few copies are computed at a time


def plus(a: Ints, b: Ints) -> Ints:
    """The sum of two costs; forbidden if one of the two is."""
    if a.size > BLOCK and a.ndim > 1:
        return _by_rows(plus, a, b)
    return np.where((a >= HALF) | (b >= HALF), FORBIDDEN, a + b)


def minus(a: Ints, b: Ints | int) -> Ints:
    """Subtract b from the costs a; forbidden entries stay forbidden, others stay finite."""
    if a.size > BLOCK and a.ndim > 1:
        return _by_rows(minus, a, b)
    rest: Ints = np.where(a >= HALF, 0, a - b)
    if (np.abs(rest) >= HALF).any():
        raise Rejected("costs are too large")
    return np.where(a >= HALF, FORBIDDEN, rest)


def _by_rows(operation: Callable[[Ints, Any], Ints], a: Ints, b: Ints | int) -> Ints:
    """Compute a large table row by row: temporary copies would take several times its memory."""
    out, rows = np.empty_like(a), np.broadcast_to(b, a.shape)
    for k, row in enumerate(a):
        out[k] = operation(row, rows[k])
    return out


def ordered(scope: Scope, table: Ints) -> Part:
    """The table with its axes in increasing order of the variables."""
    order = sorted(range(len(scope)), key=lambda k: scope[k])
    return tuple(scope[k] for k in order), np.ascontiguousarray(table.transpose(order))


class Remainder:
    """The model that remains after the presolve steps so far.

    Attributes
    ----------
    unary : dict from int to int64[labels]
        The costs of the remaining labels, by variable.
    scopes : dict from int to tuple of int
        The variables of each remaining factor, by number of the factor.
    tables : dict from int to int64 array
        The costs of each remaining factor, by number of the factor.
    base : int
        The constant that was moved out of the tables, in units.
    cut : int
        Labellings that cost this much or more are not searched for, in units.
    factors_of : dict from int to set of int
        The numbers of the factors of each remaining variable.
    closed : bool
        Whether no labelling below the cut remains.
    """

    def __init__(self, flat: Flat, scale: Scale, effort: Limits | None = None) -> None:
        self._effort = effort or Limits()
        self._held = Held(self._effort)  # of the tables of factors
        self._size = sum(map(np.size, flat.unary)) + sum(t.size for _, t in flat.factors)
        self._effort.work(8 * self._size + 6 * CALL * (len(flat.unary) + len(flat.factors)))
        self.unary = {v: scale.convert(costs) for v, costs in enumerate(flat.unary)}
        self.scopes: dict[int, Scope] = {}
        self.tables: dict[int, Ints] = {}
        self._by_scope: dict[Scope, int] = {}
        self.factors_of: dict[int, set[int]] = {v: set() for v in self.unary}
        self._count, self.closed, self.base = 0, False, 0
        for scope, costs in flat.factors:
            self.add(*ordered(scope, scale.convert(costs)))
        self.base, self.cut = scale.base, scale.base + scale.most + 1
        self.normalise()

    def release(self) -> None:
        """Free the memory of the tables, which are not used any more."""
        self._held.release()

    def bound(self, more: int = 0) -> int:
        """The lower bound proved; `more` is a lower bound on the remaining tables."""
        return self.cut if self.closed else min(self.cut, self.base + more)

    def normalise(self) -> None:
        """Subtract the minimum of every table and add it to the constant `base`."""
        self._effort.work(self._size + CALL * (len(self.unary) + len(self.tables)))
        for costs in (self.unary, self.tables):
            for key, table in costs.items():
                least = int(table.min())
                if least >= HALF:
                    self.closed = True
                elif least:
                    self.base += least
                    costs[key] = minus(table, least)
        if self.cut - self.base > HALF:  # sums treated as forbidden could be below the cut
            raise Rejected("costs are too large")

    def add(self, scope: Scope, table: Ints) -> None:
        """Add costs of any number of variables: a factor, unary costs or a constant.

        A factor is added to the one with its scope, or gets the next number.
        """
        if not scope:
            self.base += int(table)
        elif len(scope) == 1:
            self.unary[scope[0]] = plus(self.costs_of(scope[0]), table)
        elif scope in self._by_scope:
            known = self._by_scope[scope]
            self.tables[known] = plus(self.tables[known], table)
        else:
            self._by_scope[scope] = self._count
            self._held.keep(8 * table.size)
            self.scopes[self._count], self.tables[self._count] = scope, table
            for v in scope:
                self.factors_of[v].add(self._count)
            self._count += 1

    def take(self, f: int) -> Part:
        """Remove a factor and return its scope and table."""
        if f not in self.scopes:
            raise Rejected(f"there is no factor {f}")
        scope = self.scopes.pop(f)
        del self._by_scope[scope]
        for v in scope:
            self.factors_of[v].discard(f)
        self._held.keep(-8 * self.tables[f].size)
        return scope, self.tables.pop(f)

    def take_all(self, v: int) -> list[Part]:
        """Remove a variable and return its unary costs and its factors."""
        parts = [((v,), self.costs_of(v)), *map(self.take, sorted(self.factors_of[v]))]
        del self.unary[v], self.factors_of[v]
        return parts

    def costs_of(self, v: int) -> Ints:
        """Return the unary costs of a variable; raise `Rejected` if it was removed."""
        if v not in self.unary:
            raise Rejected(f"there is no variable {v}")
        return self.unary[v]

    def rows(self, v: int) -> list[Ints]:
        """The costs of a variable and of its factors, each with one row per label."""
        self._effort.work(self._work_on(v))
        tables = [
            np.moveaxis(self.tables[f], self.scopes[f].index(v), 0) for f in self.factors_of[v]
        ]
        return [costs.reshape(len(costs), -1) for costs in (self.costs_of(v), *tables)]

    def _work_on(self, v: int) -> int:
        """The work of one operation on each table of a variable."""
        factors = self.factors_of.get(v, ())
        return sum(self.tables[f].size for f in factors) + CALL * (1 + len(factors))

    def keep(self, v: int, kept: list[int]) -> None:
        """Keep only the labels `kept` of a variable, in this order."""
        self._effort.work(self._work_on(v))
        if not kept:
            self.closed = True
            return
        for f in self.factors_of[v]:
            table = self.tables[f].take(kept, axis=self.scopes[f].index(v))
            self._held.keep(8 * (table.size - self.tables[f].size))
            self.tables[f] = table
        self.unary[v] = self.unary[v][kept]

    def minimum(self, v: int, parts: list[Part]) -> Part:
        """The minimum over the labels of a variable of the sum of some tables."""
        scope = tuple(sorted({u for part, _ in parts for u in part} - {v}))
        shape = [len(self.unary[u]) for u in scope]
        labels = parts[0][1].shape[parts[0][0].index(v)]
        self._effort.spend(shape, len(parts) * labels)
        self._effort.work(2 * CALL * (4 + labels) * len(parts))
        views = [[len(self.unary[u]) ** (u in part) for u in scope] for part, _ in parts]
        tables = [np.moveaxis(table, part.index(v), 0) for part, table in parts]
        best = np.full(shape, FORBIDDEN, np.int64)
        for rows in zip(*tables, strict=True):
            total = np.zeros(shape, np.int64)
            for row, view in zip(rows, views, strict=True):
                total += row.reshape(view)
                np.minimum(total, FORBIDDEN, out=total)
            np.minimum(best, total, out=best)
        best[best >= HALF] = FORBIDDEN
        return scope, best
