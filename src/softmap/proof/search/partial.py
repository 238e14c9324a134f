"""Exact search of the part of a model where its relaxation is not tight.

With λ, an energy is a sum of reduced costs of nodes, C_i - Σ λ, and of edges, C_e + λ_i + λ_j. The
tight part of the model consists of the nodes at which the best known labelling attains the minimum
of every term. The other nodes, the loose part, are searched with the edges among them. The optimum
of the loose part plus the minima of all other terms is a lower bound of the model. If the labels
found leave the edges across the border at their minima, they attain this bound and are optimal.
Otherwise the loose part grows there (CombiLP: Haller, Swoboda and Savchynskyy, arXiv 2004.06370).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from softmap import core
from softmap.errors import InfeasibleModel
from softmap.labels.pricing import energy_of
from softmap.model import Model
from softmap.model.potentials.base import Costs, Ints
from softmap.proof.search.exact import ExactResult, Log, solve_exact
from softmap.proof.search.reduced import ReducedCosts
from softmap.relaxation.bounds import lower_tables
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import check_lam
from softmap.relaxation.flat import FlatModel


@dataclass(frozen=True)
class PartialLimits:
    """Tolerances of a partial search, and limits of its first round.

    Attributes
    ----------
    first_time : float
        Seconds per component in the first round.
    first_backtracks : int
        Backtracks per component in the first round, if backtracks are limited.
    rounding : float
        Tolerance for "at the minimum", relative to the absolute values of the terms of a reduced
        cost.
    tight : float
        Relative gap at which the search of a component stops.
    proved : float
        Relative gap of the model below which the labelling counts as optimal.
    """

    first_time: float = 0.1
    first_backtracks: int = 100
    rounding: float = 1e-12
    tight: float = 1e-10
    proved: float = 1e-9


PARTIAL = PartialLimits()


class PieceLimits:
    """Time and backtracks left for all searches, and the limits of one search."""

    def __init__(self, deadline: core.Deadline, backtracks: int) -> None:
        self.deadline, self.backtracks, self.share = deadline, backtracks, 1.0

    @property
    def spent(self) -> bool:
        """Whether the deadline has passed or the backtracks are used up."""
        return self.backtracks == 0 or self.deadline.passed

    @property
    def piece_deadline(self) -> core.Deadline:
        """The deadline of a component in this round; that of all if backtracks are limited."""
        if self.backtracks >= 0:
            return self.deadline
        return self.deadline.within(PARTIAL.first_time * self.share)

    @property
    def piece_backtracks(self) -> int:
        """Backtracks per component in this round."""
        return min(self.backtracks, int(PARTIAL.first_backtracks * self.share))

    def spend(self, backtracks: int) -> None:
        """Subtract the backtracks that a search has used."""
        if self.backtracks >= 0:
            self.backtracks = max(0, self.backtracks - max(1, backtracks))


@dataclass(frozen=True)
class PartialLog:
    """λ, and for each component searched: nodes, edges, node costs and proof records."""

    lam: Costs
    pieces: tuple[tuple[Ints, Ints, Costs, Log], ...]


@dataclass(frozen=True)
class PartialResult:
    """The best labelling and the lower bound of a partial search.

    Attributes
    ----------
    bound : float
        A lower bound on the energy of the model, whatever ended the search.
    labels : int64[n]
        The best labelling known: the given one, or one found by the search.
    energy : float
        The energy of `labels`.
    size : int
        Number of nodes in the loose part.
    complete : bool
        Whether `energy` and `bound` agree up to rounding.
    nodes : int
        Number of nodes of all search trees.
    log : PartialLog or None
        The proof of the bound, if proofs are recorded.
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
    """One connected component of the loose part: its nodes, its edges and its best labels.

    `free` holds the best labels of the component without its border edges, and `labels` the best
    labels with them; the two are equal if one labelling is optimal for both. `unary` holds the
    costs of its nodes, and `log` the records of the search that proved its bound.
    """

    nodes: Ints
    edges: Ints
    bound: float
    labels: Ints | None
    free: Ints | None
    complete: bool
    unary: Costs | None = None
    log: Log | None = None


class PartialSearch:
    """A resumable search of the loose part, which grows from round to round.

    Parameters
    ----------
    model : Model
        The model.
    lam : float array
        λ, flat over half-edges.
    labels : int array
        The best labelling known.
    fresh_log : function, optional
        Returns the prefix of the names of a new proof file.
    threads : int, default 1
        The number of threads of loops over all edges, and of a search without a limit on
        backtracks.
    deadline : core.Deadline, optional
        When set-up raises OutOfTime.

    Attributes
    ----------
    loose : bool[n]
        The nodes of the loose part.
    choice : int64[n]
        The given labels, which have minimal reduced cost outside the loose part.
    """

    def __init__(
        self,
        model: Model,
        lam: ArrayLike,
        labels: ArrayLike,
        fresh_log: Callable[[], Path] | None = None,
        *,
        threads: int = 1,
        deadline: core.Deadline | None = None,
    ) -> None:
        self.model, self.threads = tighten(model, threads), threads
        self.lam = np.ascontiguousarray(check_lam(self.model, lam))
        self.labels = np.asarray(labels, np.int64).ravel()
        self.energy = energy_of(self.model, self.labels, threads)
        self.bound, self.nodes = -math.inf, 0
        self._costs = ReducedCosts(
            self.model, self.lam, PARTIAL.rounding, threads, deadline or core.Deadline()
        )
        self.choice = self.labels
        self.loose = self._costs.above(self.choice)
        self._known: dict[bytes, _Piece] = {}
        self._fresh_log = fresh_log
        self._log: PartialLog | None = None

    @property
    def size(self) -> int:
        """Number of nodes in the loose part."""
        return int(self.loose.sum())

    def run(
        self,
        *,
        deadline: core.Deadline | None = None,
        backtrack_limit: int = -1,
        largest: int | None = None,
    ) -> PartialResult:
        """Continue within the limits; components already solved are not searched again.

        Parameters
        ----------
        deadline : core.Deadline, optional
            When to stop.
        backtrack_limit : int
            Largest number of backtracks of this call; -1: no limit.
        largest : int, optional
            Largest number of variables of the part that is searched; by default all.
        """
        budget = PieceLimits(deadline or core.Deadline(), backtrack_limit)
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
        """The best labelling and bound so far."""
        closed = self._closed()
        return PartialResult(
            self.bound, self.labels, self.energy, self.size, closed, self.nodes, self._log
        )

    def _closed(self) -> bool:
        if not (math.isfinite(self.energy) and math.isfinite(self.bound)):
            return False
        allowed = PARTIAL.proved * abs(self.energy) + PARTIAL.rounding * self._costs.size
        return self.energy - self.bound <= allowed

    def _combined(self, pieces: list[_Piece], *, free: bool = False) -> Ints:
        """The labels of all components, and the given labels outside the loose part."""
        x = self.choice.copy()
        for piece in pieces:
            labels = piece.free if free else piece.labels
            if labels is not None:
                x[piece.nodes] = labels
        return x

    def _keep(self, x: Ints) -> None:
        energy = energy_of(self.model, x, self.threads)
        if energy < self.energy:
            self.labels, self.energy = x, energy

    # --- the loose part -------------------------------------------------------------------------

    def _grow(self, pieces: list[_Piece]) -> bool:
        """Add outer endpoints of edges that solved components miss, and their neighbours."""
        ends, x = self.model.edges, self._combined(pieces, free=True)
        solved = np.zeros(self.model.n, dtype=bool)
        for piece in pieces:
            solved[piece.nodes] = piece.complete
        outer = np.zeros(self.model.n, dtype=bool)
        outer[ends[self._costs.missed(x) & solved[ends].any(axis=1)]] = True
        outer &= ~self.loose
        if not outer.any():
            return False
        touched = outer[ends].any(axis=1)
        self.loose[ends[touched]] = True
        return True

    # --- components -----------------------------------------------------------------------------

    def _solve(self, budget: PieceLimits) -> list[_Piece]:
        """Solve the connected components of the loose part, the smallest first."""
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
        unary = self._costs.outer_unary(inner)
        nodes, edges = _split(number, members), _split(number[ends[:, 0]], inner, number.max() + 1)
        order = sorted(range(len(nodes)), key=lambda c: len(nodes[c]))
        return [self._piece(nodes[c], edges[c], unary, budget) for c in order]

    def _piece(self, nodes: Ints, edges: Ints, unary: Costs, budget: PieceLimits) -> _Piece:
        """Search one component within the budget; its bound is at least the sum of its minima."""
        key, model = nodes.tobytes(), self.model
        known = self._known.get(key)
        if known is not None and known.complete:
            return known
        terms = np.concatenate([self._costs.nodes[nodes], self._costs.edges[edges]])
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
            # infeasibility beside the given outer labels proves nothing about the component
            more = self._costs.beside(nodes, self.choice)
            again = self._search(nodes, edges, unary + more, budget)
            labels = again.labels
            margin = 2 * PARTIAL.tight * abs(found.energy) + PARTIAL.rounding * float(
                np.abs(terms).sum()
            )
            if labels is not None and again.energy <= found.energy + margin:
                free = labels
        piece = _Piece(nodes, edges, bound, labels, free, found.complete, own, log)
        self._known[key] = piece
        return piece

    def _crossing(self, nodes: Ints, labels: Ints | None) -> bool:
        """Whether labels of a component put a border edge above its minimum."""
        x = self.choice.copy()
        x[nodes] = x[nodes] if labels is None else labels
        return bool(self._costs.missed(x)[self._costs.border(nodes)].any())

    def _search(self, nodes: Ints, edges: Ints, unary: Costs, budget: PieceLimits) -> ExactResult:
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
            deadline=budget.piece_deadline,
            backtrack_limit=budget.piece_backtracks,
            relative_gap=PARTIAL.tight,
            threads=self.threads,
            log=None if self._fresh_log is None else self._fresh_log(),
        )
        budget.spend(found.backtracks)
        self.nodes += found.nodes
        return found

    def _raise(self, pieces: list[_Piece]) -> None:
        """Keep the bound of `_total` and its proof if the bound has improved."""
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
        """The bounds of the components plus the minima of all other terms, rounded down."""
        rest = np.ones(self.model.m, dtype=bool)
        for piece in pieces:
            rest[piece.edges] = False
        more = np.array([self.model.constant, *(piece.bound for piece in pieces)])
        parts = [self._costs.nodes[~self.loose], self._costs.edges[rest], more]
        return _lower_sum(np.concatenate(parts))


def _split(number: Ints, items: Ints, count: int | None = None) -> list[Ints]:
    """Group items by their number in 0..count-1; each group keeps the order of the items."""
    order = np.argsort(number, kind="stable")
    sizes = np.bincount(number, minlength=count or 0)
    return np.split(items[order], np.cumsum(sizes)[:-1])


def _lower_sum(terms: Costs) -> float:
    """A lower bound on the sum (rounded down); -inf if a term is not finite."""
    return float(core.lower_sum(terms)) if np.isfinite(terms).all() else -math.inf
