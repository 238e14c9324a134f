"""Passes over all parts: chain passes over each part, and exchanges after each phase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.sweeps.loops import CLOCK, NONE, ChainLoops
from softmap.methods.sweeps.planning import Schedule, aligned, level_schedule, surpluses
from softmap.model.inputs import within
from softmap.parts.cut import ModelPart, Whole
from softmap.parts.team import Boundary, Team, message_exchanges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PartChains:
    """Messages of one part and the compiled passes over its own variables.

    The halo nodes are in a separate level that passes skip. The part that owns them computes their
    messages, which arrive by an exchange. Both parts hold a copy of the messages along cut edges;
    after each exchange the two copies are identical, bit by bit.

    Attributes
    ----------
    msg : float64 array
        Messages.
    drift : float32 array
        The drift of momentum, over the messages into early endpoints.
    shift : float64 array
        Sum of the constants that the last half pass subtracted from the messages of each block.
    mean : float64 array
        Running average of the own nodes' marginals.
    """

    def __init__(self, part: ModelPart, threads: int) -> None:
        self.part = part
        level, phases = part.levels()
        plan = level_schedule(part.model, part.rank, level)
        self.loops = ChainLoops(part.model, plan, threads)
        self._phases = [_slice(plan, first, last) for first, last in phases]
        self.msg, self.drift = aligned(plan.message_size), aligned(plan.back_size, np.float32)
        self.shift = np.zeros(len(plan.blocks))
        self.mean = np.zeros(part.own_states)

    # --- passes ---

    def half_pass(self, phase: int, forward: bool, eta: float, momentum: bool, msg: Floats) -> None:
        """Compute the messages from own nodes of one phase, forward or backward."""
        levels = self._phases[phase] if phase < len(self._phases) else None
        if levels is not None:
            drift = self.drift if momentum else None
            self.loops.half_pass(forward, msg, eta, drift=drift, shift=self.shift, levels=levels)

    def sample(self, eta: float, weight: float) -> None:
        """Add the current node marginals to their running average."""
        self.mean += weight * (self.nodes(eta)[: self.part.own_states] - self.mean)

    def nodes(self, eta: float) -> Floats:
        """The current node marginals; those of the halo have no meaning."""
        nodes = np.empty(self.part.model.unary.size)
        self.loops.blend(self.msg, eta, 1.0, nodes)
        return nodes

    def places(self, halves: Ints) -> Ints:
        """Indices of the messages into some half-edges, one per label."""
        model = self.part.model
        labels = model.num_labels[model.edges.reshape(-1)[halves]]
        place, step = self.loops.plan.half_places
        return np.repeat(place[halves], labels) + within(labels) * np.repeat(step[halves], labels)

    # --- values of the messages ---

    def shares(self, msg: Floats) -> Floats:
        """θ̂_i / n_i by node, after a pass; the caller fills in those of the halo."""
        self.loops.make_shares(msg)
        return self.loops.by_node()

    def point_terms(self, coupling: Floats, eta: float, nodes: Floats) -> list[float]:
        """Cost, edge entropy and slack of a point of the polytope, summed over this part."""
        part, loops = self.part, self.loops
        own = np.flatnonzero(part.counted)
        cost, entropy, slack = np.empty((3, len(own)))
        out = core.CouplingArrays(cost=cost, entropy=entropy, slack=slack)
        core.couple(loops.layout, coupling, eta, nodes, own, out, loops.threads)
        mu = nodes[: part.own_states]
        unary = np.multiply(part.model.unary[: len(mu)], mu, where=mu != 0, out=mu * 0.0)
        total = core.careful_sum(np.concatenate([unary, cost]))
        return [float(total), *(float(core.careful_sum(each)) for each in (entropy, slack))]

    def smoothed(self, minima: Floats) -> float:
        """The terms of this part in the smoothed dual, after a whole pass."""
        plan, own = self.loops.plan, self.part.own
        # The halo is in a level of its own, so that all edges of a block lead to it, or none.
        inner = (self.part.ends[1] < own)[plan.edge[plan.blocks["lane"]]]
        ends = -surpluses(self.part.model, plan)  # chains that end: n_i less the earlier neighbours
        ends[plan.nodes] += plan.forward_degree
        terms = [self.shift[inner], ends[:own] * minima[:own]]
        return float(core.careful_sum(np.concatenate(terms)))

    def node_entropy(self, entropy: Floats) -> float:
        """The sum of the own node entropies, each times its counting number."""
        surplus, own = surpluses(self.part.model, self.loops.plan), self.part.own
        return float((surplus[:own] * entropy[:own]).sum())

    def lam(self, msg: Floats) -> Floats:
        """λ whose dual bound is the chain bound, valid at own nodes and own edges.

        At the early endpoint of an edge, λ includes θ̂_i / n_i of that node, which is own if the
        edge is. At the late endpoint, λ is the negative message, which both parts hold.
        """
        return self.loops.cut_with(msg, self.shares(msg))

    def bound(self, lam: Floats) -> float:
        """The terms of this part in the bound that λ proves, rounded down."""
        part, loops = self.part, self.loops
        nodes, edges = np.empty(part.model.n), np.empty(part.model.m)
        core.node_minima(loops.layout, lam, nodes, loops.threads)
        core.edge_minima(loops.layout, lam, edges, loops.threads)
        return float(core.lower_sum(np.concatenate([nodes[: part.own], edges[part.counted]])))


def _slice(plan: Schedule, first: int, last: int) -> Any:
    """Levels first..last-1 of a schedule, in compiled form; None if there are none."""
    if first == last:
        return None
    begin, end = first * plan.bands, last * plan.bands
    starts, sets = slice(begin, end + 1), slice(2 * begin, 2 * end)
    return replace(
        plan,
        row_start=plan.row_start[first : last + 1],
        forward_start=plan.forward_start[starts],
        forward_after=plan.forward_after[sets],
        backward_start=plan.backward_start[starts],
        backward_after=plan.backward_after[sets],
    ).native


class PartsPasses:
    """The messages of this process's parts, and collective passes of all processes.

    Attributes
    ----------
    chains : dict from int to PartChains
        The messages of each own part, by number of the part.
    boundary : Boundary
        Exchanges of values of variables.
    clock : float64[3]
        Nesterov's t, the number of restarts, and the last restart product; equal in all processes.
    halo_bytes : int
        Bytes that this process sends to others in one pass.
    """

    def __init__(self, team: Team, whole: Whole, parts: list[ModelPart], threads: int) -> None:
        self.team, self.whole = team, whole
        self.chains = {part.number: PartChains(part, threads) for part in parts}
        self.boundary = Boundary(team, parts)
        places = [(chains.part, chains.places) for chains in self.chains.values()]
        self._exchanges = message_exchanges(team, places, whole.phases)
        self.halo_bytes = sum(exchange.sent_bytes for exchange in self._exchanges.values())
        self.clock = np.array(CLOCK)
        self._product: Callable[[], Floats] | None = None

    def run(self, count: int, eta: float) -> None:
        """Do `count` passes at η with momentum, each forward and backward."""
        messages = {number: chains.msg for number, chains in self.chains.items()}
        for _ in range(count):
            self._extrapolate()
            self._half(True, eta, True, messages)
            self._half(False, eta, True, messages)
            sums = [[chains.loops.product] for chains in self.chains.values()]
            self._product = self.team.begin(sums, 1)  # `wait_for_product` waits for it

    def wait_for_product(self) -> None:
        """Wait for the restart product of the last pass."""
        if self._product is not None:
            self.clock[2] = core.careful_sum(self._product()[:, 0].copy())
            self._product = None

    def _extrapolate(self) -> None:
        self.wait_for_product()
        following = self.clock.copy()
        core.extrapolate(np.empty(0), NONE, following, 1)
        for chains in self.chains.values():
            core.extrapolate(chains.msg, chains.drift, self.clock.copy(), chains.loops.threads)
        self.clock = following

    def _half(self, forward: bool, eta: float, momentum: bool, arrays: dict[int, Floats]) -> None:
        def receive(part: int, places: Ints, values: Floats) -> None:
            chains, msg = self.chains[part], arrays[part]
            if not forward and msg is chains.msg:  # messages into early endpoints have momentum
                step = (1.0 + core.RELAX) * (msg[places] - values)
                chains.drift[places] = chains.drift[places].astype(np.float64) - step
            msg[places] = values

        phases = range(self.whole.phases)
        for phase in phases if forward else reversed(phases):
            for number, chains in self.chains.items():
                chains.half_pass(phase, forward, eta, momentum, arrays[number])
            self._exchanges[forward, phase](arrays, receive)

    def hard(self, count: int) -> dict[int, Floats]:
        """Messages after `count` hard passes and a half, which define a bound.

        The messages are a copy if `count` is positive. Otherwise they are the messages of the run;
        the half pass overwrites only those that the next pass recomputes.
        """
        arrays = {k: each.msg.copy() if count else each.msg for k, each in self.chains.items()}
        for half in range(2 * count + 1):
            self._half(half % 2 == 0, np.inf, False, arrays)
        return arrays

    def shorten_memory(self, longest: float) -> None:
        """Limit Nesterov's t to at most `longest`."""
        self.wait_for_product()
        self.clock[0] = min(self.clock[0], longest)
