"""Small models of every family at every size of costs, with their exact costs as fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import softmap
from softmap.potentials import (
    Potts,
    Projection,
    SharedTables,
    Tables,
    TruncatedLinear,
    TruncatedQuadratic,
)

FAMILIES = ("tables", "shared", "potts", "linear", "quadratic", "projection")


@dataclass(frozen=True)
class Sizes:
    """How large costs and λ are, and how they are spread."""

    scale: float = 1.0
    big: float = 0.0  # finite big-M in a third of the entries, in units of `scale`
    lam: float = 1.0  # in units of `scale`
    hard: bool = False
    whole: bool = False  # small integers, for ties


class Maker:
    """Random numbers of one model."""

    def __init__(self, seed: int, sizes: Sizes) -> None:
        self.rng, self.sizes = np.random.default_rng(seed), sizes

    def costs(self, *shape: int, hard: bool = True) -> np.ndarray:
        rng, sizes = self.rng, self.sizes
        out = rng.integers(-2, 3, shape).astype(float) if sizes.whole else rng.normal(size=shape)
        if sizes.big:
            out = np.where(rng.random(shape) < 0.35, sizes.big, out)
        out = scaled(out, sizes.scale)
        if sizes.hard and hard:
            out = np.where(rng.random(shape) < 0.2, np.inf, out)
        return out

    def potential(self, family: str, m: int, rows: int, cols: int):
        """A potential of m edges, and its exact cost as a function of (k, x, y)."""
        rng = self.rng
        if family == "tables":
            tables = self.costs(m, rows, cols)
            return Tables(tables), lambda k, x, y: exact(tables[k, x, y])
        if family == "shared":
            tables, index = self.costs(2, rows, cols), rng.integers(0, 2, m)
            weights = rng.uniform(0.01, 1.0, m)
            return SharedTables(tables, index, weights), lambda k, x, y: times(
                weights[k], exact(tables[index[k], x, y])
            )
        if family == "projection":
            maps = [rng.integers(0, cols, rows) for _ in range(2)]
            index = rng.integers(0, 2, m)
            return Projection(maps, np.full(m, cols), index), lambda k, x, y: (
                Fraction(0) if maps[index[k]][x] == y else None
            )
        weights = self.costs(m, hard=family == "potts")
        if rng.random() < 0.7:
            weights = np.abs(weights)
        if family == "potts":
            return Potts(weights), lambda k, x, y: Fraction(0) if x == y else exact(weights[k])
        cut = rng.choice([0.0, 0.3, 1.0, np.nextafter(4.0, 5.0), 2.5, 7.0, np.inf], m)
        kind = TruncatedLinear if family == "linear" else TruncatedQuadratic

        def distance(k, x, y):
            far = abs(x - y) if family == "linear" else (x - y) ** 2
            return times(weights[k], Fraction(far) if cut[k] >= far else Fraction(cut[k]))

        return kind(weights, cut), distance

    def lam(self, size: int) -> np.ndarray:
        spread = self.rng.normal(size=size)
        if self.rng.random() < 0.5:  # some large, some small
            spread *= 10.0 ** self.rng.uniform(-16, 0, size)
        return scaled(spread * self.sizes.lam, self.sizes.scale)


def scaled(values: np.ndarray, scale: float) -> np.ndarray:
    """values · scale, kept finite."""
    with np.errstate(over="ignore"):
        return np.clip(values * scale, -1.7e308, 1.7e308)


def exact(value: float) -> Fraction | None:
    """The number as a fraction, None for +inf."""
    return None if value == np.inf else Fraction(float(value))


def times(weight: float, value: Fraction | None) -> Fraction | None:
    return None if value is None else Fraction(float(weight)) * value


@dataclass(frozen=True)
class Case:
    model: softmap.Model
    lam: np.ndarray
    pair: list  # exact cost of edge e at (x, y): pair[e](x, y)


def case(seed: int, sizes: Sizes, families=FAMILIES, most: int = 5) -> Case:
    """A model of 2 to 6 nodes with parallel edges, alike enough for full tiles, or ragged."""
    maker = Maker(seed, sizes)
    rng = maker.rng
    n = int(rng.integers(2, 7))
    ragged = rng.random() < 0.4
    labels = rng.integers(1, most + 1, n) if ragged else np.full(n, rng.integers(1, most + 1))
    groups, pair = [], []
    for family in rng.choice(families, int(rng.integers(1, 3))):
        ends = np.array([rng.permutation(n)[:2] for _ in range(int(rng.integers(1, 21)))])
        same = (labels[ends] == labels[ends[0]]).all(axis=1)
        ends = ends[same]
        potential, value = maker.potential(str(family), len(ends), *labels[ends[0]])
        groups.append((ends, potential))
        pair += [lambda x, y, k=k, value=value: value(k, x, y) for k in range(len(ends))]
    unary = [maker.costs(int(d)) for d in labels]
    constant = float(scaled(rng.normal(size=1), sizes.scale)[0])
    model = softmap.Model(unary, None, groups, constant=constant)
    return Case(model, maker.lam(int(model.half_offset[-1])), pair)
