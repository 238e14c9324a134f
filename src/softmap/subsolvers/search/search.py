"""`Search`: exact branch and bound over the whole model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from softmap import core
from softmap.errors import InfeasibleModel
from softmap.labels.exact import OPEN_NODE_BYTES, ExactResult, ExactSearch, Log
from softmap.model import Network
from softmap.relaxation.flat import (
    FlatModel,
    elimination_order,
    flat_entries,
    flat_lam,
    flatten,
)
from softmap.relaxation.gaps import CLOSED
from softmap.run.best import Best
from softmap.run.budget import UNLIMITED
from softmap.run.evidence import Stated
from softmap.run.memory import search_memory
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.records import LogFiles, copied
from softmap.run.subsolver import Occasion, Outcome, Plan, Share, Subsolver, View
from softmap.subsolvers.search.search_numbers import SearchNumbers

__all__ = ["Search", "search_threads"]


def search_threads(
    model: Network, threads: int, spare: float, numbers: SearchNumbers
) -> tuple[int, float]:
    """The number of threads of a search, and the memory of all but the first, in bytes.

    Parameters
    ----------
    model : Network
        The model.
    threads : int
        Number of threads of the run.
    spare : float
        Memory left by the first thread, in bytes; +inf if memory is not limited.
    numbers : SearchNumbers
        The numbers of the run.
    """
    each = numbers.thread_state_bytes * model.half_size
    each += numbers.thread_edge_bytes * (model.n + model.m)
    fits = numbers.thread_share * max(spare, 0.0) / max(each, 1)
    further = int(min(threads - 1, fits))
    return 1 + further, float(further * each)


class SearchRecords:
    """The proof of an exact search, which the search has written to a file.

    Parameters
    ----------
    log : Log
        The file.
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    def records(self, problem: Problem, fresh: Callable[[], Path]) -> Iterator[bytes]:
        """Yield the records of the search."""
        return copied(self._log.path, self._log.size)


class Search(Subsolver):
    """Exact branch and bound over the model, from λ and the best labels."""

    name = "search"
    number = 1

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._search: ExactSearch | None = None
        self._flat: FlatModel | None = None  # a factor table in the place of each auxiliary node
        self._bound = -math.inf  # bound of the λ it started from, or of its root
        self._beyond = 0.0  # by how much the labels it started from exceed the upper bound
        self._numbers = numbers = self.tuning.of(SearchNumbers)
        # step of the next early slice
        self._next = self.options.either(timed=numbers.first_timed, counted=numbers.first_counted)
        self._entries = flat_entries(problem.model)

    @classmethod
    def suited(cls, problem: Problem, options: Options) -> Search | None:
        """Return the search, whatever memory it needs; None if the model is too large."""
        search = cls(problem, options)
        return search if search._entries <= search._numbers.entries else None

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Search | None:
        search = cls.suited(problem, options) if options.proving else None
        return None if search is None else search.fitting(search._memory)

    @property
    def _memory(self) -> float:
        numbers = self._numbers
        return search_memory(
            self.problem.model, self._entries, numbers.entry_bytes, numbers.edge_bytes
        )

    @classmethod
    def refute(
        cls, hard: FlatModel, files: LogFiles, deadline: core.Deadline | None = None
    ) -> Log | None:
        found = ExactSearch(hard, log=files.fresh()).run(deadline=deadline)
        return found.log if found.infeasible else None

    def plan(self, view: View) -> Plan | None:
        if view.occasion is not Occasion.TURN:
            return None
        begin = 0.0 if self._search is not None else self._numbers.setup * view.bound_seconds
        return Plan("exact search from the best λ", urgent=self._early(view), begin=begin)

    def _early(self, view: View) -> bool:
        """At intervals that grow with the passes: a search often ends a run long before the LP."""
        seen = view.board.seen
        alone = self.options.whole_run or self.options.backend != "cpu"
        if seen is None or seen.last or alone:
            return False
        if seen.done >= self._next:
            return self._small or self.narrow
        return self._next <= self._numbers.narrow_until and self.narrow

    def __call__(self, best: Best, share: Share) -> Outcome:
        if seen := share.board.seen:
            self._next = max(self._next, 4 * seen.done)
        if not (best.gaps().map <= self._searched_gap or self._small or self.narrow):
            return Outcome(ran=False)
        try:
            search = self._current(best, share)
        except core.OutOfTime:  # the run has ended
            return Outcome(active=False, ran=False)
        found = search.run(
            incumbent=best.labels if best.found else None,
            deadline=share.deadline,
            end=share.run_end,
            backtrack_limit=self._backtracks(share),
        )
        if found.infeasible:
            raise InfeasibleModel(
                "no labelling has finite cost: an exact search over all variables found none", None
            )
        active = self._offer(best, found)
        if share.early:  # a resumed run restarts it, too
            self._search = None
        return Outcome(active=active)

    @property
    def _searched_gap(self) -> float:
        """The relative gap up to which large models are searched."""
        return self.options.either(timed=math.inf, counted=self._numbers.gap)

    @property
    def _small(self) -> bool:
        """Whether the set-up of a search takes less time than some passes."""
        model, numbers = self.problem.model, self._numbers
        few = model.n + model.m <= numbers.early_edges
        return few and self._entries <= numbers.early_entries

    @cached_property
    def narrow(self) -> bool:
        """Whether variable elimination solves the model: its width is small."""
        model, numbers = self.problem.model, self._numbers
        if model.num_variables > numbers.eliminated_variables:
            return False
        return elimination_order(model, numbers.eliminated_entries).found

    def _backtracks(self, share: Share) -> int:
        """The number of backtracks in a slice; -1 if its work is not limited."""
        if share.work >= UNLIMITED:
            return -1
        most = self._numbers.backtrack_entries * share.work // max(1, self._entries)
        return max(self._numbers.backtracks, most)

    def _current(self, best: Best, share: Share) -> ExactSearch:
        """Return the current search, or a new one if λ has improved much."""
        bound, rest = best.lp_bound, best.energy - best.bound
        better = not bound - self._bound <= self._numbers.fresh * rest
        beyond = self._above(best)
        if self._search is None or better or beyond != self._beyond:
            self._beyond, self._bound = beyond, bound
            self._search = self._new(best, share)
        return self._search

    def _new(self, best: Best, share: Share) -> ExactSearch:
        model = self.problem.model
        spare = self.room.each - self._memory
        threads, copies = search_threads(model, self.problem.threads, spare, self._numbers)
        spare -= copies  # half for tables, half for open nodes
        if self._flat is None:
            self._flat = flatten(model, share.run_end)
        return ExactSearch(
            self._flat,
            incumbent=best.labels if best.found else None,
            lam=flat_lam(model, best.lam),
            relative_gap=min(CLOSED, self.options.gap),
            absolute_gap=self._beyond,
            dp_limit=min(self._tables(share), spare / self._numbers.eliminated_bytes),
            open_bytes=min(OPEN_NODE_BYTES, spare / 2),
            threads=threads,
            log=None if share.proof is None else share.proof.fresh(),
        )

    def _tables(self, share: Share) -> float:
        """The number of table entries of dynamic programming: all that pays, or a slice of work."""
        by_work = float(self._numbers.eliminated_work * share.work)
        most = self._numbers.eliminated_entries
        return most if by_work >= most or self.narrow else by_work

    def _offer(self, best: Best, found: ExactResult) -> bool:
        """Offer what was found; return whether the search goes on."""
        if found.labels is not None:
            best.offer_labels(found.labels)
        log = None if found.log is None else SearchRecords(found.log)
        best.offer_bound(Stated(value=found.lower_bound, nodes=found.nodes, log=log))
        self._bound = max(self._bound, found.root_bound)
        # the labels above the cutoff are better than when this search began: search again
        again = self._beyond != self._above(best)
        return not found.complete or again

    def _above(self, best: Best) -> float:
        """The amount by which the energy of the labels exceeds the upper bound, at least 0."""
        return max(0.0, best.energy - best.cutoff) if best.found else 0.0
