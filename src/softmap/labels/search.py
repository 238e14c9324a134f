"""The primal heuristic of a run: decode labels from a method, and improve them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.cuts import Fusion
from softmap.labels.decoding import decide, decode, round_nodes
from softmap.labels.energies import Labelled, energy_of
from softmap.labels.improving import best_labelling, improved_by_forests
from softmap.model import Network
from softmap.relaxation.dual import Floats
from softmap.relaxation.gaps import PROVED, cost_scale
from softmap.relaxation.polytope import normalised
from softmap.tuning import TUNING, Numbers

__all__ = ["LabelSearch", "Readable", "SearchEffort"]

Readable = Floats | Callable[[], NDArray[np.int64]]


@dataclass(frozen=True)
class SearchEffort(Numbers):
    """The effort for labels that are decoded at a check."""

    more: float = 1 / 32  # tree moves per pass so far, twice that if only labels are missing; D10
    annealed_from: int = 8  # least number of tree moves to anneal them; D10
    warm: int = 48  # annealed tree moves for labels of an earlier model, or a search; D10
    heat: float = 3.0  # temperature, in √(cost scale · gap per variable); D10
    fused: int = 2_000  # least number of variables for fusion moves; D31
    cut: int = 200  # most visited arcs of a fusion move per edge and variable; D31


class LabelSearch:
    """The primal heuristic for one arc-consistent model.

    Parameters
    ----------
    model : Network
    order : int array or function, optional
        The order (a permutation) in which `decode` fixes the variables, or a function that returns
        it; 0, 1, 2, … by default.
    room : float, default +inf
        Memory for fusion moves, in bytes.
    threads : int, default 1
        Number of threads; labels do not depend on it.
    effort : SearchEffort, optional
        The effort.
    """

    def __init__(
        self,
        model: Network,
        order: NDArray[np.int64] | Callable[[], NDArray[np.int64]] | None = None,
        room: float = math.inf,
        threads: int = 1,
        effort: SearchEffort | None = None,
    ) -> None:
        self.model, self.order, self.threads = model, order, threads
        self.effort = effort or TUNING.of(SearchEffort)
        pairs = model.m > 0 and model.is_plain
        self._fuses = pairs and model.n >= self.effort.fused and Fusion.takes(model) <= room

    def look(
        self,
        known: Labelled,
        lam: Readable,
        nodes: Floats,
        bound: float,
        primal: float,
        work: int,
        deadline: core.Deadline | None = None,
    ) -> Labelled:
        """Decode labels from λ and node marginals, and improve them while the gap is open.

        Parameters
        ----------
        known : (labels, energy)
            The best labelling so far. The result is not worse.
        lam : float64 array or function
            λ, or a function that returns decoded labels.
        nodes : float64 or float32 array
            Node marginals.
        bound, primal : float
            The best lower bound and primal value of the LP so far.
        work : int
            Number of half-edge updates done so far. It sets the effort, and it is the seed of the
            random numbers, so that a resumed run repeats them.
        deadline : core.Deadline, optional
            When to stop. There are fewer annealed tree moves if they would take more than half of
            the time that is left; labels then depend on the timing.
        """
        model, found = self.model, self._first(lam, nodes, deadline)
        best = _better(known, found)
        if not self._open(best, bound):
            return best
        stuck = max(0.0, best[1] - primal) / (best[1] - bound)
        more = int(self.effort.more * (1.0 + stuck) * work / max(1, 2 * model.m))
        annealed = more if more >= self.effort.annealed_from else 0
        moves, began = 1 + more - annealed, time.perf_counter()
        found = improved_by_forests(model, found, moves, 0.0, work, self.threads, deadline)
        each = max((time.perf_counter() - began) / moves, 1e-9)
        best = self._fused(known, found, deadline)
        if deadline is not None:  # fewer of them, which still cool down to 0
            annealed = int(min(annealed, 0.5 * deadline.left / each))
        return self._annealed(best, bound, annealed, work + 1, deadline)

    def decoded(self, lam: Readable, deadline: core.Deadline | None = None) -> NDArray[np.int64]:
        """Return the labels decoded from λ.

        Parameters
        ----------
        lam : float64 array or function
            λ, or a function that returns decoded labels.
        deadline : core.Deadline, optional
            When to stop decoding; the labels of the nodes that are left are then chosen one by one.
        """
        if callable(lam):
            return lam()
        order = self.order() if callable(self.order) else self.order
        return decode(self.model, lam, order, deadline)

    def improve(
        self, known: Labelled, bound: float, seed: int, deadline: core.Deadline | None = None
    ) -> Labelled:
        """Improve labels that come from a similar model, by annealed tree moves."""
        model, threads, best = self.model, self.threads, known
        if self._open(best, bound):
            best = _better(best, best_labelling(model, [best[0]], [best[1]], threads, deadline))
            moved = improved_by_forests(model, best, 1, 0.0, seed, threads, deadline)
            best = _better(best, moved)
        return self._annealed(best, bound, self.effort.warm, seed + 1, deadline)

    def _annealed(
        self, known: Labelled, bound: float, rounds: int, seed: int, deadline: core.Deadline | None
    ) -> Labelled:
        """Improve labels by annealed tree moves while the gap is open.

        The first temperature is a multiple of the geometric mean of the scale of the costs and the
        gap per variable.
        """
        model = self.model
        if not rounds or not self._open(known, bound):
            return known
        each = max(0.0, known[1] - bound) / model.num_variables
        heat = self.effort.heat * math.sqrt(cost_scale(model) * each)
        moved = improved_by_forests(model, known, rounds, heat, seed, self.threads, deadline)
        return _better(known, moved)

    def _first(self, lam: Readable, nodes: Floats, deadline: core.Deadline | None) -> Labelled:
        """Return the better of rounding and decoding; if neither is feasible, use `decide`."""
        model = self.model
        candidates = [round_nodes(model, nodes, self.threads), self.decoded(lam, deadline)]
        if model.has_chains:  # recompute chain variables: the other labels may be feasible
            candidates.append(model.consistent(candidates[1]))
        energies = [energy_of(model, labels, self.threads) for labels in candidates]
        if math.isfinite(least := min(energies)):  # otherwise ICM may repair either one
            candidates, energies = [candidates[energies.index(least)]], [least]
        labels, energy = best_labelling(model, candidates, energies, self.threads, deadline)
        if not math.isfinite(energy):
            decided = decide(model, normalised(model, nodes), deadline)
            labels, energy = best_labelling(model, [decided], None, self.threads, deadline)
        return labels, energy

    def _fused(self, known: Labelled, found: Labelled, deadline: core.Deadline | None) -> Labelled:
        """Return the better of two labellings, or what a fusion move makes of both."""
        best = _better(known, found)
        worse = found if best is known else known
        if not self._fuses or not math.isfinite(worse[1]):
            return best
        labels = np.array(best[0])
        size = self.model.n + self.model.m
        core.give_back()  # what the search before has freed, which is not needed any more
        fusion = Fusion(self.model, threads=self.threads)
        if fusion.fuse(labels, worse[0], work=self.effort.cut * size, deadline=deadline) <= 0:
            return best
        return _better(best, (labels, energy_of(self.model, labels, self.threads)))

    def _open(self, known: Labelled, bound: float) -> bool:
        """Whether the known labels are feasible and not yet proved optimal."""
        return PROVED * abs(bound) < known[1] - bound < math.inf


def _better(known: Labelled, found: Labelled) -> Labelled:
    """Return the better of two labellings; `found` if neither is feasible."""
    return found if found[1] < known[1] or math.isinf(known[1]) else known
