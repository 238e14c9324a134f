"""A problem of transport: costs, given masses, and the bound and marginals that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import ModelError
from softmap.methods.transport.results import Floats
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Potential, SharedTables
from softmap.model.potentials.base import numbers
from softmap.relaxation.transport import MASS

ULP = 2.0**-53  # largest relative error of one rounding


@dataclass(frozen=True, eq=False)
class TransportProblem:
    """A checked problem: the model of its costs, the masses, and which nodes have them."""

    model: Model
    mass: Floats
    fixed: NDArray[np.uint8]
    ranges: Floats  # of the costs of each edge and of its free endpoints
    owner: NDArray[np.int64]  # node state of each entry of λ
    shared: bool  # whether all edges have the same costs
    family: bool  # whether costs are given by a formula

    @staticmethod
    def of(marginals: Sequence[Any], edges: Any, costs: Any, unary: Any) -> TransportProblem:
        given = [
            None if m is None or np.ndim(m) == 0 else numbers(m, f"marginals[{i}]")
            for i, m in enumerate(marginals)
        ]
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        tables = costs if isinstance(costs, Potential) else _tables(costs, len(pairs))
        sizes = [
            _size(i, m, g, pairs, tables)
            for i, (m, g) in enumerate(zip(marginals, given, strict=True))
        ]
        model = Model(_unary(unary, sizes), pairs, _potentials(tables))
        for i, masses in enumerate(given):
            _check_mass(i, masses)
        if model.has_forbidden:
            raise ModelError("transport needs finite costs; a cost is +inf")
        mass = np.concatenate(
            [np.zeros(d) if g is None else g / g.sum() for g, d in zip(given, sizes, strict=True)]
        )
        fixed = np.array([g is not None for g in given], dtype=np.uint8)
        low, high = model.extremes()
        node, edge = np.split(high - low, [model.n])
        ranges = edge + np.where(fixed, 0.0, node)[model.edges].sum(axis=1)
        if family := isinstance(tables, Potential):
            shared = tables.alike
        else:
            shared = all(table is tables[0] for table in tables)
        return TransportProblem(model, mass, fixed, ranges, _owner(model), shared, family)

    @staticmethod
    def pairs(members: Sequence[tuple[Any, Any, Any]]) -> TransportProblem:
        """Return the problem of masses a, b and their costs, each with an edge of its own."""
        marginals = [mass for *pair, _ in members for mass in pair]
        costs: Any = [costs for *_, costs in members]
        if isinstance(family := costs[0], Potential):
            costs = family if family.alike else family.take([0] * len(members))
        edges = np.arange(len(marginals)).reshape(-1, 2)
        return TransportProblem.of(marginals, edges, costs, None)

    def free(self) -> NDArray[np.bool_]:
        """Return a mask of the states of free nodes."""
        return np.repeat(self.fixed == 0, self.model.num_labels)

    def is_forest(self) -> bool:
        """Whether the graph has no cycle."""
        root = list(range(self.model.n))

        def find(i: int) -> int:
            while root[i] != i:
                root[i] = i = root[root[i]]
            return i

        for i, j in self.model.edges:
            one, other = find(int(i)), find(int(j))
            if one == other:
                return False
            root[one] = other
        return True

    def split(self, flat: Any) -> list[Floats]:
        """Return the parts of an array over node states, one per node."""
        return np.split(flat, self.model.node_offset[1:-1])

    def compiled(self) -> Any:
        """Return the compiled network."""
        return core.TransportNetwork(layout(self.model), self.mass, self.fixed)

    def bound(self, lam: Floats) -> float:
        """Return the dual objective of λ, rounded down: a lower bound for every λ."""
        model, held = self.model, layout(self.model)
        edge, node = np.empty(model.m), np.empty(model.n)
        core.edge_minima(held, lam, edge, 1)
        core.node_minima(held, lam, node, 1)
        used = self.mass > 0
        kept, error = self.kept(lam), self._size(lam)
        terms = [*edge, *node[self.fixed == 0], *(self.mass * kept)[used]]
        total = math.fsum(terms)
        return total - 2 * float((self.mass * error)[used].sum()) - 2 * ULP * abs(total)

    def kept(self, lam: Floats) -> Floats:
        """Return C_i - Σ λ for all node states: the potentials of nodes with given marginals."""
        moved = np.bincount(self.owner, weights=lam, minlength=self.mass.size)
        return np.asarray(self.model.unary - moved)

    def _size(self, lam: Floats) -> Floats:
        """Return an upper bound on the rounding error of `kept` and of its product."""
        most = np.bincount(self.owner, weights=np.abs(lam), minlength=self.mass.size)
        degree = np.bincount(self.owner, minlength=self.mass.size)
        return np.asarray((degree + 4) * ULP * (np.abs(self.model.unary) + most))

    def averaged(self, sides: Floats) -> Floats:
        """Return marginals: the given ones, or the means over the edges of a free node."""
        degree = np.bincount(self.owner, minlength=self.mass.size)
        mean = np.bincount(self.owner, weights=sides, minlength=self.mass.size)
        parts = []
        for i, part in enumerate(self.split(mean)):
            if degree[self.model.node_offset[i]] == 0:
                part = np.eye(len(part))[self.split(self.model.unary)[i].argmin()]
            parts.append(part / part.sum())
        return np.where(self.free(), np.concatenate(parts), self.mass)


def _tables(costs: Any, count: int) -> list[Floats]:
    """Return one table, or one per edge."""
    if isinstance(costs, list | tuple):
        tables = [numbers(table, f"costs[{e}]") for e, table in enumerate(costs)]
    else:
        array = numbers(costs, "costs")
        tables = [array] if array.ndim == 2 else list(array)
    if len(tables) not in (1, count) or any(table.ndim != 2 for table in tables):
        found = [table.shape for table in tables[:4]]
        raise ModelError(
            f"costs: expected one table, or one for each of {count} edges; "
            f"found {len(tables)} of shapes {', '.join(map(str, found))}"
        )
    return tables if len(tables) == count else [tables[0]] * count


def _potentials(tables: Any) -> Any:
    if isinstance(tables, Potential) or not tables:
        return tables if isinstance(tables, Potential) else []
    first = tables[0]
    if len(tables) > 1 and all(table is first for table in tables):
        return SharedTables([first], np.zeros(len(tables), dtype=np.int64))
    return tables


def _size(i: int, asked: Any, given: Floats | None, pairs: Any, tables: Any) -> int:
    """Return the number of labels of node i: of its marginal, as asked for, or of a table."""
    if given is not None:
        return len(given)
    if asked is not None:
        return int(asked)
    where = np.argwhere(pairs == i)
    if isinstance(tables, Potential) or not len(where):
        raise ModelError(f"marginals[{i}] is None: expected its number of labels")
    e, side = where[0]
    return int(tables[e].shape[side])


def _unary(unary: Any, sizes: list[int]) -> list[Floats]:
    if unary is None:
        return [np.zeros(d) for d in sizes]
    return [
        np.zeros(d) if costs is None else numbers(costs, f"unary[{i}]")
        for i, (costs, d) in enumerate(zip(unary, sizes, strict=True))
    ]


def _check_mass(i: int, masses: Floats | None) -> None:
    if masses is None:
        return
    wrong = masses.ndim != 1 or not (masses >= 0).all()
    if wrong or abs(masses.sum() - 1.0) > MASS.loose:
        found = f"the sum {masses.sum():.10g}" if masses.ndim == 1 else f"shape {masses.shape}"
        if not (masses >= 0).all():
            found = f"{masses.min():g}"
        raise ModelError(f"marginals[{i}]: expected masses >= 0 with sum 1, found {found}")


def _owner(model: Model) -> NDArray[np.int64]:
    nodes = model.edges.reshape(-1)
    counts = model.num_labels[nodes]
    begin = np.repeat(model.node_offset[nodes] - (np.cumsum(counts) - counts), counts)
    return np.asarray(begin + np.arange(int(counts.sum())), dtype=np.int64)
