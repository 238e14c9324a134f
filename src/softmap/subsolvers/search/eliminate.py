"""`Eliminate`: variable elimination before the relaxation."""

from __future__ import annotations

from softmap.relaxation.flat import elimination_order
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Once, Outcome, Share, by_default

__all__ = ["Eliminate"]


class Eliminate(Once):
    """Variable elimination, if it takes less time than the first passes over the model.

    This is so if factors of several variables have large tables: the relaxation has an auxiliary
    node with a state for each of their entries, elimination has not.
    """

    name = "search"
    number = 1

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Eliminate | None:
        model, tuning = problem.model, options.tuning
        if not by_default(options) or options.goal == "labels" or not model.has_factors:
            return None
        few = model.num_variables <= tuning.dense_variables
        if model.unary.size < tuning.large or not few:
            return None
        most = tuning.eliminated_per_state * model.unary.size
        return cls(problem, options) if elimination_order(model, most).found else None

    def __call__(self, best: Best, share: Share) -> Outcome:
        from softmap.subsolvers.search.search import Search  # imported late: few models need it

        search = Search.suited(self.problem, self.options)
        if search is None or not search.narrow:
            return Outcome(active=False, ran=False)
        return Outcome(active=False, ended=search(best, share).ended)
