"""Random models of pairs with many labels, and the records of their bounds by squares."""

from __future__ import annotations

import itertools

import numpy as np

from softmap import Model
from softmap.subsolvers.spins.indicators import Squares


def random_squares_model(rng: np.random.Generator) -> Model:
    """Two to five variables of one to four labels: costs of all sizes, some of them +inf."""
    n = int(rng.integers(2, 6))
    sizes = rng.integers(1, 5, n).tolist()
    scale = 10.0 ** rng.integers(-8, 9) if rng.random() < 0.3 else 1.0
    whole, hard = rng.random() < 0.4, rng.choice([0.0, 0.0, 0.1])

    def costs(*shape: int) -> np.ndarray:
        table = rng.integers(-9, 10, shape) * scale if whole else rng.normal(size=shape) * scale
        if rng.random() < 0.1:
            table = table * 10.0 ** rng.integers(-6, 7, shape)
        return np.where(rng.random(shape) < hard, np.inf, table)

    pairs = [p for p in itertools.combinations(range(n), 2) if rng.random() < 0.9] or [(0, 1)]
    pairs += pairs[:1] * int(rng.integers(0, 3))  # several tables of one pair
    factors = [((i,), costs(sizes[i])) for i in range(n)]
    for i, j in pairs:
        i, j = (i, j) if rng.random() < 0.7 else (j, i)
        factors.append(((i, j), costs(sizes[i], sizes[j])))
    return Model.from_factors(sizes, factors, constant=float(rng.normal()) * scale)


def squares_record(found: Squares) -> list[list[int]]:
    """The arrays of the record SQUARES, in the units of the model."""
    arrays = [[0]]
    for rows in (2 * found.moved, found.factor):
        every = np.zeros((len(found.possible), rows.shape[1]))
        every[found.possible] = rows
        arrays.append(every.ravel().view(np.int64).tolist())
    return arrays
