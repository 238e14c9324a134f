"""Linear models: costs are linear in the features of variables and edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import Model, Potts, Tables
from softmap.errors import ModelError, OptionError, shown
from softmap.extend import Potential, integers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sample:
    """A graph with features of its variables and edges.

    Attributes
    ----------
    nodes : float array (n, k)
        Features of the variables.
    edges : int array (m, 2) or (2, m)
        Variable numbers of each edge, as in `soft_map`.
    pairs : float array (m, l), optional
        Features of the edges; by default one feature with value 1.

    Examples
    --------
    >>> from softmap.learn import Sample
    >>> Sample([[0.2], [0.7], [0.4]], [[0, 1], [1, 2]]).pairs.tolist()
    [[1.0], [1.0]]
    """

    nodes: ArrayLike
    edges: ArrayLike = ()
    pairs: ArrayLike | None = None

    def __post_init__(self) -> None:
        nodes = _matrix(self.nodes, "features of variables")
        edges = read_edges(self.edges)
        if edges.ndim != 2:
            raise ModelError(f"edges must be (m, 2) integers, not of shape {edges.shape}")
        given = np.ones((len(edges), 1)) if self.pairs is None else self.pairs
        pairs = _matrix(given, "features of edges")
        if len(pairs) != len(edges):
            raise ModelError(f"features of {len(pairs)} edges, but there are {len(edges)}")
        for name, value in (("nodes", nodes), ("edges", edges), ("pairs", pairs)):
            object.__setattr__(self, name, value)


def as_sample(given: Any) -> Sample:
    """Return a `Sample`, made from (nodes, edges) or (nodes, edges, pairs) if it is a tuple."""
    if isinstance(given, Sample):
        return given
    if isinstance(given, tuple) and 1 <= len(given) <= 3:
        return Sample(*given)
    expected = "expected a Sample or a tuple (features, edges, edge features)"
    if isinstance(given, Mapping):
        raise ModelError(f"{expected}, not a dict with the keys {', '.join(map(str, given))}")
    raise ModelError(f"{expected}, not {shown(given)}")


def read_edges(edges: Any) -> Ints:
    """Return edges as int64 (m, 2) or (..., m, 2), or raise `ModelError`.

    An array (2, m) with m ≠ 2, the `edge_index` of graph libraries, is transposed.
    """
    array = integers(edges, "edges")
    if array.size == 0 and array.ndim < 3:
        array = np.zeros((0, 2), dtype=np.int64)
    if array.ndim >= 2 and array.shape[-1] != 2 and array.shape[-2] == 2:
        array = np.ascontiguousarray(array.swapaxes(-1, -2))
    if array.ndim < 2 or array.shape[-1] != 2:
        raise ModelError(f"edges must be (m, 2) or (2, m) integers, not of shape {array.shape}")
    return array


def _matrix(values: Any, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except ValueError as error:
        raise ModelError(f"{name} must be numbers: {error}") from error
    if array.ndim != 2:
        raise ModelError(
            f"{name} must be a 2-D array, not of shape {array.shape}. Reshape your data, or give "
            "a list of learn.Sample(features, edges), one for each graph"
        )
    if not np.isfinite(array).all():
        raise ModelError(f"{name} contain NaN or infinity")
    return array


class Pairwise(ABC):
    """The map from weights and edge features to the costs of pairs of labels."""

    @abstractmethod
    def size(self, features: int, d: int) -> int:
        """Return the number of weights."""

    @abstractmethod
    def potential(self, pairs: Floats, weights: Floats, d: int) -> Potential:
        """Return the costs of all edges."""

    @abstractmethod
    def statistics(self, pairs: Floats, mu: Floats) -> Floats:
        """Return the sufficient statistics (factors of the weights) of edge marginals (m, d, d)."""


class PottsPairs(Pairwise):
    """One weight per feature, paid if the labels differ."""

    def size(self, features: int, d: int) -> int:
        return features

    def potential(self, pairs: Floats, weights: Floats, d: int) -> Potential:
        return Potts(pairs @ weights)

    def statistics(self, pairs: Floats, mu: Floats) -> Floats:
        differ = mu.sum(axis=(1, 2)) - np.einsum("exx->e", mu)
        return np.asarray(pairs.T @ differ)


class TablePairs(Pairwise):
    """One table of weights per feature."""

    def size(self, features: int, d: int) -> int:
        return features * d * d

    def potential(self, pairs: Floats, weights: Floats, d: int) -> Potential:
        return Tables(np.tensordot(pairs, weights.reshape(-1, d, d), axes=1))

    def statistics(self, pairs: Floats, mu: Floats) -> Floats:
        return np.tensordot(pairs, mu, axes=(0, 0)).ravel()


PAIRWISE: dict[str, Pairwise] = {"potts": PottsPairs(), "tables": TablePairs()}


@dataclass(frozen=True)
class LinearModel:
    """A linear model: the energy is ⟨w, φ(sample, labels)⟩.

    The first k · d weights belong to the features of variables, the others to those of edges.

    Attributes
    ----------
    features : int
        Number k of features of a variable.
    edge_features : int
        Number of features of an edge.
    labels : int
        Number d of labels.
    pairwise : {"potts", "tables"}, default "potts"
        One weight per edge feature, paid if the labels differ; or one table per edge feature.

    Examples
    --------
    >>> import numpy as np
    >>> from softmap.learn import LinearModel, Sample
    >>> linear = LinearModel(features=1, edge_features=1, labels=2)
    >>> sample = Sample([[1.0], [2.0]], [[0, 1]])
    >>> model = linear.model(sample, np.array([0.0, 1.0, 0.5]))
    >>> model.energy([0, 1])
    2.5
    """

    features: int
    edge_features: int
    labels: int
    pairwise: str = "potts"

    def __post_init__(self) -> None:
        if self.pairwise not in PAIRWISE:
            raise OptionError(f"pairwise={shown(self.pairwise)}: expected 'potts' or 'tables'")

    @property
    def size(self) -> int:
        """The number of weights."""
        edge = PAIRWISE[self.pairwise].size(self.edge_features, self.labels)
        return self.features * self.labels + edge

    def split(self, weights: Floats) -> tuple[Floats, Floats]:
        """Split the weights into those of variables, (k, d), and those of edges."""
        cut = self.features * self.labels
        return weights[:cut].reshape(self.features, self.labels), weights[cut:]

    def model(self, sample: Sample, weights: Floats, extra: Floats | float = 0.0) -> Model:
        """Return the model of a sample; `extra` is added to its unary costs."""
        nodes, edges = self.split(weights)
        unary = np.asarray(sample.nodes) @ nodes + extra
        pairs = np.asarray(sample.pairs)
        if not len(pairs):
            return Model(unary, None, [])
        potential = PAIRWISE[self.pairwise].potential(pairs, edges, self.labels)
        return Model(unary, sample.edges, potential)

    def statistics(self, sample: Sample, nodes: Floats, edges: Floats) -> Floats:
        """Return φ of marginals, given flat or as (n, d) and (m, d, d)."""
        d = self.labels
        first = np.asarray(sample.nodes).T @ nodes.reshape(-1, d)
        pairs = np.asarray(sample.pairs)
        if not len(pairs):
            second = np.zeros(self.size - first.size)
        else:
            second = PAIRWISE[self.pairwise].statistics(pairs, edges.reshape(-1, d, d))
        return np.concatenate([first.ravel(), second])

    def of_labels(self, sample: Sample, labels: Ints) -> Floats:
        """Return φ of a labelling."""
        one = np.eye(self.labels)[labels]
        i, j = np.asarray(sample.edges).T
        return self.statistics(sample, one, one[i][:, :, None] * one[j][:, None, :])
