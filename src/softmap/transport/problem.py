"""A problem of transport: costs, given masses, and the bound and marginals that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import SharedTables
from softmap.arguments import count
from softmap.errors import ModelError
from softmap.extend import Network, Potential, core, integers, layout, numbers, plain
from softmap.transport.results import Floats

LOOSE = 1e-9  # largest deviation of the sum of given marginals from 1
ULP = 2.0**-53  # largest relative error of one rounding


@dataclass(frozen=True, eq=False)
class TransportProblem:
    """A checked problem: the model of its costs, the masses, and which nodes have them."""

    model: Network
    mass: Floats
    fixed: NDArray[np.uint8]
    ranges: Floats  # of the costs of each edge and of its free endpoints
    owner: NDArray[np.int64]  # node state of each entry of λ
    shared: bool  # whether all edges have the same costs
    family: bool  # whether costs are given by a formula

    @staticmethod
    def of(marginals: Sequence[Any], edges: Any, costs: Any, unary: Any) -> TransportProblem:
        asked = listed("marginals", marginals)
        given = [
            None if m is None or np.ndim(m) == 0 else masses(m, f"marginals[{i}]")
            for i, m in enumerate(asked)
        ]
        pairs = integers(edges, "edges")
        if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
            raise ModelError(f"edges must have two columns, not shape {pairs.shape}")
        pairs = pairs.reshape(-1, 2)
        tables = costs if isinstance(costs, Potential) else _tables(costs, len(pairs))
        sizes = [
            _size(i, m, g, pairs, tables) for i, (m, g) in enumerate(zip(asked, given, strict=True))
        ]
        model = Network(_unary(unary, sizes), pairs, _potentials(tables))
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
    def pairs(
        members: Sequence[tuple[Any, Any, Any]], family: Potential | None = None
    ) -> TransportProblem:
        """Return the problem of masses a, b and their costs, each with an edge of its own.

        Parameters
        ----------
        members : sequence of (a, b, costs)
            The masses and costs of each edge.
        family : Potential, optional
            The costs of all edges, if they have a formula.
        """
        marginals = [mass for *pair, _ in members for mass in pair]
        costs: Any = [costs for *_, costs in members]
        if isinstance(costs[0], Potential):
            costs = family or costs[0]
            if len(costs) != len(members) and not costs.alike:
                costs = costs.take([0] * len(members))
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


def masses(values: Any, name: str) -> Floats:
    """Return masses; those of a narrower type than double precision are scaled to sum 1."""
    found = numbers(values, name)
    if found.ndim != 1 or not len(found):
        raise ModelError(f"{name} must be one list of masses, not an array of shape {found.shape}")
    if not (found >= 0).all():
        at = int(np.argmin(found >= 0))
        raise ModelError(f"{name} has the mass {found[at]:g} at {at}; expected masses >= 0")
    total = float(found.sum())
    kind = getattr(plain(values), "dtype", found.dtype)
    rounding = 8 * np.finfo(kind).eps if kind.kind == "f" else 0.0
    if not abs(total - 1.0) <= max(LOOSE, rounding):
        raise ModelError(f"the masses {name} have the sum {total:.12g}; expected 1")
    return found / total if rounding > LOOSE else found


def _tables(costs: Any, count: int) -> list[Floats]:
    """Return one table, or one per edge."""
    if isinstance(costs, list | tuple) and not all(map(_is_row, costs)):
        tables = [numbers(table, f"costs[{e}]") for e, table in enumerate(costs)]
    else:
        array = numbers(costs, "costs")
        tables = list(array) if array.ndim == 3 or not array.size else [array]
    if len(tables) not in (1, count) or any(table.ndim != 2 for table in tables):
        found = [table.shape for table in tables[:4]]
        raise ModelError(
            f"costs: expected one table, or one for each of {count} edges; "
            f"found {len(tables)} of shapes {', '.join(map(str, found))}"
        )
    return tables if len(tables) == count else [tables[0]] * count


def listed(name: str, values: Any) -> list[Any]:
    """Return the entries of an argument that has one per node."""
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__len__"):
        raise ModelError(f"{name} must be a list with one entry per node")
    return list(values)


def _is_row(costs: Any) -> bool:
    try:
        return np.ndim(costs) == 1
    except ValueError:  # rows of several lengths
        return False


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
        return count(f"marginals[{i}]", asked, 1)
    where = np.argwhere(pairs == i)
    if isinstance(tables, Potential) or not len(where):
        raise ModelError(f"marginals[{i}] is None: expected its number of labels")
    e, side = where[0]
    return int(tables[e].shape[side])


def _unary(unary: Any, sizes: list[int]) -> list[Floats]:
    if unary is None:
        return [np.zeros(d) for d in sizes]
    given = listed("unary", unary)
    if len(given) != len(sizes):
        raise ModelError(f"unary: expected costs or None for each of {len(sizes)} nodes")
    found = [
        np.zeros(d) if costs is None else numbers(costs, f"unary[{i}]")
        for i, (costs, d) in enumerate(zip(given, sizes, strict=True))
    ]
    for i, (costs, d) in enumerate(zip(found, sizes, strict=True)):
        if costs.shape != (d,):
            raise ModelError(f"unary[{i}] has shape {costs.shape}, but node {i} has {d} labels")
    return found


def _owner(model: Network) -> NDArray[np.int64]:
    nodes = model.edges.reshape(-1)
    counts = model.num_labels[nodes]
    begin = np.repeat(model.node_offset[nodes] - (np.cumsum(counts) - counts), counts)
    return np.asarray(begin + np.arange(int(counts.sum())), dtype=np.int64)
