"""The lower bound that cores prove: clauses of which one literal costs something (docs/proofs.md).

Boolean variables are functions of a labelling, so that each labelling of finite cost satisfies all
constraints, and costs at least the sum of the costs of all literals that hold.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from softmap.model import AllDifferent, Cardinality, Linear, Model
from softmap.verification.hints import Constraints, LiteralSum
from softmap.verification.integers import FORBIDDEN, HALF, Flat, Floats, Scale, along
from softmap.verification.records import Ints, Numbers, Rejected

TRUE = 1  # the literal that always holds


class _Table(NamedTuple):
    """A table of costs above its smallest one, in units."""

    scope: tuple[int, ...]
    costs: Ints
    kind: int  # equal for equal tables


class _Tables:
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


class CoreProof:
    """Checks the records of a core-guided search.

    Parameters
    ----------
    model : Model
        The model.
    flat : Flat
        Its costs.
    exponent : int
        The solver multiplied all costs by 2**exponent.
    """

    STEPS: ClassVar = {"booleans", "costs", "given", "learned", "core", "group"}

    def __init__(self, model: Model, flat: Flat, exponent: int) -> None:
        self._model, self._flat, self._exponent = model, flat, exponent
        self._rules = Constraints()
        self._labels: dict[int, list[int]] = {}  # literals of the labels of each variable
        self._meaning: dict[int, tuple[int, int, int]] = {}  # kind, then as `_value` reads them
        self._weight: dict[int, int] = {}  # what literals cost
        self._counted: list[tuple[Numbers, int, dict[int, int]]] = []  # cores, costs, outputs
        self._sound: set[tuple[Any, ...]] = set()  # clauses that follow from equal tables
        self._lower, self._cut = 0, math.inf
        self._first_cost = self._next = 0  # literals of costs from the first on; the next new one

    def bound(self) -> Fraction:
        """The lower bound proved so far, in the units of the model's costs."""
        units = self._cut if self._rules.broken else min(self._cut, self._lower)
        if math.isinf(units):
            raise Rejected("there is no labelling: this needs another conclusion")
        return self._scale.unit * (self._tables.base + int(units)) + self._flat.constant

    @property
    def infeasible(self) -> bool:
        """Whether no labelling satisfies the hard constraints."""
        return self._rules.broken and math.isinf(self._cut)

    # --- Boolean variables and their costs --------------------------------------------------------

    def booleans(self, numbers: Numbers, variables: Numbers) -> None:
        """Number the literals of the labels of some variables; read all costs."""
        if self._next:
            raise Rejected("the Boolean variables are numbered twice")
        granule, exponent, last = numbers
        self._scale = Scale(granule, exponent - self._exponent, HALF - 1)
        self._tables = _Tables(self._flat, self._scale)
        self._next = TRUE + 1
        for i in variables:
            d = self._tables.size(i)
            if i in self._labels:
                raise Rejected(f"variable {i} is named twice")
            first = self._next
            own = {1: [TRUE], 2: [-first, first]}.get(d, [*range(first, first + d)])
            self._next += {1: 0, 2: 1}.get(d, d)
            self._labels[i] = own
            named = {x: a for a, x in enumerate(own) if x > TRUE}
            self._meaning |= {x: (0, i, a) for x, a in named.items()}
        if not self._next - 1 <= last <= self._next + self._tables.entries:
            raise Rejected("the number of Boolean variables is not a valid one")
        self._first_cost, self._next = self._next, last + 1
        self._rules.reserve(last)

    def costs(self, table: Numbers, literals: Numbers) -> None:
        """Name the literals of the costs of a table, from the largest on."""
        (number,) = table
        own = self._tables[number]
        values = np.unique(own.costs[own.costs < FORBIDDEN]).tolist()
        if len(values) != len(literals) + 1:
            raise Rejected(f"there is not one literal for each cost of table {number}")
        for k, x in enumerate(literals):
            high, low = values[-1 - k], values[-2 - k]
            if x >= self._first_cost:
                if x in self._meaning or x >= self._next:
                    raise Rejected(f"literal {x} is none, or named twice")
                self._meaning[x] = 1, number, high
            else:
                holds = self._value(number, x) & (own.costs < high)
                if np.any(holds):
                    raise Rejected(f"literal {x} may hold where table {number} costs less")
            self._weight[x] = self._weight.get(x, 0) + high - low

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

    def _fresh(self) -> int:
        self._next += 1
        self._rules.reserve(self._next)
        return self._next - 1

    # --- constraints ------------------------------------------------------------------------------

    def given(self, numbers: Numbers, literals: Numbers) -> None:
        """Add a constraint that follows from the model, or defines a literal."""
        what, rest = numbers[0], numbers[1:]
        makers = self._of_table, self._of_sum, self._of_labels, self._count, self._order, self._forbid
        if not 0 <= what < len(makers):
            raise Rejected("there is no such constraint")
        self._rules.add(makers[what](rest, literals))

    def _of_table(self, numbers: Numbers, literals: Numbers) -> Numbers:
        """A clause that holds in each joint state of a table that is not forbidden."""
        (number,) = numbers
        own = self._tables[number]
        key = own.kind, tuple(self._relative(number, x) for x in literals)
        if key not in self._sound:
            holds = own.costs == FORBIDDEN
            for x in literals:
                holds = holds | self._value(number, x)
            if not np.all(holds):
                raise Rejected(f"a clause does not follow from table {number}")
            self._sound.add(key)
        return literals

    def _relative(self, number: int, literal: int) -> tuple[int, int, int, int]:
        """A literal as a function of the states of a table, whichever variables it has."""
        kind, a, b = self._meaning.get(abs(literal), (-1, 0, 0))
        if kind < 0:
            return kind, 0, 0, literal
        scope = self._tables[number].scope if kind == 0 else (number,)
        if a not in scope:
            raise Rejected(f"literal {literal} is no function of table {number}")
        return kind, scope.index(a), b, literal > 0

    def _of_sum(self, numbers: Numbers, literals: Numbers) -> LiteralSum:
        """The least (side 0) or the largest (side 1) sum of a hard factor."""
        number, label, side = numbers
        if not 0 <= number < len(self._model.required) or side not in (0, 1):
            raise Rejected(f"there is no factor {number}")
        factor = self._model.required[number]
        scope = [*factor.variables]
        if not {*scope} <= self._labels.keys():
            raise Rejected(f"labels of factor {number} have no literals")
        rows, low, high = _weights(factor, [self._tables.size(i) for i in scope], label)
        terms = [
            (x, int(w))
            for i, row in zip(scope, rows, strict=True)
            for x, w in zip(self._labels[i], row, strict=True)
        ]
        end = high if side else low
        if math.isinf(end):
            raise Rejected(f"factor {number} has no such bound")
        return LiteralSum([(x, -w) for x, w in terms] if side else terms, -int(end) if side else int(end))

    def _of_labels(self, numbers: Numbers, literals: Numbers) -> LiteralSum:
        """A variable has at most one label."""
        return LiteralSum([(x, -1) for x in self._labels[numbers[0]]], -1)

    def _count(self, numbers: Numbers, literals: Numbers) -> LiteralSum:
        """Define a literal: so many literals of a core hold, or more."""
        core, weight, outputs = self._counted[self._place(numbers)]
        count = numbers[1]
        if count in outputs or not 2 <= count <= len(core):
            raise Rejected("a count is defined twice, or out of range")
        x = outputs[count] = self._fresh()
        self._weight[x] = weight
        most = len(core) - count + 1
        return LiteralSum([*((-y, 1) for y in core), (x, most)], most)

    def _order(self, numbers: Numbers, literals: Numbers) -> Numbers:
        """If so many literals of a core hold, one less do."""
        _, _, outputs = self._counted[self._place(numbers)]
        return -outputs[numbers[1]], outputs[numbers[1] - 1]

    def _place(self, numbers: Numbers) -> int:
        if len(numbers) < 2 or not 0 <= numbers[0] < len(self._counted):
            raise Rejected("there is no such core")
        return numbers[0]

    def _forbid(self, numbers: Numbers, literals: Numbers) -> Numbers:
        """A literal that costs as much as the gap to a cut fails in what costs less."""
        (cut,), (x,) = numbers[:1], literals
        if self._lower + self._weight.get(-x, 0) < cut:
            raise Rejected(f"literal {-x} does not cost as much as the cut")
        self._cut = min(self._cut, cut)
        return literals

    def learned(self, clause: Numbers, hints: Numbers) -> None:
        """Add a clause that follows from the constraints so far."""
        self._require_known(clause)
        self._rules.learn(clause, hints)

    def _require_known(self, literals: Numbers) -> None:
        if any(not 0 < abs(x) < self._next for x in literals):
            raise Rejected("there is no such literal")

    # --- bounds -----------------------------------------------------------------------------------

    def core(self, numbers: Numbers) -> None:
        """Raise the bound: one literal of a clause holds, and each of them costs something.

        What it costs that further literals hold is paid by counts of them.
        """
        weight, number = numbers
        clause = self._rules.clause(number)
        if not clause or len({*clause}) < len(clause):
            raise Rejected("a core has no literal, or one twice")
        self._pay(clause, weight)
        self._lower += weight
        if len(clause) > 1:
            self._counted.append((clause, weight, {}))

    def group(self, numbers: Numbers, literals: Numbers, hints: Numbers) -> None:
        """Raise the bound: at most one literal holds, and the negation of each costs something."""
        (weight,) = numbers
        if len(literals) < 2 or len({*literals}) < len(literals):
            raise Rejected("a group has no two literals, or one twice")
        self._require_known(literals)
        self._rules.require_apart(literals, hints)
        self._pay(tuple(-x for x in literals), weight)
        self._lower += weight * (len(literals) - 1)
        none = self._fresh()
        self._weight[none] = weight
        self._rules.add((*literals, none))

    def _pay(self, literals: Numbers, weight: int) -> None:
        if weight < 0 or any(self._weight.get(x, 0) < weight for x in literals):
            raise Rejected("a literal of a core costs less than the bound rises")
        for x in literals:
            self._weight[x] -= weight


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
