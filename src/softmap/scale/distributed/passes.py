"""Passes over all parts: the chain passes of each, phase by phase, and the exchanges in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.sweeps.messages import CLOCK
from softmap.methods.sweeps.planning import Schedule, aligned, level_schedule
from softmap.model.layout import layout
from softmap.scale.distributed.halo import Boundary, message_exchanges
from softmap.scale.distributed.parts import Part, Whole, spread
from softmap.scale.distributed.team import Team

__all__ = ["PartChains", "Passes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PartChains:
    """Messages of one part and the compiled passes over its own variables.

    The halo's nodes are in a level of their own that no pass goes through: they send nothing here,
    and what they send elsewhere arrives by an exchange. Messages along cut edges are held by both
    parts and are the same in both, to the bit, except while one of them is on its way.

    Attributes
    ----------
    owned, late : bool
        Edges whose early end is own, which count as the part's; edges whose late end is.
    own_states : int
        States of the own nodes, which come first.
    msg, prev : float64
        Messages, and what momentum compares them with (those into early ends only).
    shift, dot : float64
        By lane and by block, of the last half pass.
    mean : float64
        Running average of the own nodes' marginals.
    """

    def __init__(self, part: Part, threads: int) -> None:
        self.part, self.rank, self.threads = part, part.rank, threads
        model, own = part.model, part.own
        early, late = part.ends
        self.owned, self.late = early < own, late < own
        self.own_states = int(model.node_offset[own])
        self._layout: Any = layout(model)
        level, phases = part.levels()
        self.plan = level_schedule(model, self.rank, level, np.float64)
        self._phases = [_slice(self.plan, first, last) for first, last in phases]
        self.surplus: Floats = model.graph.degree.astype(np.float64)
        self.surplus[self.plan.nodes] -= 1.0 / self.plan.share[: model.n]
        self.msg, self.prev = aligned(self.plan.message_size), aligned(self.plan.back_size)
        self.shift = aligned(len(self.plan.edge))
        self.dot = np.zeros(len(self.plan.blocks))
        self.mean = np.zeros(self.own_states)
        self._theta = aligned(self.plan.cost_size)

    # --- passes ---

    def extrapolate(self, clock: Floats) -> None:
        """Momentum, before a pass."""
        core.extrapolate(self.msg, self.prev, clock.copy(), self.threads)

    def half_pass(self, phase: int, forward: bool, eta: float, momentum: bool, msg: Floats) -> None:
        """Let the own nodes of one phase send, forward or backward."""
        if phase < len(self._phases) and self._phases[phase] is not None:
            prev = self.prev if momentum else msg
            core.half_pass(
                self._layout, self._phases[phase], forward, msg, prev, self._theta, eta, momentum,
                self.shift, self.dot, self.threads,
            )  # fmt: skip

    def receive(self, places: Ints, values: Floats, *, early: bool, msg: Floats) -> None:
        """Messages from another part; those into early ends take part in momentum."""
        if early and msg is self.msg:
            self.prev[places] += core.RELAX * (msg[places] - values)
        msg[places] = values

    def sample(self, eta: float, weight: float) -> None:
        """Let the node marginals enter their running average."""
        nodes = self.soft_nodes(self.shares(self.msg), eta)[0][: self.own_states]
        self.mean += weight * (nodes - self.mean)

    def places(self, halves: Ints) -> Ints:
        """Where the messages into half-edges are, label by label."""
        model = self.part.model
        labels = model.num_labels[model.edges.reshape(-1)[halves]]
        place, step = self.plan.half_places
        return np.repeat(place[halves], labels) + spread(labels) * np.repeat(step[halves], labels)

    # --- what messages stand for ---

    def shares(self, msg: Floats) -> Floats:
        """θ̂_i / n_i by node, after a pass; the halo's have to be filled in."""
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

    def smoothed(self, minima: Floats) -> float:
        """The part's share of the smoothed dual, after a whole pass."""
        lanes = self.plan.edge >= 0
        lanes[lanes] = self.late[self.plan.edge[lanes]]
        own = slice(0, self.part.own)
        terms = [self.shift[lanes], self.plan.backward_ends[own] * minima[own]]
        return float(core.careful_sum(np.concatenate(terms)))

    def node_entropy(self, entropy: Floats) -> float:
        """The part's share of the node entropies, each as often as it is counted."""
        own = self.part.own
        return float((self.surplus[:own] * entropy[:own]).sum())

    def lam(self, msg: Floats) -> Floats:
        """λ whose plain bound is the chain bound, right at own nodes and own edges.

        The share of an edge's early end goes to that edge, and the early end of an own edge is
        own; at the late end λ is the message, which both parts hold.
        """
        shares, lam = self.shares(msg), np.empty(int(self.part.model.half_offset[-1]))
        core.cut_chains(self._layout, self.plan.native, self.rank, msg, shares, lam, self.threads)
        return lam

    def bound(self, lam: Floats) -> float:
        """The part's share of the bound that λ proves, rounded down."""
        nodes, edges = np.empty(self.part.model.n), np.empty(self.part.model.m)
        core.node_minima(self._layout, lam, nodes, self.threads)
        core.edge_minima(self._layout, lam, edges, self.threads)
        least = np.concatenate([nodes[: self.part.own], edges[self.owned]])
        return float(core.lower_sum(least))

    def stored(self) -> dict[str, Floats]:
        """The arrays that a run goes on from."""
        return {"msg": self.msg, "prev": self.prev, "mean": self.mean, "shift": self.shift}


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


class Passes:
    """The messages of this process's parts, and passes in which all processes take part.

    Attributes
    ----------
    chains : dict from the number of a part to its `PartChains`
    boundary : `Boundary`, for what parts know of their variables
    clock : float64[3]
        Nesterov's t, restarts, and the last restart product; the same in every process.
    halo_bytes : int
        What this process sends to others in one pass.
    """

    def __init__(self, team: Team, whole: Whole, parts: list[Part], threads: int) -> None:
        self.team, self.whole = team, whole
        self.chains = {part.number: PartChains(part, threads) for part in parts}
        self.boundary = Boundary(team, parts)
        self._exchanges = message_exchanges(team, self.chains.values(), whole.phases)
        self.halo_bytes = sum(exchange.sent_bytes for exchange in self._exchanges.values())
        self.clock = np.array(CLOCK)
        self._product: Callable[[], Floats] | None = None

    def run(self, count: int, eta: float) -> None:
        """`count` passes at η with momentum, forward and backward each."""
        messages = {number: chains.msg for number, chains in self.chains.items()}
        for _ in range(count):
            self._extrapolate()
            self._half(True, eta, True, messages)
            self._half(False, eta, True, messages)
            sums = [[chains.dot.sum()] for chains in self.chains.values()]
            self._product = self.team.begin(sums, 1)  # on its way until the next pass

    def settle(self) -> None:
        """Wait for the restart product of the last pass."""
        if self._product is not None:
            self.clock[2] = core.careful_sum(self._product()[:, 0].copy())
            self._product = None

    def _extrapolate(self) -> None:
        self.settle()
        following = self.clock.copy()
        core.extrapolate(np.empty(0), np.empty(0), following, 1)
        for chains in self.chains.values():
            chains.extrapolate(self.clock)
        self.clock = following

    def _half(self, forward: bool, eta: float, momentum: bool, arrays: dict[int, Floats]) -> None:
        def receive(part: int, places: Ints, values: Floats) -> None:
            self.chains[part].receive(places, values, early=not forward, msg=arrays[part])

        phases = range(self.whole.phases)
        for phase in phases if forward else reversed(phases):
            for number, chains in self.chains.items():
                chains.half_pass(phase, forward, eta, momentum, arrays[number])
            self._exchanges[forward, phase].run(arrays, receive)

    def hard(self, count: int) -> dict[int, Floats]:
        """Messages after `count` hard passes and a half, from which a bound is read off.

        A copy, or, after half a pass, those that the next pass makes anew.
        """
        arrays = {k: each.msg.copy() if count else each.msg for k, each in self.chains.items()}
        for half in range(2 * count + 1):
            self._half(half % 2 == 0, np.inf, False, arrays)
        return arrays

    def sample(self, eta: float, weight: float) -> None:
        """Let the node marginals enter their running average."""
        for chains in self.chains.values():
            chains.sample(eta, weight)

    def shorten_memory(self, longest: float) -> None:
        """Let Nesterov's t be at most `longest`."""
        self.settle()
        self.clock[0] = min(self.clock[0], longest)
