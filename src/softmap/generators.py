"""Random and synthetic models, each reproducible from its seed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, not_negative, positive, real
from softmap.errors import OptionError
from softmap.model import Model
from softmap.model.graph import neighbours
from softmap.model.potentials import Potts, Tables, TruncatedLinear

__all__ = [
    "erdos_renyi",
    "grid_edges",
    "planted",
    "potts_grid",
    "ragged_constrained",
    "random_grid",
    "random_tree",
    "stereo_grid",
]

Edges = NDArray[np.int64]


MOST = 1 << 32  # entries of a model that somebody may want


def _sizes(**sizes: Any) -> list[int]:
    """Positive whole numbers, their product within reason."""
    found = [count(name, value, 1, MOST) for name, value in sizes.items()]
    if math.prod(found) > MOST:
        words = " x ".join(map(str, found))
        raise OptionError(f"{', '.join(sizes)}: a model of {words} is too large")
    return found


def _rng(seed: Any) -> np.random.Generator:
    return np.random.default_rng(count("seed", seed, 0, 2**128))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise OptionError(message)


def grid_edges(rows: int, cols: int, connectivity: int = 4) -> Edges:
    """Edges of a grid of 4 or 8 neighbours, variables numbered row by row.

    Horizontal edges come first, then vertical ones, then the two diagonals.
    """
    rows, cols = _sizes(rows=rows, cols=cols)
    return neighbours((rows, cols), connectivity)


def random_edges(n: int, p: float, rng: np.random.Generator) -> Edges:
    """Each pair with probability p; a vertex left alone gets one random edge."""
    possible = n * (n - 1) // 2
    chosen = rng.choice(possible, size=rng.binomial(possible, p), replace=False, shuffle=False)
    i = np.arange(n)
    row = i * (2 * n - i - 1) // 2  # pairs (i, i + 1), (i, i + 2), ... are numbered from here
    first = np.searchsorted(row[:-1], chosen, side="right") - 1
    edges = np.stack([first, chosen - row[first] + first + 1], axis=1)
    alone = np.setdiff1d(np.arange(n), edges)
    partner = (alone + rng.integers(1, n, size=len(alone))) % n
    extra = np.sort(np.stack([alone, partner], axis=1), axis=1)
    return np.unique(np.concatenate([edges, extra]), axis=0)


def erdos_renyi(n: int, d: int = 3, *, c: float = 1.1, seed: int = 0) -> Model:
    """The paper's experiment: G(n, c·log n / n), every vertex with at least one edge.

    Unary costs are uniform on [-0.01, 0.01], every table entry is -1 or +1 with equal chance
    (section "Numerical Experiments").
    """
    n, d = _sizes(n=n, d=d)
    _require(n >= 2, f"the random graph needs at least two vertices, not {n}")
    c = not_negative("c", c)
    rng = _rng(seed)
    edges = random_edges(n, min(1.0, c * np.log(n) / n), rng)
    unary = rng.uniform(-0.01, 0.01, size=(n, d))
    tables = rng.choice([-1.0, 1.0], size=(len(edges), d, d))
    return Model(unary, edges, Tables(tables))


def potts_grid(rows: int, cols: int, d: int = 8, *, weight: float = 0.3, seed: int = 0) -> Model:
    """Unary U[0, 1], one Potts weight for all edges."""
    rows, cols, d = _sizes(rows=rows, cols=cols, d=d)
    weight = real("weight", weight)
    rng = _rng(seed)
    edges = grid_edges(rows, cols)
    unary = rng.uniform(size=(rows * cols, d))
    return Model(unary, edges, Potts(np.full(len(edges), weight))).with_shape((rows, cols))


def random_grid(rows: int, cols: int, d: int = 4, *, seed: int = 0) -> Model:
    """Unary costs and tables from N(0, 1)."""
    rows, cols, d, _ = _sizes(rows=rows, cols=cols, d=d, labels=d)
    rng = _rng(seed)
    edges = grid_edges(rows, cols)
    unary = rng.normal(size=(rows * cols, d))
    tables = rng.normal(size=(len(edges), d, d))
    return Model(unary, edges, Tables(tables)).with_shape((rows, cols))


def stereo_grid(
    rows: int,
    cols: int,
    d: int = 16,
    *,
    weight: float = 0.2,
    truncation: float = 4.0,
    seed: int = 0,
) -> Model:
    """Stereo-like: a slanted scene with a step, noisy matching, truncated linear smoothing."""
    rows, cols, d = _sizes(rows=rows, cols=cols, d=d)
    weight, truncation = real("weight", weight), not_negative("truncation", truncation)
    rng = _rng(seed)
    edges = grid_edges(rows, cols)
    scene = _stepped_scene(rows, cols, d)
    distance = np.abs(np.arange(d) - scene.reshape(-1, 1))
    unary = np.minimum(0.1 * distance, 0.4) + rng.uniform(0.0, 0.6, size=(rows * cols, d))
    smooth = TruncatedLinear(np.full(len(edges), weight), truncation)
    return Model(unary, edges, smooth).with_shape((rows, cols))


def _stepped_scene(rows: int, cols: int, d: int) -> NDArray[np.int64]:
    y, x = np.mgrid[0:rows, 0:cols]
    slant = (x * (d // 2)) // max(cols, 1)
    raised = (abs(y - rows / 2) < rows / 4) & (abs(x - cols / 2) < cols / 4)
    return np.clip(slant + np.where(raised, d // 3, 0), 0, d - 1)


def random_tree(n: int, d: int = 5, *, seed: int = 0) -> Model:
    """A random recursive tree with N(0, 1) costs; the LP is tight on it."""
    n, d, _ = _sizes(n=n, d=d, labels=d)
    rng = _rng(seed)
    parents = (rng.random(n - 1) * np.arange(1, n)).astype(np.int64)
    edges = np.stack([parents, np.arange(1, n)], axis=1)
    unary = rng.normal(size=(n, d))
    return Model(unary, edges, Tables(rng.normal(size=(n - 1, d, d))))


def planted(
    n: int, d: int = 3, *, degree: float = 4.0, margin: float = 0.5, seed: int = 0
) -> tuple[Model, NDArray[np.int64]]:
    """A random graph whose LP is tight at a known, unique labelling, and that labelling.

    Every table has its least entry at the planted labels, and so has every unary, there by at
    least `margin`; a random reparametrisation then hides it.
    """
    n, d = _sizes(n=n, d=d)
    _require(n >= 2, f"planted needs two variables or more, not {n}")
    degree, margin = not_negative("degree", degree), positive("margin", margin)
    rng = _rng(seed)
    labels = rng.integers(0, d, size=n)
    edges = random_edges(n, min(1.0, degree / (n - 1)), rng)
    unary = rng.uniform(margin, 1.0 + margin, size=(n, d))
    unary[np.arange(n), labels] = 0.0
    tables = rng.uniform(0.0, 1.0, size=(len(edges), d, d))
    tables[np.arange(len(edges)), labels[edges[:, 0]], labels[edges[:, 1]]] = 0.0
    shift = rng.normal(size=(len(edges), 2, d))
    np.subtract.at(unary, edges.ravel(), shift.reshape(-1, d))
    tables += shift[:, 0, :, None] + shift[:, 1, None, :]
    return Model(unary, edges, Tables(tables)), labels


def ragged_constrained(
    n: int, *, max_labels: int = 5, degree: float = 4.0, forbidden: float = 0.2, seed: int = 0
) -> Model:
    """Label counts from 1 to `max_labels`, and forbidden states and pairs that leave a solution.

    A hidden labelling is never forbidden, so the model is feasible.
    """
    n, max_labels = _sizes(n=n, max_labels=max_labels)
    _require(n >= 2, f"ragged_constrained needs two variables or more, not {n}")
    degree, forbidden = not_negative("degree", degree), not_negative("forbidden", forbidden)
    rng = _rng(seed)
    counts = rng.integers(1, max_labels + 1, size=n)
    hidden = rng.integers(0, counts)
    edges = random_edges(n, min(1.0, degree / (n - 1)), rng)

    def costs(keep: tuple[Any, ...], *shape: int) -> NDArray[np.float64]:
        table = rng.normal(size=shape)
        blocked = rng.random(shape) < forbidden
        blocked[keep] = False
        table[blocked] = np.inf
        return table

    unary = [costs((x,), d) for x, d in zip(hidden, counts, strict=True)]
    tables = [costs((hidden[i], hidden[j]), counts[i], counts[j]) for i, j in edges]
    return Model(unary, edges, Tables(tables))
