"""Checks the branch-and-bound search of one component by repeating its steps.

Invariant in every search node: a labelling with a removed label costs at least `cut`; any other
labelling costs at least `lower` plus the sum of its reduced costs, which are nonnegative. A node
can therefore be closed if `lower` reaches the cut, or if a variable has no labels left. All numbers
are Python integers, which cannot overflow, in lists: short lists are faster than arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from softmap.verification.integers import FORBIDDEN, HALF, along
from softmap.verification.records import Ints, Numbers, Rejected

__all__ = ["Tree"]

LARGEST_TABLE = 1 << 24  # entries of the sum of factors in `Tree.combine`
LARGEST_COST = 1 << 57
LARGEST_SCOPE = 24
MOST_COMBINED = 4

Decision = tuple[int, int, int]  # variable, kind, label
Move = tuple["Factor", int, int, int]  # factor, axis, label and amount
Path = tuple[Any, Decision] | None  # the parent's path and the last decision


class Factor:
    """A table over some variables, and the costs moved from it to the labels of each variable.

    The reduced cost of labels a, b of two variables is table[a, b] - moved[0][a] - moved[1][b].
    """

    __slots__ = ("_rows", "active", "moved", "scope", "table")

    def __init__(self, scope: list[int], table: Ints) -> None:
        self.scope, self.table, self.active = scope, table, True
        self.moved = [[0] * size for size in table.shape]
        self._rows: dict[tuple[int, int], list[int]] = {}

    def row(self, axis: int, a: int) -> list[int]:
        """The entries with label `a` on one axis, flattened in row-major order."""
        known = self._rows.get((axis, a))
        if known is None:
            known = self._rows[axis, a] = self.table.take(a, axis).ravel().tolist()
        return known

    def reduced(self) -> Ints:
        """The reduced costs as an array, from -FORBIDDEN to FORBIDDEN."""
        table, moved = self.table, np.array(sum(self.moved, []), np.int64)
        if np.abs(moved).max() > LARGEST_COST or table.ndim > LARGEST_SCOPE:
            raise Rejected("costs or factors are too large to check")  # sums have to fit int64
        for axis, end in enumerate(np.cumsum(table.shape).tolist()):
            table = table - along(moved[end - table.shape[axis] : end], axis, table.ndim)
        return np.clip(table, -FORBIDDEN, FORBIDDEN)


class Tree:
    """The nodes of one branch-and-bound search, with an undo stack for backtracking.

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
    upper : int
        Labellings that cost this much or more are not searched for, in units: the cut.
    """

    STEPS = frozenset({"cut", "dive", "branch", "close", "leave", "step", "combine"})

    def __init__(self, unary: list[list[int]], factors: list[tuple[list[int], Ints]]) -> None:
        self._cost = unary
        self._labels = [(x, a) for x, costs in enumerate(unary) for a in range(len(costs))]
        self._live = [set(range(len(costs))) for costs in unary]
        self._empty = 0  # number of variables without labels
        self._factors: list[Factor] = []
        self._words: list[tuple[Factor, int, int]] = []  # factor, axis and label
        self.lower, self.upper = 0, HALF
        self._near_of: tuple[Factor, int] | None = None  # factor and axis of `_near`
        self._near: list[tuple[int, int]] = []
        self._undo: list[Callable[[], None]] = []
        self._levels: list[tuple[int, Decision, int, Path]] = []
        self._path: Path = None
        self._diving, self._node_bound = False, 0
        self._open: dict[int, tuple[int, Path]] = {0: (0, None)}
        self._opened = 0
        for scope, table in factors:
            self._add(Factor(scope, table))

    def bound(self) -> int:
        """Lower bound on all labellings of the component, proved by the search so far."""
        if self._diving:
            raise Rejected("the search ends within a dive")
        least = [max(bound, self.lower) for bound, _ in self._open.values()]
        return max(0, min([self.upper, *([] if self._empty else least)]))  # no cost is negative

    def _add(self, factor: Factor) -> None:
        self._factors.append(factor)
        for axis, size in enumerate(factor.table.shape):
            self._words += [(factor, axis, a) for a in range(size)]

    def _back_to(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()

    # --- costs and labels -------------------------------------------------------------------------

    def step(
        self, words: Numbers, amounts: Numbers, variables: Numbers, falls: Numbers, out: Numbers
    ) -> None:
        """Move costs from factors to labels and from variables to `lower`; then remove labels."""
        moves = [(*self._word(w), d) for w, d in zip(words, amounts, strict=True)]
        lowered = list(zip(variables, falls, strict=True))
        if any(x < 0 or amount < 0 for x, amount in lowered):
            raise Rejected("the bound falls, or by no variable")
        if moves or lowered:
            self._move(moves, lowered, 1)
            self._undo.append(partial(self._move, moves, lowered, -1))
            self._check_costs(moves)
            for x in variables:
                if any(self._cost[x][a] < 0 for a in self._live[x]):
                    raise Rejected("more is moved to the bound than a label costs")
        if out:
            self._check_removals(out)

    def _word(self, w: int) -> tuple[Factor, int, int]:
        if not 0 <= w < len(self._words):
            raise Rejected(f"there is no label {w} in a factor")
        found = self._words[w]
        if not found[0].active:
            raise Rejected("costs of a factor that is gone")
        return found

    def _move(self, moves: list[Move], lowered: list[tuple[int, int]], sign: int) -> None:
        for factor, axis, a, amount in moves:
            factor.moved[axis][a] += sign * amount
            self._cost[factor.scope[axis]][a] += sign * amount
        for x, amount in lowered:
            self._cost[x][:] = [cost - sign * amount for cost in self._cost[x]]
            self.lower += sign * amount

    def _check_costs(self, moves: list[Move]) -> None:
        """Reject negative costs of remaining labels where costs have been moved."""
        self._near_of = None
        for factor, axis, a, amount in moves:
            x = factor.scope[axis]
            if a not in self._live[x]:
                continue
            if amount < 0 and self._cost[x][a] < 0:
                raise Rejected("more is moved from a label than it costs")
            if amount > 0 and self._least(factor, axis, a, 0) < 0:
                raise Rejected("more is moved from a factor than it costs")

    def _check_removals(self, out: Numbers) -> None:
        """Remove labels one by one; reject one whose costs do not reach the cut.

        A reason below 0 names the label, whose unary cost suffices. Another one is the word of a
        label; the smallest sum of the factor and the unary costs of its other labels is added.
        """
        room, removed = self.upper - self.lower, []
        self._undo.append(partial(self._restore, removed))
        self._near_of, last = None, -1
        for reason in out:
            if reason < 0:
                x, a = self._labels[-1 - reason]
                least = self._cost[x][a]
            else:
                factor, axis, a = self._word(reason)
                x = factor.scope[axis]
                if x != last:  # a label of another variable was removed
                    self._near_of = None
                least = self._least(factor, axis, a, 1) + self._cost[x][a]
            if least < room:
                raise Rejected("a label goes whose costs do not reach the cut")
            self._remove(x, a, removed)
            last = x

    def _least(self, factor: Factor, axis: int, a: int, own: int) -> int:
        """The smallest reduced cost of a label in a factor, plus `own` times unary costs.

        `own`, 0 or 1, refers to the labels on the other axes.
        """
        if self._near_of != (factor, axis):
            self._near_of, self._near = (factor, axis), self._others(factor, axis, own)
        row = factor.row(axis, a)
        least = min([row[at] + cost for at, cost in self._near], default=FORBIDDEN)
        return least - factor.moved[axis][a]

    def _others(self, factor: Factor, axis: int, own: int) -> list[tuple[int, int]]:
        """For all remaining labels on the other axes, their place in a row and their costs."""
        places = [(0, 0)]
        for k, moved in enumerate(factor.moved):
            if k != axis:
                x, size = factor.scope[k], len(moved)
                costs = self._cost[x]
                near = [(b, own * costs[b] - moved[b]) for b in self._live[x]]
                places = [(at * size + b, c + d) for at, c in places for b, d in near]
        return places

    def _remove(self, x: int, a: int, removed: list[tuple[int, int]]) -> None:
        if a in self._live[x]:
            self._live[x].remove(a)
            self._empty += not self._live[x]
            removed.append((x, a))

    def _restore(self, removed: Iterable[tuple[int, int]]) -> None:
        for x, a in removed:
            self._empty -= not self._live[x]
            self._live[x].add(a)

    # --- factors ----------------------------------------------------------------------------------

    def combine(self, own: Numbers, members: Numbers, scope: Numbers) -> None:
        """Replace factors, and the unary costs of at most one variable, by one over two variables.

        The new table is the minimum of their sum over the remaining labels of all other variables,
        a lower bound. Its entries are nonnegative, as those of the factors are.
        """
        if not 1 <= len(set(members)) == len(members) <= MOST_COMBINED or min(members) < 0:
            raise Rejected("so many factors are not combined")
        factors = [self._factors[f] for f in members]
        others = {v for factor in factors for v in factor.scope} - set(scope)
        if not all(factor.active for factor in factors) or len(own) > 1 or not set(own) <= others:
            raise Rejected("factors or costs are combined that are gone")
        first, second = scope
        if first == second or not {first, second} <= {v for f in factors for v in f.scope}:
            raise Rejected("the scope of combined factors is none")
        table = self._least_sum(own, factors, [first, second, *others])
        words, before = len(self._words), [(x, self._cost[x][:]) for x in own]
        self._add(Factor([first, second], table))
        for factor in factors:
            factor.active = False
        for x in own:
            self._cost[x][:] = [0] * len(self._cost[x])

        def undo() -> None:
            self._factors.pop()
            del self._words[words:]
            for factor in factors:
                factor.active = True
            for x, costs in before:
                self._cost[x][:] = costs

        self._undo.append(undo)

    def _least_sum(self, own: Numbers, factors: list[Factor], variables: list[int]) -> Ints:
        """Minimise a sum over all variables but the first two; entries of removed labels vary."""
        sizes = [len(self._cost[v]) for v in variables]
        if math.prod(sizes) > LARGEST_TABLE:
            raise Rejected("combined factors are too large to check")
        total: Ints = np.zeros(sizes, np.int64)
        for factor in factors:
            at = [variables.index(v) for v in factor.scope]
            order = sorted(range(len(at)), key=at.__getitem__)
            shape = [size if k in at else 1 for k, size in enumerate(sizes)]
            total = np.minimum(total + factor.reduced().transpose(order).reshape(shape), FORBIDDEN)
        for k, x in enumerate(variables[2:], 2):
            live, costs = np.zeros((2, sizes[k]), np.int64)
            for b in self._live[x]:
                live[b], costs[b] = 1, min(self._cost[x][b], FORBIDDEN) if x in own else 0
            total = np.minimum(total + along(costs, k, len(sizes)), FORBIDDEN)
            total = np.where(along(live, k, len(sizes)), total, FORBIDDEN)
        least = total.min(axis=tuple(range(2, len(sizes))))
        return np.where(least >= HALF, FORBIDDEN, least)

    # --- nodes ------------------------------------------------------------------------------------

    def cut(self, which: Numbers) -> None:
        """Lower the cut: from now on, only labellings below it are searched for."""
        (cut,) = which
        if abs(cut) > HALF:
            raise Rejected("the cut is too large")
        self.upper = min(self.upper, cut)

    def dive(self, which: Numbers) -> None:
        """Select an open node and apply its decisions, from the root on."""
        (number,) = which
        if self._diving or number not in self._open:
            raise Rejected(f"node {number} is not open")
        self._node_bound, self._path = self._open.pop(number)
        self._diving, self._undo = True, []
        path, decisions = self._path, []
        while path is not None:
            path, decision = path
            decisions.append(decision)
        for decision in reversed(decisions):
            self._restrict(decision)

    def branch(self, decision: Numbers) -> None:
        """Branch: apply a decision; its negation is explored after the node is closed."""
        x, kind, a = decision
        if not self._diving or not 0 <= kind < 4 or not 0 <= x < len(self._cost):
            raise Rejected("a decision outside of a dive, or about nothing")
        self._levels.append((len(self._undo), (x, kind, a), self.lower, self._path))
        self._path = (self._path, (x, kind, a))
        self._restrict((x, kind, a))

    def _restrict(self, decision: Decision) -> None:
        """Remove the labels that a decision excludes: kind 0 is =, 1 is ≠, 2 is ≤, 3 is >."""
        x, kind, a = decision
        removed: list[tuple[int, int]] = []
        for b in list(self._live[x]):
            if (b == a if kind < 2 else b <= a) == (kind % 2 == 1):
                self._remove(x, b, removed)
        self._undo.append(partial(self._restore, removed))

    def close(self) -> None:
        """Close a node whose bound reaches the cut, and negate the last decision."""
        if not self._diving or (self.lower < self.upper and not self._empty):
            raise Rejected("a node is closed whose bound does not reach the cut")
        if not self._levels:
            self._back_to(0)
            self._diving = False
            return
        mark, decision, _, path = self._levels.pop()
        self._back_to(mark)
        self._path = (path, _negated(decision))
        self._restrict(_negated(decision))

    def leave(self) -> None:
        """End a dive: the negation of each decision and the current node become open nodes."""
        if not self._diving:
            raise Rejected("there is no dive to leave")
        nodes: list[tuple[int, Path]] = [
            (lower, (path, _negated(decision))) for _, decision, lower, path in self._levels
        ]
        for lower, path in [*nodes, (self.lower, self._path)]:
            self._opened += 1
            if max(lower, self._node_bound) < self.upper:
                self._open[self._opened] = (max(lower, self._node_bound), path)
        self._levels = []
        self._back_to(0)
        self._diving = False


def _negated(decision: Decision) -> Decision:
    x, kind, a = decision
    return x, kind ^ 1, a
