"""`Vertex`: a small LP that stays open after very many passes, solved to a vertex by HiGHS."""

from __future__ import annotations

import numpy as np

from softmap.run.best import Best
from softmap.run.judge import Judge
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Occasion, Outcome, Plan, Share, Subsolver, View
from softmap.subsolvers.passes.interior import left_to_solver
from softmap.subsolvers.passes.pass_numbers import PassNumbers

__all__ = ["Vertex"]


class Vertex(Subsolver):
    """The LP solved by HiGHS: interior points, then a vertex; the judge evaluates the solution."""

    name = "relaxation"
    number = 0

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Vertex | None:
        entries = options.tuning.of(PassNumbers).vertex_entries
        return cls(problem, options) if left_to_solver(problem, options, entries) else None

    def plan(self, view: View) -> Plan | None:
        seen = view.board.seen
        if view.occasion is not Occasion.CHECKED or seen is None or seen.last:
            return None
        open_gap = view.best.gaps().lp > self.options.lp_gap
        if seen.done < self.tuning.of(PassNumbers).vertex_after or not open_gap:
            return None
        return Plan("a vertex of the LP by HiGHS", urgent=True)

    def __call__(self, best: Best, share: Share) -> Outcome:
        from softmap.relaxation import lp  # imported late: few runs need it

        model = self.problem.model
        # always one thread: the rounding of HiGHS depends on the number of threads
        found = lp.solve(model, "ipm", time_limit=share.run_left, threads=1)
        if found.status != "Optimal":
            return Outcome(active=False, ran=False)
        nodes = np.maximum(found.node_marginals, 0.0)
        mass = np.add.reduceat(nodes, model.node_offset[:-1])
        nodes /= np.repeat(mass, model.num_labels)
        Judge(best).solution(found.lam, nodes)
        seen = share.board.seen
        assert seen is not None
        return Outcome(active=False, work=0, seen=seen.solved(found.lam, nodes, best.point_cost))
