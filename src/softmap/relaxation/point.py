"""Points of the local polytope: `couple` computes one from node marginals, with its cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.later import later, made
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation import polytope
from softmap.relaxation.dual import Floats

__all__ = ["Beliefs", "Coupled", "MadePoint", "PrimalPoint", "couple", "needs_coupling"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coupled:
    """Edge marginals for given node marginals, and their cost.

    Attributes
    ----------
    cost : float
        ⟨C, μ⟩ + constant; +inf if every coupling of some edge puts mass on a forbidden pair.
    entropy : float
        Entropy of the edge marginals before the projection to the polytope.
    slack : float
        Σ ‖ν_{e,i}‖₁ before the projection.
    plan : float64 array or None
        The edge marginals, flat over `model.edge_offset`; None unless requested.
    """

    cost: float
    entropy: float
    slack: float
    plan: Floats | None


def couple(
    model: Model,
    nodes: Floats,
    coupling: Floats,
    eta: float,
    *,
    threads: int = 1,
    plans: bool = False,
) -> Coupled:
    """Return the point of the local polytope with given node marginals.

    The edge marginals are `Proj` (Algorithm 4) of exp(-η (C_e + κ_i + κ_j)). In small tables they
    are improved by exchanges of mass. An edge gets the optimal transport plan instead if it has a
    closed form (Potts, truncated linear), or if `Proj` would use a forbidden pair.

    Parameters
    ----------
    model : Model
    nodes : float64 array
        Node marginals, flat over `model.node_offset`.
    coupling : float64 array
        κ, flat over half-edges.
    eta : float
        Inverse temperature η.
    threads : int, default 1
    plans : bool, default False
        Whether to return the edge marginals, too.
    """
    terms, (entropy, slack) = np.empty(model.m + 2), np.empty((2, model.m))
    plan = np.empty(int(model.edge_offset[-1])) if plans else None
    cost = terms[: model.m]
    core.couple(layout(model), coupling, eta, nodes, None, plan, cost, entropy, slack, threads)
    terms[model.m :] = polytope.node_cost(model, nodes, threads), model.constant
    total = float(core.careful_sum(terms)) if np.isfinite(terms).all() else math.inf
    return Coupled(total, float(entropy.sum()), float(slack.sum()), plan)


def needs_coupling(model: Model) -> bool:
    """Whether the point depends on κ; it does not if every edge gets its optimal transport plan."""
    groups = range(len(model.potentials))
    return not all(polytope.group_in_closed_form(model, g).all() for g in groups)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The current marginals of a method, which are nearly consistent.

    Attributes
    ----------
    nodes : float64 array
        Node marginals, flat over `model.node_offset`.
    coupling : float64 array
        κ, see `couple`.
    eta : float
        Inverse temperature η.
    """

    nodes: Floats
    coupling: Floats
    eta: float


@dataclass(frozen=True, eq=False)
class MadePoint:
    """Node marginals, edge marginals (flat over `model.edge_offset`), and their cost."""

    nodes: Floats
    edges: Floats
    cost: float


@later("coupling")
@dataclass(frozen=True, eq=False)
class PrimalPoint:
    """A point of the local polytope, stored without its edge marginals, which take much memory.

    Attributes
    ----------
    model : Model
    nodes : float64 array or None
        Node marginals; None if the point is a labelling.
    labels : int64 array or None
        The labelling, if `nodes` is None.
    coupling : float64 array, function or None
        κ of `couple`, or a function that returns it; None if the point does not depend on κ
        (`needs_coupling`).
    eta : float
        η of `couple`; +inf gives every edge its optimal transport plan.
    """

    model: Model
    nodes: Floats | None = None
    labels: Ints | None = None
    coupling: Floats | None = None
    eta: float = math.inf

    def __getstate__(self) -> dict[str, Any]:
        return made(self, "coupling")

    def node_marginals(self) -> Floats:
        """Return the node marginals, flat over `model.node_offset`."""
        if self.nodes is not None:
            return self.nodes
        return polytope.integral_nodes(self.model, self._labels())

    def edge_marginals(self) -> Floats:
        """Return the edge marginals, flat over `model.edge_offset`."""
        return self.make().edges

    def make(self) -> MadePoint:
        """Compute the point and its cost."""
        nodes = self.node_marginals()
        if self.nodes is None:
            edges = polytope.integral(self.model, self._labels())[1]
        elif math.isinf(self.eta):
            edges = polytope.transport(self.model, self.nodes)
        else:
            zero = np.zeros(self.model.half_size)
            coupling = zero if self.coupling is None else self.coupling
            found = couple(self.model, nodes, coupling, self.eta, plans=True)
            if found.plan is None or math.isinf(found.cost):
                raise OptionError("no coupling of these node marginals avoids forbidden pairs")
            return MadePoint(nodes, found.plan, found.cost)
        return MadePoint(nodes, edges, polytope.cost(self.model, nodes, edges))

    def _labels(self) -> Ints:
        if self.labels is None:
            raise ValueError("a point needs node marginals or labels")
        return self.labels
