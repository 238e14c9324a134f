"""Chain passes over one part: the compiled passes, phase by phase, on its own variables only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.algorithms.sweeps.planning import level_schedule
from softmap.algorithms.sweeps.schedule import Schedule, aligned
from softmap.distributed.parts import Part
from softmap.model.graph import Graph
from softmap.model.layout import layout

__all__ = ["PartChains"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PartChains:
    """Messages of one part and the passes that move them.

    The halo's nodes lie in a level of their own that no pass goes through: they send nothing here,
    and what they send elsewhere arrives by `softmap.distributed.halo`. Messages along cut edges are
    held by both parts and are the same in both, to the bit, except while one of them is on its way.

    Attributes
    ----------
    msg, prev : float64
        Messages, and what momentum compares them with (those into early ends only).
    shift, dot : float64
        By lane and by block, of the last half pass.
    mean : float64
        Running average of the own nodes' marginals.
    late, owned : bool
        Edges whose late end is own, and those whose early end is: the latter count as the part's.
    """

    def __init__(self, part: Part, threads: int) -> None:
        self.part, self.threads = part, threads
        model, self.rank = part.model, part.rank
        self._layout = layout(model)
        level, starts = self._levels()
        self.plan = level_schedule(model, self.rank, level, np.float64)
        self._phases = [_slice(self.plan, a, b) for a, b in starts]
        early, late = part.ends(self.rank)
        self.owned, self.late = early < part.own, late < part.own
        self.own_states = int(model.node_offset[part.own])
        self.surplus: Floats = model.graph.degree.astype(np.float64)
        self.surplus[self.plan.nodes] -= 1.0 / self.plan.share[: model.n]
        self.msg, self.prev = aligned(self.plan.message_size), aligned(self.plan.back_size)
        self.shift = aligned(len(self.plan.edge))
        self.dot = np.zeros(len(self.plan.blocks))
        self.mean = np.zeros(self.own_states)
        self._theta = aligned(self.plan.cost_size)

    def _levels(self) -> tuple[Ints, list[tuple[int, int]]]:
        """Levels of the nodes, phase after phase, and the levels of each phase."""
        part, own = self.part, self.part.own
        edges = part.model.edges[(part.model.edges < own).all(axis=1)]
        alike = edges[part.phase[edges[:, 0]] == part.phase[edges[:, 1]]]
        depth = Graph.from_edges(alike, own).levels(self.rank[:own]).astype(np.int64)
        phase = part.phase[:own]
        keys, dense = np.unique(
            phase * (int(depth.max(initial=0)) + 1) + depth, return_inverse=True
        )
        level = np.full(part.model.n, len(keys), dtype=np.int64)
        level[:own] = dense.reshape(-1)
        phases = range(int(phase.max(initial=-1)) + 1)
        first = [int(level[:own][phase >= p].min(initial=len(keys))) for p in phases]
        return level, list(zip(first, [*first[1:], len(keys)], strict=True))

    def extrapolate(self, clock: Floats) -> None:
        """Momentum, before a pass; `clock` moves on."""
        core.extrapolate(self.msg, self.prev, clock, self.threads)

    def half_pass(self, phase: int, forward: bool, eta: float, momentum: bool, msg: Floats) -> None:
        """Let the own nodes of one phase send, onwards or back."""
        if phase < len(self._phases) and self._phases[phase] is not None:
            prev = self.prev if momentum else msg
            core.half_pass(
                self._layout, self._phases[phase], forward, msg, prev, self._theta, eta, momentum,
                self.shift, self.dot, self.threads,
            )  # fmt: skip

    def take(self, places: Ints, values: Floats, *, early: bool, msg: Floats) -> None:
        """Messages from another part; those into early ends take part in momentum."""
        if early and msg is self.msg:
            self.prev[places] += core.RELAX * (msg[places] - values)
        msg[places] = values

    def shares(self, msg: Floats) -> Floats:
        """θ̂_i / n_i by node; the halo's are to be filled in."""
        core.shares(self.plan.native, msg, self._theta, self.threads)
        out = np.empty(self.part.model.unary.size)
        core.by_node(self._layout, self.plan.native, self._theta, out, self.threads)
        return out

    def soft_nodes(self, shares: Floats, eta: float) -> tuple[Floats, Floats, Floats]:
        """Marginals, entropies and soft minima of all nodes, from their shares."""
        model = self.part.model
        nodes, entropy, minima = np.empty(model.unary.size), np.empty(model.n), np.empty(model.n)
        core.soft_nodes(
            self._layout, model.node_offset[:-1], np.ones(model.n, dtype=np.int64), shares, eta,
            nodes, entropy, minima, self.threads,
        )  # fmt: skip
        return nodes, entropy, minima

    def couplings(self, shares: Floats) -> Floats:
        """κ of the edge marginals, from the shares of both ends."""
        out = np.empty(int(self.part.model.half_offset[-1]))
        core.couplings(self._layout, self.plan.native, self.msg, shares, out, self.threads)
        return out

    def smoothed_terms(self, minima: Floats) -> Floats:
        """The part's terms of the smoothed dual, after a whole pass."""
        lanes = self.plan.edge >= 0
        lanes[lanes] = self.late[self.plan.edge[lanes]]
        own = slice(0, self.part.own)
        return np.concatenate([self.shift[lanes], self.plan.backward_ends[own] * minima[own]])

    def lam(self, msg: Floats, shares: Floats) -> Floats:
        """λ whose plain bound is the chain bound; right at the own nodes and on the own edges.

        The share of an edge's early end goes to that edge, and the early end of an own edge is
        own; at the late end λ is the message, which both parts hold.
        """
        lam = np.empty(int(self.part.model.half_offset[-1]))
        core.cut_chains(self._layout, self.plan.native, self.rank, msg, shares, lam, self.threads)
        return lam

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


def _slice(plan: Schedule, first: int, last: int) -> Any:
    """Some levels of a schedule, as the compiled loops take it; None if there are none."""
    if first == last:
        return None
    some = slice(first, last + 1)
    return replace(
        plan,
        row_start=plan.row_start[some],
        forward_start=plan.forward_start[some],
        backward_start=plan.backward_start[some],
    ).native
