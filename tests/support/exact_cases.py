"""Random models of every kind for the exact search, with the energies of all labellings."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from softmap.relaxation.flat import FlatModel

KINDS = ("integers", "ties", "normal", "big-M", "tiny", "huge", "decimals")


def _costs(rng: np.random.Generator, kind: str, size: int) -> np.ndarray:
    costs = {
        "integers": lambda: rng.integers(-5, 10, size).astype(float),
        "ties": lambda: rng.integers(0, 3, size).astype(float),
        "normal": lambda: rng.normal(size=size),
        "big-M": lambda: np.where(rng.random(size) < 0.2, 1e12, rng.random(size)),
        "tiny": lambda: rng.normal(size=size) * 1e-200,
        "huge": lambda: rng.normal(size=size) * 1e200,
        "decimals": lambda: rng.integers(-50, 100, size) / 10,
    }[kind]()
    share = rng.choice([0.0, 0.0, 0.1, 0.3, 0.6])
    return np.where(rng.random(size) < share, np.inf, costs)


@dataclass
class Case:
    """A random model with the energies of all its labellings."""

    flat: FlatModel
    labellings: np.ndarray
    energies: np.ndarray

    @property
    def scale(self) -> float:
        """What float64 sums of these costs may be off by."""
        costs = np.concatenate([self.flat.unary, self.flat.tables])
        return 1e-13 * float(np.abs(costs[np.isfinite(costs)]).sum(initial=0.0))


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n = int(rng.integers(1, 8))
    labels = np.full(n, 2) if rng.random() < 0.3 else rng.integers(1, 6, n)
    labels[np.cumprod(labels) > 4000] = 1
    scopes = [
        rng.permutation(n)[: int(rng.choice([2, 2, 2, 2, 3, 3, 4, 5]))]
        for _ in range(int(rng.integers(0, 3 * n)) if n > 1 else 0)
    ]
    tables = [_costs(rng, kind, int(np.prod(labels[s]))) for s in scopes]
    flat = FlatModel(
        labels.astype(np.int64),
        _costs(rng, kind, int(labels.sum())),
        np.cumsum([0, *map(len, scopes)]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *scopes]).astype(np.int64),
        np.concatenate([np.zeros(0), *tables]),
        float(rng.integers(-3, 4)) if kind in ("integers", "ties") else 0.0,
    )
    return Case(flat, *_all_energies(flat, scopes, tables))


def _all_energies(
    flat: FlatModel, scopes: list[np.ndarray], tables: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    x = np.indices(flat.num_labels).reshape(len(flat.num_labels), -1).T
    start = np.cumsum([0, *flat.num_labels[:-1]])
    energies = flat.unary[start + x].sum(axis=1) + flat.constant
    for scope, table in zip(scopes, tables, strict=True):
        energies = energies + table[np.ravel_multi_index(x[:, scope].T, flat.num_labels[scope])]
    return x, energies


def frustrated_case(seed: int, n: int = 9, labels: int = 3) -> Case:
    """A model in which all pairs of variables should differ; its search takes hundreds of nodes."""
    rng = np.random.default_rng(seed)
    scopes = [np.array(pair) for pair in itertools.combinations(range(n), 2)]
    weights = rng.integers(1, 4, len(scopes)) if seed % 2 else 1 + 0.3 * rng.random(len(scopes))
    tables = [weight * np.eye(labels).ravel() for weight in weights]
    flat = FlatModel(
        np.full(n, labels, np.int64),
        rng.integers(0, 2, n * labels) * (1.0 if seed % 2 else 0.1 * rng.random(n * labels)),
        2 * np.arange(len(scopes) + 1, dtype=np.int64),
        np.concatenate(scopes).astype(np.int64),
        np.concatenate(tables),
        0.0,
    )
    return Case(flat, *_all_energies(flat, scopes, tables))
