"""Minimum cuts: exact solution of binary submodular models, and fusion and expansion moves."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.model import Network
from softmap.model.layout import layout

__all__ = ["Expansions", "Fusion", "expandable", "solve_binary"]

Labels = NDArray[np.int64]
Floats = NDArray[np.float64]


def solve_binary(
    model: Network, *, deadline: core.Deadline | None = None, threads: int = 1
) -> tuple[Labels, Floats] | None:
    """Solve a submodular model of two labels by a minimum cut.

    An edge is submodular if C(0, 0) + C(1, 1) ≤ C(0, 1) + C(1, 0).

    Parameters
    ----------
    model : Network
        Nodes have at most two labels.
    deadline : core.Deadline, optional
        When to stop.
    threads : int, default 1
        Number of threads; the cut does not depend on it.

    Returns
    -------
    labels, lam : arrays, or None
        Optimal labels, and λ whose bound is their energy up to rounding. If it is stopped, both
        belong to the flow so far. None if the model is not binary and submodular.
    """
    if model.num_labels.max(initial=0) > 2:
        return None
    cut = core.BinaryCut(layout(model), _barrier(model), threads)
    if not cut.applies():
        return None
    cut.run(deadline)
    labels, lam = np.empty(model.n, dtype=np.int64), np.empty(model.half_size)
    cut.read(labels, lam)
    return labels, lam


def expandable(model: Network, edges: int = 32, labels: int = 12) -> float:
    """Return the fraction of sampled terms of α-expansions that are submodular; 1 for metrics.

    A term is C(α, α) + C(x, y) ≤ C(x, α) + C(α, y), for one edge and labels x, y other than α.

    Parameters
    ----------
    model : Network
        A model without factors of more than two variables.
    edges, labels : int
        Number of edges, and of labels of each, in the sample.
    """
    held = terms = 0
    for e in np.linspace(0, model.m - 1, min(edges, model.m)).astype(np.int64):
        table = model.table(int(e))
        both = min(table.shape)
        step = -(-both // labels)
        costs = table[:both:step, :both:step]
        for a in range(len(costs)):
            others = np.arange(len(costs)) != a
            ends = costs[others, a][:, None] + costs[a, others][None, :]
            fits = costs[a, a] + costs[np.ix_(others, others)] <= ends
            held, terms = held + int(np.count_nonzero(fits)), terms + fits.size
    return held / terms if terms else 1.0


class Fusion:
    """Moves that choose between two labellings, for each variable, by one minimum cut.

    The energy never rises. A move is optimal if every edge is submodular in the choice. With a
    constant proposal (an α-expansion), this holds for all metrics.

    Parameters
    ----------
    model : Network
        A model without factors of more than two variables.
    threads : int, default 1
        Number of threads; labels do not depend on it.
    """

    def __init__(self, model: Network, threads: int = 1) -> None:
        self.model, self.threads, self._barrier = model, threads, _barrier(model)
        self._moves: core.FusionMoves | None = None

    @staticmethod
    def takes(model: Network) -> int:
        """Memory of the flow graph, in bytes."""
        return 40 * model.m + 40 * model.n

    def release(self) -> None:
        """Free the flow graph; the next move makes it again, in a tenth of the time of a move."""
        self._moves = None

    def fuse(
        self,
        labels: Labels,
        proposal: ArrayLike,
        *,
        deadline: core.Deadline | None = None,
        work: int = 1 << 62,
    ) -> int:
        """Apply one fusion move in place: each variable keeps its label or takes the proposal's.

        Parameters
        ----------
        labels : int array
            The labelling, changed in place.
        proposal : int array
            The other labelling.
        deadline : core.Deadline, optional
            When to stop.
        work : int, default 2**62
            Stop after visiting this many arcs.

        Returns
        -------
        int
            The number of variables that changed; -1, and no change, if a limit was reached.
        """
        given = np.ascontiguousarray(proposal, dtype=np.int64)
        if self._moves is None:
            self._moves = core.FusionMoves(layout(self.model), self._barrier)
        return int(self._moves.fuse(labels, given, work, self.threads, deadline))


class Expansions:
    """α-expansions of one label after the other, which can be stopped and continued.

    Frequent labels come first. A label whose expansion changed nothing is skipped until no other
    label's expansion changes anything.

    Parameters
    ----------
    fusion : Fusion
        The moves.
    """

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self._last = fusion.model.num_labels - 1
        self._left: Labels = np.arange(0)  # labels of the current round that are still to expand
        self._gained: list[int] = []  # labels of the current round whose expansion changed labels
        self._all = False  # whether the current round has all labels
        self._seen: Labels | None = None  # the labels after the last expansion
        self._ended = False

    def ended(self, labels: Labels) -> bool:
        """Whether no expansion lowers the energy of a labelling, as far as is known."""
        return self._ended and self._seen is not None and np.array_equal(labels, self._seen)

    def run(
        self,
        labels: Labels,
        *,
        rounds: int = 1 << 62,
        deadline: core.Deadline | None = None,
    ) -> bool:
        """Expand labels in place.

        Parameters
        ----------
        labels : int array
            The labelling, changed in place. Every expansion that ends in time counts.
        rounds : int, default 2**62
            Largest number of rounds.
        deadline : core.Deadline, optional
            When to stop.

        Returns
        -------
        bool
            Whether no expansion lowers the energy.
        """
        if self.ended(labels):
            return True
        self._ended = False
        if self._seen is None or not np.array_equal(labels, self._seen):
            self._begin_round(labels, None)
        while not self._ended and rounds > 0:
            if self._expand(labels, deadline) < 0:
                break
            if not len(self._left):
                rounds -= 1
                self._end_round(labels)
        self._seen = labels.copy()
        self.fusion.release()
        return self._ended

    def _expand(self, labels: Labels, deadline: core.Deadline | None) -> int:
        """Expand the next label; return the number of changes, -1 if the deadline passed."""
        alpha = int(self._left[0])
        proposal = np.where(alpha <= self._last, alpha, labels)
        changed = self.fusion.fuse(labels, proposal, deadline=deadline)
        if changed >= 0:
            self._left = self._left[1:]
        if changed > 0:
            self._gained.append(alpha)
        return changed

    def _begin_round(self, labels: Labels, chosen: list[int] | None) -> None:
        """Plan a round of all labels, or of the chosen ones, the most frequent first."""
        count = np.bincount(labels, minlength=int(self._last.max()) + 1)
        order = np.argsort(-count, kind="stable")
        self._all = chosen is None
        self._left = order if chosen is None else order[np.isin(order, chosen)]
        self._gained = []

    def _end_round(self, labels: Labels) -> None:
        if self._gained:
            self._begin_round(labels, self._gained)
        elif self._all:
            self._ended = True
        else:
            self._begin_round(labels, None)


def _barrier(model: Network) -> float:
    """The finite cost that stands for +inf: above all differences of costs together.

    It is a multiple of the costs, so that units change nothing. +inf if no cost is infinite.
    """
    if not model.has_forbidden:
        return math.inf
    sizes = model.cost_sizes
    return math.ldexp(2.0 * (sizes.largest + sizes.width), sizes.exponent) or 1.0
