"""A model as clauses, sums and costs of Boolean literals.

A variable with two labels is one Boolean variable, any other one has a Boolean variable for each
label. A table becomes clauses for its forbidden joint states, and for each of its costs a literal
that holds if the table costs as much or more. Hard sums over many variables stay sums; their chain
variables are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.model.many import AllDifferent, AtMostOne, Cardinality, Many
from softmap.model.potentials.base import Ints
from softmap.relaxation.flat import FlatModel, flatten
from softmap.subsolvers.cores.units import FORBIDDEN, Units, units_of

__all__ = ["Encoding", "encode", "prime_cubes"]

Bools = NDArray[np.bool_]
Cube = list[tuple[int, int]]  # axes and their labels; all other axes are free
Bounds = tuple[float, float]
Source = tuple[int, int, int, int]
OF_FACTOR, OF_LABELS = (
    1,
    2,
)  # sources in proofs: number of a factor, label, and 1 for its largest sum


@dataclass
class Encoding:
    """Clauses, sums and costs; literals are +v and -v for variables v = 1, 2, …

    Attributes
    ----------
    units : Units
        The unit of the costs.
    literal : int64 array
        The literal of each label, concatenated.
    offset : int64 array
        The first of them of each variable.
    base : int
        Units that every labelling pays.
    variables : int
        Number of Boolean variables so far; variable 1 is true.
    clauses : list of (int64 array, int64 array)
        Rows of literals, of which at least one holds, and the table that each row follows from:
        the number of a variable, or of a factor from the number of variables on.
    sums : list of (int64 array, int64 array, int, Source)
        Literals, weights, the least sum of the weights of literals that hold, and what it follows
        from.
    costs : list of (int64 array, int64 array, int64 array)
        Literals, what each costs if it holds, and the tables that they are costs of.
    """

    units: Units
    literal: Ints
    offset: Ints
    variables: int
    base: int = 0
    clauses: list[tuple[Ints, Ints]] = field(default_factory=list)
    sums: list[tuple[Ints, Ints, int, Source]] = field(default_factory=list)
    costs: list[tuple[Ints, Ints, Ints]] = field(default_factory=list)

    def fresh(self, count: int) -> Ints:
        """Return the literals of new variables."""
        self.variables += count
        return np.arange(self.variables - count + 1, self.variables + 1)

    def labels(self, values: Bools) -> Ints:
        """Return the labels of values of the Boolean variables."""
        holds = values[np.abs(self.literal) - 1] == (self.literal > 0)
        places = np.flatnonzero(holds)
        owner = np.searchsorted(self.offset, places, side="right") - 1
        found = np.zeros(len(self.offset) - 1, dtype=np.int64)
        found[owner] = places - self.offset[owner]
        return found

    @property
    def chosen(self) -> Ints:
        """The variables whose labels have literals."""
        return np.flatnonzero(np.diff(self.offset))

    def paid(self) -> Iterator[tuple[int, Ints]]:
        """Yield each table that has costs, and their literals, from the largest cost on."""
        if not self.costs:
            return
        literals, _, tables = map(np.concatenate, zip(*self.costs, strict=True))
        order = np.argsort(tables, kind="stable")
        found, start = np.unique(tables[order], return_index=True)
        yield from zip(found.tolist(), np.split(literals[order], start[1:]), strict=True)

    def add_sum(self, literals: Ints, weights: Ints, bounds: Bounds, source: Source) -> None:
        """Add the least and the largest sum of weights of literals that hold."""
        low, high = bounds
        if low > 0:
            self.sums.append((literals, weights, int(min(low, weights.sum() + 1)), source))
        if high < weights.sum():
            source = (*source[:3], 1)
            self.sums.append((literals, -weights, -int(max(high, -1)), source))

    def add_tables(self, scopes: Ints, tables: Ints, shape: tuple[int, ...], numbers: Ints) -> None:
        """Add tables of one shape, flat, one row for each scope, and the number of each table."""
        ranks, values = _ranked(tables)
        self.base += int(values[:, 0][values[:, 0] != FORBIDDEN].sum())
        kinds, kind = _distinct_rows(ranks)
        for k, pattern in enumerate(kinds):
            own = np.flatnonzero(kind == k)
            self._add_alike(scopes[own], values[own], pattern.reshape(shape), numbers[own])

    def _add_alike(self, scopes: Ints, values: Ints, pattern: Ints, numbers: Ints) -> None:
        """Add tables whose entries have the same order; `pattern` has their ranks, -1 forbidden."""
        forbidden = pattern < 0
        if forbidden.any():
            for cube in prime_cubes(forbidden, forbidden):
                self.clauses.append((self._without(scopes, cube), numbers))
        before = None
        for rank in range(int(pattern.max()), 0, -1):
            cubes = prime_cubes(pattern >= rank, forbidden | (pattern >= rank))
            weights = values[:, rank] - values[:, rank - 1]
            if len(cubes) == 1 and len(cubes[0]) == 1:
                paid = -self._without(scopes, cubes[0])[:, 0]
            else:
                paid = self.fresh(len(scopes))
                for cube in cubes:
                    rows = np.column_stack([self._without(scopes, cube), paid])
                    self.clauses.append((rows, numbers))
            if before is not None:
                self.clauses.append((np.column_stack([-before, paid]), numbers))
            self.costs.append((paid, weights, numbers))
            before = paid

    def _without(self, scopes: Ints, cube: Cube) -> Ints:
        """Rows of literals that say that the labels are not those of a cube."""
        columns = [self.literal[self.offset[scopes[:, axis]] + x] for axis, x in cube]
        return -np.column_stack(columns) if columns else np.zeros((len(scopes), 0), np.int64)


def encode(model: Network, given: Network) -> Encoding:
    """Return the clauses, sums and costs of a model.

    Parameters
    ----------
    model : Network
        The model.
    given : Network
        The model that it was made from; it may know more factors over many variables.
    """
    flat = flatten(model)
    sums, covered = _whole_sums(model, given, flat)
    sizes = np.where(covered, 0, flat.num_labels)
    found = _variables(flat, sizes)
    unary = found.units.floors(flat.unary)
    start = np.concatenate([[0], np.cumsum(flat.num_labels)])
    for d in np.unique(sizes[sizes > 0]).tolist():
        own = np.flatnonzero(sizes == d)
        found.add_tables(own[:, None], unary[start[own][:, None] + np.arange(d)], (d,), own)
    _add_factors(flat, covered, found)
    for number, factor in sums:
        _add_whole(number, factor, flat.num_labels, found)
    return found


def _variables(flat: FlatModel, sizes: Ints) -> Encoding:
    """The literals of all labels; a variable without labels is left out."""
    units = units_of(np.concatenate([flat.unary, flat.tables]), len(sizes) + len(flat.scope_start))
    count = np.where(sizes > 2, sizes, np.where(sizes == 2, 1, 0))
    first = 2 + np.cumsum(count) - count
    offset = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    label = np.arange(len(owner)) - offset[owner]
    literal = np.where(sizes[owner] == 2, first[owner] * np.where(label > 0, 1, -1),
                       np.where(sizes[owner] == 1, 1, first[owner] + label))  # fmt: skip
    found = Encoding(units, literal, offset, 1 + int(count.sum()))
    found.clauses.append((np.ones((1, 1), np.int64), np.zeros(1, np.int64)))
    for d in np.unique(sizes[sizes > 2]).tolist():
        own = np.flatnonzero(sizes == d)
        rows = literal[offset[own][:, None] + np.arange(d)]
        found.clauses.append((rows, own))
        for i, row in zip(own.tolist(), rows, strict=True):
            found.add_sum(row, np.ones(d, np.int64), (0, 1), (OF_LABELS, i, 0, 0))
    return found


def _add_factors(flat: FlatModel, covered: Bools, found: Encoding) -> None:
    """Add the tables of two and more variables, those of one shape together."""
    arity = np.diff(flat.scope_start)
    if not len(arity):
        return
    size = np.multiply.reduceat(flat.num_labels[flat.scope], flat.scope_start[:-1])
    begin = np.cumsum(size) - size
    used = ~np.logical_or.reduceat(covered[flat.scope], flat.scope_start[:-1])
    costs = found.units.floors(flat.tables)
    for k in np.unique(arity[used]).tolist():
        own = np.flatnonzero(used & (arity == k))
        scopes = flat.scope[flat.scope_start[own][:, None] + np.arange(k)]
        shapes, kind = _distinct_rows(flat.num_labels[scopes])
        for s, shape in enumerate(shapes.tolist()):
            some = kind == s
            entries = begin[own[some]][:, None] + np.arange(math.prod(shape))
            numbers = len(flat.num_labels) + own[some]
            found.add_tables(scopes[some], costs[entries], tuple(shape), numbers)


def _add_whole(
    number: int, factor: Many, num_labels: Ints, found: Encoding, label: int = 0
) -> None:
    scope = np.array(factor.variables, dtype=np.int64)
    if isinstance(factor, AllDifferent):
        for label in range(int(num_labels[scope].max())):
            own = scope[num_labels[scope] > label]
            if len(own) > 1:
                _add_whole(number, AtMostOne(own, label), num_labels, found, label)
        return
    sizes = num_labels[scope].tolist()
    bounds, weights = _bounds(factor, sizes)
    literals = np.concatenate([found.literal[found.offset[i] : found.offset[i + 1]] for i in scope])
    used, source = weights > 0, (OF_FACTOR, number, label, 0)
    found.add_sum(literals[used], weights[used], bounds, source)


def _bounds(factor: Any, sizes: list[int]) -> tuple[Bounds, Ints]:
    """The least and the largest sum, and the weights of all labels."""
    if isinstance(factor, Cardinality):
        allowed = np.flatnonzero(factor.costs == 0.0)
        ones = factor.all_ones(sizes)
        return ((allowed[0], allowed[-1]) if len(allowed) else (1, 0)), ones
    rows, least = factor.shifted(sizes)
    return (factor.low - least, factor.high - least), np.concatenate(rows)


def _whole_sums(
    model: Network, given: Network, flat: FlatModel
) -> tuple[list[tuple[int, Many]], Bools]:
    """The hard sums that stay whole, with their numbers, and which are their chain variables.

    No table of such a chain has a cost other than 0 and +inf.
    """
    n = model.num_variables
    owner = np.zeros(n, dtype=np.int64)  # number of the factor of a chain variable, from 1 on
    for k, (first, last) in enumerate(given.required_chains, 1):
        owner[first:last] = k if given.required[k - 1].hard else 0
    costly = np.zeros(len(given.required) + 1, dtype=bool)
    priced = np.isfinite(flat.unary) & (flat.unary != 0.0)
    costly[np.repeat(owner, flat.num_labels)[priced]] = True
    if len(flat.scope_start) > 1:
        size = np.multiply.reduceat(flat.num_labels[flat.scope], flat.scope_start[:-1])
        priced = np.isfinite(flat.tables) & (flat.tables != 0.0)
        paying = np.logical_or.reduceat(priced, np.cumsum(size) - size)
        costly[owner[flat.scope[np.repeat(paying, np.diff(flat.scope_start))]]] = True
    chained = np.bincount(owner, minlength=len(costly)) > 0
    whole = [(k, f) for k, f in enumerate(given.required) if chained[k + 1] and not costly[k + 1]]
    return whole, (owner > 0) & ~costly[owner]


def prime_cubes(needed: Bools, usable: Bools) -> list[Cube]:
    """Return cubes that cover all needed entries of a table, and no entry that is not usable.

    A cube fixes the labels of some axes; none of them can be left out.

    Parameters
    ----------
    needed : bool array
    usable : bool array
        Entries that cubes may cover; all that are needed are.
    """
    left, found = needed.copy(), []
    for place in np.argwhere(needed).tolist():
        if not left[tuple(place)]:
            continue
        index: list[Any] = list(place)
        for axis in range(needed.ndim):
            kept, index[axis] = index[axis], slice(None)
            if not usable[tuple(index)].all():
                index[axis] = kept
        left[tuple(index)] = False
        found.append([(a, x) for a, x in enumerate(index) if not isinstance(x, slice)])
    return found


def _ranked(tables: Ints) -> tuple[Ints, Ints]:
    """The rank of each entry among those of its row, -1 for forbidden ones, and their values.

    The value of rank k of a row is `values[row, k]`.
    """
    ordered = np.sort(tables, axis=1)
    fresh = np.concatenate([np.ones((len(tables), 1), bool), np.diff(ordered) > 0], axis=1)
    ranks = np.empty_like(tables)
    rank = np.cumsum(fresh, axis=1) - 1
    np.put_along_axis(ranks, np.argsort(tables, axis=1), rank, axis=1)
    values = np.zeros_like(tables)
    np.put_along_axis(values, rank, ordered, axis=1)
    ranks[tables == FORBIDDEN] = -1
    return ranks, values


def _distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """The distinct rows, and the number of each row among them."""
    whole = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    packed = np.ascontiguousarray(rows).view(whole)
    _, first, kind = np.unique(packed.reshape(-1), return_index=True, return_inverse=True)
    return rows[first], kind.reshape(-1)
