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
from softmap.distributed.terms import Terms, spread
from softmap.model.graph import Graph

__all__ = ["PartChains"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STORED = ("msg", "prev", "mean", "shift")


class PartChains(Terms):
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
    """

    dtype = np.dtype(np.float64)

    def __init__(self, part: Part, threads: int) -> None:
        super().__init__(part, part.rank, threads)
        model = part.model
        level, starts = self._levels()
        self.plan = level_schedule(model, self.rank, level, np.float64)
        self._phases = [_slice(self.plan, a, b) for a, b in starts]
        self.surplus: Floats = model.graph.degree.astype(np.float64)
        self.surplus[self.plan.nodes] -= 1.0 / self.plan.share[: model.n]
        self.msg, self.prev = aligned(self.plan.message_size), aligned(self.plan.back_size)
        self.shift = aligned(len(self.plan.edge))
        self.dot = np.zeros(len(self.plan.blocks))
        self.mean = np.zeros(self.own_states)
        self._theta = aligned(self.plan.cost_size)
        self._soft: tuple[Floats, Floats, Floats] | None = None
        self.forget()

    def _levels(self) -> tuple[Ints, list[tuple[int, int]]]:
        """Levels of the nodes, phase after phase, and the levels of each phase."""
        part, own = self.part, self.part.own
        depth = Graph.from_edges(part.alike, own).levels(self.rank[:own]).astype(np.int64)
        return part.levels(depth)

    # --- passes ---

    def extrapolate(self, clock: Floats, eta: float) -> None:
        """Momentum, before a pass."""
        core.extrapolate(self.msg, self.prev, clock.copy(), self.threads)

    def half_pass(self, phase: int, forward: bool, eta: float, momentum: bool, msg: Floats) -> None:
        """Let the own nodes of one phase send, onwards or back."""
        if phase < len(self._phases) and self._phases[phase] is not None:
            prev = self.prev if momentum else msg
            core.half_pass(
                self._layout, self._phases[phase], forward, msg, prev, self._theta, eta, momentum,
                self.shift, self.dot, self.threads,
            )  # fmt: skip

    def product(self) -> float:
        """The part's share of the product that decides on a restart of momentum."""
        return float(self.dot.sum())

    def take(self, places: Ints, values: Floats, *, early: bool, msg: Floats) -> None:
        """Messages from another part; those into early ends take part in momentum."""
        if early and msg is self.msg:
            self.prev[places] += core.RELAX * (msg[places] - values)
        msg[places] = values

    def sample(self, eta: float, weight: float, samples: int) -> None:
        """Let the node marginals enter their running average."""
        nodes = self._soft_nodes(self.shares(self.msg), eta)[0][: self.own_states]
        self.mean += weight * (nodes - self.mean)

    # --- what is exchanged with other parts ---

    def places(self, halves: Ints) -> Ints:
        """Where the messages into half-edges lie, label by label."""
        model, plan = self.part.model, self.plan
        labels = model.num_labels[model.edges.reshape(-1)[halves]]
        place, step = plan.half_places
        return np.repeat(place[halves], labels) + spread(labels) * np.repeat(step[halves], labels)

    def state_places(self, nodes: Ints) -> Ints:
        """Where the states of nodes lie in arrays of a judgement."""
        labels = self.part.model.num_labels[nodes]
        return np.repeat(self.part.model.node_offset[nodes], labels) + spread(labels)

    def ready(self, places: Ints) -> Ints:
        """Places as `read`, `write` and `take` want them."""
        return places

    def read(self, array: Floats, places: Ints) -> Floats:
        """Entries of an array of this part."""
        return array[places]

    def write(self, array: Floats, places: Ints, values: Floats) -> None:
        """Set entries of an array of this part."""
        array[places] = values

    # --- judgement ---

    def shares(self, msg: Floats) -> Floats:
        """θ̂_i / n_i by node; the halo's are to be filled in."""
        core.shares(self.plan.native, msg, self._theta, self.threads)
        out = np.empty(self.part.model.unary.size)
        core.by_node(self._layout, self.plan.native, self._theta, out, self.threads)
        return out

    def measure(self, eta: float) -> None:
        """Begin a judgement of where the messages stand."""
        self._eta, self._share = eta, self.shares(self.msg)

    def boundary(self, averaged: bool) -> list[Floats]:
        """Arrays over states whose halo other parts know."""
        self._full = np.zeros(self.part.model.unary.size if averaged else 0)
        if not averaged:
            return [self._share]
        self._full[: self.own_states] = self.mean
        return [self._share, self._full]

    def marginals(self) -> Floats:
        """Node marginals; right at the own nodes, and at the halo's where that was filled in."""
        if self._soft is None:
            self._soft = self._soft_nodes(self._share, self._eta)
        return self._soft[0]

    def glimpsed(self) -> None:
        """Node marginals are all that will be asked for: let go of the shares."""
        self.marginals()
        self._share = np.zeros(0)

    def priced(self, averaged: bool) -> list[float]:
        """Terms of the point: cost, edge entropy, slack, averaged cost, dual, node entropy."""
        own, nodes = self.part.own, self.marginals()
        assert self._soft is not None
        coupling = self.couplings(self._share)
        row = self.point_terms(coupling, self._eta, nodes)
        row.append(self.point_terms(coupling, self._eta, self._full)[0] if averaged else np.inf)
        row.append(float(core.careful_sum(self.smoothed_terms(self._soft[2]))))
        row.append(float((self.surplus[:own] * self._soft[1][:own]).sum()))
        self._share = self._full = np.zeros(0)  # memory for what follows
        return row

    def spare(self, hard: int) -> Floats:
        """Messages for hard passes: a copy, or those that the next pass makes anew."""
        return self.msg.copy() if hard else self.msg

    def prove(self, msg: Floats) -> tuple[float, Floats | None]:
        """The part's share of the bound, rounded down, and λ."""
        lam = self.lam(msg, self.shares(msg))
        return float(core.lower_sum(self.bound_terms(lam))), lam

    def keep(self) -> None:
        """λ is handed out as it is: nothing is left to keep."""

    def fetched(self, kept: bool) -> Floats:
        """λ is never elsewhere."""
        raise LookupError("λ of a part on the processor is handed out when it is made")

    def forget(self) -> None:
        """Let go of what a judgement needed."""
        self._soft = None
        self._share = self._full = np.zeros(0)

    def _soft_nodes(self, shares: Floats, eta: float) -> tuple[Floats, Floats, Floats]:
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

    # --- checkpoints ---

    def stored(self) -> dict[str, NDArray[Any]]:
        """The arrays that a run goes on from."""
        return {name: getattr(self, name) for name in STORED}

    def restore(self, name: str, array: NDArray[Any]) -> None:
        """Put a stored array back."""
        getattr(self, name)[...] = array


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
