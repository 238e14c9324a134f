"""Potentials of the label difference: Potts, truncated linear, truncated quadratic."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError
from softmap.model.potentials.base import (
    LARGEST_COST,
    Costs,
    Ints,
    KernelData,
    Potential,
    compact,
    is_one_value,
    largest,
    per_edge,
    places,
    scale_factor,
    single,
    times,
)

PIECE = 1 << 16  # number of edges checked at a time


class _ByDifference(Potential):
    """Base class of potentials that have arrays of one entry per edge, and nothing else."""

    def extreme_pieces(self, rows: Ints, cols: Ints, size: int) -> Iterator[tuple[Costs, Costs]]:
        for first in range(0, len(self), size):
            part = slice(first, first + size)
            yield self._piece(part).extremes(rows[part], cols[part])

    def _piece(self, part: slice) -> Self:
        """Return some consecutive edges, which are not checked again."""
        piece = copy.copy(self)
        piece.__dict__.update({name: array[part] for name, array in self.arrays().items()})
        return piece


class Potts(_ByDifference):
    """The Potts potential: edge k costs `weights[k]` if its labels differ, else 0.

    Parameters
    ----------
    weights : float or float array
        One weight for all edges, or one per edge. Negative weights reward differing labels; `+inf`
        forces the labels to agree.

    Examples
    --------
    >>> import softmap
    >>> chain = softmap.Model([[0, 1], [1, 0], [1, 0]], [[0, 1], [1, 2]], softmap.Potts(0.4))
    >>> chain.energy([0, 1, 1])
    0.4
    """

    family = "potts"

    def __init__(self, weights: ArrayLike) -> None:
        self.weights, self.alike = per_edge(weights, "Potts weights"), single(weights)

    def __len__(self) -> int:
        return len(self.weights)

    def value(self, k: Any, x: Any, y: Any) -> Costs:
        return np.where(np.equal(x, y), 0.0, self.weights[k])

    def take(self, index: ArrayLike) -> Potts:
        return Potts(self.weights[places(index, len(self))])

    def scaled(self, factor: float) -> Potts:
        return Potts(times(self.weights, factor))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"weights": self.weights}

    def largest(self, rows: Ints, cols: Ints) -> float:
        return largest(self.weights)

    def extremes(self, rows: Ints, cols: Ints) -> tuple[Costs, Costs]:
        count, weights = len(self.weights), self.weights
        if count > 1 and all(map(is_one_value, (weights, rows, cols))):  # one entry for all edges
            weights, rows, cols = weights[:1], rows[:1], cols[:1]
        differ = np.maximum(rows, cols) > 1
        reach = np.where(differ & np.isfinite(weights), weights, 0.0)
        low, high = np.minimum(reach, 0.0), np.maximum(reach, 0.0)
        return np.broadcast_to(low, count), np.broadcast_to(high, count)

    def steps(self, rows: Ints, cols: Ints) -> Costs:
        return np.where(np.maximum(rows, cols) > 1, np.abs(self.weights), np.inf)

    def kernel_data(self, rows: Ints, cols: Ints) -> KernelData:
        return KernelData("potts", weight=self.weights)


class _Truncated(_ByDifference):
    """Base class of potentials `weights[k] * min(distance(x, y), truncation[k])`."""

    kind: ClassVar[str]

    def __init__(self, weights: ArrayLike, truncation: ArrayLike = np.inf) -> None:
        name = type(self).__name__
        self.weights, self.alike = per_edge(weights, f"{name} weights"), single(weights)
        if not np.isfinite(self.weights).all():
            raise ModelError(f"{name} weights must be finite; use Tables for hard constraints")
        cut = per_edge(truncation, f"{name} truncation", np.inf)
        if len(cut) not in (1, len(self.weights)):
            raise ModelError(f"{name}: {len(cut)} truncations for {len(self.weights)} edges")
        if cut.size and cut.min() < 0:
            raise ModelError(f"{name}: truncation must not be negative, found {cut.min()}")
        self.truncation = compact(np.broadcast_to(cut, self.weights.shape))

    @staticmethod
    @abstractmethod
    def _distance(x: Any, y: Any) -> Costs: ...

    def __len__(self) -> int:
        return len(self.weights)

    def value(self, k: Any, x: Any, y: Any) -> Costs:
        distance = self._distance(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
        return self.weights[k] * np.minimum(distance, self.truncation[k])

    def factors(self, k: Ints, rows: int, cols: int) -> tuple[Costs, Costs]:
        ones = type(self)(np.ones(len(self)), self.truncation)
        return self.weights[k], ones.stack(k, rows, cols)

    def take(self, index: ArrayLike) -> _Truncated:
        chosen = places(index, len(self))
        return type(self)(self.weights[chosen], self.truncation[chosen])

    def scaled(self, factor: float) -> _Truncated:
        number = scale_factor(factor)
        with np.errstate(over="ignore"):
            large = np.abs(self.weights) * number > LARGEST_COST
        # Labels differ by 1 or more: a smaller truncation is a factor of the weight.
        movable = large & (self.truncation > 0) & (self.truncation < 1)
        exponent = np.where(movable, np.frexp(self.truncation)[1], 0)
        weights, truncation = np.ldexp(self.weights, exponent), np.ldexp(self.truncation, -exponent)
        return type(self)(times(weights, number), truncation)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"weights": self.weights, "truncation": self.truncation}

    def has_forbidden(self) -> bool:
        return False

    def kernel_data(self, rows: Ints, cols: Ints) -> KernelData:
        return KernelData(self.kind, weight=self.weights, truncation=self.truncation)

    def tile_key(self, rows: Ints, cols: Ints) -> Ints:
        """The smallest label difference that is truncated: edges with equal ones share a window."""
        differences = np.arange(int(max(rows.max(initial=1), cols.max(initial=1))) + 1)
        reach = np.searchsorted(self._distance(differences, 0), self.truncation)
        return np.clip(reach, 1, np.maximum(rows, cols)).astype(np.int64)

    def largest(self, rows: Ints, cols: Ints) -> float:
        far = max(int(rows.max(initial=1)), int(cols.max(initial=1))) - 1
        reach = min(float(self._distance(far, 0)), float(self.truncation.max(initial=0.0)))
        return largest(self.weights) * reach

    def extremes(self, rows: Ints, cols: Ints) -> tuple[Costs, Costs]:
        far = np.maximum(rows, cols) - 1
        with np.errstate(over="ignore"):
            reach = self.weights * np.minimum(self._distance(far, 0), self.truncation)
        return np.minimum(reach, 0.0), np.maximum(reach, 0.0)

    def steps(self, rows: Ints, cols: Ints) -> Costs:
        """Return the cost difference between labels that are equal and labels one apart.

        For negative weights it is an approximation, which suffices for choosing a scale.
        """
        step = np.abs(self.weights) * np.minimum(1.0, self.truncation)
        return np.where(np.maximum(rows, cols) > 1, step, np.inf)

    def check(self, rows: Ints, cols: Ints) -> None:
        super().check(rows, cols)
        pieces = self.extreme_pieces(rows, cols, PIECE)
        if not all(np.isfinite(low).all() and np.isfinite(high).all() for low, high in pieces):
            wrong = ~np.isfinite(self.extremes(rows, cols)).all(axis=0)
            k = int(np.argmax(wrong))
            raise ModelError(
                f"{type(self).__name__}: edge {k} costs {self.weights[k]} times a distance of up "
                f"to {np.maximum(rows, cols)[k] - 1} labels, more than a float64 holds"
            )


class TruncatedLinear(_Truncated):
    """The truncated linear potential `weights[k] * min(|x - y|, truncation[k])`.

    Parameters
    ----------
    weights : float or float array
        One weight for all edges, or one per edge.
    truncation : float or float array, default +inf
        Largest distance, in labels (not in costs). No truncation by default.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0, 0, 0], [0, 0, 0]], [[0, 1]], softmap.TruncatedLinear(0.5, 1.5))
    >>> [model.energy([0, label]) for label in range(3)]
    [0.0, 0.5, 0.75]
    """

    family = "truncated-linear"
    kind = "linear"

    @staticmethod
    def _distance(x: Any, y: Any) -> Costs:
        return np.abs(x - y)


class TruncatedQuadratic(_Truncated):
    """The truncated quadratic potential `weights[k] * min((x - y)**2, truncation[k])`.

    Parameters
    ----------
    weights : float or float array
        One weight for all edges, or one per edge.
    truncation : float or float array, default +inf
        Largest squared distance, in squared labels (not in costs). No truncation by default.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0, 0, 0], [0, 0, 0]], [[0, 1]], softmap.TruncatedQuadratic(0.5, 3))
    >>> [model.energy([0, label]) for label in range(3)]
    [0.0, 0.5, 1.5]
    """

    family = "truncated-quadratic"
    kind = "quadratic"

    @staticmethod
    def _distance(x: Any, y: Any) -> Costs:
        return (x - y) ** 2
