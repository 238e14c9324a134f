"""The judge: what proposals prove, by compiled loops, and the best of everything seen.

It gives the same numbers as `solving.certificate`, which is the plain account of them, and sees an
algorithm only through its proposals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap.algorithms.base import Floats, Proposal, Verdict
from softmap.algorithms.team import Team
from softmap.errors import OptionError
from softmap.kernels import judge as kernels
from softmap.kernels.nodes import node_minima, soft_nodes
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation import polytope
from softmap.relaxation.dual import reduced_unary
from softmap.relaxation.point import PrimalPoint
from softmap.relaxation.transport import FEASIBLE, cheapest_coupling

__all__ = ["Judge"]


class _Priced(NamedTuple):
    """Cost of a projected point; entropy and slack of its edges before; edges made exactly."""

    cost: float
    entropy: float
    slack: float
    exact: NDArray[np.int64]


class Judge:
    """Looks at proposals for one tightened model and keeps the best of each kind.

    Attributes
    ----------
    bound, lam
        The best bound and the λ that proves it.
    primal, point
        The best point of the local polytope and its cost; None until one was found.
    """

    def __init__(self, model: Model, team: Team) -> None:
        self.model, self.team = model, team
        self._lay = layout(model)
        self.bound = -math.inf
        self.lam: Floats = np.zeros(int(model.half_offset[-1]))
        self.primal = math.inf
        self.point: PrimalPoint | None = None

    def look(self, proposal: Proposal) -> Verdict:
        """Judge one proposal: its bound, and a point of the polytope per node marginals."""
        bound = self._bound(proposal.lam)
        self._keep_bound(bound, proposal.lam)
        coupling = proposal.lam if proposal.coupling is None else proposal.coupling
        nodes = proposal.nodes or (self._nodes_of(proposal),)
        if len(self.model.auxiliaries):
            nodes = tuple(polytope.lift(self.model, p) for p in nodes)
        priced = [self._projected(coupling, proposal.eta, p) for p in nodes]
        for found, candidate in zip(priced, nodes, strict=True):
            if found.cost < self.primal:
                self.primal = found.cost
                self.point = PrimalPoint(
                    self.model, candidate, None, coupling, proposal.eta, found.exact
                )
        costs = tuple(found.cost for found in priced)
        return Verdict(bound, costs, priced[0].entropy, priced[0].slack, nodes)

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

    def _keep_bound(self, bound: float, lam: Floats) -> None:
        if bound > self.bound:
            self.bound, self.lam = bound, lam

    def _bound(self, lam: Floats) -> float:
        nodes, edges = np.empty(self.model.n), np.empty(self.model.m)
        self.team.split(node_minima, self.model.n, self._lay, lam, nodes)
        self.team.split(kernels.edge_minima, self.model.m, self._lay, lam, edges)
        terms = np.concatenate([nodes, edges, [self.model.constant]])
        return float(kernels.careful_sum(terms))

    def _nodes_of(self, proposal: Proposal) -> Floats:
        theta = reduced_unary(self.model, proposal.lam)
        nodes, info, n = np.empty_like(theta), np.empty((2, self.model.n)), self.model.n
        at, step = self.model.node_offset, np.ones(n, dtype=np.int64)
        soft_nodes(self._lay, at, step, theta, proposal.eta, nodes, info[0], info[1], 0, n)
        return nodes

    def _projected(self, coupling: Floats, eta: float, nodes: Floats) -> _Priced:
        """Price the projected point; where `Proj` needs a forbidden pair, by exact transport."""
        out = np.empty((3, self.model.m))
        self.team.split(kernels.projected_costs, self.model.m, self._lay, coupling, eta, nodes, out)
        costs, entropy, slack = out[0], float(out[1].sum()), float(out[2].sum())
        exact = np.flatnonzero(~np.isfinite(costs))
        for e in exact:
            costs[e] = self._transported(int(e), nodes)
            if not math.isfinite(costs[e]):
                return _Priced(math.inf, entropy, slack, exact)
        node_cost = polytope.node_cost(self.model, nodes)
        total = float(kernels.careful_sum(costs) + node_cost + self.model.constant)
        return _Priced(total, entropy, slack, exact)

    def _transported(self, e: int, nodes: Floats) -> float:
        """Cost of the cheapest edge marginals without forbidden pairs; +inf if there are none."""
        i, j = self.model.edges[e]
        p, q = nodes[self.model.node_slice(i)], nodes[self.model.node_slice(j)]
        cost = self.model.table(e)
        plan, stranded = cheapest_coupling(cost[None], p[None], q[None])
        if stranded[0] > FEASIBLE:
            return math.inf
        return float((plan[0] * np.where(plan[0] > 0, cost, 0.0)).sum())
