"""Boolean literals that are functions of a labelling, and what a model says about them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softmap.model import AllDifferent, Cardinality, Linear, Network
from softmap.verification.hints import LiteralSum
from softmap.verification.integers import FORBIDDEN, Flat, Floats, Scale, along
from softmap.verification.limit import CALL, ITEM, Limits
from softmap.verification.records import Ints, Numbers, Rejected

TRUE = 1  # the literal that always holds


class _Table(NamedTuple):
    """A table of costs above its smallest one, in units."""

    scope: tuple[int, ...]
    costs: Ints
    kind: int  # equal for equal tables


class _CostTables:
    """The costs of a model in units, as tables over its variables; unary costs come first."""

    def __init__(self, flat: Flat, scale: Scale) -> None:
        self._known: dict[tuple[tuple[int, ...], bytes], tuple[Ints, int, int]] = {}
        self.base = 0
        self._sizes = [len(costs) for costs in flat.unary]
        own = [self._read((i,), costs, scale) for i, costs in enumerate(flat.unary)]
        self._all = own + [self._read(scope, table, scale) for scope, table in flat.factors]

    def _read(self, scope: tuple[int, ...], costs: Floats, scale: Scale) -> _Table:
        key = costs.shape, costs.tobytes()
        if key not in self._known:
            before = scale.base
            units = scale.convert(costs)
            if (np.isfinite(costs) != (units < FORBIDDEN)).any():
                raise Rejected("a cost is too large for the unit")
            self._known[key] = units, scale.base - before, len(self._known)
        units, low, kind = self._known[key]
        self.base += low
        return _Table(scope, units, kind)

    @property
    def entries(self) -> int:
        """The number of costs."""
        return sum(table.costs.size for table in self._all)

    def size(self, variable: int) -> int:
        """The number of labels of a variable."""
        if not 0 <= variable < len(self._sizes):
            raise Rejected(f"there is no variable {variable}")
        return self._sizes[variable]

    def __getitem__(self, number: int) -> _Table:
        if not 0 <= number < len(self._all):
            raise Rejected(f"there is no table {number}")
        return self._all[number]


class Literals:
    """Literals of labels and of costs; each labelling determines which of them hold.

    Parameters
    ----------
    model : Network
        The model.
    flat : Flat
        Its costs.
    scale : Scale
        The unit of the costs.
    variables : tuple of int
        The variables whose labels have literals, from 2 on: one for the second label of two, or
        one for each label of three and more.
    last : int
        The last literal; those behind the literals of labels are literals of costs.
    effort : Limits, optional
        Limits the work.

    Attributes
    ----------
    base : int
        The sum of the smallest costs of all tables, in units.
    """

    def __init__(
        self,
        model: Network,
        flat: Flat,
        scale: Scale,
        variables: Numbers,
        last: int,
        effort: Limits | None = None,
    ) -> None:
        self._effort = effort or Limits()
        self._model, self._tables = model, _CostTables(flat, scale)
        self._labels: dict[int, list[int]] = {}  # literals of the labels of each variable
        self._meaning: dict[int, tuple[int, int, int]] = {}  # 0, variable, label; 1, table, cost
        self._paid: set[int] = set()  # tables whose costs have literals
        self._sound: set[tuple[Any, ...]] = set()  # clauses that follow from equal tables
        self.base, following = self._tables.base, TRUE + 1
        for i in variables:
            d = self._tables.size(i)
            if i in self._labels:
                raise Rejected(f"variable {i} is named twice")
            several = [*range(following, following + d)]
            own = {1: [TRUE], 2: [-following, following]}.get(d, several)
            following += {1: 0, 2: 1}.get(d, d)
            self._labels[i] = own
            self._meaning |= {x: (0, i, a) for a, x in enumerate(own) if x > TRUE}
        if not following - 1 <= last <= following + self._tables.entries:
            raise Rejected("the number of literals is not a valid one")
        self._first_cost, self._last = following, last

    def costs(self, number: int, literals: Numbers) -> list[tuple[int, int]]:
        """Name the literals of the costs of a table, from the largest on; return their costs."""
        own, found = self._tables[number], list[tuple[int, int]]()
        if number in self._paid:
            raise Rejected(f"the costs of table {number} are named twice")
        self._paid.add(number)
        self._effort.work(16 * CALL + (CALL + ITEM * own.costs.size) * (1 + len(literals)))
        values = np.unique(own.costs[own.costs < FORBIDDEN]).tolist()
        if len(values) != len(literals) + 1:
            raise Rejected(f"there is not one literal for each cost of table {number}")
        for k, x in enumerate(literals):
            high, low = values[-1 - k], values[-2 - k]
            if x >= self._first_cost:
                if x in self._meaning or x > self._last:
                    raise Rejected(f"literal {x} is none, or named twice")
                self._meaning[x] = 1, number, high
            elif np.any(self._value(number, x) & (own.costs < high)):
                raise Rejected(f"literal {x} may hold where table {number} costs less")
            found.append((x, high - low))
        return found

    def _value(self, number: int, literal: int) -> Any:
        """Whether a literal holds, for each joint state of a table."""
        own = self._tables[number]
        if abs(literal) == TRUE:
            return np.full(own.costs.shape, literal > 0)
        kind, place, b, positive = self._relative(number, literal)
        if kind < 0:
            raise Rejected(f"there is no literal {literal}")
        if kind == 1:
            holds = own.costs >= b
        else:
            labels = np.arange(own.costs.shape[place]) == b
            holds = np.broadcast_to(along(labels, place, own.costs.ndim), own.costs.shape)
        return holds if positive else ~holds

    def require_clause(self, number: int, literals: Numbers) -> None:
        """Raise `Rejected` unless a literal holds in each state that a table does not forbid."""
        own = self._tables[number]
        self._effort.work(8 * ITEM * len(literals))
        key = own.kind, tuple(self._relative(number, x) for x in literals)
        if key in self._sound:
            return
        self._effort.work((CALL + own.costs.size) * (1 + 8 * len(literals)))
        self._effort.keep(512 + 200 * len(literals))
        holds = own.costs == FORBIDDEN
        for x in literals:
            holds = holds | self._value(number, x)
        if not np.all(holds):
            raise Rejected(f"a clause does not follow from table {number}")
        self._sound.add(key)

    def _relative(self, number: int, literal: int) -> tuple[int, int, int, int]:
        """A literal as a function of the states of a table, whichever variables it has."""
        kind, a, b = self._meaning.get(abs(literal), (-1, 0, 0))
        if kind < 0:
            return kind, 0, 0, literal
        scope = self._tables[number].scope if kind == 0 else (number,)
        if a not in scope:
            raise Rejected(f"literal {literal} is no function of table {number}")
        return kind, scope.index(a), b, literal > 0

    def sum_of(self, number: int, label: int, side: int) -> LiteralSum:
        """The least (side 0) or the largest (side 1) sum of a hard factor."""
        if not 0 <= number < len(self._model.required) or side not in (0, 1):
            raise Rejected(f"there is no factor {number}")
        factor = self._model.required[number]
        scope = [*factor.variables]
        if not {*scope} <= self._labels.keys():
            raise Rejected(f"labels of factor {number} have no literals")
        self._effort.work(2 * CALL * len(scope) + 16 * ITEM * sum(map(self._tables.size, scope)))
        rows, *ends = _weights(factor, [self._tables.size(i) for i in scope], label)
        if math.isinf(ends[side]):
            raise Rejected(f"factor {number} has no such bound")
        sign = -1 if side else 1
        terms = [
            (x, sign * int(w))
            for i, row in zip(scope, rows, strict=True)
            for x, w in zip(self._labels[i], row, strict=True)
        ]
        return LiteralSum(terms, sign * int(ends[side]))

    def one_label(self, variable: int) -> LiteralSum:
        """A variable has at most one label."""
        return LiteralSum([(x, -1) for x in self._labels.get(variable, [])], -1)


def _weights(factor: Any, sizes: list[int], label: int) -> tuple[list[Any], float, float]:
    """The weights of all labels, and the least and the largest sum, of a hard factor."""
    if isinstance(factor, AllDifferent):
        return [(np.arange(d) == label).astype(int) for d in sizes], -math.inf, 1
    if isinstance(factor, Linear) and factor.penalty == math.inf:
        rows, taken = factor.shifted(sizes)
        return rows, factor.low - taken, factor.high - taken
    if isinstance(factor, Cardinality):
        possible = np.flatnonzero(np.isfinite(factor.costs)).tolist() or [len(sizes) + 1]
        rows = [factor.ones(t, d) for t, d in enumerate(sizes)]
        return rows, possible[0], possible[-1]
    raise Rejected("a sum is not a hard one")
