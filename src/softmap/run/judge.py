"""The judge: computes the bounds and points of proposals, and offers them to `Best`.

It sees an algorithm only through its proposals. `softmap.run.certificate` computes the same
numbers in plain numpy.
"""

from __future__ import annotations

import math

from softmap.errors import OptionError
from softmap.later import unmade
from softmap.methods.base import Assessment, Floats, Proposal
from softmap.model import Network
from softmap.relaxation import polytope
from softmap.relaxation.bounds import soft_nodes
from softmap.relaxation.polytope import PrimalPoint, couple, needs_coupling
from softmap.run.best import Best
from softmap.run.problem import Problem

__all__ = ["Judge"]


class Judge:
    """Evaluates proposals with compiled loops and offers the results.

    Parameters
    ----------
    best : Best
        Keeps the best bound and point.

    Attributes
    ----------
    whole : bool
        Whether `look` takes no longer than `bound`, so that every check computes all (on a GPU).
    """

    whole = False

    def __init__(self, best: Best) -> None:
        self.best = best
        self.model, self.threads = best.problem.model, best.problem.threads
        self._keeps_coupling = needs_coupling(self.model)

    @classmethod
    def of(cls, model: Network, threads: int = 1) -> Judge:
        """Return a judge for a model in its own units."""
        return cls(Best(Problem.plain(model, threads=threads)))

    def bound(self, proposal: Proposal) -> float:
        """Compute the bound of a proposal only."""
        if proposal.bound is None:
            return self.best.offer_lam(proposal.lam)
        self.best.offer_lp_bound(proposal.bound, unmade(proposal, "lam"))
        return proposal.bound

    def look(self, proposal: Proposal) -> Assessment:
        """Compute the bound of a proposal, and a feasible point for each of its node marginals."""
        bound = self.bound(proposal)
        nodes = proposal.nodes or (
            soft_nodes(self.model, proposal.lam, proposal.eta, self.threads),
        )
        if self.model.has_factors:
            nodes = tuple(polytope.lift(self.model, p) for p in nodes)
        kept, priced = unmade(proposal, "coupling"), proposal.points
        if not priced:
            kept = proposal.lam if kept is None else kept
            how = kept() if callable(kept) else kept, proposal.eta
            priced = tuple(couple(self.model, p, *how, threads=self.threads) for p in nodes)
        kept = kept if self._keeps_coupling else None
        kept_points = tuple(
            self.best.offer_point(
                found.cost, PrimalPoint(self.model, candidate, None, kept, proposal.eta)
            )
            for found, candidate in zip(priced, nodes, strict=True)
        )
        costs = tuple(found.cost for found in priced)
        return Assessment(bound, costs, priced[0].entropy, priced[0].slack, nodes, kept_points)

    def solution(self, lam: Floats, nodes: Floats) -> None:
        """Evaluate the solution of an LP solver; every edge gets its optimal transport plan."""
        self.best.offer_lam(lam)
        self.point(PrimalPoint(self.model, nodes))

    def point(self, point: PrimalPoint) -> None:
        """Compute the cost of a point, and offer it."""
        try:
            cost = point.make().cost
        except OptionError:  # with hard constraints, rounding may leave no feasible coupling
            cost = math.inf
        self.best.offer_point(cost, point)
