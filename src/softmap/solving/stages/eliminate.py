"""`Eliminate`: variable elimination before the relaxation."""

from __future__ import annotations

from softmap.relaxation.flat import elimination_order
from softmap.solving.best import Best
from softmap.solving.stage import Once, Outcome, Share, Trait
from softmap.solving.stages.search import Search
from softmap.solving.trace import StageName

__all__ = ["Eliminate"]


class Eliminate(Once):
    """Variable elimination, if it takes less time than the first passes over the model.

    This is so if factors of several variables have large tables: the relaxation has an auxiliary
    node with a state for each of their entries, elimination has not.
    """

    name = StageName.SEARCH
    needs = frozenset({Trait.DEFAULT, Trait.FACTORS})

    def applies(self) -> bool:
        model, options, tuning = self.problem.model, self.options, self.tuning
        few = model.num_variables <= tuning.dense_variables
        if model.unary.size < tuning.large or not few or options.goal == "labels":
            return False
        return elimination_order(model, tuning.eliminated_per_state * model.unary.size).found

    def __call__(self, best: Best, share: Share) -> Outcome:
        search = Search(self.problem, self.options, self._proof)
        if not search.applies() or not search.narrow:
            return Outcome(active=False, ran=False)
        return Outcome(active=False, ended=search(best, share).ended)
