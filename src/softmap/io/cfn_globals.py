"""Global cost functions in CFN files: `type: name, params: {...}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from softmap.io.cfn_tokens import Tokens
from softmap.io.global_costs import GLOBALS, METRICS, Global

__all__ = ["read_global"]

_KEYS = frozenset((
    "metric", "cost", "bounds", "vars1", "vars2", "starts", "ends", "transitions", "nb_states",
    "min", "max", "values", "capacity", "weights", "weightedvalues",
))  # fmt: skip
_DEEPEST = 5


def read_global(
    tokens: Tokens,
    scope: Sequence[int],
    sizes: Sequence[int],
    variables: Mapping[str, int],
    labels: Sequence[Mapping[str, int]],
) -> Global:
    """The cost function from the word `type` on."""
    tokens.word("type")
    name = tokens.peek()
    if name not in GLOBALS or name == "knapsackp":  # that is WCSP's way to say knapsackv
        raise tokens.error(f"one of {', '.join(GLOBALS)}")
    found = Global(tokens.text("a type"), scope, sizes)
    if not scope:
        raise tokens.error(f"variables of {name!r}")
    tokens.word("params")
    return _Parameters(tokens, found, variables, labels).read()


class _Parameters:
    """Names and values, and what the cost function makes of them."""

    def __init__(
        self,
        tokens: Tokens,
        found: Global,
        variables: Mapping[str, int],
        labels: Sequence[Mapping[str, int]],
    ) -> None:
        self.tokens, self.found = tokens, found
        self.variables, self.labels = variables, labels
        self.given: dict[str, Any] = {}

    def read(self) -> Global:
        tokens, found = self.tokens, self.found
        closing = tokens.opening("'{' of parameters")
        while not tokens.closes(closing):
            key = tokens.peek()
            if key not in _KEYS:
                raise tokens.error(f"a parameter of {found.name!r}")
            tokens.text("a parameter")
            self.given[key] = self._value(1)
        if found.name.startswith("knapsack"):
            self._knapsack()
        else:
            if found.name != "ssame":
                found.metric = self._metric()
            found.cost = self._number(self._need("cost"), least=0.0)
            self._others()
        return found

    def _value(self, depth: int) -> Any:
        tokens = self.tokens
        if not tokens.at_opening():
            return tokens.text("a value")
        if depth > _DEEPEST:
            raise tokens.error(f"at most {_DEEPEST} brackets inside each other")
        closing, items = tokens.opening("'['"), []
        while not tokens.closes(closing):
            items.append(self._value(depth + 1))
        return items

    def _need(self, key: str, kind: type = str) -> Any:
        value = self.given.get(key)
        if not isinstance(value, kind):
            raise self.tokens.error(f"{key!r} among the parameters of {self.found.name!r}", "none")
        return value

    def _metric(self) -> str:
        metric: str = self._need("metric")
        if metric not in METRICS:
            raise self.tokens.error(f"one of {', '.join(METRICS)}", metric)
        return metric

    def _number(self, word: Any, least: float = -1e15, most: float = 1e15) -> float:
        try:
            value = float(word)
        except (TypeError, ValueError):
            value = float("nan")
        if not least <= value <= most:
            raise self.tokens.error(f"a number of {self.found.name!r}", str(word))
        return value

    def _whole(self, word: Any, least: int = 0, most: int = 2**31 - 1) -> int:
        value = self._number(word, least, most)
        if value != int(value):
            raise self.tokens.error("a whole number", str(word))
        return int(value)

    def _label(self, word: Any, i: int) -> int:
        """A label of variable i, by name or number."""
        known = self.labels[i].get(word) if isinstance(word, str) else None
        return self._whole(word) if known is None else known

    def _row(self, row: Any, *widths: int) -> list[Any]:
        if not isinstance(row, list) or len(row) not in widths:
            raise self.tokens.error(f"rows of {widths[0]} in {self.found.name!r}", str(row)[:40])
        return row

    def _knapsack(self) -> None:
        """A weight of label 1 of each variable, or triples of variable, label and weight."""
        found = self.found
        found.capacity = self._number(self._need("capacity"))
        found.weights = [[0] * d for d in found.sizes]
        if found.name == "knapsack":
            weights = self._row(self._need("weights", list), len(found.scope))
            for row, word in zip(found.weights, weights, strict=True):
                row[1:2] = [self._whole(word, -(2**40), 2**40)][: len(row) - 1]
            return
        place = {i: t for t, i in enumerate(found.scope)}
        for triple in self._need("weightedvalues", list):
            name, value, weight = self._row(triple, 3)
            i = self.variables.get(str(name), -1)
            if i not in place:
                raise self.tokens.error("a variable of the scope", str(name))
            x = self._label(value, i)
            if x >= found.sizes[place[i]]:
                raise self.tokens.error("a label of the variable", str(value))
            found.weights[place[i]][x] = self._whole(weight, -(2**40), 2**40)

    def _others(self) -> None:
        found, name = self.found, self.found.name
        first = found.scope[0]
        if "gcc" in name:
            wide = 5 if found.metric == "wdec" else 3
            for row in self._need("bounds", list):
                value, *rest = self._row(row, wide)
                numbers = [self._number(x, 0.0) for x in rest]
                found.bounds.append([float(self._label(value, first)), *numbers])
        elif "among" in name:
            found.values = [self._label(x, first) for x in self._need("values", list)]
            found.bounds = [[self._number(self._need(key), 0.0) for key in ("min", "max")]]
        elif name == "ssame":
            one, other = (self._variables(key) for key in ("vars1", "vars2"))
            if len(one) != len(other) or sorted(one + other) != sorted(found.scope):
                raise self.tokens.error("two lists of the same length, of all variables", "others")
            found.parts = one, other
        elif "regular" in name:
            self._automaton()

    def _variables(self, key: str) -> list[int]:
        words = self._need(key, list)
        return [self.variables.get(str(w), -1) for w in words]

    def _automaton(self) -> None:
        found, first = self.found, self.found.scope[0]
        found.states = self._whole(self._need("nb_states"), 1, 2**15)
        last = found.states - 1
        found.starts = [self._whole(x, 0, last) for x in self._need("starts", list)]
        found.ends = [self._whole(x, 0, last) for x in self._need("ends", list)]
        for row in self._need("transitions", list):
            before, value, after = self._row(row, 3)
            ends = [self._whole(x, 0, last) for x in (before, after)]
            found.transitions.append([ends[0], self._label(value, first), ends[1]])
