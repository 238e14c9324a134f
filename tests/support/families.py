"""The registry of potential families: one line crosses a family with every test there is.

An entry says how to make a random group of edges, and the cost of one pair of labels in exact
arithmetic. Tests of verbs, kernels, bounds, couplings, labels, files and the LP go through all
entries; `tests/strategies.py` and `tests/proof_models.py` build random models from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from softmap.model.potentials import (
    Potential,
    Potts,
    Projection,
    SharedTables,
    Tables,
    TruncatedLinear,
    TruncatedQuadratic,
)

CUTS = [0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5, np.nextafter(4.0, 5.0), 7.0, np.inf]


class Numbers:
    """Random costs: normal ones, or small integers (for ties); `hard` puts +inf among them."""

    def __init__(self, rng: np.random.Generator, hard: bool = False, whole: bool = False) -> None:
        self.rng, self.hard, self.whole = rng, hard, whole

    def costs(self, *shape: int) -> np.ndarray:
        """Finite costs."""
        if self.whole:
            return self.rng.integers(-2, 3, size=shape).astype(float)
        return self.rng.normal(size=shape)

    def forbid(self, costs: np.ndarray, keep: Any = (), share: float = 0.3) -> np.ndarray:
        """Some of the costs at +inf, never the one at `keep`, if there are hard constraints."""
        if not self.hard:
            return costs
        out = np.where(self.rng.random(costs.shape) < share, np.inf, costs)
        if keep:
            out[keep] = costs[keep]
        return out

    def weights(self, m: int) -> np.ndarray:
        """One factor per edge, often all of them positive, as the fast forms want them."""
        weights = self.costs(m)
        return np.abs(weights) if self.rng.random() < 0.5 else weights


@dataclass(frozen=True)
class Ends:
    """Label counts of the two ends of each edge, and pairs of labels that stay allowed."""

    rows: Sequence[int]
    cols: Sequence[int]
    keep: Sequence[Any] = ()  # one (x, y) per edge, or none at all

    def __len__(self) -> int:
        return len(self.rows)

    def shapes(self) -> list[tuple[int, int, Any]]:
        keep = self.keep or [()] * len(self)
        return [(int(r), int(c), k) for r, c, k in zip(self.rows, self.cols, keep, strict=True)]


def _tables(numbers: Numbers, ends: Ends) -> Tables:
    return Tables([numbers.forbid(numbers.costs(r, c), k) for r, c, k in ends.shapes()])


def _shared(numbers: Numbers, ends: Ends) -> SharedTables:
    """Up to two tables for each shape and pair that must stay allowed."""
    tables: list[np.ndarray] = []
    known: dict[Any, int] = {}
    index = []
    for rows, cols, keep in ends.shapes():
        key = rows, cols, keep, bool(numbers.rng.integers(2))
        if key not in known:
            known[key] = len(tables)
            tables.append(numbers.forbid(numbers.costs(rows, cols), keep))
        index.append(known[key])
    weights = numbers.rng.uniform(0.01, 1.0, len(ends))
    none = numbers.rng.random(len(ends)) < (0.0 if numbers.hard else 0.1)
    return SharedTables(tables, index, np.where(none, 0.0, weights))


def _potts(numbers: Numbers, ends: Ends) -> Potts:
    weights = numbers.weights(len(ends))
    excluded = numbers.hard & (numbers.rng.random(len(ends)) < 0.3)
    agree = np.array([k == () or k[0] == k[1] for _, _, k in ends.shapes()], dtype=bool)
    return Potts(np.where(excluded & agree, np.inf, weights))


def _linear(numbers: Numbers, ends: Ends) -> TruncatedLinear:
    return TruncatedLinear(numbers.weights(len(ends)), numbers.rng.choice(CUTS, len(ends)))


def _quadratic(numbers: Numbers, ends: Ends) -> TruncatedQuadratic:
    return TruncatedQuadratic(numbers.weights(len(ends)), numbers.rng.choice(CUTS, len(ends)))


def _projection(numbers: Numbers, ends: Ends) -> Projection:
    maps = []
    for rows, cols, keep in ends.shapes():
        maps.append(numbers.rng.integers(0, cols, rows))
        if keep:
            maps[-1][keep[0]] = keep[1]
    return Projection(maps, ends.cols)


def number(value: float) -> Fraction | None:
    """A cost as a fraction, None for +inf."""
    return None if value == np.inf else Fraction(float(value))


def times(weight: float, value: Fraction | None) -> Fraction | None:
    """The exact product; None stays None."""
    return None if value is None else Fraction(float(weight)) * value


def _truncated(p: Any, k: int, distance: int) -> Fraction | None:
    near = p.truncation[k] >= distance
    return times(p.weights[k], Fraction(distance if near else float(p.truncation[k])))


def _entry(p: Any, k: int, x: int, y: int) -> Fraction | None:
    return number(p.tables[p.index[k]][x, y])


def _tie(image: int, label: int) -> Fraction | None:
    return Fraction(0) if image == label else None


@dataclass(frozen=True)
class Family:
    """How to make random potentials of a family, and what they cost.

    `exact(p, k, x, y)` is a fraction, or None for +inf. A family with `ties` forbids pairs whatever
    its parameters are, so it is left out where costs have to be finite.
    """

    make: Callable[[Numbers, Ends], Potential]
    exact: Callable[[Any, int, int, int], Fraction | None]
    ties: bool = False


FAMILIES: dict[str, Family] = {
    "tables": Family(_tables, lambda p, k, x, y: number(p.tables[k][x, y])),
    "shared": Family(_shared, lambda p, k, x, y: times(p.weights[k], _entry(p, k, x, y))),
    "potts": Family(_potts, lambda p, k, x, y: number(p.weights[k]) if x != y else Fraction(0)),
    "truncated-linear": Family(_linear, lambda p, k, x, y: _truncated(p, k, abs(x - y))),
    "truncated-quadratic": Family(_quadratic, lambda p, k, x, y: _truncated(p, k, (x - y) ** 2)),
    "projection": Family(_projection, lambda p, k, x, y: _tie(p.maps[p.index[k]][x], y), ties=True),
}
PAIRWISE = tuple(name for name, family in FAMILIES.items() if not family.ties)


def single(
    name: str, rng: np.random.Generator, rows: int, cols: int, hard: bool = False
) -> Potential:
    """A random group of one edge."""
    return FAMILIES[name].make(Numbers(rng, hard), Ends([rows], [cols]))
