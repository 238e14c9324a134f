"""Factors over many variables that a model keeps whole: as arrays, and compared with its tables.

Files and fingerprints hold the arrays. Searches and proofs take the hard constraint of such a
factor for granted, so a factor from a file must be one that the tables of the model imply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model.chains import Scope, chains, without_single_labels
from softmap.model.many import KINDS, Many, kind_of
from softmap.model.potentials.base import Costs, Ints
from softmap.model.structure import Structure

__all__ = ["check_required", "required_arrays", "required_from_arrays"]

Bools = NDArray[np.bool_]

_NAMES = ("kind", "chain", "sizes", "variables", "integers", "costs")

BLOCK = 1 << 22  # entries of tables that are compared at a time


def required_arrays(model: Structure) -> dict[str, NDArray[Any]]:
    """Return the factors that a model keeps whole as arrays by name; no arrays without factors.

    Factor f has the kind `kind[f]`, and the chain variables `chain[f, 0]` to `chain[f, 1] - 1`. Its
    `sizes[f]` are the numbers of its variables, its integers and its costs, which are concatenated.
    """
    if not model.required:
        return {}
    kinds, sizes = [], []
    parts: list[tuple[Ints, Ints, Costs]] = []
    for factor in model.required:
        variables = np.array(factor.variables, dtype=np.int64)
        part = variables, *factor.arrays(model.num_labels[variables].tolist())
        kinds.append(kind_of(factor))
        sizes.append([len(array) for array in part])
        parts.append(part)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return {
        "kind": np.array(kinds, dtype=np.int64),
        "chain": np.array(model.required_chains, dtype=np.int64),
        "sizes": np.array(sizes, dtype=np.int64),
        **dict(zip(_NAMES[3:], columns, strict=True)),
    }


def required_from_arrays(
    arrays: dict[str, NDArray[Any]], num_labels: Ints
) -> tuple[tuple[Many, ...], tuple[tuple[int, int], ...]]:
    """Return the factors of `required_arrays` and their chain variables.

    Parameters
    ----------
    arrays : dict
        The arrays by name.
    num_labels : int64[nodes]
        The label counts of the model.
    """
    if missing := [name for name in _NAMES if name not in arrays]:
        raise ModelError(f"the factors over many variables lack an array {missing[0]!r}")
    kinds, chained, sizes, *members = (arrays[name].astype(np.int64) for name in _NAMES[:-1])
    flat = [*members, arrays["costs"].astype(np.float64)]
    count = len(kinds)
    fits = chained.shape == (count, 2) and sizes.shape == (count, 3) and bool((sizes >= 0).all())
    fits = fits and [a.size for a in flat] == sizes.sum(axis=0).tolist()
    if not fits or not ((kinds >= 0) & (kinds < len(KINDS))).all():
        raise ModelError("the factors over many variables are damaged")
    if len(flat[0]) and not 0 <= flat[0].min() <= flat[0].max() < len(num_labels):
        raise ModelError("a factor over many variables names a variable that does not exist")
    columns = [np.split(a, np.cumsum(sizes[:-1, k])) for k, a in enumerate(flat)]
    factors = []
    for kind, variables, integers, costs in zip(kinds.tolist(), *columns, strict=True):
        labels = num_labels[variables].tolist()
        factors.append(KINDS[kind].from_arrays(variables, labels, integers, costs))
    return tuple(factors), tuple((first, last) for first, last in chained.tolist())


def check_required(
    model: Structure, factors: Sequence[Many], chained: Sequence[tuple[int, int]]
) -> None:
    """Raise `ModelError` unless the tables of a model imply the hard constraint of each factor.

    Each factor is turned into its chain once more. Whatever the chain forbids must be forbidden by
    the model, too: then labels of finite energy satisfy the factor.

    Parameters
    ----------
    model : Structure
        The model with its chain variables and auxiliary nodes.
    factors : sequence of Many
        The factors.
    chained : sequence of (int, int)
        The first chain variable of each factor, and the one after its last.
    """
    if len(chained) != len(factors):
        raise ModelError("expected the chain variables of each factor over many variables")
    tables = _Tables(model)
    free = model.num_visible
    for factor, (first, last) in zip(factors, chained, strict=True):
        if not free <= first <= last <= model.num_variables or max(factor.variables) >= free:
            raise ModelError("the chain variables of a factor over many variables do not fit")
        free = last  # no chain is that of two factors, so that the work is that of the model's size
        sizes = model.num_labels[list(factor.variables)].tolist()
        chain = chains(factor, sizes, first)
        if chain.num_labels != model.num_labels[first:last].tolist():
            raise ModelError(f"{factor!r} does not have the chain variables of the model")
        if not all(tables.forbid(scopes, costs) for scopes, costs in _by_table(chain.factors)):
            raise ModelError(f"the tables of the model do not imply {factor!r}")


def _by_table(factors: Iterable[tuple[Scope, Costs]]) -> Iterable[tuple[Ints, Bools]]:
    """Scopes that share a table, one per row, and which entries of the table are forbidden."""
    alike: dict[tuple[int, int], tuple[Bools, list[Scope]]] = {}
    for scope, costs in factors:
        kept, left = without_single_labels(scope, costs)
        key = id(costs), len(kept)
        if key not in alike:
            alike[key] = np.isposinf(left), []
        alike[key][1].append(tuple(kept))
    return ((np.array(scopes), forbidden) for forbidden, scopes in alike.values())


class _Tables:
    """The costs that a model has for the labels of a node, of an edge, or of a larger factor."""

    def __init__(self, model: Structure) -> None:
        self._model = model
        low, high = np.sort(model.edges, axis=1).astype(np.int64).T
        keys = low * model.n + high
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        aux = model.auxiliaries
        start, member = aux.start.tolist(), aux.member.tolist()
        self._joint = {
            tuple(sorted(member[start[a] : start[a + 1]])): a for a in range(len(aux))
        }  # auxiliary nodes by their members

    def forbid(self, scopes: Ints, forbidden: Bools) -> bool:
        """Whether the model forbids these entries of a table over each of the scopes."""
        entries = np.argwhere(forbidden)
        check = {1: self._node_forbids, 2: self._edge_forbids}.get(
            scopes.shape[1], self._joint_forbids
        )
        rows = max(1, BLOCK // max(1, len(entries)))
        return all(check(scopes[k : k + rows], entries) for k in range(0, len(scopes), rows))

    def _node_forbids(self, scopes: Ints, entries: Ints) -> bool:
        return self._infinite(scopes[:, 0], entries.T)

    def _infinite(self, nodes: Ints, states: Ints) -> bool:
        """Whether the states of the nodes, one row per node or one for all, are forbidden."""
        places = self._model.node_offset[nodes][:, None] + states
        return bool(np.isposinf(self._model.unary[places]).all())

    def _edge_forbids(self, scopes: Ints, entries: Ints) -> bool:
        keys = scopes.min(axis=1) * self._model.n + scopes.max(axis=1)
        begin, end = (np.searchsorted(self._keys, keys, side) for side in ("left", "right"))
        allowed = np.ones((len(scopes), len(entries)), dtype=bool)
        for turn in range(int((end - begin).max(initial=0))):  # a pair may have several edges
            chosen = np.flatnonzero(begin + turn < end)
            edges = self._order[begin[chosen] + turn]
            allowed[chosen] &= ~np.isposinf(self._costs(edges, scopes[chosen], entries))
        return not allowed.any()

    def _costs(self, edges: Ints, scopes: Ints, entries: Ints) -> Costs:
        """The costs of edges at the entries of tables over `scopes`, which they join."""
        forward = (self._model.edges[edges, 0] == scopes[:, 0])[:, None]
        first, second = entries.T
        x, y = np.where(forward, first, second), np.where(forward, second, first)
        costs = np.empty(x.shape)
        for begin, end, potential in self._model.groups():
            own = np.flatnonzero((edges >= begin) & (edges < end))
            if len(own):
                costs[own] = potential.value((edges[own] - begin)[:, None], x[own], y[own])
        return costs

    def _joint_forbids(self, scopes: Ints, entries: Ints) -> bool:
        found = [self._joint.get(tuple(sorted(scope)), -1) for scope in scopes.tolist()]
        nodes = np.array(found)
        if (nodes < 0).any():
            return False
        aux = self._model.auxiliaries
        place = aux.start[nodes][:, None] + np.arange(scopes.shape[1])
        same = aux.member[place][:, None, :] == scopes[:, :, None]
        strides = (aux.stride[place][:, None, :] * same).sum(axis=2)
        return self._infinite(nodes + self._model.num_variables, strides @ entries.T)
