"""Checks the branch-and-bound search of one component by repeating its steps.

Invariant in every search node: a labelling with a removed label costs at least `cut`; any other
labelling costs at least `lower` plus the sum of its reduced costs, which are nonnegative. A node
can therefore be closed if `lower` reaches the cut, or if a variable has no labels left. All numbers
are Python integers, which cannot overflow, in lists: short lists are faster than arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from operator import add
from typing import Any

import numpy as np

from softmap.verification.integers import FORBIDDEN, HALF, along, at_label
from softmap.verification.records import Ints, Numbers, Op, Rejected, list_of, one_of

__all__ = ["Tree"]

LARGEST_TABLE = 1 << 24  # entries of a factor made by `Network.combine`
LARGEST_COST = 1 << 58
LARGEST_SCOPE = 24
MOST_COMBINED = 4
EQUAL, DIFFERENT, AT_MOST, ABOVE = range(4)
NEGATED = {EQUAL: DIFFERENT, DIFFERENT: EQUAL, AT_MOST: ABOVE, ABOVE: AT_MOST}

Decision = tuple[int, int, int]  # variable, kind, label
Path = tuple[Any, Decision] | None  # the parent's path and the last decision


def _capped(cost: int) -> int:
    return FORBIDDEN if cost >= HALF else cost


class Factor:
    """A table over some variables, and the costs moved from it to the labels of each variable.

    The reduced cost of labels a, b of two variables is table[a, b] - moved[0][a] - moved[1][b].
    """

    __slots__ = ("_rows", "active", "moved", "scope", "table")

    def __init__(self, scope: list[int], table: Ints) -> None:
        if len(scope) > LARGEST_SCOPE:  # the sums of moved costs in `reduced` must fit int64
            raise Rejected("a factor has too many variables to check")
        self.scope, self.table, self.active = scope, table, True
        self.moved = [[0] * size for size in table.shape]
        self._rows: dict[tuple[int, int], list[int]] = {}

    def row(self, axis: int, a: int) -> list[int]:
        """The entries with label `a` on one axis, flattened in row-major order."""
        known = self._rows.get((axis, a))
        if known is None:
            known = self._rows[axis, a] = at_label(self.table, axis, a).ravel().tolist()
        return known

    def reduced(self) -> Ints:
        """The reduced costs as an array."""
        table = self.table
        for axis, moved in enumerate(self.moved):
            table = table - along(np.array(moved, np.int64), axis, table.ndim)
        return table


class Network:
    """Costs and remaining labels of one component, with an undo stack for backtracking.

    Parameters
    ----------
    unary : list of lists
        The costs of each variable's labels.
    factors : list of (scope, table)
        Scopes are in the numbers of this component.

    Attributes
    ----------
    lower : int
        The cost moved to the lower bound, in units.
    """

    def __init__(self, unary: list[list[int]], factors: list[tuple[list[int], Ints]]) -> None:
        self._unary = unary
        self._live = [list(range(len(costs))) for costs in unary]
        self._alive = [[True] * len(costs) for costs in unary]
        self._gone = [False] * len(unary)  # eliminated variables
        self._empty = 0  # number of variables without labels
        self._factors: list[Factor] = []
        self._of: list[list[Factor]] = [[] for _ in unary]
        self._words: list[tuple[Factor, int, int]] = []  # factor, axis and label
        self.lower = 0
        self._undo: list[Callable[[], None]] = []
        for scope, table in factors:
            self._add_factor(Factor(scope, table))

    def _add_factor(self, factor: Factor) -> None:
        self._factors.append(factor)
        for axis, v in enumerate(factor.scope):
            self._of[v].append(factor)
            self._words += [(factor, axis, a) for a in range(factor.table.shape[axis])]

    def _back_to(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()

    # --- costs ------------------------------------------------------------------------------------

    def move(self, words: Numbers, amounts: Numbers, variables: Numbers, lowered: Numbers) -> None:
        """Move costs from factors to labels, and from all labels of variables to `lower`."""
        pairs = zip(list_of(words), list_of(amounts), strict=True)
        moves = [(*self._word(w), amount) for w, amount in pairs]
        pairs = zip(list_of(variables), list_of(lowered), strict=True)
        falls = [(self._variable(v), amount) for v, amount in pairs]
        if any(amount < 0 for _, amount in falls):
            raise Rejected("the bound falls")
        self._shift(moves, falls, 1)
        self._undo.append(lambda: self._shift(moves, falls, -1))
        for factor, axis, a, amount in moves:
            x = factor.scope[axis]
            if not self._alive[x][a]:
                continue
            if amount < 0:
                if self._unary[x][a] < 0:
                    raise Rejected("more is moved from a label than it costs")
            elif self._least(factor, axis, a) < 0:
                raise Rejected("more is moved from a factor than it costs")
        for v, _ in falls:
            if any(self._unary[v][a] < 0 for a in self._live[v]):
                raise Rejected("more is moved to the bound than a label costs")

    def _shift(self, moves: list[Any], falls: list[Any], sign: int) -> None:
        unary = self._unary
        for factor, axis, a, amount in moves:
            moved = factor.moved[axis]
            moved[a] += sign * amount
            if abs(moved[a]) > LARGEST_COST:  # tables are int64 arrays
                raise Rejected("costs are too large")
            unary[factor.scope[axis]][a] += sign * amount
        for v, amount in falls:
            unary[v] = [cost - sign * amount for cost in unary[v]]
            self.lower += sign * amount

    def _word(self, w: int) -> tuple[Factor, int, int]:
        if not 0 <= w < len(self._words):
            raise Rejected(f"there is no label {w} in a factor")
        found = self._words[w]
        if not found[0].active:
            raise Rejected("costs of a factor that is gone")
        return found

    def _variable(self, x: int) -> int:
        if not 0 <= x < len(self._unary) or self._gone[x]:
            raise Rejected(f"there is no variable {x}, or it is gone")
        return x

    def _least(self, factor: Factor, axis: int, a: int, *, with_own: bool = False) -> int:
        """The minimal reduced cost of label `a` in a factor, optionally with unary costs."""
        row = factor.row(axis, a)
        if len(factor.scope) == 2:  # fast path: most factors have two variables
            other, moved = factor.scope[1 - axis], factor.moved[1 - axis]
            live, own = self._live[other], self._unary[other]
            if with_own:
                costs = [row[b] - moved[b] + own[b] for b in live]
            else:
                costs = [row[b] - moved[b] for b in live]
        else:
            places = [(0, 0)]
            for k, v in enumerate(factor.scope):
                if k != axis:
                    size, moved, own = factor.table.shape[k], factor.moved[k], self._unary[v]
                    paid = [(b, own[b] * with_own - moved[b]) for b in self._live[v]]
                    places = [(at * size + b, c + d) for at, c in places for b, d in paid]
            costs = [row[at] + cost for at, cost in places]
        return min(costs, default=FORBIDDEN) - factor.moved[axis][a]

    def _within(self, scope: list[int], table: Ints) -> Ints:
        """The entries of a table at the remaining labels."""
        inside: Ints = table[np.ix_(*(self._live[v] for v in scope))]
        return inside

    # --- labels -----------------------------------------------------------------------------------

    def _take_out(self, out: Iterable[tuple[int, int]]) -> None:
        before: dict[int, list[int]] = {}
        for x, a in out:
            if self._alive[x][a]:
                before.setdefault(x, self._live[x])
                self._alive[x][a] = False
                self._live[x] = [b for b in self._live[x] if b != a]
                self._empty += not self._live[x]

        def undo() -> None:
            for x, live in before.items():
                self._empty -= not self._live[x]
                self._live[x] = live
                for a in live:
                    self._alive[x][a] = True

        self._undo.append(undo)

    # --- factors ----------------------------------------------------------------------------------

    def combine(self, which: Numbers, members: Numbers, over: Numbers) -> None:
        """Replace factors by one over a scope, and eliminate the variable `out` unless it is -1.

        The new table is the minimum of the sum over all other variables, a lower bound. Other
        factors of an eliminated variable are nonnegative and are dropped.
        """
        out, numbers, scope = one_of(which), list_of(members), list_of(over)
        if not 1 <= len(set(numbers)) == len(numbers) <= MOST_COMBINED:
            raise Rejected("so many factors are not combined")
        if not all(0 <= f < len(self._factors) and self._factors[f].active for f in numbers):
            raise Rejected("a factor is combined that is gone")
        factors = [self._factors[f] for f in numbers]
        variables = sorted({v for factor in factors for v in factor.scope})
        if out != -1 and (self._variable(out) not in variables or out in scope):
            raise Rejected(f"variable {out} cannot go")
        if not 1 <= len(set(scope)) == len(scope) <= 2 or not set(scope) <= set(variables):
            raise Rejected("the scope of combined factors is none")
        table = self._least_sum(out, factors, scope, variables)
        if self._within(scope, table).min(initial=0) < 0:
            raise Rejected("combined factors cost less than 0")
        own = self._of[out] if out >= 0 else []
        gone = [*factors, *(f for f in own if f.active and f not in factors)]
        for factor in gone:
            factor.active = False
        if out >= 0:
            self._gone[out] = True
        added: list[int] = []
        words = len(self._words)
        if len(scope) == 1:
            added = table.tolist()
            costs = self._unary[scope[0]]
            self._unary[scope[0]] = [a + b for a, b in zip(costs, added, strict=True)]
        else:
            self._add_factor(Factor(scope, table))

        def undo() -> None:
            if len(scope) == 1:
                costs = self._unary[scope[0]]
                self._unary[scope[0]] = [a - b for a, b in zip(costs, added, strict=True)]
            else:
                for v in self._factors.pop().scope:
                    self._of[v].pop()
                del self._words[words:]
            for factor in gone:
                factor.active = True
            if out >= 0:
                self._gone[out] = False

        self._undo.append(undo)

    def _least_sum(
        self, out: int, factors: list[Factor], scope: list[int], variables: list[int]
    ) -> Ints:
        """Minimise the sum of factors and of the unary costs of `out` over all but the scope."""
        if {out, *scope} == set(variables) and all(len(factor.scope) == 2 for factor in factors):
            return self._least_over(out, factors, scope)
        labels = [
            list(range(len(self._unary[v]))) if v in scope else self._live[v] for v in variables
        ]
        sizes = list(map(len, labels))
        if math.prod(sizes) > LARGEST_TABLE:
            raise Rejected("combined factors are too large to check")
        total: Ints = np.zeros(sizes, np.int64)
        for factor in factors:
            order = sorted(range(len(factor.scope)), key=lambda k: factor.scope[k])
            places = [variables.index(factor.scope[k]) for k in order]
            table = np.clip(factor.reduced(), -FORBIDDEN, FORBIDDEN).transpose(order)
            table = table[np.ix_(*(labels[k] for k in places))]
            total = total + table.reshape([n if k in places else 1 for k, n in enumerate(sizes)])
        if out >= 0:
            at = variables.index(out)
            costs = np.array([min(self._unary[out][a], FORBIDDEN) for a in labels[at]], np.int64)
            total = total + along(costs, at, len(variables))
        rest = tuple(k for k, v in enumerate(variables) if v not in scope)
        least = total.min(axis=rest, initial=4 * FORBIDDEN) if rest else total
        least = least if scope == sorted(scope) else least.T
        found: Ints = np.where(least >= HALF, FORBIDDEN, least)
        return found

    def _least_over(self, out: int, factors: list[Factor], scope: list[int]) -> Ints:
        """As `_least_sum`, for factors of two variables, on lists."""
        live, shape = self._live[out], [len(self._unary[v]) for v in scope]
        own = [self._unary[out][a] for a in live]
        beside = [dict.fromkeys(self._live[scope[0]], own)]  # costs by the label of `out`
        beside += [{b: [0] * len(live) for b in self._live[v]} for v in scope[1:]]
        for factor in factors:
            if out in factor.scope:
                axis = factor.scope.index(out)
                moved, away = factor.moved[axis], factor.moved[1 - axis]
                costs = beside[scope.index(factor.scope[1 - axis])]
                for b, before in costs.items():
                    row = factor.row(1 - axis, b)
                    costs[b] = [
                        c + row[a] - moved[a] - away[b] for c, a in zip(before, live, strict=True)
                    ]
        table = np.zeros(shape, np.int64)
        if len(scope) == 1:
            for b, costs_b in beside[0].items():
                table[b] = _capped(min(costs_b, default=FORBIDDEN))
            return table
        rest = [factor for factor in factors if out not in factor.scope]
        for b, first in beside[0].items():
            row_b = [0] * shape[1]
            for c, second in beside[1].items():
                row_b[c] = min(map(add, first, second), default=FORBIDDEN)
            for factor in rest:
                axis = factor.scope.index(scope[0])
                row, moved = factor.row(axis, b), factor.moved[1 - axis]
                for c in beside[1]:
                    row_b[c] += row[c] - moved[c] - factor.moved[axis][b]
            table[b] = list(map(_capped, row_b))
        return table


class Tree(Network):
    """The nodes of one branch-and-bound search.

    Parameters
    ----------
    unary : list of lists
        The costs of each variable's labels.
    factors : list of (scope, table)
        Scopes are in the numbers of this component.

    Attributes
    ----------
    cut : int
        Labellings that cost this much or more are not searched for, in units.
    leaves : int
        Number of search nodes that were closed.
    """

    def __init__(self, unary: list[list[int]], factors: list[tuple[list[int], Ints]]) -> None:
        super().__init__(unary, factors)
        self.cut, self.leaves = HALF, 0
        self._levels: list[tuple[int, Decision, int, Path]] = []
        self._path: Path = None
        self._diving, self._node_bound = False, 0
        self._open: dict[int, tuple[int, Path]] = {0: (0, None)}
        self._opened = 0

    @property
    def steps(self) -> dict[Op, Callable[..., None]]:
        """The method that checks each kind of record."""
        return {
            Op.MOVE: self.move, Op.REMOVE: self.remove, Op.COMBINE: self.combine,
            Op.CUT: self.set_cut, Op.DIVE: self.dive, Op.BRANCH: self.branch,
            Op.CLOSE: self.close, Op.LEAVE: self.leave,
        }  # fmt: skip

    def bound(self) -> int:
        """Lower bound on all labellings of the component, proved by the search so far."""
        if self._diving:
            raise Rejected("the search ends within a dive")
        least = self.cut
        if not self._empty:
            least = min([least, *(max(bound, self.lower) for bound, _ in self._open.values())])
        return max(0, least)  # all costs are nonnegative

    def remove(self, plain: Numbers, reasons: Numbers) -> None:
        """Remove labels whose unary cost, alone or with one factor, reaches the cut."""
        room = self.cut - self.lower
        own = list_of(plain)
        out = [(self._variable(x), a) for x, a in zip(own[::2], own[1::2], strict=True)]
        for x, a in out:
            if not 0 <= a < len(self._unary[x]):
                raise Rejected(f"there is no label {a} of variable {x}")
            if self._unary[x][a] < room:
                raise Rejected("a label goes whose cost does not reach the cut")
        for w in list_of(reasons):
            factor, axis, a = self._word(w)
            x = factor.scope[axis]
            if self._least(factor, axis, a, with_own=True) + self._unary[x][a] < room:
                raise Rejected("a label goes whose costs do not reach the cut")
            out.append((x, a))
        self._take_out(out)

    # --- nodes ------------------------------------------------------------------------------------

    def set_cut(self, which: Numbers) -> None:
        """Lower the cut: from now on, only labellings below it are searched for."""
        cut = one_of(which)
        if abs(cut) > HALF:
            raise Rejected("the cut is too large")
        self.cut = min(self.cut, cut)

    def dive(self, which: Numbers) -> None:
        """Select an open node and apply its decisions, from the root on."""
        number = one_of(which)
        if self._diving or number not in self._open:
            raise Rejected(f"node {number} is not open")
        self._node_bound, self._path = self._open.pop(number)
        self._diving, self._undo = True, []
        path, decisions = self._path, []
        while path is not None:
            path, decision = path
            decisions.append(decision)
        for x, kind, a in reversed(decisions):
            if not self._gone[x]:
                self._restrict(x, kind, a)

    def branch(self, decision: Numbers) -> None:
        """Branch: apply a decision; its negation is explored after the node is closed."""
        x, kind, a = list_of(decision)
        if not self._diving or kind not in NEGATED:
            raise Rejected("a decision outside of a dive, or of no kind")
        self._levels.append((len(self._undo), (self._variable(x), kind, a), self.lower, self._path))
        self._path = (self._path, (x, kind, a))
        self._restrict(x, kind, a)

    def _restrict(self, x: int, kind: int, a: int) -> None:
        if kind in (EQUAL, DIFFERENT):
            out = [(x, b) for b in self._live[x] if (b == a) == (kind == DIFFERENT)]
        else:
            out = [(x, b) for b in self._live[x] if (b <= a) == (kind == ABOVE)]
        self._take_out(out)

    def close(self, nothing: Numbers) -> None:
        """Close a node whose bound reaches the cut, and negate the last decision."""
        if not self._diving or (self.lower < self.cut and not self._empty):
            raise Rejected("a node is closed whose bound does not reach the cut")
        self.leaves += 1
        if not self._levels:
            self._back_to(0)
            self._diving = False
            return
        mark, (x, kind, a), _, path = self._levels.pop()
        self._back_to(mark)
        self._path = (path, (x, NEGATED[kind], a))
        self._restrict(x, NEGATED[kind], a)

    def leave(self, leaf_first: Numbers) -> None:
        """End a dive: the node and the negation of each decision become open nodes."""
        if not self._diving:
            raise Rejected("there is no dive to leave")
        leaf = (max(self.lower, self._node_bound), self._path)
        sides: list[tuple[int, Path]] = [
            (max(lower, self._node_bound), (path, (x, NEGATED[kind], a)))
            for _, (x, kind, a), lower, path in self._levels
        ]
        for bound, path in [leaf, *sides] if one_of(leaf_first) else [*sides, leaf]:
            self._opened += 1
            if bound < self.cut:
                self._open[self._opened] = (bound, path)
        self._levels = []
        self._back_to(0)
        self._diving = False
