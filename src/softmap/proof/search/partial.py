"""Exact search of the part of a model where its relaxation is not tight.

With λ, an energy is a sum of reduced costs of nodes, C_i - Σ λ, and of edges, C_e + λ_i + λ_j.
Where the best labels known have every such term at its minimum, nothing needs to be searched. The
rest, the loose part, is searched by itself: its nodes and the edges among them. Its optimum plus
the minima of all other terms is a bound of the model. If the labels found leave the edges across
the border at their minima, the bound is reached and all labels are optimal; else the part grows
there (CombiLP: Haller, Swoboda and Savchynskyy, arXiv 2004.06370).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.errors import InfeasibleModel
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials.base import Costs, Ints
from softmap.proof.search.exact import ExactResult, FlatModel, Log, solve_exact
from softmap.relaxation.bounds import lower_tables, reduced_nodes
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import check_lam, half_states

__all__ = ["Budget", "PartialLog", "PartialResult", "PartialSearch"]


@dataclass(frozen=True)
class PartialLimits:
    """Tolerances of the search of a part, and what its first round may use.

    Attributes
    ----------
    first_time : float
        Seconds for a piece in the first round; more once nothing else can be done.
    first_backtracks : int
        Backtracks for a piece in the first round, where backtracks are limited.
    rounding : float
        Part of the size of its terms: a reduced cost so close to the minimum is at it.
    tight : float
        Relative gap at which the search of a piece may stop.
    proved : float
        Relative gap of the whole that counts as none.
    """

    first_time: float = 0.1
    first_backtracks: int = 100
    rounding: float = 1e-12
    tight: float = 1e-10
    proved: float = 1e-9


PARTIAL = PartialLimits()


class Budget:
    """Time and backtracks that all searches have together, and the share of one of them."""

    def __init__(self, deadline: float, backtracks: int) -> None:
        self.deadline, self.backtracks = deadline, backtracks
        self.share = 1.0

    @property
    def seconds(self) -> float:
        """Time left for all."""
        return max(0.0, self.deadline - time.perf_counter())

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.seconds <= 0.0 or self.backtracks == 0

    @property
    def piece_seconds(self) -> float:
        """Time for one piece, in this round; where only backtracks are limited, all there is."""
        return (
            self.seconds
            if self.backtracks >= 0
            else min(self.seconds, PARTIAL.first_time * self.share)
        )

    @property
    def piece_backtracks(self) -> int:
        """Backtracks for one piece, in this round."""
        return min(self.backtracks, int(PARTIAL.first_backtracks * self.share))

    def spend(self, backtracks: int) -> None:
        """Take off what a search has used."""
        if self.backtracks >= 0:
            self.backtracks = max(0, self.backtracks - max(1, backtracks))


@dataclass(frozen=True)
class PartialLog:
    """λ, and of each piece that was searched: nodes, edges, the nodes' costs, and the records."""

    lam: Costs
    pieces: tuple[tuple[Ints, Ints, Costs, Log], ...]


@dataclass(frozen=True)
class PartialResult:
    """What was proved and found.

    Attributes
    ----------
    bound
        A lower bound of the model's energy, whatever ended the search.
    labels, energy
        The best labelling known: the one given, or one found.
    size
        Nodes in the loose part.
    complete
        Whether `energy` and `bound` agree up to rounding.
    nodes
        Of all search trees.
    log
        What proves the bound, where logs are kept.
    """

    bound: float
    labels: Ints
    energy: float
    size: int
    complete: bool
    nodes: int
    log: PartialLog | None


@dataclass(frozen=True)
class _Piece:
    """One connected piece of the loose part: its nodes, its edges, and what is known about it.

    `free` are the best labels of the piece by itself, `labels` the best next to those outside;
    the same where both are optimal for the piece. `unary` and `log` are the costs of
    its nodes and the records of the search that proved the bound.
    """

    nodes: Ints
    edges: Ints
    bound: float
    labels: Ints | None
    free: Ints | None
    complete: bool
    unary: Costs | None = None
    log: Log | None = None


class _Minima(NamedTuple):
    """The least reduced cost of every node and of every edge."""

    nodes: Costs
    edges: Costs


class PartialSearch:
    """A loose part that grows, and what is known about its pieces.

    Attributes
    ----------
    loose : bool[n]
        The nodes of the loose part.
    choice : int64[n]
        The labels given: of least reduced cost in all but the loose part.
    """

    def __init__(
        self,
        model: Model,
        lam: ArrayLike,
        labels: ArrayLike,
        fresh_log: Callable[[], Path] | None = None,
    ) -> None:
        self.model = tighten(model)
        self.lam = np.ascontiguousarray(check_lam(self.model, lam))
        self.labels = np.asarray(labels, np.int64).ravel()
        self.energy = float(self.model.energy(self.labels))
        self.bound, self.nodes = -math.inf, 0
        self._least = _Minima(np.empty(self.model.n), np.empty(self.model.m))
        core.node_minima(layout(self.model), self.lam, self._least.nodes, 1)
        core.edge_minima(layout(self.model), self.lam, self._least.edges, 1)
        self.choice = self.labels
        self.loose = _beyond_least(self.model, self.lam, self.choice)
        self.loose[self.model.edges[self._missed(self.choice)]] = True
        self._known: dict[bytes, _Piece] = {}
        self._fresh_log = fresh_log
        self._log: PartialLog | None = None

    @property
    def size(self) -> int:
        """Nodes in the loose part."""
        return int(self.loose.sum())

    def go_on(
        self, *, time_limit: float = 1e9, backtrack_limit: int = -1, largest: int | None = None
    ) -> PartialResult:
        """Search and grow within the limits; what is solved already is not solved again."""
        budget = Budget(time.perf_counter() + time_limit, backtrack_limit)
        most = self.model.n if largest is None else largest
        while self.size <= most:
            pieces = self._solve(budget)
            self._raise(pieces)
            self._keep(self._combined(pieces))
            if self._closed() or budget.spent:
                break
            if not self._grow(pieces):
                if all(piece.complete for piece in pieces):
                    break
                budget.share *= 2.0
        return self.result()

    def result(self) -> PartialResult:
        """What is known so far."""
        closed = self._closed()
        return PartialResult(
            self.bound, self.labels, self.energy, self.size, closed, self.nodes, self._log
        )

    def _closed(self) -> bool:
        if not (math.isfinite(self.energy) and math.isfinite(self.bound)):
            return False
        sizes = float(np.abs(self._least.nodes).sum() + np.abs(self._least.edges).sum())
        return (
            self.energy - self.bound <= PARTIAL.proved * abs(self.energy) + PARTIAL.rounding * sizes
        )

    def _combined(self, pieces: list[_Piece], *, free: bool = False) -> Ints:
        """The labels of all pieces, and those given elsewhere."""
        x = self.choice.copy()
        for piece in pieces:
            labels = piece.free if free else piece.labels
            if labels is not None:
                x[piece.nodes] = labels
        return x

    def _keep(self, x: Ints) -> None:
        energy = float(self.model.energy(x))
        if energy < self.energy:
            self.labels, self.energy = x, energy

    # --- the loose part -------------------------------------------------------------------------

    def _missed(self, x: Ints) -> NDArray[np.bool_]:
        """Edges that are not at their least reduced cost, up to rounding."""
        model, lam = self.model, self.lam
        ends = model.edges
        first = lam[model.half_offset[0:-1:2] + x[ends[:, 0]]]
        second = lam[model.half_offset[1::2] + x[ends[:, 1]]]
        cost = np.empty(model.m)
        for a, b, potential in model.groups():
            each = np.arange(b - a)
            cost[a:b] = potential.value(each, x[ends[a:b, 0]], x[ends[a:b, 1]])
        size = np.abs(cost) + np.abs(first) + np.abs(second)
        over = cost + first + second - self._least.edges
        missed: NDArray[np.bool_] = ~np.isfinite(cost) | (over > PARTIAL.rounding * size)
        return missed

    def _grow(self, pieces: list[_Piece]) -> bool:
        """Add the nodes from which the labels of solved pieces disagree, and their neighbours."""
        ends, x = self.model.edges, self._combined(pieces, free=True)
        solved = np.zeros(self.model.n, dtype=bool)
        for piece in pieces:
            solved[piece.nodes] = piece.complete
        outer = np.zeros(self.model.n, dtype=bool)
        outer[ends[self._missed(x) & solved[ends].any(axis=1)]] = True
        outer &= ~self.loose
        if not outer.any():
            return False
        touched = outer[ends].any(axis=1)
        self.loose[ends[touched]] = True
        return True

    # --- its pieces -----------------------------------------------------------------------------

    def _solve(self, budget: Budget) -> list[_Piece]:
        """All connected pieces of the loose part, the smallest first."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        model = self.model
        members = np.flatnonzero(self.loose)
        if not len(members):
            return []
        place = np.cumsum(self.loose) - 1
        inner = np.flatnonzero(self.loose[model.edges].all(axis=1))
        ends = place[model.edges[inner]]
        links = coo_array((np.ones(len(inner)), ends.T), shape=(len(members),) * 2)
        _, number = connected_components(links, directed=False)
        unary = self._outer_unary(inner)
        nodes, edges = _split(number, members), _split(number[ends[:, 0]], inner, number.max() + 1)
        order = sorted(range(len(nodes)), key=lambda c: len(nodes[c]))
        return [self._piece(nodes[c], edges[c], unary, budget) for c in order]

    def _outer_unary(self, inner: Ints) -> Costs:
        """C_i - Σ λ over edges that are not `inner`, certainly not more than in real numbers."""
        model = self.model
        outer = np.ones(model.m, dtype=bool)
        outer[inner] = False
        keep = np.repeat(np.repeat(outer, 2), np.diff(model.half_offset))
        states, lam = half_states(model)[keep], self.lam[keep]
        count = len(model.unary)
        terms = np.bincount(states, minlength=count)
        total = model.unary - np.bincount(states, weights=lam, minlength=count)
        # each of the additions is wrong by at most 2⁻⁵³ times the sum of all sizes so far
        size = np.abs(model.unary) + np.bincount(states, weights=np.abs(lam), minlength=count)
        with np.errstate(invalid="ignore"):
            low = np.nextafter(total - (terms + 2) * 2.0**-51 * size, -np.inf)
        exact = (terms == 0) | np.isposinf(model.unary)
        return np.where(exact, model.unary, low)

    def _piece(self, nodes: Ints, edges: Ints, unary: Costs, budget: Budget) -> _Piece:
        """One piece, solved as far as the budget goes; its own minima are a bound in any case."""
        key, model = nodes.tobytes(), self.model
        known = self._known.get(key)
        if known is not None and known.complete:
            return known
        terms = np.concatenate([self._least.nodes[nodes], self._least.edges[edges]])
        if known is None:
            known = _Piece(nodes, edges, _lower_sum(terms), None, None, complete=False)
        if budget.spent:
            return known
        found = self._search(nodes, edges, unary, budget)
        if found.infeasible:
            raise InfeasibleModel(
                "no labelling has finite cost: an exact search over some variables found none",
                int(nodes[0]),
            )
        bound, log = max(known.bound, found.lower_bound), known.log
        own: Costs | None = known.unary
        if found.lower_bound > known.bound:
            log, own = found.log, np.concatenate([unary[model.node_slice(i)] for i in nodes])
        free = labels = found.labels
        if found.complete and self._crossing(nodes, free):
            # labels outside that break a hard constraint may leave none here: that proves nothing
            settled = self._search(nodes, edges, unary + self._beside(nodes), budget)
            labels = settled.labels
            margin = 2 * PARTIAL.tight * abs(found.energy) + PARTIAL.rounding * float(
                np.abs(terms).sum()
            )
            if labels is not None and settled.energy <= found.energy + margin:
                free = labels
        piece = _Piece(nodes, edges, bound, labels, free, found.complete, own, log)
        self._known[key] = piece
        return piece

    def _border(self, nodes: Ints) -> Ints:
        """Edges between a piece and the nodes outside."""
        inside = np.zeros(self.model.n, dtype=bool)
        inside[nodes] = True
        return np.flatnonzero(inside[self.model.edges].sum(axis=1) == 1)

    def _crossing(self, nodes: Ints, labels: Ints | None) -> bool:
        """Whether labels of a piece move an edge of its border away from its minimum."""
        x = self.choice.copy()
        x[nodes] = x[nodes] if labels is None else labels
        return bool(self._missed(x)[self._border(nodes)].any())

    def _beside(self, nodes: Ints) -> Costs:
        """What edges of the border cost above their minima, by the label of the end inside."""
        model, x = self.model, self.choice
        out = np.zeros(len(model.unary))
        member = set(nodes.tolist())
        for e in self._border(nodes).tolist():
            i, j = model.edges[e].tolist()
            first, second = (self.lam[model.half_slice(2 * e + side)] for side in (0, 1))
            reduced = model.table(e) + first[:, None] + second - self._least.edges[e]
            inner, costs = (i, reduced[:, x[j]]) if i in member else (j, reduced[x[i]])
            out[model.node_slice(inner)] += np.maximum(costs, 0.0)
        return out

    def _search(self, nodes: Ints, edges: Ints, unary: Costs, budget: Budget) -> ExactResult:
        model = self.model
        place = np.full(model.n, -1)
        place[nodes] = np.arange(len(nodes))
        scope = place[model.edges[edges]].ravel()
        flat = FlatModel(
            model.num_labels[nodes].astype(np.int64),
            np.concatenate([unary[model.node_slice(i)] for i in nodes]),
            2 * np.arange(len(edges) + 1, dtype=np.int64),
            scope.astype(np.int64),
            lower_tables(model, edges),
            0.0,
        )
        halves = np.stack([2 * edges, 2 * edges + 1], axis=1).ravel()
        lam = np.concatenate([np.zeros(0), *(self.lam[model.half_slice(int(h))] for h in halves)])
        found = solve_exact(
            flat,
            incumbent=self.labels[nodes] if math.isfinite(self.energy) else None,
            lam=lam,
            time_limit=budget.piece_seconds,
            backtrack_limit=budget.piece_backtracks,
            relative_gap=PARTIAL.tight,
            log=None if self._fresh_log is None else self._fresh_log(),
        )
        budget.spend(found.backtracks)
        self.nodes += found.nodes
        return found

    def _raise(self, pieces: list[_Piece]) -> None:
        """Keep the bound of the pieces and the rest, if it is better, and what proves it."""
        total = self._total(pieces)
        if not total > self.bound:
            return
        self.bound = total
        if self._fresh_log is not None:
            searched = [
                (piece.nodes, piece.edges, piece.unary, piece.log)
                for piece in pieces
                if piece.log is not None and piece.unary is not None
            ]
            self._log = PartialLog(self.lam, tuple(searched))

    def _total(self, pieces: list[_Piece]) -> float:
        """The bounds of the pieces and the minima of all other nodes and edges, rounded down."""
        rest = np.ones(self.model.m, dtype=bool)
        for piece in pieces:
            rest[piece.edges] = False
        more = np.array([self.model.constant, *(piece.bound for piece in pieces)])
        parts = [self._least.nodes[~self.loose], self._least.edges[rest], more]
        return _lower_sum(np.concatenate(parts))


def _beyond_least(model: Model, lam: Costs, x: Ints) -> NDArray[np.bool_]:
    """Nodes whose label is not of least reduced cost, up to rounding."""
    reduced, start = reduced_nodes(model, lam), model.node_offset[:-1]
    size = np.bincount(half_states(model), weights=np.abs(lam), minlength=len(reduced))
    at = start + x
    margin = PARTIAL.rounding * (size[at] + np.abs(model.unary[at]))
    least = np.minimum.reduceat(reduced, start)
    beyond: NDArray[np.bool_] = np.isinf(reduced[at]) | (reduced[at] > least + margin)
    return beyond


def _split(number: Ints, items: Ints, count: int | None = None) -> list[Ints]:
    """Items by their numbers 0, 1, …, each list in the order of the items."""
    order = np.argsort(number, kind="stable")
    sizes = np.bincount(number, minlength=count or 0)
    return np.split(items[order], np.cumsum(sizes)[:-1])


def _lower_sum(terms: Costs) -> float:
    """A number certainly not above the sum; -inf where a term is not finite."""
    return float(core.lower_sum(terms)) if np.isfinite(terms).all() else -math.inf
