"""`Obey`: first labels that obey the hard constraints."""

from __future__ import annotations

from softmap.solving.best import Best
from softmap.solving.feasible import find_first_labels
from softmap.solving.memory import TAKES
from softmap.solving.stage import Once, Outcome, Share
from softmap.solving.trace import StageName

__all__ = ["Obey"]


class Obey(Once):
    """First labels that obey the hard constraints, by a search that propagates and learns."""

    name = StageName.LABELS

    def applies(self) -> bool:
        return self.default

    def memory(self) -> float:
        model = self.problem.model
        return float(TAKES.constraint * (model.unary.size + model.edge_size))

    def __call__(self, best: Best, share: Share) -> Outcome:
        return Outcome(active=False, ran=find_first_labels(self.problem, best, share, self.tuning))
