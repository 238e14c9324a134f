"""Checks the branch-and-bound search of one component by repeating its steps.

Invariant in every search node: a labelling with a removed label costs at least `cut`; any other
labelling costs at least `lower` plus the sum of its reduced costs, which are nonnegative. A node
can therefore be closed if `lower` reaches the cut, or if a variable has no labels left. All numbers
are Python integers, which cannot overflow, in lists: short lists are faster than arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from softmap.verification.integers import FORBIDDEN, HALF, along
from softmap.verification.limit import TableLimit
from softmap.verification.records import Ints, Numbers, Rejected

LARGEST_COST = 1 << 54  # moved from a factor to one label
MOST_COMBINED = 3  # factors: sums of their entries, at most FORBIDDEN + 64 moved costs, fit int64

Decision = tuple[int, int, int]  # variable, kind, label
Side = tuple[list[int], list[int], set[int]]  # moved costs, unary costs and labels of an axis
Word = tuple["Factor", int, int, list[int], list[int], set[int]]  # factor, axis, label, its side
Path = tuple[Any, Decision] | None  # the parent's path and the last decision


class Factor:
    """A table over some variables, and the costs moved from it to the labels of each variable.

    The reduced cost of labels a, b of two variables is table[a, b] - moved[0][a] - moved[1][b].
    """

    __slots__ = ("active", "moved", "rows", "scope", "sides", "table")

    def __init__(self, scope: list[int], table: Ints) -> None:
        self.scope, self.table, self.active = scope, table, True
        self.moved = [[0] * size for size in table.shape]
        self.rows: list[list[list[int]]] = [[] for _ in scope]  # empty until `load`
        self.sides: list[Side] = []  # lists and sets of `NodeCosts`: they need no look-up

    def load(self, axis: int) -> list[list[int]]:
        """Return, and keep, the entries of each label on one axis, flattened in row-major order."""
        flat = np.moveaxis(self.table, axis, 0).reshape(self.table.shape[axis], -1)
        self.rows[axis] = flat.tolist()
        return self.rows[axis]

    def reduced(self, labels: dict[int, int | slice]) -> Ints:
        """The reduced costs of the labels chosen; those of labels removed before are arbitrary."""
        table = self.table[tuple([labels[v] for v in self.scope])]
        axis = 0
        for v, moved in zip(self.scope, self.moved, strict=True):
            chosen = labels[v]
            if max(moved) > LARGEST_COST or min(moved) < -LARGEST_COST:
                raise Rejected("costs are too large")
            if isinstance(chosen, int):
                table = table - moved[chosen]
            else:
                table = table - along(np.array(moved), axis, table.ndim) if any(moved) else table
                axis += 1
        return table


class NodeCosts:
    """The costs and labels at the current node of a search, with an undo stack for backtracking.

    Parameters
    ----------
    unary : list of lists
        The costs of each variable's labels.
    factors : list of (scope, table)
        Scopes are in the numbers of this component.
    effort : TableLimit, optional
        Limits the sizes of sums of factors.

    Attributes
    ----------
    lower : int
        The cost moved to the lower bound, in units.
    upper : int
        Labellings that cost this much or more are not searched for, in units: the cut.
    """

    def __init__(
        self,
        unary: list[list[int]],
        factors: list[tuple[list[int], Ints]],
        effort: TableLimit | None = None,
    ) -> None:
        self._effort = effort or TableLimit()
        self._cost = unary
        self._labels = [(x, a) for x, costs in enumerate(unary) for a in range(len(costs))]
        self._live = [set(range(len(costs))) for costs in unary]
        self._empty = 0  # number of variables without labels
        self._factors: list[Factor] = []
        self._words: list[Word] = []
        self.lower, self.upper = 0, HALF
        self._undo: list[Callable[[], None]] = []
        for scope, table in factors:
            self._add(Factor(scope, table))

    def _add(self, factor: Factor) -> None:
        self._factors.append(factor)
        for axis, (x, moved) in enumerate(zip(factor.scope, factor.moved, strict=True)):
            side = (moved, self._cost[x], self._live[x])
            factor.sides.append(side)
            self._words += [(factor, axis, a, *side) for a in range(len(moved))]

    def _back_to(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()

    # --- costs and labels -------------------------------------------------------------------------

    def step(
        self, words: Numbers, amounts: Numbers, variables: Numbers, falls: Numbers, out: Numbers
    ) -> None:
        """Move costs from factors to labels and from variables to `lower`; then remove labels."""
        moves = list(zip(self._found(words), amounts, strict=True))
        lowered = list(zip(variables, falls, strict=True))
        if any(x < 0 or amount < 0 for x, amount in lowered):
            raise Rejected("the bound is lowered, or no variable raises it")
        self._move(moves, lowered)
        self._undo.append(partial(self._move, moves, lowered, -1))
        self._check_costs(moves)
        for x in variables:
            if any(self._cost[x][a] < 0 for a in self._live[x]):
                raise Rejected("more is moved to the bound than a label costs")
        if out:
            self._check_removals(out)

    def _found(self, words: Numbers) -> list[Word]:
        """Return the labels of factors with these numbers."""
        if words and not 0 <= min(words) <= max(words) < len(self._words):
            raise Rejected("there is no label of a factor with such a number")
        known = self._words
        found = [known[w] for w in words]
        if not all(word[0].active for word in found):
            raise Rejected("costs are moved from a factor that was removed")
        return found

    def _move(
        self, moves: list[tuple[Word, int]], lowered: list[tuple[int, int]], sign: int = 1
    ) -> None:
        for (_, _, a, moved, costs, _), amount in moves:
            change = sign * amount
            moved[a] += change
            costs[a] += change
        for x, amount in lowered:
            self._cost[x][:] = [cost - sign * amount for cost in self._cost[x]]
            self.lower += sign * amount

    def _check_costs(self, moves: list[tuple[Word, int]]) -> None:
        """Reject negative costs of remaining labels where costs have been moved."""
        for (factor, axis, a, moved, costs, live), amount in moves:
            if a not in live:
                continue
            if amount < 0 and costs[a] < 0:
                raise Rejected("more is moved from a label than it costs")
            if amount > 0 and self._least(factor, axis, a, 0) < moved[a]:
                raise Rejected("more is moved from a factor than it costs")

    def _check_removals(self, out: Numbers) -> None:
        """Remove labels one by one; reject one whose costs do not reach the cut.

        A reason below 0 names the label, whose unary cost suffices. Another one is the word of a
        label; the smallest sum of the factor and the unary costs of its other labels is added.
        """
        room = self.upper - self.lower
        removed: list[tuple[int, int]] = []
        self._undo.append(partial(self._restore, removed))
        for reason in out:
            if reason < 0:
                x, a = self._labels[-1 - reason]
                least = self._cost[x][a]
            else:
                ((factor, axis, a, moved, costs, _),) = self._found((reason,))
                x = factor.scope[axis]
                least = self._least(factor, axis, a, 1) - moved[a] + costs[a]
            if least < room:
                raise Rejected("a label is removed whose costs do not reach the cut")
            self._remove(x, a, removed)

    def _least(self, factor: Factor, axis: int, a: int, own: int) -> int:
        """The smallest cost of a label in a factor with its other labels.

        Costs moved to the other labels are subtracted; their unary costs are added if `own` is 1.
        """
        row = (factor.rows[axis] or factor.load(axis))[a]
        if len(factor.scope) == 2:
            moved, costs, live = factor.sides[1 - axis]
            if own:
                return min([row[b] - moved[b] + costs[b] for b in live], default=FORBIDDEN)
            return min([row[b] - moved[b] for b in live], default=FORBIDDEN)
        places = [(0, 0)]  # places in the row and costs, for all labels so far
        for k, (moved, costs, live) in enumerate(factor.sides):
            if k != axis:
                near, size = [(b, own * costs[b] - moved[b]) for b in live], len(moved)
                places = [(at * size + b, c + d) for at, c in places for b, d in near]
        return min([row[at] + cost for at, cost in places], default=FORBIDDEN)

    def _remove(self, x: int, a: int, removed: list[tuple[int, int]]) -> None:
        if a in self._live[x]:
            self._live[x].remove(a)
            self._empty += not self._live[x]
            removed.append((x, a))

    def _restore(self, removed: Iterable[tuple[int, int]]) -> None:
        for x, a in removed:
            self._empty -= not self._live[x]
            self._live[x].add(a)

    def _restrict(self, decision: Decision) -> None:
        """Remove the labels that a decision excludes: kind 0 is =, 1 is ≠, 2 is ≤, 3 is >."""
        x, kind, a = decision
        removed: list[tuple[int, int]] = []
        for b in list(self._live[x]):
            if (b == a if kind < 2 else b <= a) == (kind % 2 == 1):
                self._remove(x, b, removed)
        self._undo.append(partial(self._restore, removed))

    # --- factors ----------------------------------------------------------------------------------

    def combine(self, own: Numbers, members: Numbers, scope: Numbers) -> None:
        """Replace factors, and the unary costs of at most one variable, by one over two variables.

        The new table is the minimum of their sum over the remaining labels of all other variables,
        a lower bound. Its entries are nonnegative, as those of the factors are.
        """
        if not 1 <= len(set(members)) == len(members) <= MOST_COMBINED or min(members) < 0:
            raise Rejected(f"expected 1 to {MOST_COMBINED} different factors to combine")
        factors = [self._factors[f] for f in members]
        if not all(factor.active for factor in factors):
            raise Rejected("a factor to combine was removed")
        known = {v for factor in factors for v in factor.scope}
        if len(scope) != 2 or len(own) > 1 or len(known & {*scope, *own}) != 2 + len(own):
            raise Rejected("expected factors to be combined into one over two of their variables")
        table = self._least_sum(own, factors, scope)
        words, before = len(self._words), [(x, self._cost[x][:]) for x in own]
        self._add(Factor(list(scope), table))
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

    def _least_sum(self, own: Numbers, factors: list[Factor], scope: Numbers) -> Ints:
        """Minimise a sum over all variables but two; entries of removed labels are arbitrary."""
        rest = {v for factor in factors for v in factor.scope} - {*scope, *own}
        variables = [*scope, *own, *rest]
        labels: dict[int, int | slice] = dict.fromkeys(variables, slice(None))
        for x in variables[2:]:
            if len(self._live[x]) == 1:
                (labels[x],) = self._live[x]
        kept = [x for x in variables if isinstance(labels[x], slice)]
        sizes = [len(self._cost[x]) for x in kept]
        self._effort.spend(sizes, len(factors) + len(own))
        total: Ints = np.zeros(sizes, np.int64)
        for factor in factors:
            at = [kept.index(v) for v in factor.scope if v in kept]
            order = sorted(range(len(at)), key=at.__getitem__)
            shape = [size if k in at else 1 for k, size in enumerate(sizes)]
            total = total + factor.reduced(labels).transpose(order).reshape(shape)
        for x in own:
            costs = np.full(len(self._cost[x]), FORBIDDEN)
            for a in self._live[x]:
                costs[a] = min(self._cost[x][a], FORBIDDEN)
            total = total + (along(costs, 2, len(kept)) if x in kept else costs.min())
        for k, x in enumerate(kept[2:], 2):
            total = total.take(list(self._live[x]), axis=k)
        if len(kept) > 2:
            total = total.min(axis=tuple(range(2, len(kept))), initial=FORBIDDEN)
        return np.where(total >= HALF, FORBIDDEN, total)


@dataclass
class _Dive:
    """A dive from an open node: its bound, the decisions so far, and those that may be negated.

    A level has the length of the undo stack before its decision, the decision, `lower`, and the
    path before it.
    """

    bound: int
    path: Path
    levels: list[tuple[int, Decision, int, Path]] = field(default_factory=list)


class Tree(NodeCosts):
    """The open nodes of one branch-and-bound search, and the dive from one of them."""

    STEPS = frozenset({"cut", "dive", "branch", "close", "leave", "step", "combine"})

    def __init__(
        self,
        unary: list[list[int]],
        factors: list[tuple[list[int], Ints]],
        effort: TableLimit | None = None,
    ) -> None:
        super().__init__(unary, factors, effort)
        self._opened = 0  # number of nodes opened
        self._dive: _Dive | None = None
        self._open: dict[int, tuple[int, Path]] = {0: (0, None)}

    def bound(self) -> int:
        """Lower bound on all labellings of the component, proved by the search so far."""
        if self._dive is not None:
            raise Rejected("the search ends before its last dive does")
        least = [max(bound, self.lower) for bound, _ in self._open.values()]
        return max(0, min([self.upper, *([] if self._empty else least)]))  # no cost is negative

    def cut(self, which: Numbers) -> None:
        """Lower the cut: from now on, only labellings below it are searched for."""
        (cut,) = which
        if abs(cut) > HALF:
            raise Rejected("the cut is too large")
        self.upper = min(self.upper, cut)

    def dive(self, which: Numbers) -> None:
        """Select an open node and apply its decisions, in any order: each removes labels."""
        (number,) = which
        if self._dive is not None or number not in self._open:
            raise Rejected(f"node {number} is not open")
        bound, path = self._open.pop(number)
        self._dive, self._undo = _Dive(bound, path), []
        while path is not None:
            path, decision = path
            self._restrict(decision)

    def branch(self, decision: Numbers) -> None:
        """Branch: apply a decision; its negation is explored after the node is closed."""
        x, kind, a = decision
        dive = self._dive
        if dive is None or not 0 <= kind < 4 or not 0 <= x < len(self._cost):
            raise Rejected("a decision is made outside of a dive, or about no variable")
        dive.levels.append((len(self._undo), (x, kind, a), self.lower, dive.path))
        dive.path = (dive.path, (x, kind, a))
        self._restrict((x, kind, a))

    def close(self) -> None:
        """Close a node whose bound reaches the cut, and negate the last decision."""
        dive = self._dive
        if dive is None or (self.lower < self.upper and not self._empty):
            raise Rejected("a node is closed whose bound does not reach the cut")
        if not dive.levels:
            self._back_to(0)
            self._dive = None
            return
        mark, decision, _, path = dive.levels.pop()
        self._back_to(mark)
        dive.path = other = _negated(path, decision)
        self._restrict(other[1])

    def leave(self) -> None:
        """End a dive: the negation of each decision and the current node become open nodes."""
        dive = self._dive
        if dive is None:
            raise Rejected("there is no dive to leave")
        nodes = [(lower, _negated(path, one)) for _, one, lower, path in dive.levels]
        for lower, path in [*nodes, (self.lower, dive.path)]:
            self._opened += 1
            if (bound := max(lower, dive.bound)) < self.upper:
                self._open[self._opened] = bound, path
        self._back_to(0)
        self._dive = None


def _negated(path: Path, decision: Decision) -> tuple[Path, Decision]:
    """The path to the other child of a node."""
    x, kind, a = decision
    return path, (x, kind ^ 1, a)
