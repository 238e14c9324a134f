"""`Interior`: a small LP on which passes are slow, by an interior-point method of our own."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from softmap import core
from softmap.methods.base import Floats
from softmap.model import Model
from softmap.model.potentials import Tables
from softmap.relaxation.dual import edge_batches
from softmap.solving.best import Best
from softmap.solving.judge import Judge
from softmap.solving.stage import Handed, Outcome, Share, Stage, Trait
from softmap.solving.trace import StageName
from softmap.tuning import InteriorTimes

__all__ = ["Interior", "interior_point"]


ACCURATE = 1e-7  # least relative gap that rounding errors allow (D101)


class Interior(Stage):
    """The LP solved by an interior-point method that eliminates the edges; the judge evaluates it.

    It is called once, if nothing but the LP is wanted: when the passes have taken as long as the
    method is expected to take, and are expected to take as long again. Where labels are wanted,
    other stages use the time better.
    """

    name = StageName.RELAX
    needs = frozenset({Trait.EXACT, Trait.LP})

    def applies(self) -> bool:
        self._method: core.InteriorPoint | None = None
        self._called = False
        self._pass = _time_of_pass(self.problem.model, self.tuning.interior)
        model = self.problem.model
        return model.m > 0 and not model.has_forbidden and self.options.lp_gap >= ACCURATE

    def urgent(self, best: Best, handed: Handed) -> bool:
        seen = handed.seen
        if seen is None or seen.last or self._called or not math.isfinite(best.gaps().lp):
            return False
        left = min(1.0, best.gaps().lp / self.options.lp_gap - 1.0) * seen.done * self._pass
        times = self.tuning.interior
        pairs = times.pair * self.problem.model.edge_size
        if left < times.steps * pairs:  # so that most runs need no elimination order
            return False
        if self._method is None:
            self._method = interior_point(self.problem.model)
        return left >= times.steps * (pairs + times.product * self._method.work)

    def __call__(self, best: Best, share: Share) -> Outcome:
        method, seen = self._method, share.handed.seen
        assert method is not None
        assert seen is not None
        self._called, self._method = True, None  # it needs memory
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


def interior_point(model: Model) -> core.InteriorPoint:
    """Return the interior-point method for a model without hard constraints, at its start."""
    pairs = np.empty(model.edge_size)
    for batch in edge_batches(model):
        pairs[batch.entries] = batch.cost
    return core.InteriorPoint(
        np.ascontiguousarray(model.num_labels), model.edges, model.unary, pairs
    )


def _time_of_pass(model: Model, times: InteriorTimes) -> float:
    """Estimate of the time of a pass by sizes alone, in the unit of `InteriorTimes`."""
    time = 0.0
    for g, potential in enumerate(model.potentials):
        first, last = model.group_start[g : g + 2].tolist()
        entries = model.edge_offset[last] - model.edge_offset[first]
        halves = model.half_offset[2 * last] - model.half_offset[2 * first]
        tables = isinstance(potential, Tables)
        time += times.entry * 2 * entries if tables else halves
    return float(time)
