"""Models as plain data, so that they can be made at random, made smaller, and printed as code."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

import softmap
from support.exact_sums import AllCosts, all_costs

Table = list[list[float]]
ROUNDED = ("shared", "linear", "quadratic")  # families whose costs are products


@dataclass(frozen=True)
class Edge:
    """One edge: its ends, its family and that family's parameters.

    `numbers` is a table (tables), weight and table (shared), weight (potts), weight and truncation
    (linear, quadratic), or the map from labels to labels (projection).
    """

    ends: tuple[int, int]
    family: str
    table: Table = field(default_factory=list)
    weight: float = 1.0
    truncation: float = math.inf
    maps: tuple[int, ...] = ()

    def cost(self, x: int, y: int) -> float:
        """From the definition of the family."""
        if self.family == "tables":
            return self.table[x][y]
        if self.family == "shared":
            return self.weight * self.table[x][y]
        if self.family == "potts":
            return 0.0 if x == y else self.weight
        if self.family == "projection":
            return 0.0 if self.maps[x] == y else math.inf
        distance = abs(x - y) if self.family == "linear" else (x - y) ** 2
        return self.weight * min(float(distance), self.truncation)

    def costs(self, rows: int, cols: int) -> np.ndarray:
        """All entries of `cost`."""
        if self.family in ROUNDED:
            return self.weight * self.unweighted(rows, cols)
        return self.unweighted(rows, cols)

    def unweighted(self, rows: int, cols: int) -> np.ndarray:
        """The costs; those of a family of products before they are multiplied by the weight."""
        if self.family in ("tables", "shared"):
            return np.array(self.table, dtype=np.float64)
        first, second = np.arange(rows)[:, None], np.arange(cols)
        if self.family == "potts":
            return np.where(first == second, 0.0, self.weight)
        if self.family == "projection":
            return np.where(np.array(self.maps)[:, None] == second, 0.0, math.inf)
        power = 1 if self.family == "linear" else 2
        return np.minimum(np.abs(first - second) ** power * 1.0, self.truncation)

    def exact(self, x: int, y: int) -> Fraction:
        """The finite cost of a pair in real numbers: products are not rounded."""
        if self.family == "shared":
            return Fraction(self.weight) * Fraction(self.table[x][y])
        if self.family in ("linear", "quadratic"):
            return Fraction(self.weight) * Fraction(replace(self, weight=1.0).cost(x, y))
        return Fraction(self.cost(x, y))

    def potential(self, cols: int) -> str:
        """The potential of this edge alone, as code."""
        if self.family == "tables":
            return f"softmap.Tables([{self.table!r}])"
        if self.family == "shared":
            return f"softmap.SharedTables([{self.table!r}], [0], [{self.weight!r}])"
        if self.family == "potts":
            return f"softmap.Potts([{self.weight!r}])"
        if self.family == "projection":
            return f"softmap.Projection([{list(self.maps)!r}], [{cols}])"
        name = "TruncatedLinear" if self.family == "linear" else "TruncatedQuadratic"
        return f"softmap.{name}([{self.weight!r}], [{self.truncation!r}])"


@dataclass(frozen=True)
class Spec:
    """A model: unary costs, edges, constant."""

    unary: list[list[float]]
    edges: list[Edge]
    constant: float = 0.0

    def model(self) -> softmap.Model:
        """Edges of one family and shape become one group, where that is possible."""
        groups: list = []
        for family, same in itertools.groupby(self.edges, key=lambda e: (e.family, self._shape(e))):
            edges = list(same)
            groups.append(([e.ends for e in edges], _group(family[0], edges, family[1][1])))
        return softmap.Model(
            [np.array(u) for u in self.unary], None, groups, constant=self.constant
        )

    def _shape(self, edge: Edge) -> tuple[int, int]:
        i, j = edge.ends
        return len(self.unary[i]), len(self.unary[j])

    def terms(self, labels) -> list[float]:
        """What a labelling pays."""
        paid = [self.unary[i][x] for i, x in enumerate(labels)]
        paid += [e.cost(labels[e.ends[0]], labels[e.ends[1]]) for e in self.edges]
        return [*paid, self.constant]

    def all_costs(self) -> AllCosts:
        """The exact sums of the float costs of all labellings."""
        parts = [(e.ends, e.costs(*self._shape(e))) for e in self.edges]
        return self._summed(parts)

    def real_costs(self) -> AllCosts:
        """The costs of all labellings in real numbers: products are not rounded."""
        if not any(e.family in ROUNDED for e in self.edges):
            return self.all_costs()
        weights = [e.weight if e.family in ROUNDED else 1.0 for e in self.edges]
        tables = [e.unweighted(*self._shape(e)) for e in self.edges]
        return self._summed(
            [(e.ends, t, w) for e, t, w in zip(self.edges, tables, weights, strict=True)]
        )

    def _summed(self, parts: list) -> AllCosts:
        unary = [((i,), u) for i, u in enumerate(self.unary)]
        return all_costs([len(u) for u in self.unary], [*unary, *parts], self.constant)

    def labellings(self):
        """All of them."""
        return itertools.product(*(range(len(u)) for u in self.unary))

    def times(self, exponent: int) -> Spec:
        """All costs times a power of two."""

        def up(value: float) -> float:
            return math.ldexp(value, exponent) if math.isfinite(value) else value

        edges = [
            replace(
                e,
                weight=e.weight if e.family in ("tables", "projection") else up(e.weight),
                table=[[up(c) for c in r] for r in e.table] if e.family == "tables" else e.table,
            )
            for e in self.edges
        ]
        return Spec([[up(c) for c in u] for u in self.unary], edges, up(self.constant))

    def numbers(self) -> list[float]:
        """Every finite number that is a cost."""
        found = [self.constant, *itertools.chain(*self.unary)]
        for e in self.edges:
            found += [*e.costs(*self._shape(e)).ravel().tolist(), e.weight]
        return [v for v in found if math.isfinite(v)]

    def code(self) -> str:
        """Python that builds the model."""
        pairs = ",\n        ".join(
            f"([{e.ends!r}], {e.potential(self._shape(e)[1])})" for e in self.edges
        )
        unary = ", ".join(f"np.array({u!r})" for u in self.unary)
        return (
            "import numpy as np\nimport softmap\nfrom math import inf\n\n"
            f"model = softmap.Model(\n    [{unary}],\n    None,\n    [\n        {pairs}\n    ],\n"
            f"    constant={self.constant!r},\n)"
        )


def _group(family: str, edges: list[Edge], cols: int):
    weights = [e.weight for e in edges]
    if family == "tables":
        return softmap.Tables([np.array(e.table) for e in edges])
    if family == "shared":
        tables = [np.array(e.table) for e in edges]
        return softmap.SharedTables(tables, np.arange(len(edges)), weights)
    if family == "potts":
        return softmap.Potts(weights)
    if family == "projection":
        return softmap.Projection([list(e.maps) for e in edges], [cols] * len(edges))
    kind = softmap.TruncatedLinear if family == "linear" else softmap.TruncatedQuadratic
    return kind(weights, [e.truncation for e in edges])
