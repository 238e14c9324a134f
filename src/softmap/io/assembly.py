"""Factors in bulk to a `Model`: sums of unaries, merged pairs, auxiliary variables for the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, ModelError
from softmap.model import Auxiliaries, Model
from softmap.model.chains import chains
from softmap.model.factors import Pieces
from softmap.model.inputs import FlatUnary
from softmap.model.many import Many
from softmap.model.potentials import Potential, Projection, Tables
from softmap.model.potentials.base import LARGEST_COST, RANGE, beyond, frozen, largest
from softmap.model.running import running_of

__all__ = ["Assembly", "Costs", "Ints", "check_range", "gather", "gather_transposed"]

Costs = NDArray[np.float64]
Ints = NDArray[np.int64]

# Up to this many table shapes get a group each; beyond, one ragged group is the better layout.
MAX_UNIFORM_GROUPS = 4
_GATHER = 1 << 16


def check_range(costs: Costs, name: str | None) -> None:
    """Refuse costs so large that sums of them could pass for +inf; they hold no NaN, no -inf."""
    if largest(costs) > LARGEST_COST:
        raise FormatError(f"found a cost of {costs[beyond(costs)][0]:g}; {RANGE}", name)


class Assembly:
    """Collects the factors of one file.

    Pairs named more than once, in either order, become one table; everything else is kept as it
    comes, shared tables and structured families included.
    """

    def __init__(self, num_labels: Ints, name: str | None = None) -> None:
        self.num_labels = num_labels
        self.name = name
        self.offset = np.concatenate([[0], np.cumsum(num_labels)])
        self.unary: Costs = np.zeros(int(self.offset[-1]))
        self.constant = 0.0
        self._dense: list[tuple[Ints, Costs | list[Costs]]] = []
        self._single: tuple[list[Sequence[int]], list[Costs]] = ([], [])
        self._kept: list[tuple[Ints, Potential]] = []
        self._larger: dict[tuple[int, ...], tuple[tuple[int, ...], Costs]] = {}
        self._alike: list[tuple[Ints, Costs]] = []
        self._running: list[int] = []
        self._follow: list[tuple[tuple[int, ...], Ints]] = []

    def add_constant(self, value: float) -> None:
        """Add to every energy."""
        self.constant += float(value)

    def add_unaries(self, variables: Ints, costs: Costs) -> None:
        """Add rows of costs to variables that all have `costs.shape[1]` labels."""
        place = self.offset[variables][:, None] + np.arange(costs.shape[1])
        np.add.at(self.unary, place, costs)

    def add_tables(self, edges: Ints, tables: Costs | list[Costs]) -> None:
        """Add dense tables, rows for the first end: (k, d, d') or a list."""
        if len(edges):
            self._dense.append((edges, tables))

    def add_potential(self, edges: Ints, potential: Potential) -> None:
        """Add a group of edges that keeps its family."""
        if len(edges):
            self._kept.append((edges, potential))

    def add_factor(self, scope: Sequence[int], costs: Costs) -> None:
        """Add one factor of any arity; axes of variables with a single label drop out."""
        if len(scope) > 2 and 1 in costs.shape:
            scope = [i for i, d in zip(scope, costs.shape, strict=True) if d > 1]
            costs = costs.reshape([d for d in costs.shape if d > 1])
        if len(scope) == 0:
            self.add_constant(float(costs.reshape(())))
        elif len(scope) == 1:
            self.add_unaries(np.array(scope), costs[None, :])
        elif len(scope) == 2:
            self._single[0].append(scope)
            self._single[1].append(costs)
        else:
            self._add_larger(tuple(scope), costs)

    def add_alike(self, scopes: Ints, costs: Costs) -> None:
        """Add factors of three and more variables of one shape: a row of each array for each."""
        if len(scopes):
            self._alike.append((scopes, costs))

    def add_many(self, factor: Many) -> None:
        """Add a factor over many variables; running variables come after all others."""
        sizes = self.num_labels[list(factor.variables)].tolist()
        try:
            chain = chains(factor, sizes, len(self.num_labels) + len(self._running))
        except ModelError as error:
            raise FormatError(str(error), self.name) from error
        self._running += chain.num_labels
        self._follow += chain.running
        for scope, costs in chain.factors:
            self.add_factor(scope, costs)

    def _add_larger(self, scope: tuple[int, ...], costs: Costs) -> None:
        key = tuple(sorted(scope))
        if key not in self._larger:
            self._larger[key] = scope, costs
            return
        first, sum_so_far = self._larger[key]
        self._larger[key] = first, sum_so_far + costs.transpose([scope.index(i) for i in first])

    def build(self) -> Model:
        """The model."""
        if self._running:
            self.num_labels = np.concatenate([self.num_labels, self._running])
            self.unary = np.concatenate([self.unary, np.zeros(sum(self._running))])
        if self._single[0]:
            self.add_tables(np.array(self._single[0]), self._single[1])
        groups = self._groups()
        if not np.isfinite(self.constant):
            raise FormatError(f"the factors without variables add up to {self.constant}", self.name)
        try:
            larger = [*_stacked(list(self._larger.values())), *self._alike]
            if larger:
                model = _with_larger(self.unary, self.num_labels, groups, larger, self.constant)
            else:
                model = Model(self._rows(), None, groups, constant=self.constant)
            running = running_of(self._follow)
            return model.with_running_variables(running) if self._follow else model
        except ModelError as error:
            raise FormatError(str(error), self.name) from error

    def _rows(self) -> Costs | FlatUnary:
        if (self.num_labels == self.num_labels[0]).all():
            return self.unary.reshape(len(self.num_labels), -1)
        return FlatUnary(self.unary, self.num_labels)

    def _groups(self) -> list[tuple[Ints, Potential]]:
        repeated = self._repeated()
        merged: dict[tuple[int, int], Costs] = {}
        dense = [self._singles(edges, tables, repeated, merged) for edges, tables in self._dense]
        kept = []
        for edges, potential in self._kept:
            again = self._are(edges, repeated)
            for k in np.flatnonzero(again):
                i, j = edges[k].tolist()
                d_i, d_j = int(self.num_labels[i]), int(self.num_labels[j])
                _merge(merged, i, j, potential.as_table(int(k), d_i, d_j))
            if again.any():
                edges, potential = edges[~again], potential.take(np.flatnonzero(~again))
            kept.append((edges, potential))
        if merged:
            dense.append((np.array(list(merged)), list(merged.values())))
        self._dense = []
        return [*_table_groups([d for d in dense if len(d[0])]), *kept]

    def _singles(
        self,
        edges: Ints,
        tables: Costs | list[Costs],
        repeated: Ints,
        merged: dict[tuple[int, int], Costs],
    ) -> tuple[Ints, Costs | list[Costs]]:
        """Move tables of repeated pairs to `merged`; return the others."""
        again = self._are(edges, repeated)
        if not again.any():
            return edges, tables
        for k in np.flatnonzero(again):
            i, j = edges[k].tolist()
            _merge(merged, i, j, tables[k])
        if isinstance(tables, np.ndarray):
            return edges[~again], tables[~again]
        return edges[~again], [tables[k] for k in np.flatnonzero(~again)]

    def _keys(self, edges: Ints) -> Ints:
        """One number per unordered pair."""
        first, second = edges[:, 0], edges[:, 1]
        low, high = np.minimum(first, second), np.maximum(first, second)
        keys: Ints = low * len(self.num_labels) + high
        return keys

    def _are(self, edges: Ints, repeated: Ints) -> NDArray[np.bool_]:
        """Which edges are among the repeated pairs."""
        if not len(repeated):
            return np.zeros(len(edges), dtype=bool)
        return np.isin(self._keys(edges), repeated)

    def _repeated(self) -> Ints:
        parts = [self._keys(edges) for edges, _ in [*self._dense, *self._kept]]
        if not parts:
            return np.zeros(0, dtype=np.int64)
        keys = np.sort(np.concatenate(parts))
        return np.unique(keys[1:][keys[1:] == keys[:-1]])


def _stacked(larger: list[tuple[tuple[int, ...], Costs]]) -> Iterator[tuple[Ints, Costs]]:
    """Neighbours of one shape together."""
    for _, part in groupby(larger, lambda factor: factor[1].shape):
        same = list(part)
        yield np.array([scope for scope, _ in same]), np.stack([costs for _, costs in same])


def _with_larger(
    unary: Costs,
    num_labels: Ints,
    groups: list[tuple[Ints, Potential]],
    larger: list[tuple[Ints, Costs]],
    constant: float,
) -> Model:
    """One auxiliary node per large factor, in bulk; see `Model.from_factors`."""
    maps: dict[tuple[tuple[int, ...], int], int] = {}
    tables: list[Ints] = []
    ends, index, strides, arity = [], [], [], []
    node = len(num_labels)
    for scopes, costs in larger:
        shape, (m, k) = costs.shape[1:], scopes.shape
        stride = np.append(np.cumprod(shape[:0:-1])[::-1], 1)
        for axis in range(k):
            if (shape, axis) not in maps:
                maps[shape, axis] = len(tables)
                tables.append(np.arange(math.prod(shape)) // stride[axis] % shape[axis])
        own = np.repeat(np.arange(node, node + m), k)
        ends.append(np.column_stack([own, scopes.ravel()]))
        index.append(np.tile([maps[shape, axis] for axis in range(k)], m))
        strides.append(np.tile(stride, m))
        arity.append(np.full(m, k))
        node += m
    edges = np.concatenate(ends)
    tie = Projection(tables, num_labels[edges[:, 1]], np.concatenate(index))
    counts = [num_labels, *(np.full(len(c), c[0].size) for _, c in larger)]
    costs = np.concatenate([unary, *(c.ravel() for _, c in larger)])
    rows = FlatUnary(costs, np.concatenate(counts))
    start = np.concatenate([[0], np.cumsum(np.concatenate(arity))])
    arrays = (frozen(a, np.int64) for a in (start, edges[:, 1], np.concatenate(strides)))
    pieces = Pieces(rows, [*groups, (edges, tie)], constant, Auxiliaries(*arrays))
    return Model.from_pieces(pieces)


def _merge(merged: dict[tuple[int, int], Costs], i: int, j: int, table: Costs) -> None:
    key, part = ((i, j), table) if i < j else ((j, i), table.T)
    merged[key] = merged[key] + part if key in merged else part


def _table_groups(parts: list[tuple[Ints, Costs | list[Costs]]]) -> list[tuple[Ints, Potential]]:
    """Tables of one shape each, or all in one ragged group where there are many shapes."""
    uniform = [(e, t) for e, t in parts if isinstance(t, np.ndarray)]
    loose = [(e, t) for e, t in parts if not isinstance(t, np.ndarray)]
    if len(uniform) > MAX_UNIFORM_GROUPS:
        uniform, loose = [], [(e, list(t)) for e, t in parts]
    groups: list[tuple[Ints, Potential]] = [(e, Tables(t)) for e, t in uniform]
    if loose:
        tables = [table for _, stack in loose for table in stack]
        groups.append((np.concatenate([e for e, _ in loose]), Tables(tables)))
    return groups


def gather(costs: Costs, start: Ints, size: int) -> Costs:
    """Rows `costs[start : start + size]`, some at a time to keep the index small."""
    out = np.empty((len(start), size))
    step = max(1, _GATHER // size)
    for row in range(0, len(start), step):
        place = start[row : row + step, None] + np.arange(size)
        np.take(costs, place, out=out[row : row + step])
    return out


def gather_transposed(costs: Costs, start: Ints, shape: tuple[int, int]) -> Costs:
    """The same for tables of one shape that are stored column by column."""
    rows, cols = shape
    out = np.empty((len(start), rows, cols))
    step = max(1, _GATHER // (rows * cols))
    for row in range(0, len(start), step):
        part = gather(costs, start[row : row + step], rows * cols)
        out[row : row + step] = part.reshape(-1, cols, rows).transpose(0, 2, 1)
    return out
