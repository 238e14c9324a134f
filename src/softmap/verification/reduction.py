"""Checks the presolve steps of a search by repeating them on integer tables.

Invariant: the optimum of the model is at least min(`cut`, `base` + optimum of the remaining
tables). All table entries are nonnegative, so `base` is a lower bound unless `cut` is smaller. A
forbidden entry is in no labelling below the cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np

from softmap.verification.integers import (
    FORBIDDEN,
    HALF,
    Flat,
    Scale,
    along,
    at_label,
    each,
    least_along,
    sorted_axes,
)
from softmap.verification.records import Ints, Numbers, Op, Rejected, array_of, list_of, one_of

__all__ = ["Reduction"]

LARGEST_TABLE = 1 << 27  # entries
LARGEST_MOVE = 1 << 57

Scope = tuple[int, ...]


def _plus(a: Ints, b: Ints) -> Ints:
    """The sum of two costs; forbidden if one of the two is."""
    total: Ints = np.where((a >= HALF) | (b >= HALF), FORBIDDEN, a + b)
    return total


def _minus(a: Ints, b: Ints | int) -> Ints:
    """Subtract b from the costs a; forbidden entries stay forbidden, others stay finite."""
    rest: Ints = np.where(a >= HALF, 0, a - b)
    if (np.abs(rest) >= HALF).any():
        raise Rejected("costs are too large")
    return np.where(a >= HALF, FORBIDDEN, rest)


class Reduction:
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
    closed : bool
        Whether no labelling below the cut remains.
    """

    def __init__(self, flat: Flat, scale: Scale, pairs: Ints, moved: Ints) -> None:
        self.unary = {v: scale.convert(costs) for v, costs in enumerate(flat.unary)}
        self.scopes: dict[int, Scope] = {}
        self.tables: dict[int, Ints] = {}
        self._by_scope: dict[Scope, int] = {}
        self._of: dict[int, set[int]] = {v: set() for v in self.unary}
        self._count, self.closed, self.base = 0, False, 0
        if len(pairs) != len(flat.factors) or (np.abs(moved) > LARGEST_MOVE).any():
            raise Rejected("it is about another number of factors")
        at = 0
        for (scope, costs), split in zip(flat.factors, pairs.tolist(), strict=True):
            table = scale.convert(costs)
            if split:
                for pair in self._pairs(*sorted_axes(scope, table)):
                    self._add(*pair)
                continue
            if len(moved):
                for axis, v in enumerate(scope):
                    amount = moved[at : at + table.shape[axis]]
                    if len(amount) != table.shape[axis]:
                        raise Rejected("λ has too few numbers")
                    at += len(amount)
                    table = _minus(table, -along(amount, axis, table.ndim))
                    self.unary[v] = _minus(self.unary[v], amount)
            self._add(*sorted_axes(scope, table))
        if at != len(moved):
            raise Rejected("λ has too many numbers")
        self.base, self.cut = scale.base, scale.forbidden_from()
        self.normalise()

    @property
    def steps(self) -> dict[Op, Callable[..., None]]:
        """The method that checks each kind of record."""
        return {
            Op.DROP: self.drop, Op.BAN: self.ban, Op.DOMINATED: self.dominated,
            Op.PERSISTENT: self.persistent, Op.SPLIT: self.split,
            Op.SUBSTITUTE: self.substitute, Op.ELIMINATE: self.eliminate, Op.FIX: self.fix,
            Op.NORMALISE: self.normalise, Op.SHIFT: self.shift,
        }  # fmt: skip

    def bound(self, more: int = 0) -> int:
        """The lower bound proved; `more` is a lower bound on the remaining tables."""
        return self.cut if self.closed else min(self.cut, self.base + more)

    # --- tables -----------------------------------------------------------------------------------

    def _add(self, scope: Scope, table: Ints) -> None:
        """Add a factor of two or more variables, summed with a factor of the same scope."""
        known = self._by_scope.get(scope)
        if known is not None:
            self.tables[known] = _plus(self.tables[known], table)
            return
        self._by_scope[scope] = self._count
        self.scopes[self._count], self.tables[self._count] = scope, table
        for v in scope:
            self._of[v].add(self._count)
        self._count += 1

    def _add_costs(self, scope: Scope, table: Ints) -> None:
        """Add a factor of any number of variables: a table, unary costs or a constant."""
        if len(scope) >= 2:
            self._add(scope, table)
        elif scope:
            self.unary[scope[0]] = _plus(self.unary[scope[0]], table)
        elif table >= HALF:
            self.closed = True
        else:
            self.base += int(table)

    def _take(self, f: int) -> tuple[Scope, Ints]:
        """Remove a factor and return its scope and table."""
        if f not in self.scopes:
            raise Rejected(f"there is no factor {f}")
        scope, table = self.scopes.pop(f), self.tables.pop(f)
        del self._by_scope[scope]
        for v in scope:
            self._of[v].discard(f)
        return scope, table

    def _costs(self, v: int) -> Ints:
        if v not in self.unary:
            raise Rejected(f"there is no variable {v}")
        return self.unary[v]

    def _least(self, v: int) -> Ints:
        """Lower bound on each label of a variable: its cost plus the minima of its factors."""
        total = self._costs(v)
        for f in self._of[v]:
            total = _plus(total, least_along(self.tables[f], self.scopes[f].index(v)))
        return total

    def _keep(self, v: int, kept: list[int]) -> None:
        """Keep only the labels `kept` of a variable, in this order."""
        if not kept:
            self.closed = True
            return
        for f in self._of[v]:
            self.tables[f] = self.tables[f].take(kept, axis=self.scopes[f].index(v))
        self.unary[v] = self.unary[v][kept]

    # --- steps ------------------------------------------------------------------------------------

    def normalise(self, nothing: Numbers | None = None) -> None:
        """Subtract the minimum of every table and add it to the constant `base`."""
        for costs in (self.unary, self.tables):
            for key, table in costs.items():
                least = int(table.min())
                if least >= HALF:
                    self.closed = True
                elif least:
                    self.base += least
                    costs[key] = _minus(table, least)
        if self.cut - self.base > HALF:  # sums treated as forbidden could be below the cut
            raise Rejected("costs are too large")

    def drop(self, which: Numbers, kept: Numbers) -> None:
        """Remove labels that are forbidden or whose lower bound (`_least`) is forbidden."""
        v, labels = one_of(which), list_of(kept)
        least = self._least(v)
        out = np.ones(len(least), dtype=bool)
        if labels != sorted(set(labels)) or not all(0 <= a < len(out) for a in labels):
            raise Rejected("labels that stay are not in order")
        out[labels] = False
        if (least[out] < HALF).any():
            raise Rejected(f"a label of variable {v} goes that is not forbidden")
        self._keep(v, labels)

    def ban(self, banned: Numbers) -> None:
        """Forbid single labels by the rule of `drop`; the label numbers do not change."""
        for v, a in each(banned, 2, "labels"):
            if not 0 <= a < len(self._costs(v)) or self._least(v)[a] < HALF:
                raise Rejected(f"label {a} of variable {v} is not forbidden")
            self.unary[v] = np.where(np.arange(len(self.unary[v])) == a, FORBIDDEN, self.unary[v])

    def dominated(self, which: Numbers, swaps: Numbers) -> None:
        """Remove labels that another label dominates for all labels of the neighbours."""
        v = one_of(which)
        alive = dict.fromkeys(range(len(self._costs(v))))
        for worse, better in each(swaps, 2, "labels"):
            if worse == better or worse not in alive or better not in alive:
                raise Rejected("a label is dominated by none")
            if not self._dominates(v, better, worse):
                raise Rejected(f"label {worse} of variable {v} is not dominated by {better}")
            del alive[worse]
        self._keep(v, list(alive))

    def _dominates(self, v: int, better: int, worse: int) -> bool:
        if self.unary[v].max() >= HALF:
            return bool(self.unary[v][worse] >= HALF)
        total = int(self.unary[v][better]) - int(self.unary[v][worse])
        for f in self._of[v]:
            table, axis = self.tables[f], self.scopes[f].index(v)
            new, old = at_label(table, axis, better), at_label(table, axis, worse)
            possible = old < HALF
            if not possible.any():
                return True
            most = new[possible]
            if most.max() >= HALF:
                return False
            total += int((most - old[possible]).max())
        return total <= 0

    def persistent(self, labels: Numbers, factors: Numbers, amounts: Numbers) -> None:
        """Fix variables to labels that are persistent: optimal for any labels of the others.

        It suffices that the change increases no unary cost and no factor after a
        reparametrisation. `amounts`, in half units, holds the reparametrisation for each label of
        each variable of `factors`.
        """
        fixed = {v: a for v, a in each(labels, 2, "a variable and its label")}  # noqa: C416
        moves = array_of(amounts)
        if any(not 0 <= a < len(self._costs(v)) for v, a in fixed.items()):
            raise Rejected("there is no such label")
        costs = {v: 2 * self.unary[v] for v in fixed}
        if any(own.max() >= HALF for own in costs.values()) or (np.abs(moves) > LARGEST_MOVE).any():
            raise Rejected("costs are too large")
        at = 0
        moved: dict[int, Ints | None] = dict.fromkeys(f for v in fixed for f in self._of[v])
        for f in list_of(factors):
            if f not in moved:
                raise Rejected(f"factor {f} has none of the variables")
            size = sum(self.tables[f].shape)
            moved[f], at = moves[at : at + size], at + size
        if at != len(moves):
            raise Rejected("there is not one amount for each label")
        for f, amount in moved.items():
            self._no_worse(f, fixed, amount, costs)
        if any(own[fixed[v]] > own.min() for v, own in costs.items()):
            raise Rejected("a label is worse than another one")
        for v, a in fixed.items():
            self._keep(v, [a])

    def _no_worse(
        self, f: int, fixed: dict[int, int], amount: Ints | None, costs: dict[int, Ints]
    ) -> None:
        scope, table = self.scopes[f], 2 * self.tables[f]
        if table.max() >= HALF:
            raise Rejected("a factor that forbids labels says nothing about others")
        at = 0
        for axis, v in enumerate(scope):
            own = np.zeros(1, np.int64) if amount is None else amount[at : at + table.shape[axis]]
            table, at = table - along(own, axis, len(scope)), at + table.shape[axis]
            if v in fixed:
                costs[v] = costs[v] + own
        best = table
        for axis, v in enumerate(scope):
            if v in fixed:
                best = np.expand_dims(at_label(best, axis, fixed[v]), axis)
        if (best > table).any():
            raise Rejected(f"labels are worse in factor {f}")

    def split(self, which: Numbers) -> None:
        """Replace a factor that is a sum of pairwise tables by these tables."""
        for pair in self._pairs(*self._take(one_of(which))):
            self._add(*pair)

    def _pairs(self, scope: Scope, table: Ints) -> list[tuple[Scope, Ints]]:
        """Return pairwise tables whose sum is a lower bound on the factor."""
        if math.prod(table.shape) > LARGEST_TABLE or len(scope) < 3:
            raise Rejected("a factor cannot be split")
        rest, total = table, np.zeros_like(table)
        out: list[tuple[Scope, Ints]] = []
        pairs = sorted(combinations(range(len(scope)), 2), key=lambda pair: pair[::-1])
        for i, j in pairs:
            others = tuple(k for k in range(len(scope)) if k not in (i, j))
            pair = rest.min(axis=others)
            whole = np.expand_dims(pair, others)
            rest = np.where(whole >= HALF, rest, _minus(rest, whole))
            total = _plus(total, np.broadcast_to(whole, table.shape))
            if pair.any():
                out.append(((scope[i], scope[j]), pair))
        if (total > table).any():
            raise Rejected("pairs cost more than their factor")
        return out

    def substitute(self, which: Numbers, function: Numbers) -> None:
        """Eliminate a variable y = f(x) if a factor forbids all other pairs (x, y)."""
        tie, x, y = list_of(which)
        image = array_of(function)
        scope, table = self._take(tie)
        if sorted((x, y)) != list(scope) or len(image) != len(self._costs(x)):
            raise Rejected("a function is not of the two variables of a factor")
        labels = len(self._costs(y))
        if not ((image >= 0) & (image < labels)).all():
            raise Rejected("a function leads to no label")
        costs, each_x = table if scope[0] == x else table.T, np.arange(len(image))
        others = np.ones(costs.shape, dtype=bool)
        others[each_x, image] = False
        if (costs[others] < HALF).any():
            raise Rejected(f"variable {y} is no function of variable {x}")
        own = _plus(self.unary[y][image], costs[each_x, image])
        self.unary[x] = _plus(self.unary[x], own)
        for f in sorted(self._of[y]):
            scope, table = self._take(f)
            table = table.take(image, axis=scope.index(y))
            if x in scope:
                table = np.moveaxis(table.diagonal(0, scope.index(x), scope.index(y)), -1, 0)
                scope = (x, *(v for v in scope if v not in (x, y)))
            else:
                scope = tuple(x if v == y else v for v in scope)
            self._add_costs(*sorted_axes(scope, table))
        self._forget(y)

    def eliminate(self, which: Numbers) -> None:
        """Eliminate a variable by minimisation; the result is a factor of its neighbours."""
        v = one_of(which)
        costs, parts = self._costs(v), [self._take(f) for f in sorted(self._of[v])]
        scope = tuple(sorted({u for part, _ in parts for u in part} - {v}))
        shape = [len(self.unary[u]) for u in scope]
        if math.prod(shape) > LARGEST_TABLE:
            raise Rejected(f"a table of {math.prod(shape):.3g} entries is too large to check")
        best = np.full(shape, FORBIDDEN, np.int64)
        views = [
            (part.index(v), tuple(len(self.unary[u]) if u in part else 1 for u in scope), table)
            for part, table in parts
        ]
        for a, own in enumerate(costs.tolist()):
            total = np.full(shape, own, np.int64)
            for axis, view, table in views:
                total += at_label(table, axis, a).reshape(view)
                np.minimum(total, FORBIDDEN, out=total)
            np.minimum(best, total, out=best)
        best[best >= HALF] = FORBIDDEN
        self._forget(v)
        least = int(best.min())
        if least >= HALF:
            self.closed = True
            return
        self.base += least
        self._add_costs(scope, _minus(best, least))

    def fix(self, which: Numbers) -> None:
        """Remove a variable with one label, and that axis of its factors."""
        v = one_of(which)
        if len(self._costs(v)) != 1:
            raise Rejected(f"variable {v} has more than one label")
        self._add_costs((), self.unary[v].reshape(()))
        for f in sorted(self._of[v]):
            scope, table = self._take(f)
            self._add_costs(tuple(u for u in scope if u != v), at_label(table, scope.index(v), 0))
        self._forget(v)

    def _forget(self, v: int) -> None:
        del self.unary[v], self._of[v]

    def shift(self, places: Numbers, amounts: Numbers) -> None:
        """Move costs from factors to labels of their variables, then normalise."""
        moves = array_of(amounts)
        if (np.abs(moves) > LARGEST_MOVE).any():
            raise Rejected("costs are too large")
        at = 0
        for f, axis in each(places, 2, "a factor and its axis"):
            if f not in self.tables or not 0 <= axis < len(self.scopes[f]):
                raise Rejected(f"there is no factor {f}, or not its axis {axis}")
            v, table = self.scopes[f][axis], self.tables[f]
            amount = moves[at : at + table.shape[axis]]
            if len(amount) != table.shape[axis]:
                raise Rejected("there are too few amounts")
            at += len(amount)
            self.tables[f] = _minus(table, along(amount, axis, table.ndim))
            self.unary[v] = _minus(self.unary[v], -amount)
        self.normalise()

    # --- components -------------------------------------------------------------------------------

    def highest(self, variables: list[int], factors: list[int]) -> int:
        """Upper bound on labellings of a component without forbidden entries."""
        tables = [*(self.unary[v] for v in variables), *(self.tables[f] for f in factors)]
        return sum(int(table[table < HALF].max(initial=0)) for table in tables)

    def close(self, variables: list[int], factors: list[int], bound: int) -> None:
        """Remove a solved component and add its lower bound to the constant."""
        self.closed = self.closed or bound > self.highest(variables, factors)
        self.base += bound
        for f in {f for v in variables for f in self._of[v]}:
            self._take(f)
        for v in variables:
            self._forget(v)
