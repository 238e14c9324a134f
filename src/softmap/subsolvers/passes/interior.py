"""`Interior`: a small LP on which passes are slow, by an interior-point method of our own."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cached_property

import numpy as np

from softmap import core
from softmap.methods.base import Floats, find
from softmap.model import Network
from softmap.model.potentials import Tables
from softmap.relaxation.dual import edge_batches
from softmap.run.best import Best
from softmap.run.judge import Judge
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Occasion, Outcome, Plan, Share, Subsolver, View
from softmap.subsolvers.passes.pass_numbers import InteriorTimes, PassNumbers

__all__ = ["Interior", "interior_point", "left_to_solver"]


ACCURATE = 1e-7  # least relative gap that rounding errors allow (D101)


class Interior(Subsolver):
    """The LP solved by an interior-point method that eliminates the edges; the judge evaluates it.

    It is called once, if nothing but the LP is wanted: when the passes have taken as long as the
    method is expected to take, and are expected to take as long again. Where labels are wanted,
    other subsolvers use the time better.
    """

    name = "relaxation"
    number = 0

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._called = False
        self._pass = _time_of_pass(problem.model, self.tuning.of(InteriorTimes))

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Interior | None:
        model, entries = problem.model, options.tuning.of(PassNumbers).interior_entries
        if options.goal != "lp" or not left_to_solver(problem, options, entries):
            return None
        fits = model.m > 0 and not model.has_forbidden and options.lp_gap >= ACCURATE
        return cls(problem, options) if fits else None

    @cached_property
    def _method(self) -> core.InteriorPoint:
        return interior_point(self.problem.model)

    def plan(self, view: View) -> Plan | None:
        seen, gap = view.board.seen, view.best.gaps().lp
        if view.occasion is not Occasion.CHECKED or seen is None or seen.last:
            return None
        if self._called or not math.isfinite(gap):
            return None
        left = min(1.0, gap / self.options.lp_gap - 1.0) * seen.done * self._pass
        times = self.tuning.of(InteriorTimes)
        pairs = times.pair * self.problem.model.edge_size
        if left < times.steps * pairs:  # so that most runs need no elimination order
            return None
        if left < times.steps * (pairs + times.product * self._method.work):
            return None
        return Plan("interior points of the LP", urgent=True)

    def __call__(self, best: Best, share: Share) -> Outcome:
        method, seen = self._method, share.board.seen
        assert seen is not None
        self._called = True
        del self._method  # it needs memory
        near = 4.0 * self.options.lp_gap * self.problem.unit(best.lp_bound)
        with suppress(core.OutOfTime):
            while best.gaps().lp > self.options.lp_gap and method.step(share.run_end):
                if method.gap <= near:  # usually 2 to 3 times the gap that the judge finds
                    self._offer(best, method)
        lam, nodes = self._offer(best, method)
        return Outcome(active=False, work=0, seen=seen.solved(lam, nodes, best.point_cost))

    def _offer(self, best: Best, method: core.InteriorPoint) -> tuple[Floats, Floats]:
        """Let the judge evaluate the current multipliers and node marginals; return them."""
        model = self.problem.model
        lam, nodes = np.asarray(method.lam()), np.asarray(method.nodes())
        nodes /= np.repeat(np.add.reduceat(nodes, model.node_offset[:-1]), model.num_labels)
        Judge(best).solution(lam, nodes)
        return lam, nodes


def interior_point(model: Network) -> core.InteriorPoint:
    """Return the interior-point method for a model without hard constraints, at its start."""
    pairs = np.empty(model.edge_size)
    for batch in edge_batches(model):
        pairs[batch.entries] = batch.cost
    return core.InteriorPoint(
        np.ascontiguousarray(model.num_labels), model.edges, model.unary, pairs
    )


def _time_of_pass(model: Network, times: InteriorTimes) -> float:
    """Estimate of the time of a pass by sizes alone, in the unit of `InteriorTimes`."""
    time = 0.0
    for g, potential in enumerate(model.potentials):
        first, last = model.group_start[g : g + 2].tolist()
        entries = model.edge_offset[last] - model.edge_offset[first]
        halves = model.half_offset[2 * last] - model.half_offset[2 * first]
        tables = isinstance(potential, Tables)
        time += times.entry * 2 * entries if tables else halves
    return float(time)


def left_to_solver(problem: Problem, options: Options, entries: int) -> bool:
    """Whether the LP is small, without factors, and left to an LP solver if passes are slow.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.
    entries : int
        Most node states and pairs of labels of edges.
    """
    model = problem.model
    small = model.unary.size + model.edge_size <= entries
    exact = find(options.method).exact_finish and not options.whole_run
    return small and not model.has_factors and exact
