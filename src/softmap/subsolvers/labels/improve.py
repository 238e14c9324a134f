"""`Improve`: searches for better labels, beside the relaxation."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.annealing import LabelAnnealing
from softmap.labels.improving import Neighbourhoods
from softmap.labels.moves import LargeMoves
from softmap.relaxation.flat import flat_entries, flatten
from softmap.run.best import Best
from softmap.run.memory import search_memory
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Occasion, Outcome, Plan, Share, Subsolver, View
from softmap.subsolvers.labels.expand import EXPANSIONS
from softmap.subsolvers.labels.first_labels import FirstLabels
from softmap.subsolvers.labels.label_numbers import ImproveNumbers

__all__ = ["Improve"]


class _Improver(Protocol):
    """A search for better labels that goes on with each call, until a limit."""

    def __call__(
        self,
        labels: NDArray[np.int64],
        *,
        deadline: core.Deadline | None,
        work: int,
    ) -> NDArray[np.int64]: ...


class _TimeParts:
    """The parts of a slice of several searches: larger for those with more success per second.

    The last slice in which each of them ran decides; if none succeeded, all parts are equal. In the
    first slice, the first search has all but the least parts.

    Parameters
    ----------
    count : int
        Number of searches.
    least : float
        Smallest part of each.
    """

    def __init__(self, count: int, least: float) -> None:
        self._merit = np.eye(count)[0]  # annealing: nothing improves poor labels as fast
        self._least = least

    @property
    def parts(self) -> NDArray[np.float64]:
        """The fraction of the time of each search."""
        rest = 1.0 - self._least * len(self._merit)
        return self._least + rest * self._merit / self._merit.sum()

    def note(self, gains: NDArray[np.float64]) -> None:
        """Say how much each search has improved the labels in its part of a slice."""
        total = gains.sum()
        rates = gains / total / self.parts if total > 0.0 else np.ones(len(gains))
        self._merit = rates / rates.sum()


class Improve(Subsolver):
    """Expansion moves and three searches for labels; finds feasible labels if there are none.

    Annealing over single labels, dynamic programming over narrow parts of the model and exact
    search over small ones share the time; those that improve the labels get more of it. In runs
    with a time limit and more threads than searches, they run side by side instead. Each goes on
    where its last part of a slice has ended.
    """

    name = "labels"
    number = 3
    _parts: _TimeParts | None = None
    _slices = 0

    @cached_property
    def _numbers(self) -> ImproveNumbers:
        return self.tuning.of(ImproveNumbers)

    @cached_property
    def _first(self) -> FirstLabels:
        return FirstLabels(self.problem, self.tuning)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Improve | None:
        model, numbers = problem.model, options.tuning.of(ImproveNumbers)
        needed = float(numbers.edge_bytes * model.m + numbers.state_bytes * model.unary.size)
        return cls(problem, options).fitting(needed)

    def plan(self, view: View) -> Plan | None:
        if view.occasion is not Occasion.TURN:
            return None
        return Plan("better labels", proves=False)

    def __call__(self, best: Best, share: Share) -> Outcome:
        if not best.found:
            nodes = best.point.node_marginals() if best.point else None
            self._first(best, nodes, deadline=share.deadline, work=share.work)
        if best.found and self.problem.model.m and self._expanded(best, share):
            threads = self.options.racing(self.problem.threads)
            together = threads > len(self._searches) > 1
            (self._search_together if together else self._search)(best, share)
        return Outcome()

    def _expanded(self, best: Best, share: Share) -> bool:
        """Whether no expansion move improves the labels, after as many as the slice allows."""
        moves = share.board.get(EXPANSIONS)
        if moves is None or moves.ended(best.labels):
            return True
        labels = best.labels.copy()
        ended = moves.run(labels, deadline=share.deadline)
        best.offer_labels(labels)
        return ended

    @cached_property
    def _searches(self) -> list[_Improver]:
        """The searches, each of which continues from call to call."""
        model, seed, numbers = self.problem.model, self.options.seed, self._numbers
        entries = flat_entries(model)
        moves = entries <= numbers.moved_entries and model.num_variables <= numbers.moved_variables
        needed = search_memory(model, entries, numbers.moved_entry_bytes, numbers.moved_edge_bytes)
        moves = moves and needed <= self.room.each
        anneals = entries <= numbers.annealed_entries
        anneals = anneals and LabelAnnealing.takes(model, entries) <= self.room.each
        flat = flatten(model) if anneals or moves else None
        found: list[_Improver] = []
        if flat is not None and anneals:
            found.append(LabelAnnealing(flat, seed).improve)
        found.append(Neighbourhoods(model, seed=seed, threads=self.problem.threads).improve)
        if flat is not None and moves:
            found.append(LargeMoves(flat, seed, numbers.move_work).improve)
        return found

    def _search_together(self, best: Best, share: Share) -> None:
        """Improve the labels by all searches at once, from the same labels."""

        from concurrent.futures import ThreadPoolExecutor  # imported late: few runs come here

        def improved(search: _Improver) -> NDArray[np.int64]:
            return search(best.labels, deadline=share.deadline, work=share.work)

        with ThreadPoolExecutor(len(self._searches), "softmap-labels") as threads:
            for found in [threads.submit(improved, search) for search in self._searches]:
                best.offer_labels(found.result())

    def _search(self, best: Best, share: Share) -> None:
        """Improve the labels by each of the searches, each time another one first."""
        if self._parts is None:
            self._parts = _TimeParts(len(self._searches), self._numbers.least_part)
        parts = self._parts.parts
        gains, waiting = np.zeros(len(parts)), np.ones(len(parts), dtype=bool)
        first = self._slices % len(parts)
        for k in (*range(first, len(parts)), *range(first)):
            end = share.part(float(parts[k] / parts[waiting].sum()))
            waiting[k] = False
            work = int(parts[k] * min(share.work, 1 << 61))
            labels = self._searches[k](best.labels, deadline=end, work=work)
            before = best.energy
            best.offer_labels(labels)
            gains[k] = before - best.energy
        self._parts.note(gains)
        self._slices += 1
