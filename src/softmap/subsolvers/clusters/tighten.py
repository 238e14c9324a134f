"""`Tighten`: the relaxation tightened by clusters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from softmap import core
from softmap.run.best import Best
from softmap.run.memory import memory_needed
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Occasion, Outcome, Plan, Share, Subsolver, View
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from softmap.subsolvers.clusters.cluster_numbers import ClusterSizes, TightenNumbers

if TYPE_CHECKING:
    from softmap.subsolvers.clusters.tightening import Tightening

__all__ = ["Tighten"]


class Tighten(Subsolver):
    """The relaxation tightened by clusters; labels are decoded from its marginals."""

    name = "tightening"
    number = 2
    evidence = ClusterEvidence

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._run: Tightening | None = None
        self._numbers = self.tuning.of(TightenNumbers)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Tighten | None:
        model, numbers = problem.model, options.tuning.of(TightenNumbers)
        if not model.m or model.unary.size > numbers.node_states:
            return None
        tighten = cls(problem, options)
        return tighten if math.isinf(tighten.room.each) else tighten.fitting(tighten._memory)

    @property
    def _memory(self) -> float:
        return self._numbers.base * memory_needed(self.problem.model, self.tuning)

    def plan(self, view: View) -> Plan | None:
        if not view.best.found or view.occasion is not Occasion.TURN:
            return None
        begin = 0.0 if self._run is not None else self._numbers.setup * view.bound_seconds
        return Plan("clusters that tighten the relaxation", begin=begin)

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
        from softmap.subsolvers.clusters.tightening import Tightening  # imported late

        limits = self.tuning.of(ClusterSizes)
        states = (self.room.each - self._memory) / self._numbers.state_bytes
        limits = replace(limits, states=int(min(limits.states, states)))
        run = Tightening(self.problem, best, self.tuning, limits, share.run_end)
        if isinstance(share.board.evidence, ClusterEvidence):
            run.adopt(share.board.evidence)
        return run
