"""`Eliminate`: variable elimination before the relaxation."""

from __future__ import annotations

from dataclasses import dataclass

from softmap.relaxation.flat import elimination_order
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Once, Outcome, Share, by_default
from softmap.tuning import Numbers

__all__ = ["Eliminate", "EliminationNumbers"]


@dataclass(frozen=True)
class EliminationNumbers(Numbers):
    """Which models are eliminated before the relaxation."""

    variables: int = 3_000  # most variables; D34
    states: int = 20_000  # least node states; D34
    per_state: float = 300.0  # most table entries per node state; D34


class Eliminate(Once):
    """Variable elimination, if it takes less time than the first passes over the model.

    This is so if factors of several variables have large tables: the relaxation has an auxiliary
    node with a state for each of their entries, elimination has not.
    """

    name = "search"
    number = 1

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Eliminate | None:
        model, numbers = problem.model, options.tuning.of(EliminationNumbers)
        if not by_default(options) or options.goal == "labels" or not model.has_factors:
            return None
        few = model.num_variables <= numbers.variables
        if model.unary.size < numbers.states or not few:
            return None
        most = numbers.per_state * model.unary.size
        return cls(problem, options) if elimination_order(model, most).found else None

    def __call__(self, best: Best, share: Share) -> Outcome:
        from softmap.subsolvers.search.search import Search  # imported late: few models need it

        search = Search.suited(self.problem, self.options)
        if search is None or not search.narrow:
            return Outcome(active=False, ran=False)
        return Outcome(active=False, ended=search(best, share).ended)
