"""`Partial`: exact search of the part of a large model that λ does not decide."""

from __future__ import annotations

import math

from softmap import core
from softmap.proof.search.exact import OPEN_NODE_BYTES
from softmap.proof.search.partial import PartialSearch
from softmap.solving.best import Best
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.stage import Estimates, Outcome, Share, Stage
from softmap.solving.stages.search import search_memory, search_threads
from softmap.solving.trace import StageName

__all__ = ["Partial"]


class Partial(Stage):
    """Exact search of the part of a large model that is not tight (not decided by λ)."""

    name = StageName.SEARCH

    def applies(self) -> bool:
        self._search: PartialSearch | None = None
        self._energy = math.inf  # of the labels from which a part was last computed
        model = self.problem.model
        self._largest = int(self.tuning.loose_part * model.n)
        many = model.n > self.tuning.loose_from and model.m > 0
        return many and not len(model.auxiliaries)

    def memory(self) -> float:
        model = self.problem.model
        entries = model.unary.size + int(model.edge_offset[-1])
        return OPEN_NODE_BYTES + search_memory(model, entries, self.tuning)

    def begin(self, known: Estimates) -> float:
        """As soon as the LP is solved: before, λ decides little. Then if the part is small."""
        if not known.solved or not (self._small or known.energy < self._energy):
            return math.inf
        return self.tuning.setup * known.bound

    def __call__(self, best: Best, share: Share) -> Outcome:
        if not best.found or not (self._small or best.energy < self._energy):
            return Outcome(ran=False)
        try:
            search = self._current(best, share)
        except core.OutOfTime:
            return Outcome(ran=False)
        if search.size > self._largest:
            return Outcome(ran=False)
        found = search.run(
            deadline=share.deadline,
            backtrack_limit=self._backtracks(share),
            largest=self._largest,
        )
        best.offer_labels(found.labels)
        best.offer_bound(found.bound, Proof(ProofKind.SEARCH, nodes=found.nodes), found.log)
        return Outcome(active=not found.complete)

    @property
    def _small(self) -> bool:
        """Whether the part of the current search is small enough."""
        return self._search is not None and self._search.size <= self._largest

    def _backtracks(self, share: Share) -> int:
        """The number of backtracks in a slice; -1 if only time limits it."""
        if not share.by_work:
            return -1
        return max(self.tuning.backtracks, share.work // self.problem.model.n)

    def _current(self, best: Best, share: Share) -> PartialSearch:
        """Return the current search, or a new one if that starts from a smaller part."""
        old = self._search
        if old is None or best.energy < self._energy:
            fresh = None if self._proof is None else self._proof.fresh
            model, spare = self.problem.model, self.room - self.memory()
            threads, _ = search_threads(model, self.problem.threads, spare, self.tuning)
            new = PartialSearch(
                model, best.lam, best.labels, fresh, threads=threads, deadline=share.run_end
            )
            self._energy = best.energy
            self._search = new if old is None or new.size < old.size else old
        assert self._search is not None
        return self._search
