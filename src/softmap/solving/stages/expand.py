"""`Expand`: first labels of large models by expansion moves."""

from __future__ import annotations

import math

import numpy as np

from softmap import core
from softmap.labels import cheapest, first_labels
from softmap.labels.cuts import Expansions, Fusion, Labels, expandable
from softmap.labels.energies import energy_of
from softmap.solving.best import Best
from softmap.solving.stage import Once, Outcome, Share, Trait
from softmap.solving.trace import StageName

__all__ = ["Expand"]


class Expand(Once):
    """First labels of a large model: by one pass of messages, then by expansion moves.

    They are good long before those of the relaxation. With a time limit, `Improve` continues the
    moves.
    """

    name = StageName.LABELS
    proves = False
    needs = frozenset({Trait.DEFAULT, Trait.PAIRS, Trait.LARGE})

    def applies(self) -> bool:
        return expandable(self.problem.model) >= self.tuning.expanded_submodular

    def __call__(self, best: Best, share: Share) -> Outcome:
        tuning = self.tuning
        end = share.part(tuning.first_share)
        fusion = Fusion(self.problem.model, threads=self.problem.threads)
        first = share.part(tuning.first_share**2)
        labels = self._first(fusion, best, first)
        expansions = Expansions(fusion)
        expansions.run(labels, rounds=max(1, tuning.rounds // 2), deadline=end)
        best.offer_labels(labels)
        if not math.isfinite(best.lp_bound):
            best.offer_zero()
        kept = self.schedule.keeps_moves and Fusion.takes(self.problem.model) <= self.room
        return Outcome(active=False, expansions=expansions if kept else None)

    def _first(self, fusion: Fusion, best: Best, deadline: core.Deadline) -> Labels:
        """Labels to start from: those of one pass of messages, fused with given ones.

        If memory does not allow that: given ones, or those of lowest node cost.
        """
        model, options = self.problem.model, self.options
        messages = 2 * model.half_size  # bytes: one number in single precision per edge and label
        if messages + Fusion.takes(model) > self.memory_left:
            return np.array(best.labels if best.found else cheapest(model, model.unary))
        found = first_labels(model, deadline=deadline, threads=self.problem.threads)
        given = options.labels is not None or options.warm_start is not None
        if given and best.found:
            fusion.fuse(found, best.labels, deadline=deadline)
            if not energy_of(model, found, self.problem.threads) < best.energy:
                return best.labels.copy()
        return found
