"""Linear models: costs are weights times features of variables and edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, OptionError, shown
from softmap.model import Model
from softmap.model.potentials import Potential, Potts, Tables

__all__ = ["PAIRWISE", "LinearModel", "Sample", "as_sample"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sample:
    """One graph with features.

    Attributes
    ----------
    nodes : (n, k) features of variables
    edges : (m, 2) variables
    pairs : (m, l) features of edges; without them every edge has the one feature 1
    """

    nodes: ArrayLike
    edges: ArrayLike = ()
    pairs: ArrayLike | None = None

    def __post_init__(self) -> None:
        nodes = _matrix(self.nodes, "features of variables")
        edges = np.asarray(self.edges)
        edges = edges.astype(np.int64) if edges.size else np.zeros((0, 2), dtype=np.int64)
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise ModelError(f"edges must be (m, 2) integers, not of shape {edges.shape}")
        given = np.ones((len(edges), 1)) if self.pairs is None else self.pairs
        pairs = _matrix(given, "features of edges")
        if len(pairs) != len(edges):
            raise ModelError(f"features of {len(pairs)} edges, but there are {len(edges)}")
        for name, value in (("nodes", nodes), ("edges", edges), ("pairs", pairs)):
            object.__setattr__(self, name, value)


def as_sample(given: Any) -> Sample:
    """A `Sample`, or one from (nodes, edges) or (nodes, edges, pairs)."""
    if isinstance(given, Sample):
        return given
    if isinstance(given, tuple) and 1 <= len(given) <= 3:
        return Sample(*given)
    raise ModelError(f"expected a Sample or (features, edges, edge features), not {shown(given)}")


def _matrix(values: Any, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except ValueError as error:
        raise ModelError(f"{name} must be numbers: {error}") from error
    if array.ndim != 2:
        raise ModelError(
            f"{name} must be a 2-D array, not of shape {array.shape}. Reshape your data"
        )
    if not np.isfinite(array).all():
        raise ModelError(f"{name} contain NaN or infinity")
    return array


class Pairwise(ABC):
    """How weights and the features of an edge become the costs of its pairs of labels."""

    @abstractmethod
    def size(self, features: int, d: int) -> int:
        """How many weights there are."""

    @abstractmethod
    def potential(self, pairs: Floats, weights: Floats, d: int) -> Potential:
        """The costs of all edges."""

    @abstractmethod
    def statistics(self, pairs: Floats, mu: Floats) -> Floats:
        """What the weights are multiplied with, for edge marginals (m, d, d)."""


class PottsPairs(Pairwise):
    """A weight per feature, paid where the labels differ."""

    def size(self, features: int, d: int) -> int:
        return features

    def potential(self, pairs: Floats, weights: Floats, d: int) -> Potential:
        return Potts(pairs @ weights)

    def statistics(self, pairs: Floats, mu: Floats) -> Floats:
        differ = mu.sum(axis=(1, 2)) - np.einsum("exx->e", mu)
        return np.asarray(pairs.T @ differ)


class TablePairs(Pairwise):
    """A table of weights per feature."""

    def size(self, features: int, d: int) -> int:
        return features * d * d

    def potential(self, pairs: Floats, weights: Floats, d: int) -> Potential:
        return Tables(np.tensordot(pairs, weights.reshape(-1, d, d), axes=1))

    def statistics(self, pairs: Floats, mu: Floats) -> Floats:
        return np.tensordot(pairs, mu, axes=(0, 0)).ravel()


PAIRWISE: dict[str, Pairwise] = {"potts": PottsPairs(), "tables": TablePairs()}


@dataclass(frozen=True)
class LinearModel:
    """Energies ⟨w, φ(sample, labels)⟩: first k × d weights of variables, then those of edges.

    Attributes
    ----------
    features, edge_features, labels : how many there are
    pairwise : "potts" or "tables"
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
        """The weights of variables, (k, d), and those of edges."""
        cut = self.features * self.labels
        return weights[:cut].reshape(self.features, self.labels), weights[cut:]

    def model(self, sample: Sample, weights: Floats, extra: Floats | float = 0.0) -> Model:
        """The costs of a sample; `extra` is added to the unary ones."""
        nodes, edges = self.split(weights)
        unary = np.asarray(sample.nodes) @ nodes + extra
        pairs = np.asarray(sample.pairs)
        if not len(pairs):
            return Model(unary, None, [])
        potential = PAIRWISE[self.pairwise].potential(pairs, edges, self.labels)
        return Model(unary, sample.edges, potential)

    def statistics(self, sample: Sample, nodes: Floats, edges: Floats) -> Floats:
        """φ of marginals, flat or (n, d) and (m, d, d)."""
        d = self.labels
        first = np.asarray(sample.nodes).T @ nodes.reshape(-1, d)
        pairs = np.asarray(sample.pairs)
        if not len(pairs):
            second = np.zeros(self.size - first.size)
        else:
            second = PAIRWISE[self.pairwise].statistics(pairs, edges.reshape(-1, d, d))
        return np.concatenate([first.ravel(), second])

    def of_labels(self, sample: Sample, labels: Ints) -> Floats:
        """φ of a labelling."""
        one = np.eye(self.labels)[labels]
        i, j = np.asarray(sample.edges).T
        return self.statistics(sample, one, one[i][:, :, None] * one[j][:, None, :])
