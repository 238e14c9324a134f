"""The costs and labels at a node of a search, and the steps that change them.

Invariant in every search node: a labelling with a removed label costs at least `cut`; any other
labelling costs at least `lower` plus the sum of its reduced costs, which are nonnegative.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from softmap.verification.integers import FORBIDDEN, HALF, along
from softmap.verification.limit import CALL, ITEM, Held, Limits
from softmap.verification.records import Ints, Numbers, Rejected
from softmap.verification.sides import Factor, Minima, Side

MOST_COMBINED = 3  # factors: sums of their entries, at most FORBIDDEN + 64 moved costs, fit int64
TOO_EARLY = "a label is removed whose costs do not reach the cut"

Decision = tuple[int, int, int]  # variable, kind, label


@dataclass
class Mark:
    """The state of a node before a decision, as far as it changed since then.

    Attributes
    ----------
    lower : int
        The lower bound.
    empty : bool
        Whether a variable has no label.
    factors, words : int
        The number of factors and of words.
    kept, counted : int
        Bytes of the state, about, and those of them that count for the limit of memory.
    """

    lower: int
    empty: bool
    factors: int
    words: int
    lists: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    sets: dict[int, tuple[set[int], set[int]]] = field(default_factory=dict)
    replaced: list[Factor] = field(default_factory=list)
    kept: int = 1 << 10
    counted: int = 0

    def keep_costs(self, values: list[int]) -> None:
        """Copy a list before it is changed."""
        if id(values) not in self.lists:
            self.lists[id(values)] = values, values[:]
            self.kept += 256 + 8 * len(values)

    def keep_labels(self, values: set[int]) -> None:
        """Copy a set before labels are removed from it."""
        if id(values) not in self.sets:
            self.sets[id(values)] = values, values.copy()
            self.kept += 512 + 64 * len(values)

    def restore(self) -> None:
        """Undo all changes of lists, sets and factors."""
        for costs, before in self.lists.values():
            costs[:] = before
        for labels, all_labels in self.sets.values():
            labels |= all_labels
        for factor in self.replaced:
            factor.active = True


class NodeCosts:
    """The costs and labels at the current node of a search, with marks to return to.

    Parameters
    ----------
    unary : list of lists
        The costs of each variable's labels.
    factors : list of (scope, table)
        Scopes are in the numbers of this component.
    effort : Limits, optional
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
        effort: Limits | None = None,
    ) -> None:
        self._effort = effort or Limits()
        self._held = Held(self._effort)
        self._cost = unary
        self._labels = [(x, a) for x, costs in enumerate(unary) for a in range(len(costs))]
        self._live = [set(range(len(costs))) for costs in unary]
        self._empty = False  # whether a variable has no label
        self._factors: list[Factor] = []
        self._sides: list[Side] = []  # of each word
        self.lower, self.upper = 0, HALF
        self._minima: dict[int, Minima] = {}  # by lengths of rows
        self._held.keep(sum(bytes_of(table) for _, table in factors))
        for scope, table in factors:
            self._add(Factor(scope, table))
            if len(scope) == 2:
                for side, size in zip(self._factors[-1].sides, table.shape[::-1], strict=True):
                    side.batch(self._minima.setdefault(size, Minima(size)))
        self._marks = [self._mark()]  # the first one is of the root and is not returned to

    def release(self) -> None:
        """Free the memory of the search, which has ended."""
        self._held.release()

    def _add(self, factor: Factor) -> None:
        self._factors.append(factor)
        for axis, x in enumerate(factor.scope):
            side = Side(factor, axis, len(self._sides), self._cost[x], self._live[x])
            factor.sides.append(side)
            self._sides += [side] * len(side.moved)
        for side in factor.sides:
            side.others = [other for other in factor.sides if other is not side]

    def _mark(self) -> Mark:
        return Mark(self.lower, self._empty, len(self._factors), len(self._sides))

    def _descend(self) -> None:
        """Mark the current state, to which `_return` returns."""
        self._count_kept()
        self._marks.append(self._mark())

    def _count_kept(self) -> None:
        """Count what the last mark keeps, as far as it was not counted."""
        last = self._marks[-1]
        self._held.keep(last.kept - last.counted)
        last.counted = last.kept

    def _return(self) -> None:
        """Return to the last mark."""
        last = self._marks.pop()
        self._held.keep(-last.counted)
        last.restore()
        self.lower, self._empty = last.lower, last.empty
        del self._factors[last.factors :], self._sides[last.words :]

    def compute_minima(self) -> None:
        """Raise `Rejected` if a minimum that is still to be computed does not reach its limit."""
        for minima in self._minima.values():
            minima.compute()

    # --- costs and labels -------------------------------------------------------------------------

    def step(
        self, words: Numbers, amounts: Numbers, variables: Numbers, falls: Numbers, out: Numbers
    ) -> None:
        """Move costs from factors to labels and from variables to `lower`; then remove labels."""
        if words and not 0 <= min(words) <= max(words) < len(self._sides):
            raise Rejected("there is no label of a factor with such a number")
        moved = self._move(words, amounts)
        self._effort.work(sum([side.work(len(raised)) for side, raised, _ in moved]))
        for x, fall in zip(variables, falls, strict=True):
            if x < 0 or fall < 0:
                raise Rejected("the bound is lowered, or no variable raises it")
            costs = self._cost[x]
            self._effort.work(2 * ITEM * len(costs))
            self._marks[-1].keep_costs(costs)
            costs[:] = [cost - fall for cost in costs]
            self.lower += fall
        for side, raised, lowered in moved:
            _check_costs(side, raised, lowered)
        for x in variables:
            costs = self._cost[x]
            if min([costs[a] for a in self._live[x]], default=0) < 0:
                raise Rejected("more is moved to the bound than a label costs")
        if out:
            self._remove_all(out)

    def _move(self, words: Numbers, amounts: Numbers) -> list[tuple[Side, list[int], list[int]]]:
        """Move costs to labels; return the labels that gained costs and those that lost some."""
        sides, mark, found, last = self._sides, self._marks[-1], [], None
        for word, amount in zip(words, amounts, strict=True):
            side = sides[word]
            if side is not last:
                if not side.factor.active:
                    raise Rejected("costs are moved from a factor that was removed")
                last, first, moved, costs = side, side.first, side.moved, side.costs
                mark.keep_costs(moved)
                mark.keep_costs(costs)
                raised: list[int] = []
                lowered: list[int] = []
                found.append((side, raised, lowered))
            a = word - first
            moved[a] += amount
            costs[a] += amount
            if amount > 0:
                raised.append(a)
            else:
                lowered.append(a)
        return found

    def _remove_all(self, out: Numbers) -> None:
        """Remove labels one by one; reject one whose costs do not reach the cut.

        A reason below 0 names the label, whose unary cost suffices. Another one is the word of a
        label; the smallest sum of the factor and the unary costs of its other labels is added.
        This sum does not change while labels of the same variable are removed.
        """
        room = self.upper - self.lower
        for side, reasons in groupby(out, self._side_of):
            if side is None:
                for x, a in [self._labels[-1 - reason] for reason in reasons]:
                    if self._cost[x][a] < room:
                        raise Rejected(TOO_EARLY)
                    self._remove(x, (a,))
                continue
            labels = [reason - side.first for reason in reasons]
            moved, costs = side.moved, side.costs
            self._effort.work(side.work(len(labels)))
            side.require(labels, [room + moved[a] - costs[a] for a in labels], 1, TOO_EARLY)
            self._remove(side.x, labels)

    def _side_of(self, reason: int) -> Side | None:
        """The side of a word that is a reason; None if the reason names a label."""
        if reason < 0:
            return None
        if reason >= len(self._sides):
            raise Rejected("there is no label of a factor with such a number")
        side = self._sides[reason]
        if not side.factor.active:
            raise Rejected("a factor that was removed is a reason")
        return side

    def _remove(self, x: int, labels: Iterable[int]) -> None:
        """Remove labels of a variable, as far as they are present."""
        live = self._live[x]
        self._effort.work(ITEM * (20 + 2 * len(live)))
        self._marks[-1].keep_labels(live)
        live.difference_update(labels)
        self._empty = self._empty or not live

    def _restrict(self, decision: Decision) -> None:
        """Remove the labels that a decision excludes: kind 0 is =, 1 is ≠, 2 is ≤, 3 is >."""
        x, kind, a = decision
        out = kind % 2 == 1
        self._remove(x, [b for b in self._live[x] if (b == a if kind < 2 else b <= a) == out])

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
        self._add(Factor(list(scope), table))
        self._marks[-1].kept += bytes_of(table)
        self._count_kept()
        self._marks[-1].replaced += factors
        for factor in factors:
            factor.active = False
        for x in own:
            self._marks[-1].keep_costs(self._cost[x])
            self._cost[x][:] = [0] * len(self._cost[x])

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
        self._effort.work(32 * CALL + sum(factor.table.size for factor in factors))
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


def bytes_of(table: Ints) -> int:
    """Bytes of a factor: its table, and its rows for each axis as arrays and lists."""
    return (8 + 48 * table.ndim) * table.size + 128 * sum(table.shape) + (1 << 11)


def _check_costs(side: Side, raised: list[int], lowered: list[int]) -> None:
    """Reject negative costs of labels that are present, after costs of a factor were moved."""
    moved, costs, live = side.moved, side.costs, side.live
    for a in lowered:
        if costs[a] < 0 and a in live:
            raise Rejected("more is moved from a label than it costs")
    raised = [a for a in raised if a in live]
    if raised:
        limits = [moved[a] for a in raised]
        side.require(raised, limits, 0, "more is moved from a factor than it costs")
