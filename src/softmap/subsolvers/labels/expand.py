"""`Expand`: first labels of large models by expansion moves."""

from __future__ import annotations

import math

import numpy as np

from softmap import core
from softmap.labels import cheapest, first_labels
from softmap.labels.cuts import Expansions, Fusion, Labels, expandable
from softmap.labels.energies import energy_of
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import (
    Entry,
    Once,
    Outcome,
    Plan,
    Share,
    View,
    by_default,
    pairs_only,
)
from softmap.subsolvers.labels.label_numbers import ExpansionNumbers

__all__ = ["EXPANSIONS", "Expand"]

EXPANSIONS: Entry[Expansions] = Entry("expansion moves that can be continued")


class Expand(Once):
    """First labels of a large model: by one pass of messages, then by expansion moves.

    They are good long before those of the relaxation. With a time limit, `Improve` continues the
    moves.
    """

    name = "labels"
    number = 3

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Expand | None:
        numbers = options.tuning.of(ExpansionNumbers)
        if not by_default(options) or not pairs_only(problem):
            return None
        if problem.model.num_variables < numbers.variables:
            return None
        fits = expandable(problem.model) >= numbers.submodular
        return cls(problem, options) if fits else None

    def plan(self, view: View) -> Plan | None:
        plan = super().plan(view)
        return None if plan is None else plan._replace(proves=False)

    def __call__(self, best: Best, share: Share) -> Outcome:
        numbers = self.tuning.of(ExpansionNumbers)
        end = share.part(numbers.share)
        fusion = Fusion(self.problem.model, threads=self.problem.threads)
        first = share.part(numbers.first_share)
        labels = self._first(fusion, best, first)
        expansions = Expansions(fusion)
        expansions.run(labels, rounds=numbers.rounds, deadline=end)
        best.offer_labels(labels)
        if not math.isfinite(best.lp_bound):
            best.offer_zero()
        continued = self.options.either(timed=True, counted=False)
        kept = continued and Fusion.takes(self.problem.model) <= self.room.each
        return Outcome(active=False, entries={EXPANSIONS: expansions} if kept else {})

    def _first(self, fusion: Fusion, best: Best, deadline: core.Deadline) -> Labels:
        """Labels to start from: those of one pass of messages, fused with given ones.

        If memory does not allow that: given ones, or those of lowest node cost.
        """
        model, options = self.problem.model, self.options
        messages = 2 * model.half_size  # bytes: one number in single precision per edge and label
        if messages + Fusion.takes(model) > self.room.left:
            return np.array(best.labels if best.found else cheapest(model, model.unary))
        found = first_labels(model, deadline=deadline, threads=self.problem.threads)
        given = options.initial is not None or options.warm_start is not None
        if given and best.found:
            fusion.fuse(found, best.labels, deadline=deadline)
            if not energy_of(model, found, self.problem.threads) < best.energy:
                return best.labels.copy()
        return found
