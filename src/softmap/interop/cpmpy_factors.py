"""Tables and factors of CPMpy's expressions, for `softmap.interop.cpmpy`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from cpmpy.exceptions import IncompleteFunctionError, NotSupportedError
from cpmpy.expressions.core import BoolVal, Comparison, Expression
from cpmpy.expressions.utils import argval, is_any_list
from cpmpy.expressions.variables import NegBoolView, _BoolVarImpl, _NumVarImpl
from cpmpy.transformations.get_variables import get_variables

from softmap import AllDifferent, AtMostOne, Linear, Model, Or
from softmap.errors import InfeasibleModel
from softmap.extend import LIMITS, Costs, Ints


def _divided(a: Costs, b: Costs) -> Costs:
    """Quotients rounded towards 0; NaN if the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(b == 0, np.nan, np.trunc(a / b))


def _element(*args: Costs) -> Costs:
    """The item at an index, the last argument; NaN if there is none."""
    *items, index = np.broadcast_arrays(*args)
    inside = (index >= 0) & (index < len(items))  # False for NaN
    place = np.where(inside, index, 0).astype(np.int64)
    return np.where(inside, np.take_along_axis(np.stack(items), place[None], axis=0)[0], np.nan)


def _different(*args: Costs) -> Costs:
    pairs = [FUNCTIONS["!="](a, b) for k, b in enumerate(args) for a in args[:k]]
    return reduce(np.minimum, pairs, np.ones(()))


def _compared(compare: Any) -> Callable[..., Costs]:
    return lambda a, b: (compare(a, b) & ~np.isnan(a) & ~np.isnan(b)).astype(np.float64)


# Truth is 0 or 1. A function gets one float64 array of whole numbers per argument; the arrays
# broadcast. NaN is an undefined number: a comparison with it is false, as CPMpy defines it.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "==": _compared(np.equal), "!=": _compared(np.not_equal),
    "<": _compared(np.less), "<=": _compared(np.less_equal),
    ">": _compared(np.greater), ">=": _compared(np.greater_equal),
    "and": lambda *a: reduce(np.minimum, a), "or": lambda *a: reduce(np.maximum, a),
    "not": lambda a: 1 - a, "->": lambda a, b: np.maximum(1 - a, b),
    "xor": lambda *a: reduce(np.add, a) % 2,
    "sum": lambda *a: reduce(np.add, a), "sub": np.subtract, "-": np.negative,
    "mul": lambda *a: reduce(np.multiply, a), "div": _divided,
    "mod": lambda a, b: a - b * _divided(a, b), "abs": np.abs,
    "min": lambda *a: reduce(np.minimum, a), "max": lambda *a: reduce(np.maximum, a),
    "element": _element, "alldifferent": _different,
}  # fmt: skip


def _is_number(expr: Any) -> bool:
    return isinstance(expr, int | float | np.number | np.bool_ | BoolVal)


def _number(expr: Any) -> Any:
    return int(expr) if isinstance(expr, BoolVal | bool | np.bool_) else expr


def _parts(expr: Expression) -> list[Any]:
    """The arguments of an expression in one list."""
    flat: list[Any] = []
    for arg in expr.args:
        flat += np.asarray(arg, dtype=object).ravel().tolist() if is_any_list(arg) else [arg]
    return flat


def _known(expr: Any) -> bool:
    """Whether `_values` can compute the expression."""
    if _is_number(expr) or isinstance(expr, _NumVarImpl):
        return True
    known = isinstance(expr, Expression) and (expr.name in FUNCTIONS or expr.name == "wsum")
    return known and all(map(_known, _parts(expr)))


def _values(expr: Any, at: dict[str, Costs]) -> Any:
    """The values of an expression, given those of its variables as arrays that broadcast."""
    if _is_number(expr):
        return np.float64(_number(expr))
    if isinstance(expr, NegBoolView):
        return 1 - at[expr._bv.name]
    if isinstance(expr, _NumVarImpl):
        return at[expr.name]
    if expr.name == "wsum":
        return sum(w * _values(v, at) for w, v in zip(*expr.args, strict=True))
    return FUNCTIONS[expr.name](*(_values(arg, at) for arg in _parts(expr)))


class Translation:
    """Variables and factors of the model that is made of constraints and an objective."""

    def __init__(self) -> None:
        self.node: dict[str, int] = {}
        self.domain: list[tuple[int, int]] = []  # smallest and largest value
        self.factors: list[Any] = []
        self.infeasible = False

    def post(self, con: Any) -> bool:
        """Add a constraint as a small table, or as the factor that it is; False if neither fits."""
        if _is_number(con):
            self.infeasible |= not _number(con)
            return True
        return self.tabulated(con, LIMITS.small_table) or self._structured(con)

    def tabulated(self, con: Any, limit: int) -> bool:
        """Add a constraint as a table, if the table is not larger than the limit."""
        if (found := self.table(con, limit)) is None:
            return False
        if found[0]:
            self.require(*found)
        else:
            self.infeasible |= bool(found[1] != 1)
        return True

    def _structured(self, con: Any) -> bool:
        if con.name == "alldifferent":
            return self.all_different(_parts(con))
        if con.name == "table" and all(isinstance(v, _NumVarImpl) for v in con.args[0]):
            self.listed(con.args[0], np.asarray(con.args[1], dtype=np.int64))
            return True
        if con.name == "or" and all(isinstance(arg, _BoolVarImpl) for arg in con.args):
            self.clause(con.args)
            return True
        if con.name == "->" and isinstance(con.args[0], _BoolVarImpl):
            return self._implied(*con.args)
        return isinstance(con, Comparison) and self.linear(con)

    def _implied(self, literal: Any, con: Any) -> bool:
        if isinstance(con, Comparison):
            return self.linear(con, literal)
        if con.name == "or" and all(isinstance(arg, _BoolVarImpl) for arg in con.args):
            self.clause([~literal, *con.args])
            return True
        return False

    def variable(self, given: Any) -> int:
        """The node of a variable, or of b if the negation ~b is given."""
        own = given._bv if isinstance(given, NegBoolView) else given
        if own.name not in self.node:
            low, high = int(own.lb), int(own.ub)
            if high - low >= LIMITS.integer_values:
                raise NotSupportedError(
                    f"{own.name} has {high - low + 1} values: softmap takes {LIMITS.integer_values}"
                )
            self.node[own.name] = self.hidden(low, high)
        return self.node[own.name]

    def hidden(self, low: int, high: int) -> int:
        """A new node with the values low to high."""
        self.domain.append((low, high))
        return len(self.domain) - 1

    def labels(self, node: int) -> Ints:
        """The values of a node, by label."""
        low, high = self.domain[node]
        return np.arange(low, high + 1)

    def scope(self, expr: Any) -> tuple[list[Any], list[int], int]:
        """The variables of an expression, their nodes, and the size of a table over them."""
        found = sorted(get_variables(expr), key=lambda v: v.name)
        nodes = [self.variable(v) for v in found]
        sizes = [self.domain[i][1] - self.domain[i][0] + 1 for i in nodes]
        return found, nodes, math.prod(sizes)

    def table(self, expr: Any, limit: int) -> tuple[list[int], Costs] | None:
        """The nodes of an expression and its values at all their labels, if these are few.

        Tables over one variable have no limit. The value is NaN if it is not defined.
        """
        found, nodes, size = self.scope(expr)
        if (len(nodes) > 1 and size > limit) or len(nodes) > LIMITS.joint_variables:
            return None
        if not _known(expr):
            return self._enumerated(expr, found, nodes) if size <= LIMITS.small_table else None
        grid = np.ix_(*(self.labels(i).astype(np.float64) for i in nodes))
        at = {v.name: axis for v, axis in zip(found, grid, strict=True)}
        return nodes, np.broadcast_to(_values(expr, at), tuple(len(a.ravel()) for a in grid))

    def _cost(self, nodes: Sequence[int], costs: Costs) -> None:
        self.factors.append((tuple(nodes), costs))

    def _enumerated(
        self, expr: Any, found: list[Any], nodes: list[int]
    ) -> tuple[list[int], Costs] | None:
        """As `table`, by CPMpy's own values, one joint state at a time."""
        before, shape = [v._value for v in found], [len(self.labels(i)) for i in nodes]
        values = np.empty(math.prod(shape))
        for k, state in enumerate(itertools.product(*(self.labels(i).tolist() for i in nodes))):
            for v, value in zip(found, state, strict=True):
                v._value = bool(value) if isinstance(v, _BoolVarImpl) else value
            try:
                value = argval(expr)
            except IncompleteFunctionError:
                value = np.nan
            values[k] = np.nan if value is None else value
        for v, value in zip(found, before, strict=True):
            v._value = value
        return nodes, values.reshape(shape)

    def require(self, nodes: Sequence[int], truth: Costs) -> None:
        """Allow only labels whose truth is 1; neither 0 nor NaN."""
        truth = truth == 1
        if truth.ndim > 2 and truth.size > LIMITS.table_states:
            self.rows(nodes, np.argwhere(truth))
        else:
            self._cost(nodes, np.where(truth, 0.0, np.inf))

    def rows(self, nodes: Sequence[int], rows: Ints) -> None:
        """Allow only rows of labels: a new node chooses the row."""
        if not len(rows):
            self.infeasible = True
            return
        row = self.hidden(0, len(rows) - 1)
        for k, i in enumerate(nodes):
            agree = rows[:, k, None] == np.arange(len(self.labels(i)))
            self._cost((row, i), np.where(agree, 0.0, np.inf))

    def all_different(self, args: Sequence[Any]) -> bool:
        """Require different values of expressions in one variable each, with a label per value."""
        fixed = [_number(arg) for arg in args if _is_number(arg)]
        args = [arg for arg in args if not _is_number(arg)]
        found = [self.table(arg, 1) for arg in args]
        own = [pair for pair in found if pair is not None and len(pair[0]) == 1]
        nodes, values = [pair[0][0] for pair in own], [pair[1] for pair in own]
        unique = all(len(np.unique(row)) == len(row) and np.isfinite(row).all() for row in values)
        if len(own) < len(args) or len(set(nodes)) < len(nodes) or not unique:
            return False
        self.infeasible |= len(set(fixed)) < len(fixed)
        for i, row in zip(nodes, values, strict=True):
            if np.isin(row, fixed).any():
                self._cost((i,), np.where(np.isin(row, fixed), np.inf, 0.0))
        if len(nodes) < 2:
            return True
        if len({(int(row[0]), tuple(np.unique(np.diff(row)))) for row in values}) == 1:
            self.factors.append(AllDifferent(nodes))
            return True
        label = [{int(v): x for x, v in enumerate(row)} for row in values]
        for value in sorted(set().union(*label)):
            have = [k for k in range(len(nodes)) if value in label[k]]
            if len(have) > 1:
                at = [label[k][value] for k in have]
                self.factors.append(AtMostOne([nodes[k] for k in have], at))
        return True

    def listed(self, columns: Sequence[Any], rows: Ints) -> None:
        """Allow only rows of values of variables."""
        nodes = [self.variable(v) for v in columns]
        for k, i in enumerate(nodes):
            low, high = self.domain[i]
            rows = rows[(rows[:, k] >= low) & (rows[:, k] <= high)]
            rows = rows[rows[:, k] == rows[:, nodes.index(i)]]  # a variable that occurs twice
        kept = [nodes.index(i) for i in dict.fromkeys(nodes)]
        lowest = np.array([self.domain[nodes[k]][0] for k in kept])
        self.rows([nodes[k] for k in kept], np.unique(rows[:, kept] - lowest, axis=0))

    def clause(self, literals: Sequence[Any]) -> None:
        """Require one of the literals."""
        wanted: dict[int, int] = {}
        for literal in literals:
            node, value = self.variable(literal), 0 if isinstance(literal, NegBoolView) else 1
            if wanted.setdefault(node, value) != value:
                return  # b or ~b
        self.factors.append(Or(list(wanted), list(wanted.values())))

    def linear(self, con: Any, given: Any = None) -> bool:
        """Require a comparison of sums, if the literal `given` (if any) is true."""
        left = _sum(con.args[0])
        right = _sum(con.args[1])
        if left is None or right is None:
            return False
        terms = [*left[0], *((-w, v) for w, v in right[0])]
        weights: dict[int, Ints] = {}
        for w, v in terms:
            i = self.variable(v)
            own = 1 - self.labels(i) if isinstance(v, NegBoolView) else self.labels(i)
            weights[i] = weights.get(i, np.int64(0)) + w * own
        target = right[1] - left[1]
        lowest = sum(int(row.min()) for row in weights.values())
        highest = sum(int(row.max()) for row in weights.values())
        if con.name == "!=":
            side = self.hidden(0, 1)
            self._bounded(weights, (target + 1, None), (lowest, highest), [(given, 1), (side, 1)])
            self._bounded(weights, (None, target - 1), (lowest, highest), [(given, 1), (side, 0)])
            return True
        strict = con.name in ("<", ">")
        low = target + strict if con.name in ("==", ">", ">=") else None
        high = target - strict if con.name in ("==", "<", "<=") else None
        ends = [(low, high)] if given is None else [(low, None), (None, high)]
        for pair in ends:
            if pair != (None, None):
                self._bounded(weights, pair, (lowest, highest), [(given, 1)])
        return True

    def _bounded(
        self,
        weights: dict[int, Ints],
        ends: tuple[int | None, int | None],
        extreme: tuple[int, int],
        conditions: Iterable[tuple[Any, int]],
    ) -> None:
        """Require low <= sum <= high unless a condition fails, by a weight that makes it true."""
        (low, high), (lowest, highest), rows = ends, extreme, dict(weights)
        slack = 0 if low is None else min(lowest - low, 0)
        slack = slack if high is None else max(highest - high, 0)
        for condition, value in conditions:
            if condition is None:
                continue
            node = condition if isinstance(condition, int) else self.variable(condition)
            wanted = 1 - value if isinstance(condition, NegBoolView) else value
            rows[node] = rows.get(node, np.int64(0)) + np.where(np.arange(2) == wanted, slack, 0)
            low, high = (end if end is None else end + slack for end in (low, high))
        nodes = list(rows)
        if not nodes:
            self.infeasible |= not (low or 0) <= 0 <= (high or 0)
            return
        self.factors.append(Linear(nodes, [rows[i] for i in nodes], low=low, high=high))

    def model(self, costs: Sequence[Any]) -> Model:
        """Return the model of the constraints and these costs; it has at least one variable."""
        if self.infeasible:
            raise InfeasibleModel("a constraint is false for all values of its variables", 0)
        counts = [high - low + 1 for low, high in self.domain] or [1]
        return Model.from_factors(counts, [*self.factors, *costs])


def weighted_terms(expr: Any, weight: float) -> list[tuple[float, Any]]:
    """The terms of a sum, each with its weight."""
    if not isinstance(expr, Expression) or isinstance(expr, _NumVarImpl):
        return [(weight, expr)]
    if expr.name == "wsum":
        pairs = list(zip(*expr.args, strict=True))
    elif expr.name in ("sum", "sub", "-"):
        signs = {"sum": [1] * len(expr.args), "sub": [1, -1], "-": [-1]}[expr.name]
        pairs = list(zip(signs, expr.args, strict=True))
    elif expr.name == "mul" and len(expr.args) == 2 and any(map(_is_number, expr.args)):
        pairs = [tuple(sorted(expr.args, key=_is_number, reverse=True))]
    else:
        return [(weight, expr)]
    return [part for w, arg in pairs for part in weighted_terms(arg, weight * w)]


def _sum(expr: Any) -> tuple[list[tuple[int, Any]], int] | None:
    """The terms and the constant of a linear expression with whole weights."""
    terms: list[tuple[int, Any]] = []
    constant = 0
    for weight, term in weighted_terms(expr, 1):
        if int(weight) != weight:
            return None
        if _is_number(term):
            constant += int(weight) * _number(term)
        elif isinstance(term, _NumVarImpl):
            terms.append((int(weight), term))
        else:
            return None
    return terms, constant
