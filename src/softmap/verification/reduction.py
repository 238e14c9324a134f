"""Checks the presolve steps of a search by repeating them on integer tables.

Invariant: the optimum of the model is at least min(`cut`, `base` + optimum of the remaining
tables). All table entries are nonnegative, so `base` is a lower bound unless `cut` is smaller. A
forbidden entry is in no labelling below the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from softmap.verification.integers import HALF, along
from softmap.verification.limit import CALL
from softmap.verification.records import Ints, Numbers, Rejected
from softmap.verification.tables import Remainder, minus, ordered, plus

LARGEST_MOVE = 1 << 57


def _pairs(values: Numbers) -> Iterator[tuple[int, int]]:
    return zip(values[::2], values[1::2], strict=True)


def _amounts(values: Numbers, sizes: list[int]) -> Iterator[Ints]:
    """Split the costs that a record moves into those of one axis of a factor after another."""
    moved = np.array(values, dtype=np.int64)
    if len(moved) != sum(sizes) or ((moved > LARGEST_MOVE) | (moved < -LARGEST_MOVE)).any():
        raise Rejected("expected one amount for each label, none of them too large")
    return iter(np.split(moved, np.cumsum(sizes, dtype=np.int64))[:-1])


class Reduction(Remainder):
    """The steps of the presolve, each of which is checked before it changes the tables."""

    STEPS = frozenset({"remove", "persistent", "split", "substitute", "eliminate", "shift"})

    def remove(self, which: Numbers, labels: Numbers) -> None:
        """Remove labels that are forbidden (reason -1) or that another label dominates."""
        (v,) = which
        self._effort.work(4 * CALL)
        rows, kept = self.rows(v), dict.fromkeys(range(len(self.costs_of(v))))
        work = self._work_on(v) // 2 + 2 * CALL * len(rows)
        for a, reason in _pairs(labels):
            self._effort.work(work)
            if a not in kept or a == reason or (reason != -1 and reason not in kept):
                raise Rejected(f"variable {v} lacks label {a}, or label {reason} that dominates it")
            least = sum(int(row[a].min()) for row in rows)  # of nonnegative costs
            if not (least >= HALF if reason == -1 else _dominates(rows, reason, a)):
                raise Rejected(f"label {a} of variable {v} is neither forbidden nor dominated")
            del kept[a]
        self.keep(v, list(kept))

    def persistent(self, labels: Numbers, amounts: Numbers) -> None:
        """Fix variables to labels that are persistent: optimal for any labels of the others.

        It suffices that the change increases no unary cost and no factor after a
        reparametrisation. `amounts`, in half units, holds the reparametrisation for each label of
        each variable of the factors.
        """
        fixed = dict(_pairs(labels))
        costs = {v: 2 * self.costs_of(v) for v in fixed}
        for v, a in fixed.items():
            if not 0 <= a < len(costs[v]) or costs[v].max() >= HALF:
                raise Rejected(f"variable {v} lacks label {a}, or has forbidden labels")
        factors = sorted({f for v in fixed for f in self.factors_of[v]})
        moves = _amounts(amounts, [size for f in factors for size in self.tables[f].shape])
        for f in factors:
            self._effort.work(16 * CALL + 8 * self.tables[f].size)
            scope, table = self.scopes[f], 2 * self.tables[f]
            if table.max() >= HALF:
                raise Rejected("a factor of persistent labels has forbidden entries")
            for axis, (v, amount) in enumerate(zip(scope, moves, strict=False)):
                table = minus(table, along(amount, axis, table.ndim))
                if v in fixed:
                    costs[v] = minus(costs[v], -amount)
            best = table
            for axis, v in enumerate(scope):
                best = best.take([fixed[v]], axis=axis) if v in fixed else best
            if (best > table).any():
                raise Rejected(f"the persistent labels increase the cost of factor {f}")
        for v, a in fixed.items():
            if costs[v][a] > costs[v].min():
                raise Rejected("a persistent label increases the unary cost of its variable")
            self.keep(v, [a])

    def split(self, which: Numbers) -> None:
        """Replace a factor by pairwise tables whose sum is a lower bound on it."""
        (f,) = which
        scope, table = self.take(f)
        if len(scope) < 3:
            raise Rejected("a factor of two variables cannot be split")
        self._effort.work(8 * len(scope) ** 2 * (CALL + table.size))
        for i, j, pair in _pairwise(table):
            if pair.any():
                self.add((scope[i], scope[j]), pair)

    def substitute(self, which: Numbers, function: Numbers) -> None:
        """Eliminate a variable y = f(x) if a factor forbids all other pairs (x, y)."""
        tie, x, y = which
        image, labels = list(function), len(self.costs_of(y))
        if self.scopes.get(tie) != tuple(sorted((x, y))) or len(image) != len(self.costs_of(x)):
            raise Rejected("expected a function between the two variables of a factor")
        if not all(0 <= b < labels for b in image):
            raise Rejected("a function has a value that is no label")
        costs = self.tables[tie] if x < y else self.tables[tie].T
        others = np.ones(costs.shape, dtype=bool)
        others[np.arange(len(image)), image] = False
        if (costs[others] < HALF).any():
            raise Rejected(f"variable {y} is no function of variable {x}")
        for scope, table in self.take_all(y):
            size = table.size // labels * len(image)
            self._effort.spend([size], 4)
            self._effort.work(8 * CALL)
            table = table.take(image, axis=scope.index(y))
            rest = tuple(v for v in scope if v not in (x, y))
            if x in scope:
                table = table.diagonal(0, scope.index(x), scope.index(y))
            else:
                table = np.moveaxis(table, scope.index(y), -1)
            self.add(*ordered((*rest, x), table))

    def eliminate(self, which: Numbers) -> None:
        """Eliminate a variable by minimisation; the result is a factor of its neighbours.

        The factors of a variable with one label are not added up: each of them loses an axis.
        """
        (v,) = which
        parts = self.take_all(v)
        for group in [parts] if len(parts[0][1]) > 1 else [[part] for part in parts]:
            scope, table = self.minimum(v, group)
            least = int(table.min())
            if least >= HALF:
                self.closed = True
                return
            self.base += least
            self.add(scope, minus(table, least))

    def shift(self, places: Numbers, amounts: Numbers) -> None:
        """Move costs from factors to labels of their variables, then normalise."""
        self._effort.work(12 * CALL)
        moved = list(_pairs(places))
        if not all(f in self.scopes and 0 <= axis < len(self.scopes[f]) for f, axis in moved):
            raise Rejected("costs are moved from a factor or axis that does not exist")
        parts = _amounts(amounts, [self.tables[f].shape[axis] for f, axis in moved])
        for (f, axis), amount in zip(moved, parts, strict=True):
            self._effort.work(8 * (CALL + self.tables[f].size))
            v, table = self.scopes[f][axis], self.tables[f]
            self.tables[f] = minus(table, along(amount, axis, table.ndim))
            self.unary[v] = minus(self.unary[v], -amount)
        self.normalise()

    # --- components -------------------------------------------------------------------------------

    def component(
        self, variables: Numbers, factors: Numbers
    ) -> tuple[list[list[int]], list[tuple[list[int], Ints]]]:
        """Return unary costs and factors of a component, with scopes in its own numbers."""
        self.normalise()
        place = {v: k for k, v in enumerate(variables)}
        if not variables or len(place) < len(variables) or len(set(factors)) < len(factors):
            raise Rejected("a component is empty, or names a variable or a factor twice")
        if not all(f in self.scopes and set(self.scopes[f]) <= set(place) for f in factors):
            raise Rejected("a factor of a component was removed, or has variables outside of it")
        unary = [self.costs_of(v).tolist() for v in variables]
        return unary, [([place[v] for v in self.scopes[f]], self.tables[f]) for f in factors]

    def close(self, variables: Numbers, factors: Numbers, bound: int) -> None:
        """Remove a solved component and add its lower bound to the constant."""
        tables = [*(self.unary[v] for v in variables), *(self.tables[f] for f in factors)]
        highest = sum(int(table[table < HALF].max(initial=0)) for table in tables)
        self.closed = self.closed or bound > highest  # of labellings without forbidden entries
        self.base += bound
        for v in variables:
            self.take_all(v)


def _pairwise(table: Ints) -> Iterator[tuple[int, int, Ints]]:
    """Tables of all pairs of axes whose sum is a lower bound on a table."""
    axes, rest, total = range(table.ndim), table, np.zeros_like(table)
    for i, j in sorted(combinations(axes, 2), key=lambda pair: pair[::-1]):
        others = tuple(k for k in axes if k not in (i, j))
        pair = rest.min(axis=others)
        whole = np.expand_dims(pair, others)
        rest = np.where(whole >= HALF, rest, minus(rest, whole))
        total = plus(total, np.broadcast_to(whole, table.shape))
        yield i, j, pair
    if (total > table).any():
        raise Rejected("the pairs of a split factor cost more than the factor")


def _dominates(rows: list[Ints], better: int, worse: int) -> bool:
    """Whether a label costs no more than another one for all labels of the neighbours."""
    if any((row[worse] >= HALF).all() for row in rows):  # it is in no labelling below the cut
        return True
    total = 0
    for row in rows:
        possible = row[worse] < HALF
        most = row[better][possible]
        if most.max() >= HALF:
            return False
        total += int((most - row[worse][possible]).max())
    return total <= 0
