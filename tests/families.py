"""The test registry: a new potential family is crossed with every law by adding one line here."""

from __future__ import annotations

from collections.abc import Callable

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

Make = Callable[[np.random.Generator, int, int, bool], Potential]


def _costs(rng: np.random.Generator, rows: int, cols: int, hard: bool) -> np.ndarray:
    table = rng.normal(size=(1, rows, cols))
    if hard:
        table[rng.random(table.shape) < 0.3] = np.inf
    return table


def _weight(rng: np.random.Generator) -> list[float]:
    return [float(rng.choice([-1.0, 0.0, 0.5, 2.0, 100.0]))]


FAMILIES: dict[str, Make] = {
    "tables": lambda rng, r, c, hard: Tables(_costs(rng, r, c, hard)),
    "shared": lambda rng, r, c, hard: SharedTables(_costs(rng, r, c, hard), [0], [0.7]),
    "potts": lambda rng, r, c, hard: Potts([np.inf] if hard else _weight(rng)),
    "linear": lambda rng, r, c, hard: TruncatedLinear(
        _weight(rng), rng.choice([0.0, 1.5, 2.0, 3.0, np.inf])
    ),
    "quadratic": lambda rng, r, c, hard: TruncatedQuadratic(
        _weight(rng), rng.choice([0.0, 2.5, 4.0, np.inf])
    ),
    "projection": lambda rng, r, c, hard: Projection([rng.integers(0, c, r)], [c]),
}
