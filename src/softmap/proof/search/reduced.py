"""Reduced costs of a model at one λ: their minima, and where labels miss them.

With λ, an energy is a sum of reduced costs of nodes, C_i - Σ λ, and of edges, C_e + λ_i + λ_j.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.dual import half_states


class ReducedCosts:
    """The reduced costs of a model at one λ, and their minima.

    Parameters
    ----------
    model : Model
        The model.
    lam : float64 array
        λ, flat over half-edges.
    rounding : float
        Tolerance for "at the minimum", relative to the absolute values of the terms of a reduced
        cost.
    threads : int
        Number of threads.
    deadline : core.Deadline
        After it, OutOfTime is raised.

    Attributes
    ----------
    nodes, edges : float64 array
        The minimal reduced cost of every node and of every edge.
    """

    def __init__(
        self, model: Model, lam: Costs, rounding: float, threads: int, deadline: core.Deadline
    ) -> None:
        self.model, self.lam, self._rounding, self._threads = model, lam, rounding, threads
        self.nodes, self.edges = np.empty(model.n), np.empty(model.m)
        deadline.require()
        core.node_minima(layout(model), lam, self.nodes, threads)
        deadline.require()
        core.edge_minima(layout(model), lam, self.edges, threads)
        deadline.require()

    def above(self, x: Ints) -> NDArray[np.bool_]:
        """A mask of the nodes, and ends of edges, at which labels miss a minimum."""
        above = np.empty(self.model.n, dtype=bool)
        core.nodes_above(layout(self.model), self.lam, x, self._rounding, above, self._threads)
        above[self.model.edges[self.missed(x)]] = True
        return above

    def missed(self, x: Ints) -> NDArray[np.bool_]:
        """A mask of the edges whose reduced cost exceeds its minimum by more than rounding."""
        missed = np.empty(self.model.m, dtype=bool)
        core.edges_above(
            layout(self.model), self.lam, x, self.edges, self._rounding, missed, self._threads
        )
        return missed

    @cached_property
    def size(self) -> float:
        """The sum of the absolute values of all minima."""
        return float(np.abs(self.nodes).sum() + np.abs(self.edges).sum())

    def outer_unary(self, inner: Ints) -> Costs:
        """C_i - Σ λ over edges that are not `inner`, rounded down."""
        model = self.model
        outer = np.ones(model.m, dtype=bool)
        outer[inner] = False
        keep = np.repeat(np.repeat(outer, 2), np.diff(model.half_offset))
        states, lam = half_states(model)[keep], self.lam[keep]
        count = len(model.unary)
        terms = np.bincount(states, minlength=count)
        total = model.unary - np.bincount(states, weights=lam, minlength=count)
        # error of each addition ≤ 2⁻⁵³ times the sum of the absolute values so far
        size = np.abs(model.unary) + np.bincount(states, weights=np.abs(lam), minlength=count)
        with np.errstate(invalid="ignore"):
            low = np.nextafter(total - (terms + 2) * 2.0**-51 * size, -np.inf)
        exact = (terms == 0) | np.isposinf(model.unary)
        return np.where(exact, model.unary, low)

    def border(self, nodes: Ints) -> Ints:
        """Edges between a component and the nodes outside."""
        inside = np.zeros(self.model.n, dtype=bool)
        inside[nodes] = True
        return np.flatnonzero(inside[self.model.edges].sum(axis=1) == 1)

    def beside(self, nodes: Ints, x: Ints) -> Costs:
        """Reduced costs of border edges above their minima, by label of the inner endpoint.

        The outer endpoints have the labels `x`.
        """
        model = self.model
        out = np.zeros(len(model.unary))
        member = set(nodes.tolist())
        for e in self.border(nodes).tolist():
            i, j = model.edges[e].tolist()
            first, second = (self.lam[model.half_slice(2 * e + side)] for side in (0, 1))
            reduced = model.table(e) + first[:, None] + second - self.edges[e]
            inner, costs = (i, reduced[:, x[j]]) if i in member else (j, reduced[x[i]])
            out[model.node_slice(inner)] += np.maximum(costs, 0.0)
        return out
