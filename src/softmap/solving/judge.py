"""The judge: what proposals prove, by compiled loops, and the best of everything seen.

It gives the same numbers as `certificate.certificate`, which is the plain account of them, and sees
an algorithm only through its proposals.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softmap import labels as rounding
from softmap.algorithms.base import Floats, Proposal, Verdict
from softmap.algorithms.sweeps.team import Team
from softmap.errors import OptionError
from softmap.kernels import judge as kernels
from softmap.kernels.nodes import node_minima, soft_nodes
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation import polytope
from softmap.relaxation.dual import cost_scale, reduced_unary
from softmap.relaxation.transport import FEASIBLE, cheapest_coupling

__all__ = ["Judge"]

DESCENT = 1  # forests for new labels: about as dear as decoding them
MORE = 1 / 32  # more per pass so far, up to twice as many where the LP is as good as solved
ENOUGH = 8  # of these, for there to be time to cool down
HEAT = 3.0  # random costs in the first of them, in parts of what `_heat` says
CLOSED = 1e-9  # relative gap under which a labelling counts as optimal


class Judge:
    """Looks at proposals for one tightened model and keeps the best of each kind.

    Attributes
    ----------
    bound, lam
        The best bound and the λ that proves it.
    primal, nodes, coupling, eta
        The best point of the local polytope: its cost, its node marginals, and what its edge
        marginals are made from (the cheapest transport at η = ∞).
    energy, labels
        The best labelling.
    """

    def __init__(self, model: Model, team: Team) -> None:
        self.model, self.team = model, team
        self._lay = layout(model)
        self.bound = -math.inf
        self.lam: Floats = np.zeros(int(model.half_offset[-1]))
        self.primal = math.inf
        self.nodes: Floats | None = None
        self.coupling: Floats = self.lam
        self.eta = 1.0
        self.energy = math.inf
        self.labels: NDArray[np.int64] = np.zeros(model.num_variables, dtype=np.int64)

    def look(self, proposal: Proposal, *, labels: bool = True, work: int = 0) -> Verdict:
        """Judge one proposal; decoding its labels costs as much as several passes.

        How long to search for better ones follows from the work the run has done so far.
        """
        bound = self._bound(proposal.lam)
        coupling = proposal.lam if proposal.coupling is None else proposal.coupling
        nodes = proposal.nodes or (self._nodes_of(proposal),)
        if len(self.model.auxiliaries):
            nodes = tuple(polytope.lift(self.model, p) for p in nodes)
        costs = [self._projected(coupling, proposal.eta, p) for p in nodes]
        if bound > self.bound:
            self.bound, self.lam = bound, proposal.lam
        if labels or not math.isfinite(self.energy):
            self._labels(proposal.lam, nodes, work)
        for (cost, _, _), candidate in zip(costs, nodes, strict=True):
            if cost < self.primal:
                self.primal, self.nodes = cost, candidate
                self.coupling, self.eta = coupling, proposal.eta
        self._integral()
        return Verdict(bound, tuple(c for c, _, _ in costs), costs[0][1], costs[0][2])

    def decode(self, proposal: Proposal, work: int) -> None:
        """Look for better labels in a proposal already judged."""
        nodes = proposal.nodes or (self._nodes_of(proposal),)
        self._labels(proposal.lam, nodes, work)
        self._integral()

    def accept(self, lam: Floats, nodes: Floats, work: int) -> None:
        """Look at the solution of an exact LP solver: edges get the cheapest transport there is."""
        bound = self._bound(lam)
        if bound > self.bound:
            self.bound, self.lam = bound, lam
        try:
            cost = polytope.cost(self.model, nodes, polytope.transport(self.model, nodes))
        except OptionError:  # next to hard constraints, rounding may leave no coupling
            cost = math.inf
        if cost < self.primal:
            self.primal, self.nodes, self.eta = cost, nodes, math.inf
        self._labels(lam, (nodes,), work)
        self._integral()

    def edge_marginals(self) -> Floats:
        """Edge marginals of the best point, made when asked for."""
        if self.nodes is None:
            return polytope.integral(self.model, self.labels)[1]
        if math.isinf(self.eta):
            return polytope.transport(self.model, self.nodes)
        return polytope.coupled(self.model, self.nodes, self.coupling, self.eta)

    def node_marginals(self) -> Floats:
        """Node marginals of the best point."""
        if self.nodes is None:
            return polytope.integral_nodes(self.model, self.labels)
        return self.nodes

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

    def _projected(self, coupling: Floats, eta: float, nodes: Floats) -> tuple[float, float, float]:
        """Cost of the projected point, entropy of its edges before projection, total slack."""
        out = np.empty((3, self.model.m))
        self.team.split(kernels.projected_costs, self.model.m, self._lay, coupling, eta, nodes, out)
        costs, entropy, slack = out[0], float(out[1].sum()), float(out[2].sum())
        for e in np.flatnonzero(~np.isfinite(costs)):
            costs[e] = self._transported(int(e), nodes)
            if not math.isfinite(costs[e]):
                return math.inf, entropy, slack
        node_cost = polytope.node_cost(self.model, nodes)
        return kernels.careful_sum(costs) + node_cost + self.model.constant, entropy, slack

    def _transported(self, e: int, nodes: Floats) -> float:
        """Exact transport where `Proj` would need a forbidden pair; +inf if there is none."""
        i, j = self.model.edges[e]
        p, q = nodes[self.model.node_slice(i)], nodes[self.model.node_slice(j)]
        cost = self.model.table(e)
        plan, stranded = cheapest_coupling(cost[None], p[None], q[None])
        if stranded[0] > FEASIBLE:
            return math.inf
        return float((plan[0] * np.where(plan[0] > 0, cost, 0.0)).sum())

    def _integral(self) -> None:
        """An integral labelling is a point of the polytope too."""
        if self.energy < self.primal:
            self.primal, self.nodes = self.energy, None

    def _labels(self, lam: Floats, nodes: tuple[Floats, ...], work: int) -> None:
        """Decode, then search.

        Variables are decided backwards: chain methods propose λ as a forward pass leaves it.
        """
        model = self.model
        backwards = np.arange(model.num_variables)[::-1]
        decoded = rounding.decode(model, lam, backwards)
        candidates = [rounding.round_nodes(model, nodes[0]), decoded]
        energies = [float(model.energy(labels)) for labels in candidates]
        if math.isfinite(min(energies)):  # else polishing may mend either
            candidates = [candidates[int(np.argmin(energies))]]
        labels, energy = rounding.best_labelling(model, candidates)
        if not math.isfinite(energy):
            decided = [rounding.decide(model, nodes[0])]
            labels, energy = rounding.best_labelling(model, decided)
        self._keep(labels, energy)
        if self._open():
            self._search(labels, work)

    def _search(self, labels: NDArray[np.int64], work: int) -> None:
        """Improve new labels over random forests, then anneal the best ones.

        The work so far says for how long, and is the seed: a resumed run searches like any other.
        """
        more = int(MORE * (1.0 + self._stuck()) * work / max(1, 2 * self.model.m))
        annealed = more if more >= ENOUGH else 0
        self._forests(labels, DESCENT + more - annealed, 0.0, work)
        if annealed and self._open():
            self._forests(self.labels, annealed, self._heat(), work + 1)

    def _forests(self, labels: NDArray[np.int64], rounds: int, heat: float, seed: int) -> None:
        found = rounding.forests(self.model, labels, rounds, heat, seed)
        self._keep(found, float(self.model.energy(found)))

    def _heat(self) -> float:
        """Geometric mean of the scale of the costs and of what a variable may still gain."""
        each = max(0.0, self.energy - self.bound) / self.model.num_variables
        return HEAT * math.sqrt(cost_scale(self.model) * each)

    def _stuck(self) -> float:
        """The part of the MAP gap that no progress in the LP can close, as far as is known."""
        return max(0.0, self.energy - self.primal) / (self.energy - self.bound)

    def _open(self) -> bool:
        """Whether there are labels to start from, and may be better ones."""
        return CLOSED * max(1.0, abs(self.bound)) < self.energy - self.bound < math.inf

    def _keep(self, labels: NDArray[np.int64], energy: float) -> None:
        if energy < self.energy:
            self.energy, self.labels = energy, labels
