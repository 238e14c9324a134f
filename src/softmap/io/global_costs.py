"""The global cost functions of toulbar2, as factors over many variables.

A count outside its range costs proportionally to its distance (`var`, `dec`, `lin`), to the number
of violating pairs (`dec` of alldiff), or to the squared distance (`quad`). Costs of at least the
upper bound are forbidden.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from softmap.errors import ModelError
from softmap.io.limits import LIMITS
from softmap.model.many import Among, Linear, Many, Regular
from softmap.model.potentials.base import Costs

METRICS = ("var", "dec", "decbi", "wdec", "hard", "lin", "quad", "edit")
_SEPARATE = ("dec", "wdec", "hard", "lin", "quad")


@dataclass
class Global:
    """A global cost function of a file: name, variables, label counts and parameters.

    A row of `bounds` is value, smallest count, largest count and, for `wdec`, costs of shortage and
    excess. `weights` has one row per variable, with a weight per label; for `clique`, its values.
    """

    name: str
    scope: Sequence[int]
    sizes: Sequence[int]
    metric: str = "var"
    cost: float = 0.0
    bounds: list[list[float]] = field(default_factory=list)
    weights: list[list[int]] = field(default_factory=list)
    capacity: float = 0.0
    values: list[int] = field(default_factory=list)
    parts: tuple[list[int], list[int]] = ((), ())  # type: ignore[assignment]
    states: int = 0
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    transitions: list[list[int]] = field(default_factory=list)


def global_size(found: Global) -> int:
    """Return an estimate of the number of costs in its chains."""
    k, d = len(found.scope), max(found.sizes, default=1)
    if found.name.startswith("knapsack") or "among" in found.name:
        return 40 * k * d
    if "regular" in found.name:
        return k * d * found.states**2
    return 40 * k * d * max(1, min(d, k))


def factors_of_global(found: Global, top: float) -> list[Many]:
    """Return its factors, or raise `ModelError`. Costs of at least `top` are forbidden."""
    if not 0 <= found.cost <= LIMITS.global_cost:
        raise ModelError(f"expected a cost from 0 to {LIMITS.global_cost:g} of {found.name}")
    return GLOBALS[found.name](found, top)


def _violations(k: int, low: float, high: float, found: Global, top: float) -> Costs:
    """Return the costs of counts 0 to k for the range from low to high."""
    c = np.arange(k + 1.0)
    away = np.maximum(0.0, np.maximum(low - c, c - high))
    if found.metric == "hard":
        return np.where(away > 0, np.inf, 0.0)
    costs = found.cost * (away**2 if found.metric == "quad" else away)
    costs[costs >= top] = np.inf
    return costs


def _require(found: Global, top: float, *metrics: str) -> None:
    """Raise `ModelError` for an unsupported metric, unless any violation is forbidden."""
    if found.metric not in (*metrics, "hard") and found.cost < top:
        known = " or ".join(metrics)
        raise ModelError(f"{found.name} with {found.metric!r} is not supported: expected {known}")


def _of_value(found: Global, value: int) -> list[int]:
    return [v for v, d in zip(found.scope, found.sizes, strict=True) if value < d]


def _counts(found: Global, value: int, costs: Costs) -> list[Many]:
    own = _of_value(found, value)
    return [Among(own, [[value]] * len(own), costs[: len(own) + 1])] if own and costs.any() else []


def _alldiff(found: Global, top: float) -> list[Many]:
    _require(found, top, "var", "dec", "decbi", "lin", "quad")
    k, factors = len(found.scope), []
    costs = _violations(k, 0, 1, found, top)
    if found.metric.startswith("dec"):
        c = np.arange(k + 1.0)
        costs = found.cost * c * (c - 1) / 2
        costs[costs >= top] = np.inf
    for value in range(max(found.sizes)):
        factors += _counts(found, value, costs)
    return factors


def _gcc(found: Global, top: float) -> list[Many]:
    metrics = ("var", *_SEPARATE) if found.name == "sgccdp" else _SEPARATE
    _require(found, top, *metrics)
    factors: list[Many] = []
    for value, low, high, *weights in found.bounds:
        own = _of_value(found, int(value))
        costs = _violations(len(own), low, high, found, top)
        if found.metric == "wdec" and found.cost < top:
            c = np.arange(len(own) + 1.0)
            costs = weights[0] * np.maximum(0.0, low - c) + weights[1] * np.maximum(0.0, c - high)
            costs[costs >= top] = np.inf
        if not own and low > 0:
            raise ModelError(f"{found.name} wants value {value:g}, which no variable has")
        factors += _counts(found, int(value), costs)
    return factors


def _among(found: Global, top: float) -> list[Many]:
    _require(found, top, "var", "lin", "quad")
    k = len(found.scope)
    low, high = found.bounds[0]
    costs = _violations(k, low, high, found, top)
    return [Among(found.scope, [found.values] * k, costs)] if costs.any() else []


def _clique(found: Global, _: float) -> list[Many]:
    """At most `capacity` variables have one of the values of their row of `weights`."""
    own = [(v, values) for v, values in zip(found.scope, found.weights, strict=True) if values]
    count = np.arange(len(own) + 1.0)
    costs = np.where(count > found.capacity, np.inf, 0.0)
    return [Among([v for v, _ in own], [r for _, r in own], costs)] if costs.any() else []


def _same(found: Global, top: float) -> list[Many]:
    """Each value occurs equally often in both lists; the cost counts half of the differences."""
    one, other = found.parts
    labels = dict(zip(found.scope, found.sizes, strict=True))
    factors: list[Many] = []
    for value in range(max(found.sizes)):
        rest = [[x for x in range(labels[v]) if x != value] for v in other]
        away = np.abs(np.arange(len(one) + len(other) + 1.0) - len(other))
        costs = found.cost * away / 2
        costs[found.cost * away >= top] = np.inf  # the other values add the other half
        factors.append(Among([*one, *other], [[value]] * len(one) + rest, costs))
    return factors


def _knapsack(found: Global, _: float) -> list[Many]:
    rows = [row[:d] for row, d in zip(found.weights, found.sizes, strict=True)]
    if sum(min(row) for row in rows) >= found.capacity:
        return []
    return [Linear(found.scope, rows, low=found.capacity)]


def _regular(found: Global, top: float) -> list[Many]:
    """Return the automaton; states are in the order of the file, after the initial state."""
    _require(found, top, "hard")
    if len(found.starts) != 1:
        raise ModelError(f"expected one initial state of {found.name}, not {len(found.starts)}")
    order = [found.starts[0], *(s for s in range(found.states) if s != found.starts[0])]
    place = {s: i for i, s in enumerate(order)}
    moves = np.full((found.states, max(found.sizes)), -1)
    for before, value, after in found.transitions:
        if value < moves.shape[1]:
            if moves[place[before], value] not in (-1, place[after]):
                raise ModelError(f"expected one transition of {found.name} by state and value")
            moves[place[before], value] = place[after]
    costs = np.array([0.0 if s in found.ends else np.inf for s in order])
    return [Regular(found.scope, moves, costs)]


GLOBALS: dict[str, Callable[[Global, float], list[Many]]] = {
    "salldiff": _alldiff, "salldiffdp": _alldiff, "walldiff": _alldiff,
    "gcc": _gcc, "sgcc": _gcc, "sgccdp": _gcc, "wgcc": _gcc, "clique": _clique,
    "samong": _among, "samongdp": _among, "wamong": _among,
    "ssame": _same, "sregular": _regular, "sregulardp": _regular,
    "knapsack": _knapsack, "knapsackp": _knapsack, "knapsackv": _knapsack,
}  # fmt: skip
