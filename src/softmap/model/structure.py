"""The flat arrays of a model, and the positions of nodes, half-edges and edges in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softmap.model.graph import Graph
from softmap.model.inputs import checked_number, offsets
from softmap.model.many import Many
from softmap.model.names import Names
from softmap.model.potentials import Potential
from softmap.model.potentials.base import Costs, Ints
from softmap.model.running import Running

__all__ = ["CARRIED", "NO_AUXILIARIES", "Auxiliaries", "CostSizes", "Structure"]

FEW = 16  # up to this many labels, reductions over labels loop over labels
PIECE = 1 << 16  # number of nodes or edges processed at a time


@dataclass(frozen=True)
class Auxiliaries:
    """How the joint state of each auxiliary node follows from the labels of its members.

    Auxiliary node `a` has state `Σ stride[k] * label[member[k]]`, summed over `k` in
    `start[a]:start[a + 1]`.
    """

    start: Ints
    member: Ints
    stride: Ints

    def __len__(self) -> int:
        return len(self.start) - 1

    def states(self, labels: Ints) -> Ints:
        """Return the joint states for labellings of shape (..., variables)."""
        terms = labels[..., self.member] * self.stride
        total: Ints = np.add.reduceat(terms, self.start[:-1], axis=-1)
        return total


NO_AUXILIARIES = Auxiliaries(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class CostSizes:
    """Sizes of a model's costs, in units of `2**exponent`."""

    exponent: int
    largest: float  # largest |cost|: between 1/2 and 1, or 0
    width: float  # sum of the ranges (largest - smallest cost) of all tables
    scale: float  # mean of the ranges that are not 0; 0 if all tables are constant
    total: float  # sum over all tables of the largest |cost|


class Structure:
    """The arrays of a model and the positions in them; `Model` documents the attributes."""

    unary: Costs
    num_labels: Ints
    n: int
    m: int
    num_variables: int
    edges: NDArray[np.int32]
    potentials: tuple[Potential, ...]
    group_start: Ints
    constant: float
    auxiliaries: Auxiliaries
    running: Running
    required: tuple[Many, ...]
    required_chains: tuple[tuple[int, int], ...]
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

    @cached_property
    def graph(self) -> Graph:
        """The half-edges of each node."""
        return Graph.from_edges(self.edges, self.n)

    @cached_property
    def has_forbidden(self) -> bool:
        """Whether any cost is +inf, projections of auxiliary nodes excepted."""
        return bool(np.isposinf(self.unary).any()) or any(
            p.has_forbidden() for p in self.potentials
        )

    @cached_property
    def cost_sizes(self) -> CostSizes:
        """The sizes of the costs."""
        low, high = self.extremes()
        exponent = int(np.frexp(max(-low.min(), high.max(), 0.0))[1])
        largest, total, width, apart, several = 0.0, 0.0, 0.0, 0.0, 0
        for begin in range(0, len(low), PIECE):  # pieces that stay in the cache
            least, most = (np.ldexp(a[begin : begin + PIECE], -exponent) for a in (low, high))
            size, widths = np.maximum(np.abs(least), np.abs(most)), most - least
            wide = widths[widths > 0]
            largest, total = max(largest, float(size.max())), total + float(size.sum())
            width, apart = width + float(widths.sum()), apart + float(wide.sum())
            several += len(wide)
        return CostSizes(exponent, largest, width, apart / several if several else 0.0, total)

    def extremes(self) -> tuple[Costs, Costs]:
        """Return the smallest and largest finite cost of every node, then of every edge.

        Both are 0 for a node or edge without a finite cost.
        """
        low, high = np.empty((2, self.n + self.m))
        for begin in range(0, self.n, PIECE):
            end = min(begin + PIECE, self.n)
            low[begin:end], high[begin:end] = self._extremes_of_nodes(begin, end)
        for first, last, p in self.groups():
            edges = slice(self.n + first, self.n + last)
            low[edges], high[edges] = p.extremes(*self.end_labels(first, last))
        return low, high

    def _extremes_of_nodes(self, begin: int, end: int) -> tuple[Costs, Costs]:
        """As `extremes`, of nodes `begin:end`; loops over labels if all nodes have the same few."""
        places = self.node_offset[begin : end + 1]
        costs, starts = self.unary[places[0] : places[-1]], places[:-1] - places[0]
        alike = self.is_even and int(self.num_labels[0]) <= FEW

        def reduced(op: np.ufunc, costs: Costs) -> Costs:
            if not alike:
                return np.asarray(op.reduceat(costs, starts))
            first, *others = costs.reshape(end - begin, -1).T
            found = first.copy()
            for column in others:
                op(found, column, out=found)
            return found

        low, high = reduced(np.minimum, costs), reduced(np.maximum, costs)
        if np.isinf(high).any():
            high = reduced(np.maximum, np.where(np.isinf(costs), -np.inf, costs))
            barred = np.isinf(low)
            low[barred] = high[barred] = 0.0
        return low, high

    @property
    def num_visible(self) -> int:
        """The length of a labelling: the number of variables without chain variables."""
        return self.num_variables - len(self.running)

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
        return self.unary.nbytes + self.edges.nbytes + sum(a.nbytes for a in arrays)


# Attributes that do not depend on other costs: `Model._with` copies them, and pickles hold them.
CARRIED = frozenset(Structure.__annotations__) | {
    "node_offset",
    "half_offset",
    "edge_offset",
    "graph",
    "is_even",
}
