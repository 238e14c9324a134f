"""A search over one component, repeated: costs moved, labels removed, decisions refuted.

One thing is kept true in every node: a labelling of the node that lies outside the labels left
costs at least `cut`, and any other at least the sum of what is left of the tables, all of which
are 0 or more, and `lower`. So a node is closed where `lower` reaches the cut, or a variable has no
label left. A factor's cost of labels a, b is table[a, b] - moved[a] - moved[b], where `moved` has a
word for each label of each of its variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from softmap.verification.integers import FORBIDDEN, HALF, along, each
from softmap.verification.records import Ints, Rejected

__all__ = ["Tree"]

LARGEST_MOVE = 1 << 57
LARGEST_TABLE = 1 << 24  # entries of a factor that replaces others
MOST_COMBINED = 4
EQUAL, DIFFERENT, AT_MOST, ABOVE = range(4)
NEGATED = {EQUAL: DIFFERENT, DIFFERENT: EQUAL, AT_MOST: ABOVE, ABOVE: AT_MOST}

Decision = tuple[int, int, int]  # variable, kind, label
Path = tuple[Any, Decision] | None  # the path before, and one more decision


def _ragged(start: Ints, step: Ints, count: Ints) -> tuple[Ints, Ints]:
    """start[k] + step[k] · (0, …, count[k] - 1) for all k, one after the other; where each begins."""
    first = np.cumsum(count) - count
    inside = np.arange(int(count.sum())) - np.repeat(first, count)
    return np.repeat(start, count) + np.repeat(step, count) * inside, first


class Words:
    """Columns that grow and shrink together: one row for each label of each factor's variables."""

    NAMES = ("moved", "state", "factor", "entry", "step", "count", "other")

    def __init__(self) -> None:
        self.size = 0
        self.columns = {name: np.zeros(1024, np.int64) for name in self.NAMES}

    def __getitem__(self, name: str) -> Ints:
        return self.columns[name]

    def add(self, **rows: Ints) -> None:
        """More rows, with nothing moved."""
        size = self.size + len(rows["state"])
        if size > len(self.columns["state"]):
            for name, old in self.columns.items():
                self.columns[name] = np.zeros(2 * size, np.int64)
                self.columns[name][: self.size] = old[: self.size]
        own = slice(self.size, size)
        self.columns["moved"][own] = 0
        for name, values in rows.items():
            self.columns[name][own] = values
        self.size = size


class Tree:
    """The nodes of one search.

    Parameters
    ----------
    unary : list of int arrays, the costs of each variable's labels
    factors : list of scopes, in the tree's own numbers, and tables

    Attributes
    ----------
    cut, lower : int
    leaves : int
        Nodes that were closed.
    """

    def __init__(self, unary: list[Ints], factors: list[tuple[list[int], Ints]]) -> None:
        self._labels = np.array([len(costs) for costs in unary], np.int64)
        self._begin = np.cumsum(self._labels) - self._labels
        self._unary = np.concatenate(unary)
        self._alive = np.ones(len(self._unary), dtype=bool)
        self._left = self._labels.copy()
        self._gone = np.zeros(len(unary), dtype=bool)  # variables that were minimised out
        self._empty = 0  # variables without labels
        self._words = Words()
        self._table = np.zeros(1024, np.int64)  # of all factors of two variables
        self._entries = 0
        self._larger: dict[int, Ints] = {}  # tables of the other factors
        self._scopes: list[list[int]] = []
        self._first: list[int] = []  # words of each factor
        self._active: list[bool] = []
        self._of: list[list[int]] = [[] for _ in unary]
        self.cut, self.lower, self.leaves = HALF, 0, 0
        for scope, table in factors:
            self._add_factor(scope, table)
        self._undo: list[Callable[[], None]] = []
        self._levels: list[tuple[int, Decision, int, Path]] = []
        self._path: Path = None
        self._diving = False
        self._node_bound = 0
        self._open: dict[int, tuple[int, Path]] = {0: (0, None)}
        self._opened = 0

    def bound(self) -> int:
        """What every labelling of the component costs at least, as far as the search has come."""
        if self._diving:
            raise Rejected("the search ends within a dive")
        if self._empty:
            return self.cut
        least = min((max(bound, self.lower) for bound, _ in self._open.values()), default=self.cut)
        return min(self.cut, least)

    # --- factors ----------------------------------------------------------------------------------

    def _add_factor(self, scope: list[int], table: Ints) -> None:
        number, words = len(self._scopes), self._words
        first = words.size
        self._scopes.append(scope)
        self._first.append(first)
        self._active.append(True)
        begin = first
        for v in scope:
            self._of[v].append(number)
            count = int(self._labels[v])
            own = np.arange(count)
            rows = {"state": self._begin[v] + own, "factor": np.full(count, number)}
            entry, step, others, other = own, own, own * 0, own
            if len(scope) == 2:
                across = table.shape[1] if v == scope[0] else 1
                entry = self._entries + own * across
                step = np.full(count, 1 if v == scope[0] else table.shape[1])
                others = np.full(count, table.shape[1] if v == scope[0] else table.shape[0])
                other = np.full(count, first + (table.shape[0] if v == scope[0] else 0))
            words.add(**rows, entry=entry, step=step, count=others, other=other)
            begin += count
        if len(scope) != 2:
            self._larger[number] = table
            return
        size = self._entries + table.size
        if size > len(self._table):
            old = self._table
            self._table = np.zeros(2 * size, np.int64)
            self._table[: self._entries] = old[: self._entries]
        self._table[self._entries : size] = table.ravel()
        self._entries = size

    def _drop_last_factor(self) -> None:
        scope = self._scopes.pop()
        for v in scope:
            self._of[v].pop()
        self._words.size = self._first.pop()
        self._active.pop()
        self._larger.pop(len(self._scopes), None)
        if len(scope) == 2:
            self._entries -= math.prod(int(self._labels[v]) for v in scope)

    def _reduced(self, f: int) -> Ints:
        """The costs of a factor, without what was moved."""
        scope, word = self._scopes[f], self._first[f]
        shape = [int(self._labels[v]) for v in scope]
        if len(scope) == 2:
            entry = int(self._words["entry"][word])
            table = self._table[entry : entry + math.prod(shape)].reshape(shape)
        else:
            table = self._larger[f]
        for axis, size in enumerate(shape):
            moved = self._words["moved"][word : word + size]
            table = table - along(moved, axis, len(shape))
            word += size
        return table

    def _left_of(self, v: int) -> Ints:
        begin = self._begin[v]
        return np.flatnonzero(self._alive[begin : begin + self._labels[v]])

    def _within(self, scope: list[int], table: Ints) -> Ints:
        """The entries of a table whose labels are left."""
        inside: Ints = table[np.ix_(*(self._left_of(v) for v in scope))]
        return inside

    # --- costs ------------------------------------------------------------------------------------

    def move(self, words: Ints, amounts: Ints, variables: Ints, lowered: Ints) -> None:
        """Costs from factors to labels, and from all labels of a variable to the bound."""
        self._check_order(words, self._words.size, amounts)
        self._check_order(variables, len(self._labels), lowered)
        if self._gone[variables].any():
            raise Rejected("costs are moved from a variable that is gone")
        factors = self._words["factor"][words]
        if not all(self._active[f] for f in set(factors.tolist())):
            raise Rejected("costs are moved from a factor that is gone")
        self._shift(words, amounts, variables, lowered)
        self._undo.append(lambda: self._shift(words, -amounts, variables, -lowered))
        states, _ = _ragged(self._begin[variables], np.ones_like(variables), self._labels[variables])
        states = np.concatenate([states, self._words["state"][words[amounts < 0]]])
        if (self._unary[states][self._alive[states]] < 0).any():
            raise Rejected("more is moved from a label than it costs")
        if (np.abs(self._words["moved"][words]) > LARGEST_MOVE * 2).any():
            raise Rejected("costs are too large")
        out = words[amounts > 0]
        costs, possible, _, _ = self._rows(out)
        if (costs[possible] < 0).any():
            raise Rejected("more is moved from a factor than it costs")
        for f in set(self._words["factor"][out[self._words["count"][out] == 0]].tolist()):
            if self._within(self._scopes[f], self._reduced(f)).min(initial=0) < 0:
                raise Rejected("more is moved from a factor than it costs")

    def _check_order(self, places: Ints, size: int, amounts: Ints) -> None:
        if len(places) != len(amounts):
            raise Rejected("there is not one amount for each place")
        if not len(places):
            return
        if places[0] < 0 or places[-1] >= size or (np.diff(places) <= 0).any():
            raise Rejected("places are not in order, or there are none such")
        if (np.abs(amounts) > LARGEST_MOVE).any():
            raise Rejected("costs are too large")

    def _shift(self, words: Ints, amounts: Ints, variables: Ints, lowered: Ints) -> None:
        states = self._words["state"][words]
        self._words["moved"][words] += amounts
        np.add.at(self._unary, states, amounts)
        if len(variables):
            count = self._labels[variables]
            all_states, _ = _ragged(self._begin[variables], np.ones_like(count), count)
            self._unary[all_states] -= np.repeat(lowered, count)
            self.lower += sum(lowered.tolist())
        if max(abs(self.lower), int(np.abs(self._unary[states]).max(initial=0))) > 2 * FORBIDDEN:
            raise Rejected("costs are too large")

    def _rows(self, words: Ints) -> tuple[Ints, Any, Ints, Ints]:
        """Costs of labels in factors of two variables, one for each label at the other end.

        Also which are possible, the states of the other ends, and where each label's costs begin.
        """
        column, count = self._words, self._words["count"][words]
        entries, first = _ragged(column["entry"][words], column["step"][words], count)
        others, _ = _ragged(column["other"][words], np.ones_like(words), count)
        costs = self._table[entries] - column["moved"][others]
        costs -= np.repeat(column["moved"][words], count)
        ends = column["state"][others]
        possible = self._alive[ends] & np.repeat(self._alive[column["state"][words]], count)
        return costs, possible, ends, first

    # --- labels -----------------------------------------------------------------------------------

    def remove(self, plain: Ints, reasons: Ints) -> None:
        """Labels go whose own cost reaches the cut, or with what a factor costs beside it."""
        room = self.cut - self.lower
        states = [self._state(x, a) for x, a in each(plain, 2, "a variable and its label")]
        if any(self._unary[s] < room for s in states):
            raise Rejected("a label goes whose cost does not reach the cut")
        if len(reasons):
            if reasons.min() < 0 or reasons.max() >= self._words.size:
                raise Rejected("there is no such label in a factor")
            if not all(self._active[f] for f in self._words["factor"][reasons].tolist()):
                raise Rejected("a label goes because of a factor that is gone")
            least = self._beside(reasons) + self._unary[self._words["state"][reasons]]
            if (least < room).any():
                raise Rejected("a label goes whose costs do not reach the cut")
            states += self._words["state"][reasons].tolist()
        self._take_out(states)

    def _state(self, x: int, a: int) -> int:
        if not 0 <= x < len(self._labels) or not 0 <= a < self._labels[x]:
            raise Rejected(f"there is no label {a} of variable {x}")
        if self._gone[x]:
            raise Rejected(f"variable {x} is gone")
        return int(self._begin[x]) + a

    def _beside(self, words: Ints) -> Ints:
        """The least cost of a label in a factor, with the other labels' own costs."""
        out = np.full(len(words), FORBIDDEN, np.int64)
        pairs = self._words["count"][words] > 0
        if pairs.any():
            costs, possible, ends, first = self._rows(words[pairs])
            costs = np.minimum(costs, FORBIDDEN) + self._unary[ends]
            costs = np.where(possible, costs, FORBIDDEN)
            out[pairs] = np.minimum.reduceat(costs, first)
        for k in np.flatnonzero(~pairs).tolist():
            f, state = int(self._words["factor"][words[k]]), int(self._words["state"][words[k]])
            scope = self._scopes[f]
            table = np.minimum(self._reduced(f), FORBIDDEN)
            variable = int(np.searchsorted(self._begin, state, "right")) - 1
            for axis, v in enumerate(scope):
                if v != variable:
                    begin = int(self._begin[v])
                    own = self._unary[begin : begin + int(self._labels[v])]
                    table = np.minimum(table + along(own, axis, len(scope)), FORBIDDEN)
            row = table.take(state - int(self._begin[variable]), scope.index(variable))
            rest = [v for v in scope if v != variable]
            out[k] = self._within(rest, row).min(initial=FORBIDDEN)
        return out

    def _take_out(self, states: list[int]) -> None:
        fresh = [s for s in dict.fromkeys(states) if self._alive[s]]
        variables = (np.searchsorted(self._begin, fresh, "right") - 1).tolist()
        self._alive[fresh] = False
        for v in variables:
            self._left[v] -= 1
            self._empty += not self._left[v]

        def undo() -> None:
            self._alive[fresh] = True
            for v in variables:
                self._empty -= not self._left[v]
                self._left[v] += 1

        self._undo.append(undo)

    # --- factors replaced -------------------------------------------------------------------------

    def combine(self, out: int, factors: list[int], scope: list[int]) -> None:
        """Factors become one over a scope; the variable `out`, unless it is -1, goes with them.

        The least of their sum over all other variables is no more than they cost. Other factors
        of a variable that goes cost 0 at least, and are left out.
        """
        known = len(self._scopes)
        if not 1 <= len(set(factors)) == len(factors) <= MOST_COMBINED:
            raise Rejected("so many factors are not combined")
        if not all(0 <= f < known and self._active[f] for f in factors):
            raise Rejected("a factor is combined that is gone")
        variables = sorted({v for f in factors for v in self._scopes[f]})
        if out != -1 and (out not in variables or self._gone[out] or out in scope):
            raise Rejected(f"variable {out} cannot go")
        if not 1 <= len(set(scope)) == len(scope) <= 2 or not set(scope) <= set(variables):
            raise Rejected("the scope of combined factors is none")
        table = self._least_sum(out, factors, scope, variables)
        gone = {*factors, *(f for f in (self._of[out] if out >= 0 else ()) if self._active[f])}
        for f in gone:
            self._active[f] = False
        if out >= 0:
            self._gone[out] = True
        if self._within(scope, table).min(initial=0) < 0:
            raise Rejected("combined factors cost less than 0")
        if len(scope) == 1:
            own = slice(int(self._begin[scope[0]]), int(self._begin[scope[0]]) + len(table))
            self._unary[own] += table
            if (np.abs(self._unary[own]) > 2 * FORBIDDEN).any():
                raise Rejected("costs are too large")
        else:
            self._add_factor(scope, table)

        def undo() -> None:
            if len(scope) == 1:
                self._unary[own] -= table
            else:
                self._drop_last_factor()
            for f in gone:
                self._active[f] = True
            if out >= 0:
                self._gone[out] = False

        self._undo.append(undo)

    def _least_sum(
        self, out: int, factors: list[int], scope: list[int], variables: list[int]
    ) -> Ints:
        """The sum of factors, and of the own costs of `out`, minimised over all but the scope."""
        labels = [
            np.arange(self._labels[v]) if v in scope else self._left_of(v) for v in variables
        ]
        if math.prod(map(len, labels)) > LARGEST_TABLE:
            raise Rejected("combined factors are too large to check")
        total = np.zeros([len(own) for own in labels], np.int64)
        for f in factors:
            own = self._scopes[f]
            order = sorted(range(len(own)), key=lambda k: own[k])
            table = np.minimum(self._reduced(f), FORBIDDEN).transpose(order)
            table = table[np.ix_(*(labels[variables.index(own[k])] for k in order))]
            total = total + table.reshape([len(a) if v in own else 1 for v, a in zip(variables, labels, strict=True)])
        if out >= 0:
            at = variables.index(out)
            costs = np.minimum(self._unary[self._begin[out] + labels[at]], FORBIDDEN)
            total = total + along(costs, at, len(variables))
        rest = tuple(k for k, v in enumerate(variables) if v not in scope)
        least = total.min(axis=rest, initial=4 * FORBIDDEN) if rest else total
        least = least if scope == sorted(scope) else least.T
        found: Ints = np.where(least >= HALF, FORBIDDEN, least)
        return found

    # --- nodes ------------------------------------------------------------------------------------

    def set_cut(self, cut: int) -> None:
        """From here on, labellings that cost so much are not looked for."""
        if abs(cut) > HALF:
            raise Rejected("the cut is too large")
        self.cut = min(self.cut, cut)

    def dive(self, number: int) -> None:
        """Take up an open node: its decisions, beginning from the root."""
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

    def branch(self, x: int, kind: int, a: int) -> None:
        """A decision, to be refuted or left open."""
        if not self._diving or kind not in NEGATED:
            raise Rejected("a decision outside of a dive, or of no kind")
        self._state(x, a)
        self._levels.append((len(self._undo), (x, kind, a), self.lower, self._path))
        self._path = (self._path, (x, kind, a))
        self._restrict(x, kind, a)

    def _restrict(self, x: int, kind: int, a: int) -> None:
        labels = np.arange(self._labels[x])
        out = {EQUAL: labels != a, DIFFERENT: labels == a, AT_MOST: labels > a, ABOVE: labels <= a}
        self._take_out((self._begin[x] + labels[out[kind]]).tolist())

    def close(self) -> None:
        """Nothing in this node is below the cut: the last decision is refuted."""
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

    def leave(self, leaf_first: bool) -> None:
        """The node and the other side of each decision that led to it become open nodes."""
        if not self._diving:
            raise Rejected("there is no dive to leave")
        leaf = (max(self.lower, self._node_bound), self._path)
        sides = [
            (max(lower, self._node_bound), (path, (x, NEGATED[kind], a)))
            for _, (x, kind, a), lower, path in self._levels
        ]
        for bound, path in [leaf, *sides] if leaf_first else [*sides, leaf]:
            self._opened += 1
            if bound < self.cut:
                self._open[self._opened] = (bound, path)
        self._levels = []
        self._back_to(0)
        self._diving = False

    def _back_to(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()
