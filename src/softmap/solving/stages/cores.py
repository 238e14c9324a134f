"""`Cores`: bounds and labels of clauses and sums by core-guided search."""

from __future__ import annotations

import math

from softmap.errors import InfeasibleModel
from softmap.labels.feasibility import complete_labels
from softmap.proof.cores.search import CoreGuided
from softmap.solving.best import Best
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.stage import UNLIMITED, Estimates, Outcome, Share, Stage
from softmap.solving.stages.search import flat_entries
from softmap.solving.trace import StageName

__all__ = ["Cores"]


class Cores(Stage):
    """Core-guided search, for variables of two labels tied by hard constraints or clauses."""

    name = StageName.CORES

    def applies(self) -> bool:
        self._search: CoreGuided | None = None
        model, options = self.problem.model, self.options
        two = bool((model.num_labels[: model.num_visible] <= 2).all())
        logical = model.has_forbidden or len(model.auxiliaries) > 0
        small = flat_entries(model) <= self.tuning.cores_entries
        return two and logical and small and options.goal != "lp" and options.backend == "cpu"

    def memory(self) -> float:
        return float(self.tuning.cores_bytes * flat_entries(self.problem.model))

    def begin(self, known: Estimates) -> float:
        return 0.0 if self._search is not None else self.tuning.setup_cores * known.bound

    def __call__(self, best: Best, share: Share) -> Outcome:
        if self._search is None:
            self._search = CoreGuided(self.problem.model, self.problem.given)
        search, unlimited = self._search, share.work >= UNLIMITED
        labels = search.run(
            energy=min(best.energy, best.cutoff),
            conflicts=UNLIMITED if unlimited else 1 + share.work // self.tuning.conflict_entries,
            deadline=share.deadline,
        )
        if math.isinf(search.bound):
            raise InfeasibleModel(
                "no labelling has finite cost: a search over all variables found none", None
            )
        if labels is not None and (whole := complete_labels(self.problem.model, labels)) is not None:
            best.offer_labels(whole)
        best.offer_bound(search.bound, Proof(ProofKind.CORES, nodes=search.cores))
        return Outcome(active=not search.done)
