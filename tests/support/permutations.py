"""Random models whose labels all differ, and their optima by enumeration in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

import softmap

Factors = list[tuple[tuple[int, ...], Any]]


def random_factors(rng: np.random.Generator, most: int = 5) -> tuple[int, int, Factors]:
    """Return numbers of variables and labels, and tables that need not forbid equal labels.

    Some are quadratic assignments with symmetries, some have real costs, some forbidden entries.
    """
    n = int(rng.integers(3, most + 1))
    d = n if rng.random() < 0.6 else int(rng.integers(n, most + 2))
    scale, real, hard = float(rng.choice([1, 2, 6])), rng.random() < 0.3, rng.random() < 0.3
    flow, distance = rng.integers(0, 3, (n, n)), rng.integers(0, 3, (d, d))
    flow, distance = flow + flow.T, distance + distance.T
    product, low = rng.random() < 0.4, -9 if rng.random() < 0.3 else 0

    def costs(*shape: int) -> Any:
        table = scale * rng.integers(low, 10, shape)
        table = table + real * 10.0 ** rng.integers(-6, 7) * rng.normal(size=shape)
        return np.where(rng.random(shape) < 0.1 * hard, np.inf, table)

    factors: Factors = [((i,), costs(d)) for i in range(n) if rng.random() < 0.7]
    for i, j in combinations(range(n), 2):
        factors.append(((i, j), 2.0 * flow[i, j] * distance if product else costs(d, d)))
    return n, d, factors


def partial_factors(rng: np.random.Generator, most: int = 5) -> tuple[int, int, Factors]:
    """Return the same, with fewer labels than variables in some."""
    n, d, factors = random_factors(rng, most)
    d = int(rng.integers(3, d + 1))
    return n, d, [(scope, table[(slice(d),) * len(scope)]) for scope, table in factors]


def permutation_model(
    n: int, d: int, factors: Factors, *, many: bool = False, shared: int | None = None
) -> softmap.Model:
    """Return the model in which all labels differ, by an `AllDifferent` or by forbidden pairs.

    Variables may have the label `shared` at the same time.
    """
    if many:
        return softmap.Model.from_factors([d] * n, [*factors, softmap.AllDifferent(range(n))])
    apart = np.where(np.eye(d, dtype=bool), np.inf, 0.0)
    if shared is not None:
        apart[shared, shared] = 0.0
    apart_factors = [(s, t + apart) if len(s) == 2 else (s, t) for s, t in factors]
    return softmap.Model.from_factors([d] * n, apart_factors)


def labellings(n: int, d: int, shared: int | None = None) -> list[tuple[int, ...]]:
    """All labellings in which labels other than `shared` differ."""
    if shared is None:
        return list(permutations(range(d), n))
    every = product(range(d), repeat=n)
    return [x for x in every if len({*x}) == n - max(x.count(shared) - 1, 0)]


def least_cost(n: int, d: int, factors: Factors, shared: int | None = None) -> Fraction | None:
    """The optimum by enumeration, exactly; None if there is no labelling."""
    every = np.array(labellings(n, d, shared))
    chosen = np.stack([table[tuple(every[:, i] for i in scope)] for scope, table in factors])
    whole = chosen[:, np.isfinite(chosen).all(axis=0)]
    if not whole.size:
        return None
    rough = whole.sum(axis=0)
    near = rough <= rough.min() + 1e-9 * np.abs(whole).sum(axis=0).max()
    return min(sum(map(Fraction, column.tolist()), Fraction(0)) for column in whole[:, near].T)
