"""The global cost functions of toulbar2, as factors over many variables or small tables.

`PARAMETERS` describes what a file says about each function, for WCSP (in this order) and CFN (by
name). A violation is measured by its distance: the cost is multiplied by it (`var`, `dec`, `lin`),
by its square (`quad`), or by the number of violating pairs (`dec` of alldiff); `hard` costs once.
Costs of at least the upper bound are forbidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softmap.errors import ModelError
from softmap.io.layered import Layered
from softmap.io.limits import LIMITS
from softmap.io.weighted import embedded, grammar, regular
from softmap.model.factors import Assembly
from softmap.model.many import Among, Linear, Many
from softmap.model.potentials.base import Costs, Ints

METRICS = ("var", "dec", "decbi", "wdec", "hard", "lin", "quad", "edit", "weight")
COMPARATORS = ("==", "!=", "<=", "<", ">=", ">")

# Letters: k a word, c a cost of at least 0, r a cost, n a whole number, v a label, V a variable.
# (...) is one for each variable; [...] is a list, whose length comes first in WCSP files.
_COST = "metric:k cost:c"
_BOUNDS = f"{_COST} bounds:[vnn]"
_AUTOMATON = f"{_COST} nb_states:n starts:[n] ends:[n] transitions:[nvn]"
_GRAMMAR = f"{_COST} nb_symbols:n nb_values:n start:n terminals:[nn] non_terminals:[nnn]"
PARAMETERS = {
    **dict.fromkeys(("salldiff", "salldiffdp", "salldiffkp", "walldiff", "walldifferent"), _COST),
    **dict.fromkeys(("sgcc", "sgccdp", "sgcckp", "wgcc", "wsamegcc"), _BOUNDS),
    "alldiff": "exceptedvalues:[v] deltacosts:[vc]", "gcc": "bounds:[vnn] deltacosts:[vc]",
    "clique": "rhs:n values:([v])",
    "knapsack": "capacity:n weights:(n)", "knapsackv": "capacity:n weightedvalues:[Vvn]",
    "knapsackp": "capacity:n weightedvalues:([vn])",
    "knapsackc": "capacity:n weightedvalues:([vn]) groups:[[Vv]]",
    "samong": f"{_COST} min:n max:n values:[v]", "samongdp": f"{_COST} min:n max:n values:[v]",
    "wamong": f"{_COST} values:[v] min:n max:n", "wvaramong": f"{_COST} values:[v]",
    "ssame": "cost:c vars1:[V] vars2:[V]", "wsame": _COST,
    "sregular": _AUTOMATON, "sregulardp": _AUTOMATON,
    "wregular": "nb_states:n starts:[nr] ends:[nr] transitions:[nvnr]",
    "sgrammar": _GRAMMAR, "sgrammardp": _GRAMMAR,
    "max": "defaultcost:c tuples:[Vvc]", "smaxdp": "defaultcost:c tuples:[Vvc]",
    "wsum": f"{_COST} comparator:k to:n", "woverlap": f"{_COST} comparator:k to:n",
    "wvarsum": f"{_COST} comparator:k",
    **dict.fromkeys(("wdiverse", "whdiverse", "wtdiverse"), "distance:n values:(v)"),
    ">=": "by:n most:n", ">": "by:n most:n", "<=": "by:n most:n", "<": "by:n most:n",
    "=": "by:n most:n", "disj": "x:n y:n cost:c",
    "sdisj": "x:n y:n last_x:n last_y:n cost_x:c cost_y:c",
    "cfnconstraint": "lb:r ub:r duplicatehard:n strongduality:n",
}  # fmt: skip
WCSP_ONLY = ("knapsackp", "knapsackc", "walldifferent", "wcsp")
COMPARISONS = (">=", ">", "<=", "<", "=", "disj", "sdisj")

Table = tuple[tuple[int, ...], Costs]
Factor = Many | Table


@dataclass
class Global:
    """A global cost function of a file: name, variables, label counts and parameters.

    `given` names a variable by its index in the scope. An embedded network has `model`.
    """

    name: str
    scope: Sequence[int]
    sizes: Sequence[int]
    given: dict[str, Any] = field(default_factory=dict)
    model: Any = None

    @property
    def metric(self) -> str:
        """How a violation is measured."""
        return str(self.given.get("metric", "hard"))

    @property
    def cost(self) -> float:
        """The cost of one violation."""
        return float(self.given.get("cost", math.inf))

    def size(self) -> int:
        """Return an estimate of the number of costs in its tables."""
        k, d = len(self.scope), max(self.sizes, default=1)
        if self.name in COMPARISONS or "grammar" in self.name:
            return math.prod(self.sizes)
        many = "diff" in self.name or "gcc" in self.name or "same" in self.name
        return 40 * k * d * (max(1, min(d, k)) if many else 1)


def fields(found: Global) -> list[tuple[str, str]]:
    """Return the names and shapes of the parameters that follow those read so far."""
    text = PARAMETERS[found.name]
    if found.metric == "wdec":
        text = text.replace("[vnn]", "[vnncc]")
    if found.name.startswith("sgrammar") and found.metric == "weight":
        text = text.replace("[nn]", "[nnc]").replace("[nnn]", "[nnnc]")
    pairs = (part.split(":") for part in text.split())
    return [(name, shape) for name, shape in pairs if name not in found.given]


def add_global(
    found: Global, top: float, assembly: Assembly, reserve: Callable[[int], None]
) -> None:
    """Add its factors, or raise `ModelError`. Costs of at least `top` are forbidden.

    `reserve` is told the number of entries of tables that `Global.size` cannot know.
    """
    if LIMITS.global_cost < found.cost < np.inf:
        raise ModelError(f"expected a cost from 0 to {LIMITS.global_cost:g} of {found.name}")
    for factor in _BUILDERS[found.name](found, top):
        if isinstance(factor, tuple):
            assembly.add_factor(*factor)
            continue
        if isinstance(factor, Layered):
            reserve(factor.entries)
        assembly.add_many(factor)


def _require(found: Global, top: float, *metrics: str) -> None:
    """Raise `ModelError` for an unsupported metric, unless any violation is forbidden."""
    if found.metric not in (*metrics, "hard") and found.cost < top:
        known = " or ".join(metrics)
        raise ModelError(f"{found.name} with {found.metric!r} is not supported: expected {known}")


def _charge(found: Global, gap: Any, top: float) -> Costs:
    """Return the costs of distances from what is allowed."""
    away = np.asarray(gap, dtype=np.float64)
    by = away ** {"hard": 0, "quad": 2}.get(found.metric, 1)
    return _capped(np.where(away > 0, found.cost * np.where(away > 0, by, 1.0), 0.0), top)


def _capped(costs: Costs, top: float) -> Costs:
    return np.where(costs >= top, np.inf, costs)


def _outside(count: Any, low: float, high: float) -> Any:
    return np.maximum(0, np.maximum(low - count, count - high))


def _range(k: int, low: float, high: float, found: Global, top: float) -> Costs:
    """Return the costs of counts 0 to k for the range from low to high."""
    return _charge(found, _outside(np.arange(k + 1.0), low, high), top)


def _gap(total: Any, comparator: str, to: Any) -> Any:
    """Return how far a sum is from satisfying the comparison."""
    if comparator not in COMPARATORS:
        raise ModelError(f"expected one of {', '.join(COMPARATORS)}, not {comparator!r}")
    strict = comparator in ("<", ">")
    return {
        "=": np.abs(total - to), "!": np.equal(total, to).astype(np.int64),
        "<": np.maximum(0, total - to + strict), ">": np.maximum(0, to - total + strict),
    }[comparator[0]]  # fmt: skip


# --- counts of values -----------------------------------------------------------------------------


def _counts(found: Global, value: int, costs: Costs) -> list[Factor]:
    own = [v for v, d in zip(found.scope, found.sizes, strict=True) if value < d]
    return [Among(own, [[value]] * len(own), costs[: len(own) + 1])] if own and costs.any() else []


def _alldiff(found: Global, top: float) -> list[Factor]:
    _require(found, top, "var", "dec", "decbi", "lin", "quad")
    k = len(found.scope)
    costs = _range(k, 0, 1, found, top)
    if found.metric.startswith("dec"):
        c = np.arange(k + 1.0)
        costs = _capped(np.where(c > 1, found.cost * np.maximum(c * (c - 1) / 2, 1), 0.0), top)
    free = found.given.get("exceptedvalues", [])
    values = [value for value in range(max(found.sizes)) if value not in free]
    return _no_deltas(found) + [f for value in values for f in _counts(found, value, costs)]


def _no_deltas(found: Global) -> list[Factor]:
    if any(cost for _, cost in found.given.get("deltacosts", [])):
        raise ModelError(f"{found.name} with delta costs is not supported")
    return []


def _gcc(found: Global, top: float) -> list[Factor]:
    rows = found.given["bounds"]
    variables = found.name == "sgcc" and found.metric == "var" and found.cost < top
    mixed = any(row[1] for row in rows) and any(row[2] < len(found.scope) for row in rows)
    if variables and mixed and not _complete(found):
        return [_by_changes(found, top)]
    half = 0.5 if variables and mixed else 1.0
    _require(found, top, "var", "dec", "wdec", "lin", "quad")
    factors: list[Factor] = _no_deltas(found)
    for value, low, high, *weights in rows:
        k = sum(value < d for d in found.sizes)
        costs = half * _range(k, low, high, found, top)
        if weights and found.cost < top:
            c = np.arange(k + 1.0)
            short, over = np.maximum(0.0, low - c), np.maximum(0.0, c - high)
            costs = _capped(weights[0] * short + weights[1] * over, top)
        if not k and low > 0:
            raise ModelError(f"{found.name} wants value {value:g}, which no variable has")
        factors += _counts(found, value, costs)
    return factors


def _complete(found: Global) -> bool:
    """Whether the bounds fix all counts, so that what one value lacks another has too much."""
    rows, k = found.given["bounds"], len(found.scope)
    exact = all(low == high for _, low, high, *_ in rows)
    every = {row[0] for row in rows} >= set(range(max(found.sizes)))
    return exact and every and sum(row[1] for row in rows) == k


def _by_changes(found: Global, top: float) -> Many:
    """Count the variables to change: the larger of what values lack and of what they exceed."""
    rows, k = found.given["bounds"], len(found.scope)
    every = {row[0] for row in rows} >= set(range(max(found.sizes)))
    low, high = (sum(row[a] for row in rows) for a in (1, 2))
    if low > k or (every and high < k):
        raise ModelError(f"{found.name} over {k} variables: no counts are within all bounds")
    place = {row[0]: i for i, row in enumerate(rows)}

    def step(_: int, counts: tuple[int, ...], x: int) -> tuple[tuple[int, ...], float]:
        at = place.get(x)
        return counts if at is None else (*counts[:at], counts[at] + 1, *counts[at + 1 :]), 0.0

    def final(counts: tuple[int, ...]) -> float:
        pairs = list(zip(counts, rows, strict=True))
        short = sum(max(0, row[1] - c) for c, row in pairs)
        return float(_charge(found, max(short, sum(max(0, c - row[2]) for c, row in pairs)), top))

    return Layered(found.name, found.scope, found.sizes, (0,) * len(rows), step, final)


def _among(found: Global, top: float) -> list[Factor]:
    _require(found, top, "var", "lin", "quad")
    k = len(found.scope)
    costs = _range(k, found.given["min"], found.given["max"], found, top)
    return [Among(found.scope, [found.given["values"]] * k, costs)] if costs.any() else []


def _clique(found: Global, _: float) -> list[Factor]:
    """At most `rhs` variables have one of their own values."""
    pairs = zip(found.scope, found.given["values"], strict=True)
    own = [(v, values) for v, values in pairs if values]
    costs = np.where(np.arange(len(own) + 1.0) > found.given["rhs"], np.inf, 0.0)
    return [Among([v for v, _ in own], [r for _, r in own], costs)] if costs.any() else []


def _diverse(found: Global, _: float) -> list[Factor]:
    """At least `distance` variables differ from their value."""
    k = len(found.scope)
    costs = np.where(np.arange(k + 1.0) > k - found.given["distance"], np.inf, 0.0)
    return [Among(found.scope, [[v] for v in found.given["values"]], costs)] if costs.any() else []


def _same(found: Global, top: float) -> list[Factor]:
    """Each value occurs equally often in both lists; `ssame` counts half of the differences."""
    k = len(found.scope)
    one = found.given.get("vars1", range(k // 2))
    other = found.given.get("vars2", range(k // 2, k))
    if len(one) != len(other) or sorted((*one, *other)) != list(range(k)):
        raise ModelError(
            f"{found.name}: expected two lists of one length, which together name all "
            f"{k} variables once; found lists of {len(one)} and {len(other)}"
        )
    half = 1.0
    pieces: list[Factor] = []
    if found.name == "ssame":
        half, found.given["metric"] = 0.5, "lin"
    away = np.abs(np.arange(k + 1.0) - len(other))
    for value in range(max(found.sizes)):
        rest = [[x for x in range(found.sizes[t]) if x != value] for t in other]
        sets = [[value]] * len(one) + rest
        costs = half * _charge(found, away, top)  # of ssame, other values add the other half
        pieces.append(Among([found.scope[t] for t in (*one, *other)], sets, costs))
    for own in (one, other) if "bounds" in found.given else ():
        scope, sizes = ([of[t] for t in own] for of in (found.scope, found.sizes))
        pieces += _gcc(Global("wgcc", scope, sizes, found.given), top)
    return pieces


def _knapsack(found: Global, _: float) -> list[Factor]:
    rows: list[list[int]] = [[0] * d for d in found.sizes]
    given = found.given.get("weightedvalues", [])
    if found.name == "knapsack":
        given = [(t, 1, w) for t, w in enumerate(found.given["weights"])]
    elif found.name != "knapsackv":
        given = [(t, *pair) for t, own in enumerate(given) for pair in own]
    for t, value, weight in given:
        if value < len(rows[t]):
            rows[t][value] += weight
    factors: list[Factor] = []
    for group in found.given.get("groups", []):
        costs = np.where(np.arange(len(group) + 1.0) > 1, np.inf, 0.0)
        factors.append(Among([found.scope[t] for t, _ in group], [[x] for _, x in group], costs))
    if sum(min(row) for row in rows) < found.given["capacity"]:
        factors.append(Linear(found.scope, rows, low=found.given["capacity"]))
    return factors


# --- sums, pairs and maxima -----------------------------------------------------------------------


def _sum(found: Global, top: float) -> list[Factor]:
    """Compare the sum of the labels with a number, or with the last variable."""
    comparator, k = found.given["comparator"], len(found.scope)
    _require(found, top, "var", "lin", "quad")
    to, last = found.given.get("to", 0), -1 if found.name == "wvarsum" else 1
    signs = [1] * (k - 1) + [last]
    if found.metric == "hard" and comparator != "!=":
        low = {"<": None}.get(comparator[0], to + (comparator == ">"))
        high = {">": None}.get(comparator[0], to - (comparator == "<"))
        cost = float(_capped(np.array(found.cost), top))
        return [Linear(found.scope, signs, low=low, high=high, penalty=cost)]
    return [
        Layered(
            found.name,
            found.scope,
            found.sizes,
            0,
            lambda t, total, x: (total + signs[t] * x, 0.0),
            lambda total: float(_charge(found, _gap(total, comparator, to), top)),
        )
    ]


def _count_in_last(found: Global, top: float) -> list[Factor]:
    """The last variable is the number of the others that have one of the values."""
    counted = set(found.given["values"])
    rows = [[int(x in counted) for x in range(d)] for d in found.sizes[:-1]]
    rows.append([-x for x in range(found.sizes[-1])])
    cost = float(_capped(np.array(found.cost), top))
    return [Linear(found.scope, rows, low=0, high=0, penalty=cost)]


def _overlap(found: Global, top: float) -> list[Factor]:
    """Compare with a number how often two lists have the same label, not 0, in the same place."""
    half = len(found.scope) // 2
    order = [t for i in range(half) for t in (i, i + half)]
    comparator, to = found.given["comparator"], found.given["to"]
    _require(found, top, "var", "lin", "quad")

    def step(t: int, state: tuple[int, int], x: int) -> tuple[tuple[int, int], float]:
        count, before = state
        return ((count, x) if t % 2 == 0 else (count + (x == before and x > 0), 0)), 0.0

    return [
        Layered(
            found.name,
            [found.scope[t] for t in order],
            [found.sizes[t] for t in order],
            (0, 0),
            step,
            lambda state: float(_charge(found, _gap(state[0], comparator, to), top)),
        )
    ]


def _max(found: Global, top: float) -> list[Factor]:
    """The largest of one cost for each variable and label."""
    costs = [[float(found.given["defaultcost"])] * d for d in found.sizes]
    for t, value, cost in found.given["tuples"]:
        if value < found.sizes[t]:
            costs[t][value] = float(cost)

    def step(t: int, most: float, x: int) -> tuple[float, float] | None:
        cost = max(most, costs[t][x])
        return None if cost >= top else (cost, 0.0)

    return [Layered(found.name, found.scope, found.sizes, 0.0, step, float)]


def _compared(found: Global, top: float) -> list[Factor]:
    """Return the table of an arithmetic constraint between two variables."""
    x, y = np.indices(found.sizes)
    given, scope = found.given, tuple(found.scope)
    if found.name == "disj":
        a, b, cost = given.values()
        return [(scope, _capped(np.where((x >= y + b) | (y >= x + a), 0.0, cost), top))]
    if found.name == "sdisj":
        a, b, last_x, last_y, cost_x, cost_y = given.values()
        apart = (x >= last_x) | (y >= last_y) | (x >= y + b) | (y >= x + a)
        costs = np.where(x == last_x, cost_x, 0.0) + np.where(y == last_y, cost_y, 0.0)
        allowed = apart & (x <= last_x) & (y <= last_y)
        return [(scope, _capped(np.where(allowed, costs, np.inf), top))]
    by, most = given.values()
    away: Ints = {
        ">=": y + by - x, ">": y + by + 1 - x, "<=": x - by - y, "<": x - by + 1 - y,
        "=": np.abs(y + by - x),
    }[found.name]  # fmt: skip
    costs = np.where(away > most, np.inf, np.maximum(away, 0))
    return [(scope, _capped(costs, top))]


def _regular(found: Global, top: float) -> list[Factor]:
    if found.name != "wregular":
        _require(found, top, "var")
    wrong = math.inf if found.cost >= top or found.metric == "hard" else found.cost
    return [regular(found.name, found.scope, found.sizes, found.given, wrong, top)]


def _grammar(found: Global, top: float) -> list[Factor]:
    wrong = math.inf if found.metric == "weight" else found.cost
    costs = grammar(found.name, found.sizes, found.given, wrong)
    return [(tuple(found.scope), _capped(costs, top))]


def _embedded(found: Global, _: float) -> list[Factor]:
    return [embedded(found.name, found.scope, found.sizes, found.model, found.given)]


_BUILDERS: dict[str, Callable[[Global, float], list[Factor]]] = {
    **dict.fromkeys(COMPARISONS, _compared),
    **{name: _alldiff for name in PARAMETERS if "alldiff" in name},
    **{name: _gcc for name in PARAMETERS if "gcc" in name},
    **{name: _among for name in PARAMETERS if "among" in name},
    **{name: _same for name in PARAMETERS if "same" in name},
    **{name: _knapsack for name in PARAMETERS if "knapsack" in name},
    **{name: _diverse for name in PARAMETERS if "diverse" in name},
    **{name: _regular for name in PARAMETERS if "regular" in name},
    **{name: _grammar for name in PARAMETERS if "grammar" in name},
    "wvaramong": _count_in_last, "clique": _clique, "max": _max, "smaxdp": _max,
    "wsum": _sum, "wvarsum": _sum, "woverlap": _overlap,
    "cfnconstraint": _embedded, "wcsp": _embedded,
}  # fmt: skip
GLOBALS = tuple(_BUILDERS)
