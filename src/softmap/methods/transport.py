"""Optimal transport along the edges of a graph, with a certified bound and a feasible plan.

`sinkhorn` couples two distributions; `multimarginal` couples the nodes of a graph, some of which
have given marginals and some of which are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.arguments import not_negative
from softmap.errors import ModelError
from softmap.machine import usable_cores
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Potential, SharedTables
from softmap.model.potentials.base import numbers
from softmap.relaxation.transport import MASS

__all__ = ["Ladder", "Moment", "Transport", "multimarginal", "sinkhorn"]

Floats = NDArray[np.float64]
ULP = 2.0**-53  # largest relative error of one rounding


@dataclass(frozen=True)
class Ladder:
    """How η rises; decision 75 has the measurements.

    Attributes
    ----------
    first : float
        First η, times the largest range of the costs of an edge.
    factor : float
        Largest ratio of two successive η.
    least : float
        Smallest ratio of two successive η.
    loose : float
        A level ends when the misplaced mass of an edge, times the range of its costs, is below
        this number over η.
    passes : int
        Passes between two looks at the misplaced mass.
    most : int
        Most passes of a level.
    last : float
        Last η, times the largest range.
    """

    first: float = 50.0
    factor: float = 3.0
    least: float = 1.4
    loose: float = 2.0
    passes: int = 5
    most: int = 2000
    last: float = 1e9


LADDER = Ladder()


@dataclass(frozen=True)
class Moment:
    """What is known after a level: a row of `Transport.trace`.

    Attributes
    ----------
    eta : float
        Inverse temperature of the level.
    passes : int
        Passes made so far.
    cost : float
        Smallest cost of a feasible plan so far.
    bound : float
        Largest lower bound so far.
    """

    eta: float
    passes: int
    cost: float
    bound: float


@dataclass(frozen=True, eq=False)
class Transport:
    """A feasible plan, its cost, and a certified lower bound on the cost of every plan.

    Attributes
    ----------
    cost : float
        Cost of the plan: Σ ⟨C_e, plan(e)⟩ and the node costs.
    bound : float
        Lower bound on the optimum of the linear program, rounding errors subtracted.
    marginals : list of float64 arrays
        Marginals of all nodes: the given ones, and those of the plan.
    potentials : list of float64 arrays
        Dual potentials of all nodes with a given marginal, zeros for free nodes. Up to a constant
        they are the gradient of the optimal cost by the marginal, with an error of the gap.
    tree : bool
        Whether the graph has no cycle. Only then is the optimum of the linear program that of
        transport between all marginals jointly; on a graph with cycles it is a lower bound of it.
    trace : list of Moment
        One row per level of η.
    """

    cost: float
    bound: float
    marginals: list[Floats]
    potentials: list[Floats]
    tree: bool
    trace: list[Moment]
    _plan: Callable[[int], Floats] = field(repr=False)

    @property
    def gap(self) -> float:
        """The certified gap `cost - bound`, at least 0."""
        return max(0.0, self.cost - self.bound)

    @property
    def relative_gap(self) -> float:
        """The gap over the absolute value of the bound; 0 if the gap is 0."""
        return self.gap / abs(self.bound) if self.gap and self.bound else math.inf * bool(self.gap)

    def plan(self, edge: int = 0) -> Floats:
        """Return the plan of an edge, with the marginals of its endpoints.

        It is the gradient of the optimal cost by the costs of the edge, with an error of the gap.
        """
        return self._plan(edge)


def sinkhorn(
    a: ArrayLike,
    b: ArrayLike,
    costs: Any,
    *,
    gap: float = 1e-3,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Transport | list[Transport]:
    """Transport between two distributions, annealed until the certified gap is reached.

    Parameters
    ----------
    a : array (n,) or (batch, n)
        Masses of the sources, with sum 1.
    b : array (m,) or (batch, m)
        Masses of the targets, with sum 1.
    costs : array (n, m) or (batch, n, m), or Potential
        Finite costs; a `Potts`, `TruncatedLinear` or `TruncatedQuadratic` between the positions of
        masses needs no table.
    gap : float, default 1e-3
        Relative gap between cost and bound at which to stop.
    time_limit : float, optional
        Seconds per problem; the best plan and bound so far are then returned.
    threads : int, optional
        Members of a batch that are solved at the same time; all cores by default.

    Returns
    -------
    Transport, or list of Transport for a batch
        Plan, cost and bound.

    Examples
    --------
    >>> from softmap import transport
    >>> found = transport.sinkhorn([0.5, 0.5], [0.25, 0.75], [[0.0, 1.0], [1.0, 0.0]])
    >>> round(found.cost, 6), found.bound <= found.cost, found.plan().round(3).tolist()
    (0.25, True, [[0.25, 0.25], [0.0, 0.5]])
    """
    first, second = numbers(a, "a"), numbers(b, "b")
    table = costs if isinstance(costs, Potential) else numbers(costs, "costs")
    stacked = not isinstance(table, Potential) and table.ndim == 3
    if first.ndim == second.ndim == 1 and not stacked:
        return _one((first, second, table), gap, time_limit)
    size = max(len(x) for x in (first, second) if x.ndim == 2) if not stacked else len(table)
    if any(x.ndim == 2 and len(x) != size for x in (first, second)):
        raise ModelError(f"a of {first.shape} and b of {second.shape} are not one batch")
    tasks = [
        (
            first if first.ndim == 1 else first[k],
            second if second.ndim == 1 else second[k],
            numbers(costs, "costs")[k] if stacked else table,
        )
        for k in range(size)
    ]
    with ThreadPoolExecutor(threads or usable_cores()) as pool:
        return list(pool.map(lambda task: _one(task, gap, time_limit), tasks))


def _one(task: Any, gap: float, time_limit: float | None) -> Transport:
    a, b, table = task
    edge = table if isinstance(table, Potential) else [table]
    return multimarginal([a, b], [[0, 1]], edge, gap=gap, time_limit=time_limit)


def multimarginal(
    marginals: Sequence[Any],
    edges: ArrayLike,
    costs: Any,
    *,
    unary: Sequence[Any] | None = None,
    gap: float = 1e-3,
    time_limit: float | None = None,
    on_moment: Callable[[Moment], Any] | None = None,
    ladder: Ladder = LADDER,
) -> Transport:
    """Transport along the edges of a graph whose nodes have given or free marginals.

    The linear program: over marginals of nodes and plans of edges that agree with them, minimise
    the sum of all costs. On a tree its optimum is that of multi-marginal transport with the sum of
    the edge costs; on a graph with cycles it is a relaxation, a lower bound (`Transport.tree`).

    Parameters
    ----------
    marginals : sequence of arrays, integers or None
        Per node the given masses, with sum 1, or for a free node its number of labels. None needs
        tables as costs.
    edges : int array (m, 2)
        Pairs of nodes.
    costs : Potential, array (d, d), array (m, d, d), or list of arrays
        Finite costs of the edges: a family (all messages of `Potts` and `TruncatedLinear` take
        O(d), those of `TruncatedQuadratic` O(d times its reach)), one table for all edges, or one
        table per edge.
    unary : sequence of arrays or None, optional
        Finite costs of the labels of each node.
    gap : float, default 1e-3
        Relative gap between cost and bound at which to stop.
    time_limit : float, optional
        Seconds; the best plan and bound so far are then returned.
    on_moment : function, optional
        Called with each `Moment`; the run stops if it returns False.
    ladder : Ladder, optional
        How η rises.

    Returns
    -------
    Transport
        Plan, cost and bound.

    Examples
    --------
    The barycentre of two points on a line, at equal weights:

    >>> import numpy as np
    >>> from softmap import TruncatedQuadratic, transport
    >>> ends = [np.eye(9)[0], np.eye(9)[8]]
    >>> found = transport.multimarginal([*ends, 9], [[0, 2], [1, 2]], TruncatedQuadratic(0.5, 99))
    >>> found.tree, int(found.marginals[2].argmax()), round(found.cost, 2)
    (True, 4, 16.0)
    """
    limit = core.Deadline(
        math.inf if time_limit is None else not_negative("time_limit", time_limit)
    )
    network = _Network.of(marginals, edges, costs, unary)
    run = _Run(network, ladder, not_negative("gap", gap), limit, on_moment)
    run.start()
    run.climb()
    return run.result()


@dataclass(frozen=True, eq=False)
class _Network:
    """A checked problem: the model of its costs, the masses, and which nodes have them."""

    model: Model
    mass: Floats
    fixed: NDArray[np.uint8]
    ranges: Floats  # of the costs of each edge and of its free endpoints
    owner: NDArray[np.int64]  # node state of each entry of λ

    @staticmethod
    def of(marginals: Sequence[Any], edges: Any, costs: Any, unary: Any) -> _Network:
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
        return _Network(model, mass, fixed, ranges, _owner(model))

    def free(self) -> NDArray[np.bool_]:
        """Return a mask of the states of free nodes."""
        return np.repeat(self.fixed == 0, self.model.num_labels)

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


class _Run:
    """One run: the ladder of η, and the best plan and bound."""

    def __init__(
        self, network: _Network, ladder: Ladder, gap: float, limit: Any, on_moment: Any
    ) -> None:
        self.network, self.ladder, self.gap = network, ladder, gap
        self.limit, self.on_moment = limit, on_moment
        self.compiled = network.compiled()
        self.entries = int(network.model.half_offset[-1])
        self.bound, self.cost = -math.inf, math.inf
        self.lam = np.zeros(self.entries)
        self.kept: tuple[float, Floats, Floats] | None = None  # η, messages, marginals of the plan
        self.trace: list[Moment] = []
        self.passes = 0

    def start(self) -> None:
        """Offer the bound of λ = 0 and the plan of independent nodes: an answer at any moment."""
        self.bound = self.network.bound(self.lam)
        first = self.ladder.first / max(self._range(), 1e-300)
        self._offer_point(first, None)

    def climb(self) -> None:
        """Make passes level by level, and a check after each, until the gap is closed."""
        scale = max(self._range(), 1e-300)
        eta, last = self.ladder.first / scale, self.ladder.last / scale
        while eta <= last and not self._closed() and not self.limit.passed:
            finished = self._level(eta)
            if finished:
                self._check(eta)
            moment = Moment(eta, self.passes, self.cost, self.bound)
            self.trace.append(moment)
            stop = self.on_moment is not None and self.on_moment(moment) is False
            if stop or not finished:
                break
            eta *= self._rise()

    def result(self) -> Transport:
        """Return the best plan and bound."""
        network = self.network
        assert self.kept is not None
        eta, messages, marginals = self.kept
        potentials = np.where(network.free(), 0.0, network.kept(self.lam))

        def plan(edge: int) -> Floats:
            compiled = network.compiled()
            compiled.set_messages(messages)
            i, j = network.model.edges[edge]
            p, q = (np.ascontiguousarray(network.split(marginals)[k]) for k in (i, j))
            out = np.zeros((len(p), len(q)))
            compiled.coupled(edge, eta, p, q, out)
            return out

        return Transport(
            self.cost,
            self.bound,
            network.split(marginals),
            network.split(potentials),
            _is_forest(network.model),
            self.trace,
            plan,
        )

    def _range(self) -> float:
        return float(self.network.ranges.max(initial=0.0))

    def _closed(self) -> bool:
        return self.cost - self.bound <= self.gap * abs(self.bound)

    def _rise(self) -> float:
        """Return the next ratio of η: the gap falls as 1/η, so that the last one may be smaller."""
        needed = (self.cost - self.bound) / max(self.gap * abs(self.bound), 1e-300)
        return max(self.ladder.least, min(self.ladder.factor, 1.1 * needed))

    def _level(self, eta: float) -> bool:
        """Make the passes of a level; return False if the deadline passed."""
        edges = max(1, self.network.model.m)
        for _ in range(self.ladder.most // self.ladder.passes):
            done, loss = self.compiled.passes(
                self.ladder.passes, eta, True, self.network.ranges, self.limit
            )
            self.passes += done
            if done < self.ladder.passes:
                return False
            if eta * loss <= self.ladder.loose * edges:
                break
        return True

    def _check(self, eta: float) -> None:
        lam, sides = np.empty(self.entries), np.empty(self.entries)
        if self.compiled.sides(eta, sides, self.limit):
            self._offer_point(eta, sides)
        if self.compiled.multipliers(eta, lam, self.limit):
            bound = self.network.bound(lam)
            if bound > self.bound:
                self.bound, self.lam = bound, lam

    def _offer_point(self, eta: float, sides: Floats | None) -> None:
        """Keep the plan of the messages if it is the best; without sides, that of no messages."""
        network = self.network
        if sides is None:
            sides = (1.0 / network.model.num_labels).repeat(network.model.num_labels)[network.owner]
        marginals = network.averaged(sides)
        parts = [np.ascontiguousarray(part) for part in network.split(marginals)]
        cost = math.fsum(network.model.unary * marginals)
        for e, (i, j) in enumerate(network.model.edges):
            cost += self.compiled.coupled(e, eta, parts[i], parts[j])[0]
        if cost < self.cost:
            messages = np.empty(self.entries)
            self.compiled.messages(messages)
            self.cost, self.kept = cost, (eta, messages, marginals)


def _tables(costs: Any, count: int) -> list[Floats]:
    """Return one table, or one per edge."""
    if isinstance(costs, list | tuple):
        tables = [numbers(table, f"costs[{e}]") for e, table in enumerate(costs)]
    else:
        array = numbers(costs, "costs")
        tables = [array] if array.ndim == 2 else list(array)
    if len(tables) not in (1, count) or any(table.ndim != 2 for table in tables):
        raise ModelError(f"expected one table, or one for each of {count} edges")
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
        raise ModelError(f"marginals[{i}] is not a list of masses >= 0 with sum 1")


def _owner(model: Model) -> NDArray[np.int64]:
    nodes = model.edges.reshape(-1)
    counts = model.num_labels[nodes]
    begin = np.repeat(model.node_offset[nodes] - (np.cumsum(counts) - counts), counts)
    return np.asarray(begin + np.arange(int(counts.sum())), dtype=np.int64)


def _is_forest(model: Model) -> bool:
    root = list(range(model.n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = i = root[root[i]]
        return i

    for i, j in model.edges:
        one, other = find(int(i)), find(int(j))
        if one == other:
            return False
        root[one] = other
    return True
