"""The factors of a model as arrays: what files and fingerprints hold of it.

All arrays are those of `Pieces`, in its order, so that the pieces read are lowered to the same
network, edge by edge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model.factors import Assembly, checked_counts
from softmap.model.inputs import FlatUnary, flat_unary
from softmap.model.many import STORED, Many
from softmap.model.pieces import Copies, Parities, Pieces, Placed
from softmap.model.potentials import Potential, SharedTables, Tables
from softmap.model.potentials.base import Costs, Ints, offsets
from softmap.model.tables import Counts

__all__ = ["is_storable", "pieces_arrays", "pieces_digest", "pieces_from_arrays"]

Arrays = dict[str, NDArray[Any]]
Groups = Sequence[tuple[Ints, Potential]]

ARRAY, LIST, PAIRS, SHARED, FAMILY, GROUP = range(6)
"""How the edges of a group were given: see `FactorTables`."""


def is_storable(pieces: Pieces) -> bool:
    """Whether files can hold all factors over many variables as they were given."""
    return all(
        isinstance(placed, Parities)
        or STORED.get(type(placed.factor).__name__) is type(placed.factor)
        for placed in pieces.many
    )


def pieces_arrays(pieces: Pieces) -> tuple[Arrays, list[Potential]]:
    """Return all arrays that define the factors, but those of potentials; and the potentials."""
    tables = pieces.tables
    groups = list(_groups(pieces))
    edges = [np.asarray(ends, dtype=np.int64).reshape(-1, 2) for _, ends, _ in groups]
    arrays: Arrays = {
        "num_labels": tables.num_labels,
        "unary": tables.unary,
        "constant": np.array(tables.constant),
        "edges": np.concatenate([np.zeros((0, 2), dtype=np.int64), *edges]),
        "group_start": offsets(np.array([len(ends) for ends in edges], dtype=np.int64)),
        "group_kind": np.array([kind for kind, _, _ in groups], dtype=np.int64),
    }
    arrays |= _larger_arrays(pieces)
    arrays |= _many_arrays(pieces.many)
    return arrays, [potential for _, _, potential in groups]


def pieces_digest(pieces: Pieces) -> str:
    """Return a SHA-256 digest (hexadecimal) of all factors."""
    arrays, potentials = pieces_arrays(pieces)
    parts = list(arrays.items())
    for potential in potentials:
        parts += [(f"{potential.family}.{name}", a) for name, a in potential.arrays().items()]
    digest = hashlib.sha256()
    for name, array in parts:
        digest.update(str((name, array.dtype, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _groups(pieces: Pieces) -> list[tuple[int, Any, Potential]]:
    """Return (kind, edges, potential) of all groups of edges."""
    said = pieces.tables.said()
    groups: list[tuple[int, Any, Potential]] = []
    for edges, tables in said.tables:
        kind = ARRAY if isinstance(tables, np.ndarray) else LIST
        groups.append((kind, edges, Tables(tables)))
    if said.pairs[0]:
        groups.append((PAIRS, said.pairs[0], Tables(said.pairs[1])))
    if said.shared.edges:
        shared = SharedTables(said.shared.tables, np.array(said.shared.index))
        groups.append((SHARED, said.shared.edges, shared))
    groups += [(FAMILY, edges, potential) for edges, potential in said.families]
    return groups + [(GROUP, edges, potential) for edges, potential in pieces.groups]


def _larger_arrays(pieces: Pieces) -> Arrays:
    """The factors of three or more variables: first those given one by one, then in bulk."""
    single = [(np.array([scope]), costs) for scope, costs in pieces.tables.larger()]
    batches = [*single, *pieces.tables.said().alike]
    if not batches:
        return {}
    return {
        "larger.single": np.array(len(single)),
        "larger.sizes": np.array([scopes.shape for scopes, _ in batches], dtype=np.int64),
        "larger.variables": np.concatenate([scopes.ravel() for scopes, _ in batches]).astype(
            np.int64
        ),
        "larger.costs": np.concatenate([costs.ravel() for _, costs in batches]).astype(np.float64),
    }


def _many_arrays(many: Sequence[Placed]) -> Arrays:
    """The factors over many variables.

    `many.sizes` has the numbers of copies (0 for a single factor, -1 for parities in bulk), of
    variables, of integers and of costs.
    """
    kinds: list[str] = []
    sizes: list[list[int]] = []
    before: list[Counts] = []
    columns: tuple[list[Ints], list[Ints], list[Costs]] = ([], [], [])
    for placed in many:
        kind, copies, parts = _record(placed)
        kinds.append(kind)
        sizes.append([copies, *map(len, parts)])
        before.append(placed.before)
        columns[0].append(parts[0])
        columns[1].append(parts[1])
        columns[2].append(parts[2])
    return {
        "many.kind": np.array(kinds, dtype=np.str_),
        "many.sizes": np.array(sizes, dtype=np.int64),
        "many.before": np.array(before, dtype=np.int64),
        "many.variables": np.concatenate(columns[0]),
        "many.integers": np.concatenate(columns[1]),
        "many.costs": np.concatenate(columns[2]),
    }


def _record(placed: Placed) -> tuple[str, int, tuple[Ints, Ints, Costs]]:
    if isinstance(placed, Parities):
        integers = np.concatenate([placed.start, placed.odd]).astype(np.int64)
        return "Parity", -1, (placed.members.astype(np.int64), integers, np.zeros(0))
    kind = type(placed.factor).__name__
    integers, costs = placed.factor.stored()
    if isinstance(placed, Copies):
        return kind, len(placed.scopes), (placed.scopes.ravel().astype(np.int64), integers, costs)
    return kind, 0, (np.array(placed.factor.variables, dtype=np.int64), integers, costs)


# --- and back -------------------------------------------------------------------------------------


def pieces_from_arrays(arrays: Arrays, potential: Callable[[int], Potential]) -> Pieces:
    """Return the pieces of `pieces_arrays`; raise `ModelError` or another error if they do not fit.

    Parameters
    ----------
    arrays : dict
        The arrays by name.
    potential : function
        Returns the potential of a group.
    """
    counts = checked_counts(arrays["num_labels"])
    flat_unary(FlatUnary(arrays["unary"].astype(np.float64), counts))
    assembly = Assembly(counts)
    assembly.add_constant(float(arrays["constant"]))
    assembly.set_unary(arrays["unary"].astype(np.float64))
    groups = _read_groups(assembly, arrays, potential)
    if "larger.sizes" in arrays:
        _read_larger(assembly, arrays)
    _read_many(assembly, arrays)
    return assembly.pieces(groups)


def _read_groups(
    assembly: Assembly, arrays: Arrays, potential: Callable[[int], Potential]
) -> list[tuple[Ints, Potential]]:
    start, kinds = arrays["group_start"].astype(np.int64), arrays["group_kind"].tolist()
    edges = arrays["edges"].astype(np.int64)
    _require(len(start) == len(kinds) + 1 and edges.ndim == 2)
    _require_variables(edges, len(assembly.num_labels))
    groups: list[tuple[Ints, Potential]] = []
    for g, kind in enumerate(kinds):
        ends, own = edges[start[g] : start[g + 1]], potential(g)
        _require(len(ends) == len(own))
        if kind == GROUP:
            groups.append((ends, own))
        elif kind == FAMILY:
            assembly.add_potential(ends, own)
        else:
            _read_tables(assembly, kind, ends, own)
    return groups


def _read_tables(assembly: Assembly, kind: int, ends: Ints, potential: Potential) -> None:
    if kind == SHARED and isinstance(potential, SharedTables):
        tables = list(potential.tables)
        for pair, k in zip(ends.tolist(), potential.index.tolist(), strict=True):
            assembly.add_shared(pair, tables[k])
        return
    _require(isinstance(potential, Tables) and kind in (ARRAY, LIST, PAIRS))
    sizes = assembly.num_labels[ends]
    dense = [potential.as_table(k, *pair) for k, pair in enumerate(sizes.tolist())]
    if kind == PAIRS:
        for pair, table in zip(ends.tolist(), dense, strict=True):
            assembly.add_factor(pair, table)
    else:
        assembly.add_tables(ends, np.stack(dense) if kind == ARRAY else dense)


def _read_larger(assembly: Assembly, arrays: Arrays) -> None:
    sizes, single = arrays["larger.sizes"].tolist(), int(arrays["larger.single"])
    members, costs = arrays["larger.variables"].astype(np.int64), arrays["larger.costs"]
    member, cost = 0, 0
    for k, (rows, arity) in enumerate(sizes):
        _require(rows > 0 and arity > 2)
        scopes = members[member : member + rows * arity].reshape(rows, arity)
        _require_variables(scopes, len(assembly.num_labels))
        counts = assembly.num_labels[scopes]
        _require(bool((counts == counts[0]).all()))
        shape = (rows, *counts[0].tolist())
        count = rows * int(np.prod(counts[0], dtype=np.float64))
        table = costs[cost : cost + count].astype(np.float64).reshape(shape)
        if k >= single:
            assembly.add_alike(scopes, table)
        else:
            before = assembly.counts.larger
            assembly.add_factor(tuple(scopes[0].tolist()), table[0])
            _require(assembly.counts.larger == before + 1 and rows == 1)
        member, cost = member + rows * arity, cost + count
    _require(member == len(members) and cost == len(costs))


def _read_many(assembly: Assembly, arrays: Arrays) -> None:
    sizes, before = arrays["many.sizes"].astype(np.int64), arrays["many.before"].astype(np.int64)
    kinds = [str(kind) for kind in arrays["many.kind"]]
    _require(sizes.shape == (len(kinds), 4) and before.shape == (len(kinds), 4))
    _require(bool((np.diff(before, axis=0) >= 0).all() and (sizes[:, 1:] >= 0).all()))
    columns = [
        np.split(arrays[f"many.{name}"], np.cumsum(sizes[:-1, k]))
        for k, name in enumerate(("variables", "integers", "costs"), 1)
    ]
    for kind, copies, place, variables, integers, costs in zip(
        kinds, sizes[:, 0].tolist(), before.tolist(), *columns, strict=True
    ):
        _require(kind in STORED)
        numbers, whole = variables.astype(np.int64), integers.astype(np.int64)
        first = len(assembly.many)
        _add_many(assembly, STORED[kind], copies, numbers, whole, costs.astype(np.float64))
        _require(len(assembly.many) == first + 1 and min(place) >= 0)  # one that is not a table
        assembly.many[-1] = replace(assembly.many[-1], before=Counts(*place))


def _add_many(
    assembly: Assembly, kind: type[Many], copies: int, variables: Ints, integers: Ints, costs: Costs
) -> None:
    n = len(assembly.num_labels)
    if copies < 0:
        rows = (len(integers) - 1) // 2
        start, odd = integers[: rows + 1], integers[rows + 1 :]
        _require(len(start) == len(odd) + 1 and start[0] == 0 and start[-1] == len(variables))
        _require(bool((np.diff(start) > 0).all() and ((odd == 0) | (odd == 1)).all()))
        for begin, end in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
            _require_variables(variables[None, begin:end], n)
        _require(bool((assembly.num_labels[variables] == 2).all()))
        assembly.add_parities(variables, start, odd)
        return
    _require(not copies or len(variables) % copies == 0)
    scopes = variables.reshape(max(copies, 1), -1)
    _require_variables(scopes, n)
    labels = assembly.num_labels[scopes]
    _require(bool((labels == labels[0]).all()))
    factor = kind.restored(scopes[0], integers, costs)
    if copies:
        assembly.add_copies(factor, scopes)
    else:
        assembly.add_many(factor)


def _require_variables(scopes: Ints, n: int) -> None:
    """Raise `ModelError` unless each row has different variables in 0..n-1."""
    _require(bool(((scopes >= 0) & (scopes < n)).all()))
    _require(bool((np.diff(np.sort(scopes, axis=1), axis=1) > 0).all()))


def _require(condition: bool) -> None:
    if not condition:
        raise ModelError("the arrays of the factors do not fit together")
