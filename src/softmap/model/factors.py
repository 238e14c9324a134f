"""Factors of any arity -> unary costs, groups of edges and auxiliary variables."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, shown
from softmap.model.auxiliaries import NO_AUXILIARIES, Auxiliaries
from softmap.model.chains import chains
from softmap.model.inputs import FlatUnary, Group, finite_number, groups_of, offsets
from softmap.model.many import AllDifferent, Many
from softmap.model.matching import require_different
from softmap.model.names import Names
from softmap.model.potentials import Projection, Tables
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
)
from softmap.model.running import NO_RUNNING, Running, running_of

__all__ = ["Factor", "Pieces", "assemble", "checked_counts"]

MOST_STATES = 1 << 36

Factor = tuple[Sequence[Any], ArrayLike]
Scope = tuple[int, ...]


@dataclass(frozen=True)
class Pieces:
    """What a `Model` is built from; its last nodes are auxiliary, those before them running."""

    unary: list[Costs] | FlatUnary
    groups: list[Group]
    constant: float
    auxiliaries: Auxiliaries = NO_AUXILIARIES
    running: Running = NO_RUNNING


def assemble(
    num_labels: ArrayLike,
    factors: Iterable[Factor],
    groups: Sequence[Group] = (),
    constant: float = 0.0,
    names: Names | None = None,
) -> Pieces:
    """Merge factors over the same variables; see `Model.from_factors`."""
    counts = checked_counts(num_labels)
    given: list[int] = counts.tolist()
    sizes = list(given)
    begin = offsets(counts)
    unary = np.zeros(int(begin[-1]))
    tables: dict[Scope, tuple[Scope, Costs]] = {}
    running: list[tuple[Scope, Ints]] = []
    different: list[Scope] = []
    total = finite_number(constant, "constant")
    for number, factor in enumerate(_listed(factors)):
        if isinstance(factor, Many):
            factor = factor.over(_scope(number, factor.variables, names))
            if isinstance(factor, AllDifferent):
                different.append(factor.variables)
            running += _unroll(number, factor, given, sizes, tables, unary, begin)
            continue
        variables, table = _checked(number, factor, given, names)
        if table.ndim == 0:
            total += finite_number(table, f"factor {number} without variables")
        elif table.ndim == 1:
            unary[begin[variables[0]] : begin[variables[0] + 1]] += table
        else:
            _merge(tables, variables, table)
    for scope in different:
        called = scope if names is None else [names.variables[i] for i in scope]
        allowed = [np.isfinite(unary[begin[i] : begin[i + 1]]) for i in scope]
        require_different(scope, allowed, called)
    pairs = [(s, t) for s, t in tables.values() if t.ndim == 2]
    larger = [(s, t) for s, t in tables.values() if t.ndim > 2]
    parts: list[Group] = []
    if pairs:
        parts.append((np.array([s for s, _ in pairs]), Tables([t for _, t in pairs])))
    parts += groups_of(groups)
    rows = [*np.split(unary, begin[1:-1]), *(np.zeros(d) for d in sizes[len(given) :])]
    pieces = _with_auxiliaries(rows, parts, larger, total)
    return replace(pieces, running=running_of(running)) if running else pieces


def checked_counts(num_labels: ArrayLike) -> Ints:
    """Label counts: at least one variable, each with a label."""
    counts = integers(num_labels, "num_labels")
    if counts.ndim != 1 or counts.size == 0:
        raise ModelError("num_labels must list the label count of at least one variable")
    if counts.min() < 1:
        raise ModelError(
            f"variable {int(np.argmin(counts))} has no labels; every variable needs one or more"
        )
    if (total := int(counts.sum(dtype=np.float64))) > MOST_STATES:
        raise ModelError(f"the variables have {total} labels together, too many for any memory")
    return counts


def _listed(factors: Any) -> Any:
    if isinstance(factors, str | bytes) or not np.iterable(factors):
        raise ModelError(f"factors must be a list of (scope, costs), not {shown(factors)}")
    return factors


def _unroll(
    number: int,
    factor: Many,
    given: list[int],
    sizes: list[int],
    tables: dict[Scope, tuple[Scope, Costs]],
    unary: Costs,
    begin: Ints,
) -> list[tuple[Scope, Ints]]:
    """Write a factor over many variables out as a chain; its running variables join `sizes`."""
    odd = [i for i in factor.variables if not 0 <= i < len(given)]
    if odd:
        where = f"is outside 0..{len(given) - 1}"
        raise ModelError(f"factor {number}: variable {shown(odd[0])} {where}")
    chain = chains(factor, [given[i] for i in factor.variables], len(sizes))
    sizes += chain.num_labels
    for scope, costs in chain.factors:
        if len(scope) == 1:
            unary[begin[scope[0]] : begin[scope[0] + 1]] += costs
        else:
            _merge(tables, scope, costs)
    return chain.running


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
    table = numbers(costs, f"costs of factor {number}")
    if len(set(variables)) != len(variables):
        raise ModelError(f"factor {number}: scope {variables} names a variable twice")
    for i in variables:
        if not 0 <= i < len(sizes):
            raise ModelError(f"factor {number}: variable {shown(i)} is outside 0..{len(sizes) - 1}")
    expected = tuple([sizes[i] for i in variables])
    if table.shape != expected:
        raise ModelError(
            f"factor {number} over {variables} needs costs of shape {expected}, not {table.shape}"
        )
    low = table.min()
    sound = low > -np.inf  # NaN compares as false
    if not sound or largest(table, low) > LARGEST_COST:
        bad = beyond(table) if sound else np.isnan(table) | (table == -np.inf)
        place = tuple(np.argwhere(bad)[0].tolist())
        raise ModelError(f"factor {number} over {variables} has {table[place]} at {place}; {RANGE}")
    return variables, table


def _scope(number: int, scope: Any, names: Names | None) -> Scope:
    """Numbers of the variables, which may be given by name where they have names."""
    try:
        if names is not None and not isinstance(scope, str | bytes):
            return tuple(names.place[v] if v in names.place else operator.index(v) for v in scope)
        return tuple(map(operator.index, scope))
    except TypeError as error:
        what = "numbers" if names is None else "names or numbers"
        raise ModelError(
            f"factor {number}: the scope must be a tuple of variable {what}, not {shown(scope)}"
        ) from error


def _merge(tables: dict[Scope, tuple[Scope, Costs]], scope: Scope, table: Costs) -> None:
    """Add to the factor over the same variables, in the axis order of the first one seen."""
    key = tuple(sorted(scope))
    if key not in tables:
        first = key if len(key) == 2 else scope
        tables[key] = first, np.array(table if first == scope else table.T, order="C")
        return
    first, so_far = tables[key]
    so_far += table if first == scope else table.transpose([scope.index(i) for i in first])


def _with_auxiliaries(
    unary: list[Costs],
    parts: list[Group],
    larger: list[tuple[Scope, Costs]],
    constant: float,
) -> Pieces:
    """One auxiliary node per large factor, tied to its members by projections with shared maps."""
    if not larger:
        return Pieces(unary, parts, constant)
    maps: dict[tuple[Scope, int], int] = {}
    tables: list[NDArray[np.int32]] = []
    edges, index, num_labels, strides, start = [], [], [], [], [0]
    for a, (scope, table) in enumerate(larger):
        shape = table.shape
        for axis, i in enumerate(scope):
            stride = int(np.prod(shape[axis + 1 :]))
            if (shape, axis) not in maps:
                maps[shape, axis] = len(tables)
                tables.append(_map(table.size, stride, shape[axis]))
            edges.append((len(unary) + a, i))
            index.append(maps[shape, axis])
            num_labels.append(shape[axis])
            strides.append(stride)
        start.append(len(edges))
    ends = np.array(edges)
    tie = Projection(tables, num_labels, index)
    joint = [t.ravel() for _, t in larger]
    arrays = (frozen(v, np.int64) for v in (start, ends[:, 1], strides))
    auxiliaries = Auxiliaries(*arrays)
    return Pieces([*unary, *joint], [*parts, (ends, tie)], constant, auxiliaries)


def _map(size: int, stride: int, labels: int) -> NDArray[np.int32]:
    """Label of one member in every joint state, row-major."""
    return ((np.arange(size) // stride) % labels).astype(np.int32)
