"""Exact marginals and log Z by variable elimination, for trees and models of small treewidth."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.arguments import count, positive
from softmap.errors import InfeasibleModel, OptionError
from softmap.model import Model, checked_model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats


@dataclass(frozen=True)
class EliminationLimits:
    """Limits of variable elimination.

    Attributes
    ----------
    entries : int
        Largest number of entries of a table.
    """

    entries: int = 1 << 22


ELIMINATION = EliminationLimits()


Scope = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ExactMarginals:
    """The marginals of the Gibbs distribution `p(x) = exp(-η energy(x)) / Z`.

    Attributes
    ----------
    model : Model
    eta : float
        Inverse temperature η.
    nodes : float64 array
        Node marginals, flat over `model.node_offset`.
    edges : float64 array
        Edge marginals, flat over `model.edge_offset`.
    log_partition : float
        log Z, the constant of the model included.
    """

    model: Model
    eta: float
    nodes: Floats
    edges: Floats
    log_partition: float

    def of(self, i: int) -> Floats:
        """Return the marginal of node `i`."""
        return self.nodes[self.model.node_slice(i)]


def exact_marginals(
    model: Model, eta: float = 1.0, *, entries: int = ELIMINATION.entries
) -> ExactMarginals:
    """Return the exact marginals of the Gibbs distribution `exp(-η energy(x)) / Z`, and log Z.

    Variables are eliminated in a greedy order (bucket elimination).

    Parameters
    ----------
    model : Model
    eta : float, default 1
        Inverse temperature η, in units of 1 / cost.
    entries : int, optional
        Largest number of entries of a table. If more are needed, an `OptionError` says how many.

    Returns
    -------
    ExactMarginals

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0.0, 1.0], [0.0, 0.0]], [[0, 1]], softmap.Potts([0.0]))
    >>> softmap.exact_marginals(model).of(0).round(3).tolist()
    [0.731, 0.269]
    """
    model = tighten(checked_model(model))
    eta, entries = positive("eta", eta), count("entries", entries, 1)
    buckets = _buckets(model)
    largest = max(int(np.prod(model.num_labels[list(scope)])) for scope in buckets.values())
    if largest > entries:
        raise OptionError(
            f"entries={entries}: this model needs a table of {largest}; "
            "softmap.log_partition_bounds works for models of any width"
        )
    return _Elimination(model, eta, buckets).marginals()


def narrow(model: Model, entries: int = ELIMINATION.entries) -> bool:
    """Whether all tables of variable elimination have at most `entries` entries."""
    return all(
        int(np.prod(model.num_labels[list(scope)])) <= entries
        for scope in _buckets(model, entries).values()
    )


def _buckets(model: Model, stop: int | None = None) -> dict[int, Scope]:
    """Return the buckets: each variable in the order of elimination, with its scope at that time.

    The scope is the variable and its remaining neighbours. The next variable is one with the
    smallest table. The loop ends early at a table of more than `stop` entries.
    """
    near: list[set[int]] = [set() for _ in range(model.n)]
    for i, j in model.edges.tolist():
        near[i].add(j)
        near[j].add(i)
    size = [float(v) for v in np.log(model.num_labels)]
    weight = {i: size[i] + sum(size[j] for j in near[i]) for i in range(model.n)}
    order: dict[int, Scope] = {}
    heap = [(w, i) for i, w in weight.items()]
    heapq.heapify(heap)
    while heap:
        w, i = heapq.heappop(heap)
        if i in order or w != weight[i]:  # an outdated entry of the heap
            continue
        order[i] = tuple(sorted({i, *near[i]}))
        if stop is not None and weight[i] > np.log(stop) + 1e-9:
            break
        for j in near[i]:
            near[j] |= near[i] - {j}
            near[j].discard(i)
        for j in near[i]:
            weight[j] = size[j] + sum(size[k] for k in near[j])
            heapq.heappush(heap, (weight[j], j))
    return order


class _Elimination:
    """The log-tables of the buckets, and the upward and downward messages between them."""

    def __init__(self, model: Model, eta: float, scopes: dict[int, Scope]) -> None:
        self.model, self.eta, self.scopes = model, eta, scopes
        place = {i: k for k, i in enumerate(scopes)}
        self.parent = {
            i: min((j for j in scope if j != i), key=place.__getitem__, default=None)
            for i, scope in scopes.items()
        }
        self.home = [min(ends, key=place.__getitem__) for ends in model.edges.tolist()]
        self._taken = [model.constant]  # off tables: what they have in common is of no account
        self.table = {i: self._shaped(self._logs(model.unary_of(i)), (i,), i) for i in scopes}
        for e, (i, j) in enumerate(model.edges.tolist()):
            cost = model.table(e)
            ends, cost = ((i, j), cost) if i < j else ((j, i), cost.T)
            self.table[self.home[e]] = self.table[self.home[e]] + self._shaped(
                self._logs(cost), ends, self.home[e]
            )

    def _logs(self, costs: Floats) -> Floats:
        """-η times costs above the least one, which is taken off: the rest keeps its digits."""
        least = float(costs.min())
        if not math.isfinite(least):
            return -self.eta * costs
        self._taken.append(least)
        return -self.eta * (costs - least)

    def _shaped(self, table: Floats, scope: Scope, bucket: int) -> Floats:
        """Reshape a table to one axis per variable of a bucket; length 1 for other variables."""
        target = self.scopes[bucket]
        sizes = [int(self.model.num_labels[k]) if k in scope else 1 for k in target]
        return table.reshape(sizes)

    def _full(self, i: int) -> Floats:
        shape = tuple(int(self.model.num_labels[k]) for k in self.scopes[i])
        return np.broadcast_to(self.table[i], shape)

    def marginals(self) -> ExactMarginals:
        """Pass messages up and down the tree of buckets; return the marginals."""
        total, sent = 0.0, {}
        for i, scope in self.scopes.items():
            message = log_sum(self._full(i), (scope.index(i),))
            parent = self.parent[i]
            if parent is None:
                total += float(message)
            else:
                rest = tuple(k for k in scope if k != i)
                sent[i] = message, rest
                self.table[parent] = self.table[parent] + self._shaped(message, rest, parent)
        if math.isinf(total):
            raise InfeasibleModel("no labelling has finite cost: log Z is -inf")
        for i in reversed(self.scopes):
            parent = self.parent[i]
            if parent is not None:
                self._receive(i, parent, *sent[i])
        return self._read(total - self.eta * float(core.careful_sum(np.array(self._taken))))

    def _receive(self, i: int, parent: int, message: Floats, rest: Scope) -> None:
        """Multiply a bucket by its parent's belief without the bucket's own message."""
        gone = tuple(k for k, v in enumerate(self.scopes[parent]) if v not in rest)
        known = log_sum(self._full(parent), gone)
        with np.errstate(invalid="ignore"):
            more = np.where(np.isneginf(message), -np.inf, known - message)
        self.table[i] = self.table[i] + self._shaped(more, rest, i)

    def _read(self, log_partition: float) -> ExactMarginals:
        model = self.model
        nodes = np.empty(int(model.node_offset[-1]))
        edges = np.empty(int(model.edge_offset[-1]))
        for i in self.scopes:
            nodes[model.node_slice(i)] = self._marginal(i, (i,))
        for e, (i, j) in enumerate(model.edges.tolist()):
            pair = self._marginal(self.home[e], (min(i, j), max(i, j)))
            begin, end = model.edge_offset[e : e + 2]
            edges[begin:end] = (pair if i < j else pair.T).ravel()
        return ExactMarginals(model, self.eta, nodes, edges, log_partition)

    def _marginal(self, bucket: int, kept: Scope) -> Floats:
        gone = tuple(k for k, v in enumerate(self.scopes[bucket]) if v not in kept)
        table = log_sum(self._full(bucket), gone)
        weight = np.exp(table - table.max())
        mu: Floats = weight / weight.sum()
        return mu


def log_sum(table: Floats, axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exponentials over some axes."""
    if not axes:
        return table
    top = table.max(axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(table - top).sum(axis=axes, keepdims=True)) + top
    result: Floats = np.squeeze(sums, axis=axes)
    return result
