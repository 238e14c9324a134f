"""Automata with weights, grammars and embedded networks of WCSP and CFN files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softmap.errors import ModelError
from softmap.io.factors import factors_of
from softmap.io.layered import Layered
from softmap.io.limits import LIMITS
from softmap.model.many import Many
from softmap.model.potentials.base import Costs

_DIGITS = 9  # sums of decimals are equal if they agree to so many digits
Costing = tuple[tuple[int, float], ...]


def regular(
    name: str,
    scope: Sequence[int],
    sizes: Sequence[int],
    given: Mapping[str, Any],
    wrong: float,
    top: float,
) -> Many:
    """Return the least cost of a run of an automaton that accepts the labels.

    `wrong` is the cost of a transition by another label than its own; states and transitions may
    have costs (`wregular`). The automaton may have several runs: the state of the factor is the set
    of states with the costs of their best runs.
    """
    weighted = name == "wregular"
    last = given["nb_states"] - 1
    arcs: dict[int, list[tuple[int, int, float]]] = {}
    for row in given["transitions"]:
        before, value, after, cost = row if weighted else (*row, 0.0)
        arcs.setdefault(before, []).append((value, after, cost))
    starts = dict(given["starts"] if weighted else ((s, 0.0) for s in given["starts"]))
    ends = dict(given["ends"] if weighted else ((s, 0.0) for s in given["ends"]))
    used = [*starts, *ends, *arcs, *(arc[1] for own in arcs.values() for arc in own)]
    if any(not 0 <= s <= last for s in used):
        raise ModelError(f"expected states below {last + 1} in {name}")
    if weighted and not starts:
        starts = dict.fromkeys(range(last + 1), 0.0)

    def step(_: int, costs: Costing, x: int) -> tuple[Costing, float] | None:
        best: dict[int, float] = {}
        for state, so_far in costs:
            for value, after, cost in arcs.get(state, ()):
                total = so_far + cost + (0.0 if value == x else wrong)
                if total < best.get(after, math.inf):
                    best[after] = total
        if not best:
            return None
        least = min(best.values())
        found = sorted((s, round(c - least, _DIGITS)) for s, c in best.items() if c - least < top)
        return tuple(found), least

    def final(costs: Costing) -> float:
        return min((c + ends.get(s, math.inf) for s, c in costs), default=math.inf)

    return Layered(name, scope, sizes, tuple(sorted(starts.items())), step, final)


def grammar(name: str, sizes: Sequence[int], given: Mapping[str, Any], wrong: float) -> Costs:
    """Return the table of the least cost of a parse, over all labels.

    `wrong` is the cost of a label where the parse has another. The table of a symbol over part of
    the variables is computed from tables over shorter parts.
    """
    k = len(sizes)
    if k > LIMITS.axes or math.prod(sizes) > 2**LIMITS.joint_variables:
        raise ModelError(
            f"{name} over {k} variables would need a table of {math.prod(sizes):.3g} entries; "
            f"expected at most {2**LIMITS.joint_variables}"
        )
    parts: dict[tuple[int, int], dict[int, Costs]] = {}
    for i, d in enumerate(sizes):
        own = parts[i, i] = {}
        for symbol, value, *weight in given["terminals"]:
            costs = np.full(d, wrong)
            costs[value : value + 1] = 0.0
            _lower(own, symbol, costs + sum(weight))
    for length in range(1, k):
        for i in range(k - length):
            own = parts[i, i + length] = {}
            for symbol, left, right, *weight in given["non_terminals"]:
                for cut in range(i, i + length):
                    one, other = parts[i, cut].get(left), parts[cut + 1, i + length].get(right)
                    if one is not None and other is not None:
                        _lower(own, symbol, np.add.outer(one, other) + sum(weight))
    found = parts[0, k - 1].get(given["start"])
    return np.full(tuple(sizes), np.inf) if found is None else found


def _lower(tables: dict[int, Costs], symbol: int, costs: Costs) -> None:
    known = tables.get(symbol)
    tables[symbol] = costs if known is None else np.minimum(known, costs)


def embedded(
    name: str, scope: Sequence[int], sizes: Sequence[int], model: Any, given: Mapping[str, Any]
) -> Many:
    """Allow the labels whose energy in a network of their own is at least `lb`, less than `ub`.

    The state is the energy so far and the labels of variables that later factors need.
    """
    if tuple(model.num_labels.tolist()) != tuple(sizes):
        raise ModelError(f"expected a network over the variables of {name}, in their order")
    if model.network.has_chains or given.get("strongduality"):
        raise ModelError(f"{name} with global cost functions or strong duality is not supported")
    factors = factors_of(model.network, zeros=False)
    ready: list[list[tuple[tuple[int, ...], Costs]]] = [[] for _ in sizes]
    needed = list(range(len(sizes)))  # the last place where the label of a variable is needed
    for own, table in zip(factors.scopes, factors.tables, strict=True):
        ready[max(own)].append((own, table))
        for i in own:
            needed[i] = max(needed[i], max(own))

    def step(t: int, state: tuple[Any, ...], x: int) -> tuple[tuple[Any, ...], float] | None:
        energy, labels = state[0], {**dict(state[1]), t: x}
        for own, table in ready[t]:
            energy += float(table[tuple(labels[i] for i in own)])
        if energy == math.inf:
            return None
        kept = tuple((i, y) for i, y in labels.items() if needed[i] > t)
        return (round(energy, _DIGITS), kept), 0.0

    def final(state: tuple[Any, ...]) -> float:
        energy = state[0]
        return 0.0 if given["lb"] <= energy < given["ub"] else math.inf

    return Layered(name, scope, sizes, (round(factors.constant, _DIGITS), ()), step, final)
