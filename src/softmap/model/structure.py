"""The flat arrays of a pairwise model, and the positions of nodes and edges in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model.graph import Graph
from softmap.model.inputs import checked_number
from softmap.model.names import Names
from softmap.model.potentials import Potential, Projection
from softmap.model.potentials.base import Costs, Ints, is_one_value, offsets

PIECE = 1 << 16  # number of nodes or edges processed at a time


@dataclass(frozen=True)
class CostSizes:
    """Sizes of a model's costs, in units of `2**exponent`."""

    exponent: int
    largest: float  # largest |cost|: between 1/2 and 1, or 0
    width: float  # sum of the ranges (largest - smallest cost) of all tables
    node_width: float  # the part of `width` that unary costs have
    scale: float  # mean of the ranges that are not 0; 0 if all tables are constant
    total: float  # sum over all tables of the largest |cost|


class Structure:
    """The arrays of a pairwise model, and the positions in them; `Network` documents them."""

    unary: Costs
    num_labels: Ints
    n: int
    m: int
    num_variables: int
    edges: NDArray[np.int32]
    potentials: tuple[Potential, ...]
    group_start: Ints
    constant: float
    shape: tuple[int, ...] | None
    names: Names | None

    @cached_property
    def node_offset(self) -> Ints:
        """The start of each node's block in node arrays such as `unary`; length n + 1."""
        return offsets(self.num_labels)

    @cached_property
    def half_offset(self) -> Ints:
        """The start of each half-edge's block in arrays such as λ; length 2m + 1."""
        return offsets(self.num_labels[self.edges.reshape(-1)])

    @cached_property
    def is_even(self) -> bool:
        """Whether all nodes have the same number of labels."""
        return bool(self.num_labels.min() == self.num_labels.max())

    @property
    def half_size(self) -> int:
        """The length of arrays such as λ (one entry per half-edge and label)."""
        if self.is_even:  # avoids the array of offsets
            return 2 * self.m * int(self.num_labels[0])
        return int(self.half_offset[-1])

    @cached_property
    def edge_offset(self) -> Ints:
        """The start of each edge's row-major block in edge arrays; length m + 1."""
        return offsets(self.num_labels[self.edges].prod(axis=1))

    @property
    def edge_size(self) -> int:
        """The length of edge arrays (one entry per edge and pair of labels)."""
        if self.is_even:
            return self.m * int(self.num_labels[0]) ** 2
        return int(self.edge_offset[-1])

    @cached_property
    def graph(self) -> Graph:
        """The half-edges of each node."""
        return Graph.from_edges(self.edges, self.n)

    @cached_property
    def has_forbidden(self) -> bool:
        """Whether any cost is +inf, projections of auxiliary nodes excepted."""
        largest = self.unary.max(initial=0.0)  # faster than a mask of all costs
        if largest == np.inf or any(p.has_forbidden() for p in self.potentials):
            return True
        return any(
            bool(
                (
                    (self.edges[first:last] < self.num_variables).all(axis=1) & (p.num_labels > 1)
                ).any()
            )
            for first, last, p in self.groups()
            if isinstance(p, Projection)
        )

    @cached_property
    def cost_sizes(self) -> CostSizes:
        """The sizes of the costs."""
        largest, total, width, several = 0.0, 0.0, [0.0, 0.0], 0
        for edges, pieces in enumerate((self.node_extremes(), self.edge_extremes())):
            for low, high in pieces:
                size, widths = np.maximum(np.abs(low), np.abs(high)), high - low
                largest, total = max(largest, float(size.max())), total + float(size.sum())
                width[edges] += float(widths.sum())
                several += int(np.count_nonzero(widths))
        exponent = int(np.frexp(largest)[1])
        largest, total, *width = (math.ldexp(size, -exponent) for size in (largest, total, *width))
        both = sum(width)
        scale = both / several if several else 0.0
        return CostSizes(exponent, largest, both, width[0], scale, total)

    def node_extremes(self) -> Iterator[tuple[Costs, Costs]]:
        """Yield the smallest and largest finite cost of the nodes, 0 if there is none, in pieces.

        Pieces stay in the cache, and take no memory.
        """
        even = int(self.num_labels[0]) if self.is_even else 0
        rows: Ints = np.arange(min(PIECE, self.n) + 1) * even
        for first in range(0, self.n, PIECE):
            count = min(PIECE, self.n - first)
            if not even:
                rows = offsets(self.num_labels[first : first + count])
            start = first * even if even else int(self.node_offset[first])
            low, high = np.empty((2, count))
            costs = self.unary[start : start + int(rows[count])]
            core.row_extremes(costs, rows[: count + 1], low, high)
            yield low, high

    def edge_extremes(self) -> Iterator[tuple[Costs, Costs]]:
        """Yield the smallest and largest finite cost of the edges, as `node_extremes`."""
        for first, last, potential in self.groups():
            yield from potential.extreme_pieces(*self.end_labels(first, last), PIECE)

    def extremes(self) -> tuple[Costs, Costs]:
        """Return the smallest and largest finite cost of every node, then of every edge.

        Both are 0 for a node or edge without a finite cost.
        """
        low, high = np.empty((2, self.n + self.m))
        start = offsets(self.num_labels)  # not `node_offset`, which would be kept
        core.row_extremes(self.unary, start, low[: self.n], high[: self.n])
        for first, last, p in self.groups():
            edges = slice(self.n + first, self.n + last)
            low[edges], high[edges] = p.extremes(*self.end_labels(first, last))
        return low, high

    def groups(self) -> Iterator[tuple[int, int, Potential]]:
        """Yield (first edge, last edge + 1, potential) for each group of edges."""
        for g, potential in enumerate(self.potentials):
            yield int(self.group_start[g]), int(self.group_start[g + 1]), potential

    def end_labels(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Return the label counts of the first and second endpoints of edges `first:last`."""
        if self.is_even:  # a broadcast view needs no memory
            same = np.broadcast_to(self.num_labels[0], (last - first,))
            return same, same
        ends = self.edges[first:last]
        return self.num_labels[ends[:, 0]], self.num_labels[ends[:, 1]]

    def node_slice(self, i: int) -> slice:
        """Return the slice of node `i` in node arrays."""
        i = checked_number(i, self.n, "node")
        return slice(int(self.node_offset[i]), int(self.node_offset[i + 1]))

    def half_slice(self, h: int) -> slice:
        """Return the slice of half-edge `h` in arrays such as λ."""
        h = checked_number(h, 2 * self.m, "half-edge")
        return slice(int(self.half_offset[h]), int(self.half_offset[h + 1]))

    def unary_of(self, i: int) -> Costs:
        """Return the costs of the labels of node `i`."""
        return self.unary[self.node_slice(i)]

    def table(self, e: int) -> Costs:
        """Return the dense costs of edge `e`; rows are the labels of its first endpoint."""
        e = checked_number(e, self.m, "edge")
        g = int(np.searchsorted(self.group_start, e, side="right")) - 1
        i, j = self.edges[e]
        rows, cols = int(self.num_labels[i]), int(self.num_labels[j])
        return self.potentials[g].as_table(int(e - self.group_start[g]), rows, cols)

    def tables(self) -> Iterator[Costs]:
        """Iterate over the dense costs of all edges."""
        return (self.table(e) for e in range(self.m))

    @property
    def nbytes(self) -> int:
        """The memory of the arrays that define the model, in bytes."""
        arrays = [a for p in self.potentials for a in p.arrays().values()]
        stored = sum(a.itemsize if is_one_value(a) else a.nbytes for a in arrays)
        return self.unary.nbytes + self.edges.nbytes + stored


def unique_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of an integer array, ascending, and the index of each row in them.

    As `np.unique` along the first axis, which is slow.
    """
    code, count = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T if len(rows) else ():
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if count * span >= 1 << 62:  # ranks: at most len(rows) codes times len(rows) values
            (code, count), (column, span), low = _ranks(code), _ranks(column), 0
        code, count = code * span + (column - low), count * span
    distinct = np.unique(code)
    index = np.searchsorted(distinct, code)
    which = np.empty(len(distinct), dtype=np.int64)
    which[index] = np.arange(len(rows))  # any of equal rows
    return rows[which], index


def _ranks(values: Ints) -> tuple[Ints, int]:
    """Return the index of each value among the distinct ones, and the number of these."""
    distinct = np.unique(values)
    return np.searchsorted(distinct, values), len(distinct)
