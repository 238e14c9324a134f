"""The judge: what proposals prove, by compiled loops, and the best of everything seen.

It gives the same numbers as `solving.certificate`, which is the plain account of them, and sees an
algorithm only through its proposals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.algorithms.base import Floats, Proposal, Verdict
from softmap.errors import OptionError
from softmap.later import later, unmade
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation import polytope
from softmap.relaxation.bounds import reduced_nodes
from softmap.relaxation.dual import cost_scale
from softmap.relaxation.point import PrimalPoint, couple, needs_coupling

__all__ = ["Judge"]

GRAIN = 2.0**-50  # of the largest cost, which rounding may take off a bound at every node and edge


@later("lam")
class Judge:
    """Looks at proposals for one tightened model and keeps the best of each kind.

    Attributes
    ----------
    bound, lam
        The best bound and the λ that proves it, which may be made when it is asked for.
    primal, point
        The best point of the local polytope and its cost; None until one was found.
    """

    lam: Floats

    def __init__(self, model: Model, threads: int) -> None:
        self.model, self.threads = model, threads
        self._layout, self._keeps_coupling = layout(model), needs_coupling(model)
        zero: Any = lambda: np.zeros(model.half_size)  # noqa: E731
        self.bound, self.lam = -math.inf, zero
        self.primal = math.inf
        self.point: PrimalPoint | None = None
        sizes = model.cost_sizes
        largest = math.ldexp(sizes.largest, sizes.exponent) or cost_scale(model)
        self._grain = GRAIN * (model.n + model.m) * largest
        self._blunt = False  # whether the bound is a method's own

    def look(self, proposal: Proposal) -> Verdict:
        """Judge one proposal: its bound, and a point of the polytope per node marginals."""
        bound = self.notice(proposal)
        nodes = proposal.nodes or (self._nodes_of(proposal),)
        if len(self.model.auxiliaries):
            nodes = tuple(polytope.lift(self.model, p) for p in nodes)
        kept, priced = unmade(proposal, "coupling"), proposal.points
        if not priced:
            kept = proposal.lam if kept is None else kept
            how = kept() if callable(kept) else kept, proposal.eta
            priced = tuple(couple(self.model, p, *how, threads=self.threads) for p in nodes)
        kept = kept if self._keeps_coupling else None
        for found, candidate in zip(priced, nodes, strict=True):
            if found.cost < self.primal:
                self.primal = found.cost
                self.point = PrimalPoint(self.model, candidate, None, kept, proposal.eta)
                self._sharpen()
        costs = tuple(found.cost for found in priced)
        return Verdict(bound, costs, priced[0].entropy, priced[0].slack, nodes)

    def notice(self, proposal: Proposal) -> float:
        """Look at the bound of a proposal only."""
        if proposal.bound is None:
            bound = self._bound(proposal.lam)
            self._keep_bound(bound, proposal.lam)
            return bound
        if proposal.bound > self.bound:
            self._keep_bound(proposal.bound, unmade(proposal, "lam"))
            self._blunt = True
            self._sharpen()
        return proposal.bound

    def glance(self, lam: Floats) -> None:
        """Look at the bound of λ only."""
        self._keep_bound(self._bound(lam), lam)

    def accept(self, lam: Floats, nodes: Floats) -> None:
        """Look at the solution of an exact LP solver: edges get the cheapest transport there is."""
        self._keep_bound(self._bound(lam), lam)
        point = PrimalPoint(self.model, nodes)
        try:
            cost = point.make().cost
        except OptionError:  # next to hard constraints, rounding may leave no coupling
            cost = math.inf
        if cost < self.primal:
            self.primal, self.point = cost, point

    def credit(self, labels: NDArray[np.int64], energy: float) -> None:
        """Take a labelling for what it is: a point of the polytope, too."""
        if energy < self.primal:
            self.primal, self.point = energy, PrimalPoint(self.model, labels=labels)
            self._sharpen()

    def _sharpen(self) -> None:
        """Ask λ for its bound where what is left of the gap may be rounding.

        A method's own bound may miss digits of the largest cost, paid or not; that of λ misses
        only some of what is paid.
        """
        if self._blunt and self.primal - self.bound <= self._grain:
            self.bound, self._blunt = max(self.bound, self._bound(self.lam)), False

    def _keep_bound(self, bound: float, lam: Any) -> None:
        """Keep λ, or a function that makes it, if its bound is the best."""
        if bound > self.bound:
            self.bound, self.lam, self._blunt = bound, lam, False

    def _bound(self, lam: Floats) -> float:
        return core.dual_bound(self._layout, lam, self.model.constant, self.threads)

    def _nodes_of(self, proposal: Proposal) -> Floats:
        theta = reduced_nodes(self.model, proposal.lam, self.threads)
        nodes, n = np.empty_like(theta), self.model.n
        at, step = self.model.node_offset[:-1], np.ones(n, dtype=np.int64)
        entropy, minima = np.empty(n), np.empty(n)
        core.soft_nodes(
            self._layout, at, step, theta, proposal.eta, nodes, entropy, minima, self.threads
        )
        return nodes
