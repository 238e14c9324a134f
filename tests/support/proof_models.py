"""Small models of every family at every size of costs, with their exact costs as fractions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import softmap
from softmap.model import checked_network
from support.families import FAMILIES, Ends, Numbers


@dataclass(frozen=True)
class Sizes:
    """How large costs and λ are, and how they are spread."""

    scale: float = 1.0
    big: float = 0.0  # finite big-M in a third of the entries, in units of `scale`
    lam: float = 1.0  # in units of `scale`
    hard: bool = False
    whole: bool = False  # small integers, for ties


class Maker(Numbers):
    """Random numbers of one model."""

    def __init__(self, seed: int, sizes: Sizes) -> None:
        super().__init__(np.random.default_rng(seed), sizes.hard, sizes.whole)
        self.sizes = sizes

    def costs(self, *shape: int) -> np.ndarray:
        out = super().costs(*shape)
        if self.sizes.big:
            out = np.where(self.rng.random(shape) < 0.35, self.sizes.big, out)
        return scaled(out, self.sizes.scale)

    def lam(self, size: int) -> np.ndarray:
        spread = self.rng.normal(size=size)
        if self.rng.random() < 0.5:  # some large, some small
            spread *= 10.0 ** self.rng.uniform(-16, 0, size)
        return scaled(spread * self.sizes.lam, self.sizes.scale)


def scaled(values: np.ndarray, scale: float) -> np.ndarray:
    """values · scale, kept finite."""
    with np.errstate(over="ignore"):
        return np.clip(values * scale, -1.7e308, 1.7e308)


@dataclass(frozen=True)
class Case:
    model: softmap.Model
    lam: np.ndarray
    pair: list  # exact cost of edge e at (x, y): pair[e](x, y)


def case(seed: int, sizes: Sizes, families=tuple(FAMILIES), most: int = 5) -> Case:
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
        kind, (rows, cols) = FAMILIES[str(family)], labels[ends].T.tolist()
        potential = kind.make(maker, Ends(rows, cols))
        groups.append((ends, potential))
        pair += [
            lambda x, y, k=k, p=potential, kind=kind: kind.exact(p, k, x, y)
            for k in range(len(ends))
        ]
    unary = [maker.forbid(maker.costs(int(d)), share=0.2) for d in labels]
    constant = float(scaled(rng.normal(size=1), sizes.scale)[0])
    model = softmap.Model(unary, None, groups, constant=constant)
    return Case(model, maker.lam(int(checked_network(model).half_offset[-1])), pair)
