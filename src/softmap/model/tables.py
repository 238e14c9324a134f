"""Unary costs and tables of factors, collected and merged by their variables.

It takes single factors and whole arrays of factors, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model.chains import without_single_labels
from softmap.model.inputs import FlatUnary, Group
from softmap.model.lowered_nodes import NO_AUXILIARIES, Auxiliaries
from softmap.model.potentials import Potential, Projection, SharedTables, Tables
from softmap.model.potentials.base import Costs, Ints, frozen, offsets

Scope = tuple[int, ...]
Larger = list[tuple[Scope, Costs]]


@dataclass(frozen=True)
class Sizes:
    """Tuning numbers of the assembler.

    Attributes
    ----------
    uniform_groups : int
        Up to this many table shapes get a group of edges each; more shapes share one ragged group.
    total_labels : int
        Largest sum of the label counts of all variables.
    """

    uniform_groups: int = 4
    total_labels: int = 1 << 36


SIZES = Sizes()


@dataclass
class SharedUses:
    """Edges that share tables; two tables are the same if they are the same object."""

    tables: list[Costs] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)
    edges: list[Sequence[int]] = field(default_factory=list)
    index: list[int] = field(default_factory=list)

    def add(self, edge: Sequence[int], table: Costs) -> None:
        number = self.number.setdefault(id(table), len(self.tables))
        if number == len(self.tables):
            self.tables.append(table)
        self.edges.append(edge)
        self.index.append(number)


class Parts(NamedTuple):
    """Nodes and edges: first the variables, then one node per factor of three or more of them."""

    unary: FlatUnary
    groups: list[Group]
    constant: float
    nodes: Auxiliaries


class Counts(NamedTuple):
    """How many tables of each kind were given: the place of a factor among them."""

    tables: int
    pairs: int
    larger: int
    alike: int


class Said(NamedTuple):
    """Edges by how they were given, and larger factors in bulk: see `FactorTables`."""

    tables: list[tuple[Ints, Costs | list[Costs]]]
    pairs: tuple[list[Sequence[int]], list[Costs]]
    shared: SharedUses
    families: list[tuple[Ints, Potential]]
    alike: list[tuple[Ints, Costs]]


class FactorTables:
    """Costs of variables, edges and larger factors, given as numbers, tables and potentials.

    Unary costs and constants add up. Factors over the same set of variables are merged. An edge
    keeps its potential family if its pair occurs once. A factor of three or more variables becomes
    a node with one state per joint state.

    Arrays are neither checked nor copied.
    """

    def __init__(self, num_labels: Ints) -> None:
        self.num_labels = num_labels
        self._offset = offsets(num_labels)
        self._unary: Costs = np.zeros(int(self._offset[-1]))
        self._constant = 0.0
        self._tables: list[tuple[Ints, Costs | list[Costs]]] = []
        self._pairs: tuple[list[Sequence[int]], list[Costs]] = ([], [])
        self._shared = SharedUses()
        self._families: list[tuple[Ints, Potential]] = []
        self._larger: dict[Scope, tuple[Scope, Costs]] = {}
        self._alike: list[tuple[Ints, Costs]] = []

    def add_constant(self, value: float) -> None:
        """Add a constant to every energy."""
        self._constant += float(value)

    def add_unary(self, variable: int, costs: Costs) -> None:
        """Add the costs of one variable's labels."""
        self._unary[self._offset[variable] : self._offset[variable + 1]] += costs

    def add_unaries(self, variables: Ints, costs: Costs) -> None:
        """Add rows of costs to variables that all have `costs.shape[1]` labels."""
        place = self._offset[variables][:, None] + np.arange(costs.shape[1])
        np.add.at(self._unary, place, costs)

    def add_flat_unary(self, costs: Costs) -> None:
        """Add the costs of all variables, concatenated in the order of the variables."""
        self._unary += costs

    def add_tables(self, edges: Ints, tables: Costs | list[Costs]) -> None:
        """Add dense tables, an array (k, d, d') or a list; rows belong to the first endpoint."""
        if len(edges):
            self._tables.append((edges, tables))

    def add_potential(self, edges: Ints, potential: Potential) -> None:
        """Add a group of edges of one family."""
        if len(edges):
            self._families.append((edges, potential))

    def add_shared(self, scope: Sequence[int], table: Costs) -> None:
        """Add a factor whose table other factors share; pass the same object each time."""
        if len(scope) == 2:
            self._shared.add(scope, table)
        else:
            self.add_factor(scope, table)

    def add_factor(self, scope: Sequence[int], costs: Costs) -> None:
        """Add one factor of any arity.

        Variables with a single label are removed from a factor of three or more variables.
        """
        scope, costs = without_single_labels(scope, costs)
        if len(scope) == 0:
            self.add_constant(float(costs.reshape(())))
        elif len(scope) == 1:
            self.add_unary(scope[0], costs)
        elif len(scope) == 2:
            self._pairs[0].append(scope)
            self._pairs[1].append(costs)
        else:
            self._add_larger(tuple(scope), costs)

    def add_alike(self, scopes: Ints, costs: Costs) -> None:
        """Add factors of three or more variables with tables of one shape.

        Row k of `scopes` and of `costs` is factor k. No two factors have the same variables.
        """
        if len(scopes):
            self._alike.append((scopes, costs))

    def add_repeated(self, scopes: Ints, costs: Costs, *, bulk: bool) -> None:
        """Add one table for each row of `scopes`; `bulk` if no two rows have the same variables."""
        if bulk and scopes.shape[1] > 1 and 1 not in costs.shape:
            tables = np.broadcast_to(costs, (len(scopes), *costs.shape))
            (self.add_tables if scopes.shape[1] == 2 else self.add_alike)(scopes, tables)
        else:
            for row in scopes.tolist():
                self.add_factor(row, costs)

    @property
    def counts(self) -> Counts:
        """The number of tables of each kind so far."""
        return Counts(len(self._tables), len(self._pairs[0]), len(self._larger), len(self._alike))

    @property
    def unary(self) -> Costs:
        """The costs of all variables so far, flat."""
        return self._unary

    @property
    def constant(self) -> float:
        """The constant so far."""
        return self._constant

    def costs_of(self, variables: Iterable[int]) -> list[Costs]:
        """Return the unary costs of variables."""
        return [self._unary[self._offset[i] : self._offset[i + 1]] for i in variables]

    def with_costs(self, unary: Costs, constant: float) -> Self:
        """Return the same tables with these unary costs and constant."""
        other = copy(self)
        other._unary, other._constant = unary, constant
        return other

    def without_pairs(self) -> Self:
        """Return the same tables without those of edges."""
        other = copy(self)
        other._tables, other._pairs, other._families = [], ([], []), []
        other._shared = SharedUses()
        return other

    def take(self, other: FactorTables, larger: Larger, first: Counts, last: Counts) -> None:
        """Add the tables of another collection from these places on, up to those.

        Parameters
        ----------
        other : FactorTables
            The other collection.
        larger : list of (scope, costs)
            Its larger factors.
        first, last : Counts
            The places.
        """
        self._tables += other._tables[first.tables : last.tables]
        self._pairs[0].extend(other._pairs[0][first.pairs : last.pairs])
        self._pairs[1].extend(other._pairs[1][first.pairs : last.pairs])
        for scope, costs in larger[first.larger : last.larger]:
            self._add_larger(scope, costs)
        self._alike += other._alike[first.alike : last.alike]

    def larger(self) -> Larger:
        """Return the factors of three or more variables that were given one by one."""
        return list(self._larger.values())

    def said(self) -> Said:
        """Return what was given of edges, and of larger factors in bulk."""
        return Said(self._tables, self._pairs, self._shared, self._families, self._alike)

    def set_unary(self, costs: Costs) -> None:
        """Set the costs of all variables, flat."""
        self._unary = costs

    def take_potentials(self, other: FactorTables) -> None:
        """Add the potentials and the shared tables of another collection."""
        self._shared, self._families = other._shared, other._families

    def parts(self, groups: Sequence[Group], more: Sequence[Costs] = ()) -> Parts:
        """Return nodes and edges; `groups` are added unchanged.

        Parameters
        ----------
        groups : list of (edges, potential)
            Further edges.
        more : sequence of float64 arrays, optional
            Costs of chain variables, which are numbered after all others.
        """
        if not np.isfinite(self._constant):
            raise ModelError(f"the factors without variables add up to {self._constant}")
        chained = np.array([len(row) for row in more], dtype=np.int64)
        counts = np.concatenate([self.num_labels, chained])
        unary = np.concatenate([self._unary, *more]) if more else self._unary
        edges = [*self._edge_groups(len(counts)), *groups]
        larger = [*_stacked(self._larger.values()), *self._alike]
        aux = NO_AUXILIARIES
        if larger:
            ties, aux = _ties(larger, counts)
            edges.append(ties)
            joint = [np.full(len(c), c[0].size) for _, c in larger]
            unary = np.concatenate([unary, *(c.ravel() for _, c in larger)])
            counts = np.concatenate([counts, *joint])
        return Parts(FlatUnary(unary, counts), edges, self._constant, aux)

    def _add_larger(self, scope: Scope, costs: Costs) -> None:
        key = tuple(sorted(scope))
        if key not in self._larger:
            self._larger[key] = scope, costs
            return
        first, so_far = self._larger[key]
        self._larger[key] = first, so_far + costs.transpose([scope.index(i) for i in first])

    def _edge_groups(self, n: int) -> list[Group]:
        """The groups of all edges; a pair that occurs more than once becomes one table."""
        parts, kept = list(self._tables), list(self._families)
        if self._pairs[0]:
            parts.append((np.array(self._pairs[0]), self._pairs[1]))
        if self._shared.edges:
            potential = SharedTables(self._shared.tables, np.array(self._shared.index))
            kept.append((np.array(self._shared.edges), potential))
        repeated = _repeated([edges for edges, _ in [*parts, *kept]], n)
        if not len(repeated):
            return [*_table_groups(parts), *kept]
        merged: dict[tuple[int, int], Costs] = {}

        def once(edges: Ints, given: Any) -> tuple[Ints, Any]:
            return self._once(edges, given, np.isin(_keys(edges, n), repeated), merged)

        parts, kept = [once(*part) for part in parts], [once(*part) for part in kept]
        parts.append((np.array(list(merged)), list(merged.values())))
        return [*_table_groups([part for part in parts if len(part[0])]), *kept]

    def _once(
        self,
        edges: Ints,
        given: Potential | Costs | list[Costs],
        again: NDArray[np.bool_],
        merged: dict[tuple[int, int], Costs],
    ) -> tuple[Ints, Potential | Costs | list[Costs]]:
        """Move the tables of repeated pairs to `merged`; return the others."""
        for k in np.flatnonzero(again).tolist():
            i, j = edges[k].tolist()
            if isinstance(given, Potential):
                table = given.as_table(k, int(self.num_labels[i]), int(self.num_labels[j]))
            else:
                table = given[k]
            key, part = ((i, j), table) if i < j else ((j, i), table.T)
            merged[key] = merged[key] + part if key in merged else part
        left = np.flatnonzero(~again)
        if len(left) == len(edges):
            return edges, given
        if isinstance(given, Potential):
            return edges[left], given.take(left)
        return edges[left], given[left] if isinstance(given, np.ndarray) else [
            given[k] for k in left
        ]


def _keys(edges: Ints, n: int) -> Ints:
    """Return one integer per edge, equal for (i, j) and (j, i)."""
    first, second = edges[:, 0], edges[:, 1]
    keys: Ints = np.minimum(first, second) * n + np.maximum(first, second)
    return keys


def _repeated(parts: list[Ints], n: int) -> Ints:
    """Return the keys (see `_keys`) of the pairs that occur more than once."""
    if not parts:
        return np.zeros(0, dtype=np.int64)
    keys = np.sort(np.concatenate([_keys(edges, n) for edges in parts]))
    again = keys[1:][keys[1:] == keys[:-1]]
    return np.unique(again) if again.size else again


def _table_groups(parts: list[tuple[Ints, Costs | list[Costs]]]) -> list[Group]:
    """One group of edges per table shape, or one ragged group if there are many shapes."""
    uniform = [(e, t) for e, t in parts if isinstance(t, np.ndarray)]
    loose = [(e, t) for e, t in parts if not isinstance(t, np.ndarray)]
    if len(uniform) > SIZES.uniform_groups:
        uniform, loose = [], [(e, list(t)) for e, t in parts]
    groups: list[Group] = [(e, Tables(t)) for e, t in uniform]
    if loose:
        tables = [table for _, stack in loose for table in stack]
        groups.append((np.concatenate([e for e, _ in loose]), Tables(tables)))
    return groups


def _stacked(larger: Iterable[tuple[Scope, Costs]]) -> Iterator[tuple[Ints, Costs]]:
    """Stack consecutive factors whose tables have the same shape."""
    for _, part in groupby(larger, lambda factor: factor[1].shape):
        same = list(part)
        yield np.array([scope for scope, _ in same]), np.stack([costs for _, costs in same])


def _ties(larger: list[tuple[Ints, Costs]], counts: Ints) -> tuple[Group, Auxiliaries]:
    """One auxiliary node per large factor, and the projections to its members (shared maps)."""
    maps: dict[tuple[Scope, int], int] = {}
    tables: list[NDArray[np.int32]] = []
    ends, index, strides, arity = [], [], [], []
    node = len(counts)
    for scopes, costs in larger:
        shape, (m, k) = costs.shape[1:], scopes.shape
        stride = np.append(np.cumprod(shape[:0:-1])[::-1], 1)
        for axis in range(k):
            if (shape, axis) not in maps:
                maps[shape, axis] = len(tables)
                label = np.arange(math.prod(shape)) // stride[axis] % shape[axis]
                tables.append(label.astype(np.int32))
        own = np.repeat(np.arange(node, node + m), k)
        ends.append(np.column_stack([own, scopes.ravel()]))
        index.append(np.tile([maps[shape, axis] for axis in range(k)], m))
        strides.append(np.tile(stride, m))
        arity.append(np.full(m, k))
        node += m
    edges = np.concatenate(ends)
    tie = Projection(tables, counts[edges[:, 1]], np.concatenate(index))
    start = offsets(np.concatenate(arity))
    arrays = (frozen(a, np.int64) for a in (start, edges[:, 1], np.concatenate(strides)))
    return (edges, tie), Auxiliaries(*arrays)
