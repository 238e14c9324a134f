"""Whether the tables of a network imply the factors over many variables that it keeps.

Searches and proofs take the hard constraint of such a factor for granted, so a factor from a file
must be one that the tables imply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model.chains import Scope, chains, without_single_labels
from softmap.model.many import Many
from softmap.model.network import Network
from softmap.model.potentials.base import Costs, Ints

__all__ = ["check_required", "with_required"]

Bools = NDArray[np.bool_]

BLOCK = 1 << 22  # entries of tables that are compared at a time


def with_required(
    network: Network, factors: Sequence[Many], chained: Sequence[tuple[int, int]]
) -> Network:
    """Return the same network with these factors over many variables in `required`.

    Raises `ModelError` unless the tables of the network imply the hard constraints of all.

    Parameters
    ----------
    network : Network
        The network.
    factors : sequence of Many
        Factors over variables by number.
    chained : sequence of (int, int)
        The first chain variable of each factor, and the one after its last.
    """
    check_required(network, factors, chained)
    return network.declared(network.running, tuple(factors), tuple(chained), network.auxiliaries)


def check_required(
    model: Network, factors: Sequence[Many], chained: Sequence[tuple[int, int]]
) -> None:
    """Raise `ModelError` unless the tables of a model imply the hard constraint of each factor.

    Each factor is turned into its chain once more. Whatever the chain forbids must be forbidden by
    the model, too: then labels of finite energy satisfy the factor.

    Parameters
    ----------
    model : Network
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

    def __init__(self, model: Network) -> None:
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
