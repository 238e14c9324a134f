"""What one part adds to the sums of a judgement, from arrays of the host: λ, κ and marginals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.distributed.parts import Part
from softmap.model.layout import layout

__all__ = ["Terms"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Terms:
    """One part in the order of a pass: which nodes and edges count as its own, and their sums.

    Attributes
    ----------
    rank : int64
        Place of each node in the order of a pass, among the nodes of this part.
    late, owned : bool
        Edges whose late end is own, and those whose early end is: the latter count as the part's.
    own_states : int
        States of the own nodes, which come first.
    """

    def __init__(self, part: Part, rank: Ints, threads: int) -> None:
        self.part, self.rank, self.threads = part, rank, threads
        self._layout: Any = layout(part.model)
        early, late = part.ends(rank)
        self.owned, self.late = early < part.own, late < part.own
        self.own_states = int(part.model.node_offset[part.own])

    def bound_terms(self, lam: Floats) -> Floats:
        """Numbers certainly at most the least reduced costs of own nodes and own edges."""
        model = self.part.model
        nodes, edges = np.empty(model.n), np.empty(model.m)
        core.node_minima(self._layout, lam, nodes, self.threads)
        core.edge_minima(self._layout, lam, edges, self.threads)
        return np.concatenate([nodes[: self.part.own], edges[self.owned]])

    def point_terms(self, coupling: Floats, eta: float, nodes: Floats) -> list[float]:
        """Cost, edge entropy and slack of the part's share of a point of the polytope."""
        model, own = self.part.model, np.flatnonzero(self.owned)
        cost, entropy, slack = np.empty((3, len(own)))
        core.couple(
            self._layout, coupling, eta, nodes, own, None, cost, entropy, slack, self.threads
        )
        mu = nodes[: self.own_states]
        unary = np.multiply(model.unary[: self.own_states], mu, where=mu != 0, out=mu * 0.0)
        total = core.careful_sum(np.concatenate([unary, cost]))
        return [float(total), *(float(core.careful_sum(each)) for each in (entropy, slack))]


def spread(counts: Ints) -> Ints:
    """0, 1, … for each of some counts, one after another."""
    within: Ints = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return within
