"""`Tighten`: the relaxation tightened by clusters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from softmap import core
from softmap.solving.best import Best
from softmap.solving.clusters import ClusterEvidence
from softmap.solving.memory import TAKES, memory_needed
from softmap.solving.stage import Estimates, Outcome, Share, Stage
from softmap.solving.trace import StageName

if TYPE_CHECKING:
    from softmap.solving.tightening import Tightening

__all__ = ["Tighten"]


class Tighten(Stage):
    """The relaxation tightened by clusters; labels are decoded from its marginals."""

    name = StageName.TIGHTEN

    def applies(self) -> bool:
        self._run: Tightening | None = None
        model = self.problem.model
        return model.m > 0 and model.unary.size <= self.tuning.clusters.states

    def memory(self) -> float:
        return TAKES.tightened * memory_needed(self.problem.model)

    def begin(self, known: Estimates) -> float:
        if math.isinf(known.energy):
            return math.inf
        return 0.0 if self._run is not None else self.tuning.setup * known.bound

    def __call__(self, best: Best, share: Share) -> Outcome:
        if not best.found:
            return Outcome(ran=False)
        try:
            run = self._run or self._new(best, share)
        except core.OutOfTime:
            return Outcome(active=False, ran=False)
        self._run, before, prepared = run, run.work, run.prepared
        messages = share.work // max(1, int(run.tight.model.num_labels.mean()))
        active = run.run(share, before + messages, self.options.gap)
        return Outcome(active=active, work=run.work - before, prepared=run.prepared - prepared)

    def _new(self, best: Best, share: Share) -> Tightening:
        from softmap.solving.tightening import Tightening  # imported late

        limits = self.tuning.clusters
        states = (self.room - self.memory()) / TAKES.cluster
        limits = replace(limits, states=int(min(limits.states, states)))
        run = Tightening(self.problem, best, self.tuning, limits, share.run_end)
        if isinstance(share.handed.evidence, ClusterEvidence):
            run.adopt(share.handed.evidence)
        return run
