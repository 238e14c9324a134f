"""Coarse-to-fine initialisation: the model of an image is coarsened to blocks of 2 × 2 pixels.

If neighbours are strongly coupled, the first passes mainly propagate information over long
distances. On the coarse model each pass propagates twice as far for a quarter of the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.methods.base import Floats
from softmap.model import Model, Potential, Potts, TruncatedLinear, TruncatedQuadratic
from softmap.model.graph import grid_width, neighbours

__all__ = ["Coarser", "coarser"]


@dataclass(frozen=True)
class Coarsening:
    """When to initialise coarse-to-fine.

    Attributes
    ----------
    least : int
        Smallest number of pixels.
    tied : float
        Smallest ratio of the ranges of edge costs to the ranges of unary costs, summed over all.
    passes : int
        Number of passes over the coarse model.
    """

    least: int = 1 << 14
    tied: float = 2.5
    passes: int = 8


COARSENING = Coarsening()


Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coarser:
    """A coarsened model: all pixels of a block share one label.

    Attributes
    ----------
    model : Model
        The coarse model.
    source : int64[2m]
        For each half-edge of the image, the coarse half-edge whose λ initialises it: the one in the
        same direction, also for edges within a block. -1 if there is none.
    part : float64[2m]
        Factor on that λ: weight of the edge / weight of the coarse edge.
    """

    model: Model
    source: Ints
    part: Floats


def coarser(model: Model) -> Coarser | None:
    """Return the coarsened model, or None if coarse-to-fine does not apply.

    It applies to large images whose neighbours are strongly coupled.
    """
    width = grid_width(model.edges) if model.n >= COARSENING.least else None
    family = _family(model)
    if width is None or model.n % width or family is None or not _tied(model):
        return None
    return _blocks(model, width, family)


def _family(model: Model) -> Callable[[Floats], Potential] | None:
    """Return a function from weights to a potential, if edges differ only in weights >= 0."""
    first = model.potentials[0] if model.potentials else None
    if model.has_forbidden or not isinstance(first, Potts | TruncatedLinear | TruncatedQuadratic):
        return None
    if (model.num_labels != model.num_labels[0]).any():
        return None
    cuts = first.arrays().get("truncation", np.zeros(0))[:1]
    for potential in model.potentials:
        arrays = potential.arrays()
        if type(potential) is not type(first) or not (arrays["weights"] >= 0).all():
            return None
        if len(cuts) and (arrays["truncation"] != cuts).any():
            return None
    return lambda weights: type(first)(weights, *cuts)


def _tied(model: Model) -> bool:
    """Whether the ranges of edge costs outweigh those of unary costs (see `Coarsening.tied`)."""
    costs = model.unary.reshape(model.n, -1)
    apart = (
        potential.extremes(*model.end_labels(first, last))[1].sum()
        for first, last, potential in model.groups()
    )
    return bool(sum(apart) >= COARSENING.tied * (costs.max(axis=1) - costs.min(axis=1)).sum())


def _in_pairs(costs: Floats) -> Floats:
    """Return the sums of consecutive pairs along the first axis; an odd last entry stays alone."""
    sums = costs[::2].copy()
    sums[: len(costs) // 2] += costs[1::2]
    return sums


def _blocks(model: Model, width: int, family: Callable[[Floats], Potential]) -> Coarser:
    costs = model.unary.reshape(-1, width, int(model.num_labels[0]))
    costs = _in_pairs(_in_pairs(costs).swapaxes(0, 1)).swapaxes(0, 1)
    rows, cols = costs.shape[:2]
    pixel = np.arange(model.n)
    block = pixel // width // 2 * cols + pixel % width // 2
    ends = np.sort(model.edges, axis=1)
    crossing = block[ends[:, 0]] != block[ends[:, 1]]
    leads = _Leads(rows, cols, down=ends[:, 1] - ends[:, 0] == width)
    after, before = leads.onward(block[ends[:, 0]]), leads.back(block[ends[:, 1]])
    weights = np.concatenate([p.arrays()["weights"] for p in model.potentials])
    edges = neighbours((rows, cols))
    total = np.bincount(after[crossing], weights[crossing], len(edges)).astype(np.float64)
    swapped = (model.edges[:, 0] > model.edges[:, 1]).astype(np.int64)
    source, part = np.empty(2 * model.m, dtype=np.int64), np.empty(2 * model.m)
    for side, edge in enumerate((after, before)):
        half, heavy = 2 * np.arange(model.m) + (swapped ^ side), (edge >= 0) & (total[edge] > 0)
        source[half] = np.where(heavy, 2 * edge + side, -1)
        part[half] = np.where(heavy, weights, 0.0) / np.where(heavy, total[edge], 1.0)
    return Coarser(Model(costs.reshape(rows * cols, -1), edges, family(total)), source, part)


@dataclass(frozen=True, eq=False)
class _Leads:
    """The edges between blocks, to the right or `down`, in the order of `neighbours`."""

    rows: int
    cols: int
    down: NDArray[np.bool_]

    def onward(self, block: Ints) -> Ints:
        """Return the edge from a block to the right, or down; -1 at the border."""
        row, col = block // self.cols, block % self.cols
        rim = np.where(self.down, row == self.rows - 1, col == self.cols - 1)
        first = np.where(self.down, self.rows * (self.cols - 1) + block, block - row)
        return np.where(rim, -1, first)

    def back(self, block: Ints) -> Ints:
        """Return the edge to a block from the left, or from above; -1 at the border."""
        rim = np.where(self.down, block < self.cols, block % self.cols == 0)
        before = block - np.where(self.down, self.cols, 1)
        return np.where(rim, -1, self.onward(np.where(rim, 0, before)))
