"""`Cut`: submodular models of two labels, solved by one minimum cut."""

from __future__ import annotations

from softmap.labels.cuts import solve_binary
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import (
    Once,
    Outcome,
    Share,
    by_default,
    pairs_only,
    two_labels,
)

__all__ = ["Cut"]


class Cut(Once):
    """The minimum cut of a submodular model of two labels; its flow is λ that proves the labels."""

    name = "minimum cut"
    number = 4

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Cut | None:
        fits = by_default(options) and pairs_only(problem) and two_labels(problem)
        return cls(problem, options) if fits else None

    def __call__(self, best: Best, share: Share) -> Outcome:
        found = solve_binary(
            self.problem.model, deadline=share.deadline, threads=self.problem.threads
        )
        if found is None:
            return Outcome(active=False, ran=False)
        best.offer_labels(found[0])
        best.offer_lam(found[1])
        return Outcome(active=False)
