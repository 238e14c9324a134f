"""A point of the local polytope, kept as what it is made from: edge marginals are large."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model
from softmap.relaxation import polytope
from softmap.relaxation.dual import Floats

__all__ = ["MadePoint", "PrimalPoint"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MadePoint:
    """Node marginals, edge marginals (flat over `model.edge_offset`), and what they cost."""

    nodes: Floats
    edges: Floats
    cost: float


def _no_edges() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PrimalPoint:
    """How to make one point of the local polytope of a tightened model.

    Attributes
    ----------
    model : Model
    nodes : node marginals, or None where the point is a labelling
    labels : the labelling, where `nodes` is None
    coupling, eta
        Edge marginals are made from `exp(-η (C_e + κ_i + κ_j))` with κ = `coupling`; at η = ∞ every
        edge gets its cheapest transport instead.
    exact : edges that get their cheapest transport at any η
    """

    model: Model
    nodes: Floats | None = None
    labels: Ints | None = None
    coupling: Floats | None = None
    eta: float = math.inf
    exact: Ints = field(default_factory=_no_edges)

    def node_marginals(self) -> Floats:
        """Node marginals, flat over `model.node_offset`."""
        if self.nodes is not None:
            return self.nodes
        return polytope.integral_nodes(self.model, self._labels())

    def edge_marginals(self) -> Floats:
        """Edge marginals, flat over `model.edge_offset`."""
        if self.nodes is None:
            return polytope.integral(self.model, self._labels())[1]
        if math.isinf(self.eta) or self.coupling is None:
            return polytope.transport(self.model, self.nodes)
        return polytope.coupled(self.model, self.nodes, self.coupling, self.eta, exact=self.exact)

    def make(self) -> MadePoint:
        """The point itself, with its cost."""
        nodes, edges = self.node_marginals(), self.edge_marginals()
        return MadePoint(nodes, edges, polytope.cost(self.model, nodes, edges))

    def _labels(self) -> Ints:
        if self.labels is None:
            raise ValueError("a point needs node marginals or labels")
        return self.labels
