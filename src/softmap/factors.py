"""Factors of any arity -> unary, pairwise and auxiliary-variable form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError
from softmap.model import Auxiliaries, Factor, Group, Model
from softmap.potentials import Projection, Tables

__all__ = ["assemble"]


def assemble(
    num_labels: ArrayLike,
    factors: Iterable[Factor],
    groups: Sequence[Group] = (),
    constant: float = 0.0,
) -> Model:
    """Merge factors into a `Model`; see `Model.from_factors`."""
    counts = np.asarray(num_labels, dtype=np.int64)
    if counts.ndim != 1 or counts.size == 0:
        raise ModelError("num_labels must list the label count of at least one variable")
    if counts.min() < 1:
        raise ModelError(f"variable {int(np.argmin(counts))} has no labels")
    unary = [np.zeros(d) for d in counts]
    pairs: dict[tuple[int, int], NDArray[Any]] = {}
    larger: list[tuple[tuple[int, ...], NDArray[Any]]] = []
    for number, (scope, costs) in enumerate(factors):
        variables, table = _checked(number, tuple(scope), np.asarray(costs, float), counts)
        if table.ndim == 0:
            constant += float(table)
        elif table.ndim == 1:
            unary[variables[0]] += table
        elif table.ndim == 2:
            i, j = variables
            key, part = ((i, j), table) if i < j else ((j, i), table.T)
            pairs[key] = pairs[key] + part if key in pairs else part
        else:
            larger.append((variables, table))
    parts: list[Group] = []
    if pairs:
        parts.append((np.array(list(pairs)), Tables([np.array(t) for t in pairs.values()])))
    return _with_auxiliaries(unary, [*parts, *groups], larger, counts, constant)


def _checked(
    number: int, scope: tuple[int, ...], table: NDArray[Any], counts: NDArray[np.int64]
) -> tuple[tuple[int, ...], NDArray[Any]]:
    if len(set(scope)) != len(scope):
        raise ModelError(f"factor {number}: scope {scope} names a variable twice")
    for i in scope:
        if not 0 <= i < len(counts):
            raise ModelError(f"factor {number}: variable {i} is outside 0..{len(counts) - 1}")
    expected = tuple(int(counts[i]) for i in scope)
    if table.shape != expected:
        raise ModelError(
            f"factor {number} over {scope} needs costs of shape {expected}, not {table.shape}"
        )
    if np.isnan(table).any() or np.isneginf(table).any():
        raise ModelError(f"factor {number} over {scope} holds NaN or -inf")
    if table.ndim == 0 and not np.isfinite(table):
        raise ModelError(f"factor {number} without variables must be finite, not {table}")
    return scope, table


def _with_auxiliaries(
    unary: list[NDArray[Any]],
    parts: list[Group],
    larger: list[tuple[tuple[int, ...], NDArray[Any]]],
    counts: NDArray[np.int64],
    constant: float,
) -> Model:
    """One auxiliary node per large factor, tied to its members by projections with shared maps."""
    n = len(unary)
    maps: dict[tuple[tuple[int, ...], int], int] = {}
    tables: list[NDArray[np.int32]] = []
    edges, index, members, strides, start = [], [], [], [], [0]
    for a, (scope, table) in enumerate(larger):
        shape = table.shape
        for axis, i in enumerate(scope):
            if (shape, axis) not in maps:
                maps[shape, axis] = len(tables)
                tables.append(np.indices(shape)[axis].ravel().astype(np.int32))
            edges.append((n + a, i))
            index.append(maps[shape, axis])
            members.append(i)
            strides.append(int(np.prod(shape[axis + 1 :])))
        start.append(len(members))
    if not larger:
        return Model(unary, None, parts, constant=constant)
    ends = np.array(edges)
    tie = Projection(tables, counts[ends[:, 1]], index)
    joint = [t.ravel() for _, t in larger]
    model = Model([*unary, *joint], None, [*parts, (ends, tie)], constant=constant)
    model.num_variables = n
    model.auxiliaries = Auxiliaries(np.array(start), np.array(members), np.array(strides))
    return model
