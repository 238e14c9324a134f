"""Conversion of factors of any arity to unary costs, groups of edges and auxiliary variables.

`Model.from_factors` and all file readers use `Assembly`. It takes single factors and whole arrays
of factors, in any order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, shown
from softmap.model.chains import SIZES as CHAINS
from softmap.model.chains import Chain, chains, without_single_labels
from softmap.model.inputs import FlatUnary, Group, finite_number, groups_of, within
from softmap.model.many import AllDifferent, Many, Parity, Repeated, kept_whole
from softmap.model.names import Names
from softmap.model.potentials import Potential, Projection, SharedTables, Tables
from softmap.model.potentials.base import (
    LARGEST_COST,
    RANGE,
    Costs,
    Ints,
    beyond,
    frozen,
    integers,
    largest,
    numbers,
    offsets,
    refuse_gradient,
)
from softmap.model.structure import NO_AUXILIARIES, NO_RUNNING, Auxiliaries, Running, running_of

Factor = tuple[Sequence[Any], ArrayLike]
Scope = tuple[int, ...]


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


@dataclass(frozen=True)
class Pieces:
    """The parts of a `Model`: first the variables, then chain variables, then auxiliary nodes."""

    unary: FlatUnary
    groups: list[Group]
    constant: float
    auxiliaries: Auxiliaries = NO_AUXILIARIES
    running: Running = NO_RUNNING
    required: tuple[Many, ...] = ()
    required_chains: tuple[tuple[int, int], ...] = ()
    constraints: tuple[Repeated, ...] = ()


@dataclass
class _SharedUses:
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


class _RunningVariables:
    """Chain variables of factors over many variables: their costs, and the maps to their labels."""

    def __init__(self) -> None:
        self.unary: list[Costs] = []
        self.follow: list[tuple[Scope, Ints]] = []
        self.required: list[Many] = []  # factors whose feasibility arc consistency does not decide
        self.chains: list[tuple[int, int]] = []  # first and end of the chain variables of each
        self.constraints: list[Repeated] = []  # factors that have chain variables

    def add(self, factor: Many, num_labels: Ints) -> Iterable[tuple[Scope, Costs]]:
        """Add the chain variables of a factor over many variables; return its tables."""
        sizes = num_labels[list(factor.variables)].tolist()
        chain = chains(factor, sizes, len(num_labels) + len(self.unary))
        if chain.num_labels:
            self.constraints.append((factor, np.array([factor.variables])))
        if kept_whole(factor) and (not chain.tree or (factor.hard and chain.num_labels)):
            self.required.append(factor)
            self.chains.append((chain.free, chain.free + len(chain.num_labels)))
        self.unary += [np.zeros(d) for d in chain.num_labels]
        self.follow += chain.running
        return chain.factors

    def copy(self, chain: Chain, every: Ints, k: int) -> None:
        """Add the chain variables of a chain over variables 0 to k - 1 for each row of `every`."""
        columns = [
            [(tuple(scope), labels) for scope in every[:, list(own)].tolist()]
            for own, labels in chain.running
        ]
        self.follow += [pair for row in zip(*columns, strict=True) for pair in row]
        costs = [list(np.zeros((len(every), d))) for d in chain.num_labels]
        self.unary += [own for row in zip(*costs, strict=True) for own in row]

    def extend(self, follow: list[tuple[Scope, Ints]], labels: int) -> None:
        """Add chain variables with these label counts, and the maps to their labels."""
        self.follow += follow
        self.unary += list(np.zeros((len(follow), labels)))

    def add_unary(self, variable: int, costs: Costs) -> None:
        """Add unary costs of one chain variable."""
        self.unary[variable] += costs

    def num_labels(self) -> Ints:
        """The label counts of the chain variables."""
        return np.array([len(row) for row in self.unary], dtype=np.int64)


class Assembly:
    """Collect factors and turn them into the parts of a model.

    Unary costs and constants add up. Factors over the same set of variables are merged. An edge
    keeps its potential family if its pair occurs once. A factor of three or more variables becomes
    an auxiliary variable with one state per joint state. A factor over many variables becomes
    chains; their chain variables are numbered after all others.

    Arrays are neither checked nor copied.
    """

    def __init__(self, num_labels: Ints) -> None:
        self.num_labels = num_labels
        self._offset = offsets(num_labels)
        self._unary: Costs = np.zeros(int(self._offset[-1]))
        self._constant = 0.0
        self._tables: list[tuple[Ints, Costs | list[Costs]]] = []
        self._pairs: tuple[list[Sequence[int]], list[Costs]] = ([], [])
        self._shared = _SharedUses()
        self._families: list[tuple[Ints, Potential]] = []
        self._larger: dict[Scope, tuple[Scope, Costs]] = {}
        self._alike: list[tuple[Ints, Costs]] = []
        self._running = _RunningVariables()

    def add_constant(self, value: float) -> None:
        """Add a constant to every energy."""
        self._constant += float(value)

    def add_unary(self, variable: int, costs: Costs) -> None:
        """Add the costs of one variable's labels."""
        own = variable - len(self.num_labels)
        if own >= 0:
            self._running.add_unary(own, costs)
        else:
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

    def add_many(self, factor: Many) -> None:
        """Add a factor over many variables."""
        for scope, costs in self._running.add(factor, self.num_labels):
            self.add_factor(scope, costs)

    def add_copies(self, factor: Many, scopes: Ints) -> None:
        """Add the same factor over many variables for each row of `scopes`, in bulk.

        The variables of `factor` are replaced by those of the row; a column of `scopes` has
        variables with the same number of labels. The result is that of `add_many`, row by row.
        """
        if len(scopes) < 2:
            for row in scopes.tolist():
                self.add_many(factor.over(tuple(row)))
            return
        k, n = scopes.shape[1], len(self.num_labels)
        own = factor.over(tuple(range(k)))
        chain = chains(own, self.num_labels[scopes[0]].tolist(), k)
        more = len(chain.num_labels)
        free = n + len(self._running.unary)
        added = free + np.arange(len(scopes) * more).reshape(len(scopes), more)
        every = np.concatenate([scopes, added], axis=1)
        if more:
            self._running.constraints.append((own, scopes))
        if not chain.tree and kept_whole(factor):
            self._running.required += [factor.over(tuple(row)) for row in scopes.tolist()]
            self._running.chains += [
                (a, a + more) for a in (free + more * np.arange(len(scopes))).tolist()
            ]
        self._running.copy(chain, every, k)
        for scope, costs in chain.factors:
            rows = every[:, list(scope)]
            if len(scope) > 1 and 1 not in costs.shape and max(scope) >= k:
                tables = np.broadcast_to(costs, (len(rows), *costs.shape))
                (self.add_tables if len(scope) == 2 else self.add_alike)(rows, tables)
            else:
                for row in rows.tolist():
                    self.add_factor(row, costs)

    def add_parities(self, members: Ints, start: Ints, odd: Ints) -> None:
        """Add hard parities over variables with two labels, in bulk.

        Parity k is over `members[start[k]:start[k + 1]]`. The long ones become the chains that
        `add_many` makes of them.
        """
        count = np.diff(start)
        long = np.flatnonzero(2.0**count > CHAINS.dense)
        for size, is_odd in np.unique(np.column_stack([count, odd != 0]), axis=0).tolist():
            if size and 2.0**size <= CHAINS.dense:
                rows = start[:-1][(count == size) & ((odd != 0) == is_odd)]
                scopes = members[rows[:, None] + np.arange(size)]
                self.add_copies(Parity(range(size), bool(is_odd)), scopes)
        if not len(long):
            return
        for size, is_odd in np.unique(np.column_stack([count, odd != 0])[long], axis=0).tolist():
            rows = start[:-1][(count == size) & ((odd != 0) == is_odd)]
            scopes = members[rows[:, None] + np.arange(size)]
            self._running.constraints.append((Parity(range(size), bool(is_odd)), scopes))
        tables = count[long] - 2  # of each chain; one fewer are its running variables
        owner = np.repeat(long, tables)
        place = within(tables)
        free = len(self.num_labels) + len(self._running.unary)
        running = free + np.arange(len(owner)) - np.repeat(np.arange(len(long)), tables)
        begins, ends = place == 0, place == count[owner] - 3
        scopes = np.column_stack([
            np.where(begins, members[start[owner]], running - 1),
            members[start[owner] + place + 1],
            np.where(ends, members[start[owner + 1] - 1], running),
        ])  # fmt: skip
        total = np.add.outer(np.add.outer(np.arange(2), np.arange(2)), np.arange(2)) % 2
        even = np.where(total == 0, 0.0, np.inf)
        self.add_alike(scopes, np.stack([even, even[::-1]])[ends * odd[owner]])
        follows = (np.arange(2)[:, None] + np.arange(2)) % 2
        before = scopes[~ends, :2].tolist()
        self._running.extend([(tuple(scope), follows) for scope in before], 2)

    def _add_larger(self, scope: Scope, costs: Costs) -> None:
        key = tuple(sorted(scope))
        if key not in self._larger:
            self._larger[key] = scope, costs
            return
        first, so_far = self._larger[key]
        self._larger[key] = first, so_far + costs.transpose([scope.index(i) for i in first])

    def pieces(self, groups: Sequence[Group] = (), names: Names | None = None) -> Pieces:
        """Return the parts that `Model.from_pieces` takes; `groups` are added unchanged.

        Raises `InfeasibleModel` if the variables of an `AllDifferent` cannot all differ; `names`
        are used in its message.
        """
        for factor in self._running.required:
            if isinstance(factor, AllDifferent):
                ends = ((self._offset[i], self._offset[i + 1]) for i in factor.variables)
                allowed = [np.isfinite(self._unary[begin:end]) for begin, end in ends]
                factor.require(allowed, None if names is None else names.variables)
        if not np.isfinite(self._constant):
            raise ModelError(f"the factors without variables add up to {self._constant}")
        counts = np.concatenate([self.num_labels, self._running.num_labels()])
        more = self._running.unary
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
        running = running_of(self._running.follow)
        required, chained = tuple(self._running.required), tuple(self._running.chains)
        flat = FlatUnary(unary, counts)
        said = tuple(self._running.constraints)
        return Pieces(flat, edges, self._constant, aux, running, required, chained, said)

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


# --- input of users -------------------------------------------------------------------------------


def assemble(
    num_labels: ArrayLike,
    factors: Iterable[Factor],
    groups: Sequence[Group] = (),
    constant: float = 0.0,
    names: Names | None = None,
) -> Pieces:
    """Check a list of factors and return the parts of its model; see `Model.from_factors`."""
    counts = checked_counts(num_labels)
    sizes: list[int] = counts.tolist()
    assembly = Assembly(counts)
    assembly.add_constant(finite_number(constant, "constant"))
    for number, factor in enumerate(factors):
        if isinstance(factor, Many):
            scope = _scope(number, factor.variables, names)
            _check_range(number, scope, len(sizes))
            assembly.add_many(factor.over(scope))
            continue
        scope, table = _checked(number, factor, sizes, names)
        if table.ndim == 0:
            assembly.add_constant(finite_number(table, f"factor {number} without variables"))
        elif table.ndim == 1:
            assembly.add_unary(scope[0], table)
        elif table.ndim == 2 and scope[0] > scope[1]:
            assembly.add_factor(scope[::-1], np.array(table.T, order="C"))
        else:
            assembly.add_factor(scope, np.array(table, order="C"))
    return assembly.pieces(groups_of(groups), names)


def lone_all_different(
    num_labels: ArrayLike, factors: list[Any], names: Names | None = None
) -> AllDifferent | None:
    """Return the `AllDifferent` of a linear assignment, over numbers of variables.

    None unless it is over all variables, each has equally many labels, all other factors are unary
    and the constraint would become chains.
    """
    larger = [(k, f) for k, f in enumerate(factors) if not _is_unary(f)]
    if len(larger) != 1 or not isinstance(larger[0][1], AllDifferent):
        return None
    number, factor = larger[0]
    counts = checked_counts(num_labels)
    scope = _scope(number, factor.variables, names)
    _check_range(number, scope, len(counts))
    whole = len(scope) == len(counts) > 2 and bool((counts == counts[0]).all())
    chained = float(counts[0]) ** min(len(counts), 64) > CHAINS.dense
    return factor.over(scope) if whole and chained else None


def _is_unary(factor: Any) -> bool:
    pair = isinstance(factor, tuple | list) and len(factor) == 2
    return pair and isinstance(factor[0], tuple | list) and len(factor[0]) == 1


def checked_counts(num_labels: ArrayLike) -> Ints:
    """Return the label counts; there must be at least one variable, each with a label."""
    if isinstance(num_labels, list | tuple) and any(isinstance(d, str) for d in num_labels):
        raise ModelError(
            f"num_labels: expected numbers, or a mapping from names to numbers, such as "
            f"{{{next(d for d in num_labels if isinstance(d, str))!r}: 2}}; found a list of names"
        )
    counts = integers(num_labels, "num_labels")
    if counts.ndim != 1 or counts.size == 0:
        raise ModelError(
            "num_labels must list the label count of at least one variable, "
            f"not {shown(num_labels)}"
        )
    if counts.min() < 1:
        raise ModelError(
            f"variable {int(np.argmin(counts))} has no labels; every variable needs one or more"
        )
    if (total := int(counts.sum(dtype=np.float64))) > SIZES.total_labels:
        raise ModelError(f"the variables have {total} labels in all, too many for any memory")
    return counts


def listed_factors(factors: Any) -> list[Any]:
    """Return the factors as a list; raise `ModelError` if they are no list."""
    if isinstance(factors, str | bytes | Mapping) or not np.iterable(factors):
        listed = "; its items() are one" if isinstance(factors, Mapping) else ""
        raise ModelError(f"factors must be a list of (scope, costs), not {shown(factors)}{listed}")
    if isinstance(factors, list | tuple):
        return list(factors)
    return [_kept(factor) for factor in factors]


def _kept(factor: Any) -> Any:
    """Return a factor of a generator, which may reuse its array for the next one."""
    if isinstance(factor, tuple | list) and len(factor) == 2 and isinstance(factor[1], np.ndarray):
        return factor[0], factor[1].copy()
    return factor


def _check_range(number: int, scope: Scope, count: int) -> None:
    for i in scope:
        if not 0 <= i < count:
            raise ModelError(f"factor {number}: variable {shown(i)} is outside 0..{count - 1}")


def _checked(
    number: int, factor: Any, sizes: list[int], names: Names | None
) -> tuple[Scope, Costs]:
    try:
        scope, costs = factor
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"factor {number} must be a pair (scope, costs), not {shown(factor)}"
        ) from error
    variables = _scope(number, scope, names)
    refuse_gradient(costs, f"costs of factor {number}")
    table = numbers(costs, f"costs of factor {number}")
    if len(set(variables)) != len(variables):
        raise ModelError(f"factor {number}: scope {variables} names a variable twice")
    _check_range(number, variables, len(sizes))
    expected = tuple([sizes[i] for i in variables])
    if table.shape != expected:
        raise ModelError(
            f"factor {number} over {scope} needs costs of shape {expected}, not {table.shape}"
        )
    low = table.min()
    sound = low > -np.inf  # NaN compares as false
    if not sound or largest(table, low) > LARGEST_COST:
        bad = beyond(table) if sound else np.isnan(table) | (table == -np.inf)
        place = tuple(np.argwhere(bad)[0].tolist())
        raise ModelError(f"factor {number} over {variables} has {table[place]} at {place}; {RANGE}")
    return variables, table


def _scope(number: int, scope: Any, names: Names | None) -> Scope:
    """Return the variable numbers of a scope, which may be given by name if there are names."""
    try:
        if names is not None and not isinstance(scope, str | bytes):
            return tuple(names.place[v] if v in names.place else operator.index(v) for v in scope)
        return tuple(map(operator.index, scope))
    except TypeError as error:
        raise ModelError(f"factor {number}: {_scope_fault(scope, names)}") from error


def _scope_fault(scope: Any, names: Names | None) -> str:
    """Return what is wrong with a scope: its kind, or the first variable that does not exist."""
    what = "numbers" if names is None else "names or numbers"
    if names is not None and isinstance(scope, tuple | list):
        strange = next(v for v in scope if v not in names.place and not isinstance(v, int))
        some = ", ".join(map(repr, names.variables[:4]))
        more = ", …" if len(names.variables) > 4 else ""
        return f"there is no variable {shown(strange)}; the variables are {some}{more}"
    expected = f"the scope must be a tuple of variable {what}"
    alone = f"; ({shown(scope)},) is a tuple of one" if isinstance(scope, str) else ""
    order = "; a factor is (scope, costs)" if isinstance(scope, np.ndarray) else ""
    return f"{expected}, not {shown(scope)}{alone}{order}"
