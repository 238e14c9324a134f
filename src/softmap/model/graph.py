"""The graph of a model as half-edges `h = 2e + side`; `h ^ 1` is the other endpoint of edge `e`."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import ModelError, shown
from softmap.model.potentials.base import Costs, numbers, refuse_gradient

PIECE = 1 << 16  # number of edges written at a time


def grid_costs(unary: Any) -> tuple[tuple[int, ...], Costs]:
    """Return the shape of a grid, and its costs with one row per variable."""
    refuse_gradient(unary, "unary")
    costs = numbers(unary, "unary")
    if costs.ndim < 3 or not costs.size:
        raise ModelError(
            "a grid needs costs of shape (height, width, labels), one cost per pixel and label, "
            f"not {costs.shape}"
        )
    return costs.shape[:-1], costs.reshape(-1, costs.shape[-1])


def neighbours(
    shape: Sequence[int], connectivity: Any = None, deadline: core.Deadline | None = None
) -> NDArray[Any]:
    """Return the edges of a grid, one direction after the other.

    Variables are numbered row by row. Edges along the last axis come first, diagonal ones last.
    Raises `core.OutOfTime` if the deadline passes.

    Parameters
    ----------
    shape : sequence of int
        Length of each axis.
    connectivity : int, optional
        Number of neighbours of an interior variable: 4 or 8 in an image, 6 or 26 in a volume.
        The smaller one by default.
    deadline : Deadline, optional
        When to stop.
    """
    steps = directions(len(shape), connectivity)
    sizes = [within_grid(shape, step) for step in steps]
    start = np.cumsum([0, *(math.prod(size) for size in sizes)]).tolist()
    number = np.int32 if math.prod(shape) < 2**31 else np.int64
    edges = np.empty((start[-1], 2), dtype=number)
    for step, first, last in zip(steps, start, start[1:], strict=False):
        _fill(edges[first:last], shape, step, deadline or core.Deadline())
    return edges


def directions(axes: int, connectivity: Any = None) -> list[tuple[int, ...]]:
    """Return the steps from a variable of a grid to its neighbours, in the order of `neighbours`.

    Of two opposite steps only the one to a later variable is listed.

    Parameters
    ----------
    axes : int
        Number of axes of the grid.
    connectivity : int, optional
        As for `neighbours`.
    """
    few, many = 2 * axes, 3**axes - 1
    if connectivity is None:
        connectivity = few
    whole = isinstance(connectivity, int | np.integer) and not isinstance(connectivity, bool)
    if not whole or connectivity not in (few, many):
        choice = str(few) if few == many else f"{few} or {many}"
        raise ModelError(f"connectivity={shown(connectivity)}: expected {choice} in {axes}-D")
    steps = [s for s in itertools.product((0, 1, -1), repeat=axes) if _ahead(s)]
    steps.sort(key=lambda s: (np.count_nonzero(s), s))
    return steps[:axes] if connectivity == few else steps


def within_grid(shape: Sequence[int], step: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many variables along each axis have a neighbour in the direction of a step."""
    return tuple(length - abs(s) for length, s in zip(shape, step, strict=True))


def grid_width(edges: Any) -> int | None:
    """Return the number of columns if the edges join neighbours of a grid, else None.

    The variables of the grid are numbered row by row.
    """
    return core.grid_width(np.ascontiguousarray(edges, dtype=np.int32).reshape(-1)) or None


def _ahead(step: tuple[int, ...]) -> bool:
    """Whether a step leads to a later variable; each edge is listed in this direction only."""
    return next((s for s in step if s), 0) > 0


def _fill(
    edges: NDArray[Any], shape: Sequence[int], step: tuple[int, ...], deadline: core.Deadline
) -> None:
    """Write the edges of one direction, in pieces of the first axis that stay in the cache."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    ranges = [
        np.arange(max(0, -s), max(0, -s) + size, dtype=edges.dtype) * stride
        for s, size, stride in zip(step, within_grid(shape, step), strides, strict=True)
    ]
    inner = functools.reduce(np.add.outer, ranges[1:], np.zeros((), edges.dtype)).reshape(-1)
    jump = sum(s * stride for s, stride in zip(step, strides, strict=True))
    rows = max(1, PIECE // max(1, len(inner)))
    lines = edges.reshape(len(ranges[0]), len(inner), 2)
    for first in range(0, len(lines), rows):
        deadline.require()
        piece = lines[first : first + rows]
        np.add(ranges[0][first : first + rows, None], inner, out=piece[..., 0])
        np.add(piece[..., 0], jump, out=piece[..., 1])


@dataclass(frozen=True)
class Graph:
    """Half-edge incidence in compressed rows.

    Attributes
    ----------
    node : int32[2m]
        Node of each half-edge.
    start : int64[n + 1]
        The half-edges of node `i` are `half[start[i]:start[i + 1]]`, ascending.
    half : int32[2m]
        Half-edges sorted by node.
    remembered : dict
        Cache of objects computed from the graph alone. Models with the same graph share it.
    """

    node: NDArray[np.int32]
    start: NDArray[np.int64]
    half: NDArray[np.int32]
    remembered: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"remembered": {}}

    @classmethod
    def from_edges(cls, edges: NDArray[np.int32], n: int) -> Graph:
        """Build from an (m, 2) array of node numbers in `0..n-1`."""
        node = np.ascontiguousarray(edges).reshape(-1)
        start, half = np.empty(n + 1, dtype=np.int64), np.empty(len(node), dtype=np.int32)
        core.sort_halves(node, start, half)
        for array in (start, half):
            array.flags.writeable = False
        return cls(node, start, half)

    @property
    def degree(self) -> NDArray[np.int64]:
        """Number of half-edges |N_i| at each node."""
        return np.diff(self.start)

    def colouring(self) -> NDArray[np.int32]:
        """Return a greedy (first-fit) colouring in node order: adjacent nodes differ."""
        colour = np.empty(len(self.start) - 1, dtype=np.int32)
        core.greedy_colouring(self.node, self.start, self.half, colour)
        return colour

    def levels(self, rank: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the depth of each node in the graph directed from lower to higher rank."""
        level = np.empty(len(self.start) - 1, dtype=np.int32)
        core.depth_levels(self.node, self.start, self.half, rank, level)
        return level

    def components(self) -> NDArray[np.int32]:
        """Return the connected component of each node, numbered by first appearance."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n, pairs = len(self.start) - 1, self.node.reshape(-1, 2)
        ones = np.ones(len(pairs), dtype=np.int8)
        adjacency = coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        labels: NDArray[np.int32] = connected_components(adjacency, directed=False)[1]
        return labels


def spanning_forest(n: int, pairs: NDArray[np.int64], weight: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indices, ascending, of the pairs in a minimum-weight spanning forest.

    Among pairs of equal weight the earlier one is preferred.

    Parameters
    ----------
    n : int
        Number of nodes.
    pairs : int64[m, 2]
        Edges between nodes, each pair at most once.
    weight : array[m]
        Weight of each pair.
    """
    chosen = np.empty(len(pairs), dtype=bool)
    order = np.argsort(weight, kind="stable")
    core.spanning_forest(n, np.ascontiguousarray(pairs, dtype=np.int64), order, chosen)
    return np.flatnonzero(chosen)
