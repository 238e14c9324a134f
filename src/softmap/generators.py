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


MOST = 1 << 32  # largest product of the sizes of a model


def _sizes(**sizes: Any) -> list[int]:
    """Return the sizes as positive integers; raise `OptionError` if their product is too large."""
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
    """Return the edges of a grid whose variables are numbered row by row.

    Horizontal edges come first, then vertical ones, then the two diagonals.

    Parameters
    ----------
    rows, cols : int
        Size of the grid.
    connectivity : {4, 8}, default 4
        Number of neighbours of an interior variable.

    Returns
    -------
    int64[m, 2]

    Examples
    --------
    >>> from softmap.generators import grid_edges
    >>> grid_edges(2, 2).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    rows, cols = _sizes(rows=rows, cols=cols)
    return neighbours((rows, cols), connectivity).astype(np.int64)


def random_edges(n: int, p: float, rng: np.random.Generator) -> Edges:
    """Return each pair with probability p; an isolated vertex gets one random edge."""
    possible = n * (n - 1) // 2
    chosen = rng.choice(possible, size=rng.binomial(possible, p), replace=False, shuffle=False)
    i = np.arange(n)
    row = i * (2 * n - i - 1) // 2  # number of the first pair of vertex i, (i, i + 1)
    first = np.searchsorted(row[:-1], chosen, side="right") - 1
    edges = np.stack([first, chosen - row[first] + first + 1], axis=1)
    alone = np.setdiff1d(np.arange(n), edges)
    partner = (alone + rng.integers(1, n, size=len(alone))) % n
    extra = np.sort(np.stack([alone, partner], axis=1), axis=1)
    return np.unique(np.concatenate([edges, extra]), axis=0)


def erdos_renyi(n: int, d: int = 3, *, c: float = 1.1, seed: int = 0) -> Model:
    """Return the random model of the paper's experiments (section "Numerical Experiments").

    The graph is G(n, c·log n / n); an isolated vertex gets one random edge. Unary costs are uniform
    on [-0.01, 0.01]. Every table entry is -1 or +1 with equal probability.

    Parameters
    ----------
    n : int
        Number of variables, at least 2.
    d : int, default 3
        Number of labels.
    c : float, default 1.1
        Factor of the edge probability.
    seed : int, default 0
        Seed of the random numbers.

    Examples
    --------
    >>> import softmap
    >>> softmap.generators.erdos_renyi(10, seed=1)
    Model(10 variables, ... edges, tables)
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
    """Return a Potts grid: unary costs uniform on [0, 1], one weight for all edges.

    Parameters
    ----------
    rows, cols : int
        Size of the grid.
    d : int, default 8
        Number of labels.
    weight : float, default 0.3
        Cost of an edge with different labels.
    seed : int, default 0
        Seed of the random numbers.

    Examples
    --------
    >>> import softmap
    >>> softmap.generators.potts_grid(4, 5, 3)
    Model(4 × 5 variables, 3 labels, 31 edges, potts)
    """
    rows, cols, d = _sizes(rows=rows, cols=cols, d=d)
    weight = real("weight", weight)
    rng = _rng(seed)
    edges = grid_edges(rows, cols)
    unary = rng.uniform(size=(rows * cols, d))
    return Model(unary, edges, Potts(np.full(len(edges), weight))).with_shape((rows, cols))


def random_grid(rows: int, cols: int, d: int = 4, *, seed: int = 0) -> Model:
    """Return a grid with dense tables; all costs are from N(0, 1).

    Parameters
    ----------
    rows, cols : int
        Size of the grid.
    d : int, default 4
        Number of labels.
    seed : int, default 0
        Seed of the random numbers.

    Examples
    --------
    >>> import softmap
    >>> softmap.generators.random_grid(4, 5)
    Model(4 × 5 variables, 4 labels, 31 edges, tables)
    """
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
    """Return a synthetic stereo model: a slanted plane with a raised square, and noise.

    Parameters
    ----------
    rows, cols : int
        Size of the image in pixels.
    d : int, default 16
        Number of labels (disparities).
    weight : float, default 0.2
        Weight of the truncated linear potential.
    truncation : float, default 4
        Largest label difference that is penalised further, in labels.
    seed : int, default 0
        Seed of the noise.

    Examples
    --------
    >>> import softmap
    >>> softmap.generators.stereo_grid(4, 5)
    Model(4 × 5 variables, 16 labels, 31 edges, truncated-linear)
    """
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
    """Return a random recursive tree with N(0, 1) costs; its LP relaxation is tight.

    Parameters
    ----------
    n : int
        Number of variables.
    d : int, default 5
        Number of labels.
    seed : int, default 0
        Seed of the random numbers.

    Examples
    --------
    >>> import softmap
    >>> softmap.solve(softmap.generators.random_tree(20)).gap < 1e-6
    True
    """
    n, d, _ = _sizes(n=n, d=d, labels=d)
    rng = _rng(seed)
    parents = (rng.random(n - 1) * np.arange(1, n)).astype(np.int64)
    edges = np.stack([parents, np.arange(1, n)], axis=1)
    unary = rng.normal(size=(n, d))
    return Model(unary, edges, Tables(rng.normal(size=(n - 1, d, d))))


def planted(
    n: int, d: int = 3, *, degree: float = 4.0, margin: float = 0.5, seed: int = 0
) -> tuple[Model, NDArray[np.int64]]:
    """Return a model whose LP is tight at a known, unique labelling, and that labelling.

    Every table and every unary cost has its minimum at the planted labels, which are better than
    all others by at least `margin` in the unary costs. A random reparametrisation hides them.

    Parameters
    ----------
    n : int
        Number of variables, at least 2.
    d : int, default 3
        Number of labels.
    degree : float, default 4
        Mean degree of the random graph.
    margin : float, default 0.5
        Smallest difference to the second-best unary cost.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    model : Model
    labels : int64[n]

    Examples
    --------
    >>> import softmap
    >>> model, labels = softmap.generators.planted(20)
    >>> bool((softmap.solve(model).labels == labels).all())
    True
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
    """Return a feasible model with varying label counts and random hard constraints.

    A hidden labelling is never forbidden, so that the model is feasible.

    Parameters
    ----------
    n : int
        Number of variables, at least 2.
    max_labels : int, default 5
        Label counts are drawn from 1 to this.
    degree : float, default 4
        Mean degree of the random graph.
    forbidden : float, default 0.2
        Probability that a state or a pair of states is forbidden.
    seed : int, default 0
        Seed of the random numbers.

    Examples
    --------
    >>> import softmap
    >>> softmap.solve(softmap.generators.ragged_constrained(10)).energy < float("inf")
    True
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
