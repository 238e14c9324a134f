"""A point of the local polytope: one function makes it, prices it and hands it out."""

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
    """Edge marginals for given node marginals, and what they cost.

    Attributes
    ----------
    cost
        ⟨C, μ⟩ + constant; +inf where some edge has no coupling without a forbidden pair.
    entropy, slack
        Entropy of the edge marginals before they were made feasible; Σ ‖ν_{e,i}‖₁.
    plan
        The edge marginals, flat over `model.edge_offset`; None unless asked for.
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
    """The point of the local polytope over given node marginals, near exp(-η (C_e + κ_i + κ_j)).

    `Proj` (Algorithm 4), improved by exchanges of mass in small tables; cheapest transport where
    that has a closed form (Potts, truncated linear) and where `Proj` would need a forbidden pair.
    """
    terms, (entropy, slack) = np.empty(model.m + 2), np.empty((2, model.m))
    plan = np.empty(int(model.edge_offset[-1])) if plans else None
    cost = terms[: model.m]
    core.couple(layout(model), coupling, eta, nodes, None, plan, cost, entropy, slack, threads)
    terms[model.m :] = polytope.node_cost(model, nodes), model.constant
    total = float(core.careful_sum(terms)) if np.isfinite(terms).all() else math.inf
    return Coupled(total, float(entropy.sum()), float(slack.sum()), plan)


def needs_coupling(model: Model) -> bool:
    """Whether the point depends on κ: not where every edge gets its cheapest transport anyway."""
    groups = range(len(model.potentials))
    return not all(polytope.group_in_closed_form(model, g).all() for g in groups)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What passes over a model have come to: marginals that agree nearly.

    Attributes
    ----------
    nodes : node marginals, flat over `model.node_offset`
    coupling, eta : as `couple` takes them
    """

    nodes: Floats
    coupling: Floats
    eta: float


@dataclass(frozen=True, eq=False)
class MadePoint:
    """Node marginals, edge marginals (flat over `model.edge_offset`), and what they cost."""

    nodes: Floats
    edges: Floats
    cost: float


@later("coupling")
@dataclass(frozen=True, eq=False)
class PrimalPoint:
    """How to make one point of the local polytope of a tightened model: edge marginals are large.

    Attributes
    ----------
    model : Model
    nodes : node marginals, or None where the point is a labelling
    labels : the labelling, where `nodes` is None
    coupling, eta
        What `couple` takes; at η = ∞ every edge gets its cheapest transport instead. `coupling` may
        be a function that makes it, and None where the point does not depend on it
        (`needs_coupling`).
    """

    model: Model
    nodes: Floats | None = None
    labels: Ints | None = None
    coupling: Floats | None = None
    eta: float = math.inf

    def __getstate__(self) -> dict[str, Any]:
        return made(self, "coupling")

    def node_marginals(self) -> Floats:
        """Node marginals, flat over `model.node_offset`."""
        if self.nodes is not None:
            return self.nodes
        return polytope.integral_nodes(self.model, self._labels())

    def edge_marginals(self) -> Floats:
        """Edge marginals, flat over `model.edge_offset`."""
        return self.make().edges

    def make(self) -> MadePoint:
        """The point itself, with its cost."""
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
