"""Passes over monotonic chains of one model: what the annealed solver and TRW-S are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from softmap.algorithms.base import Floats
from softmap.algorithms.sweeps.schedule import chain_schedule
from softmap.algorithms.team import Paced, Team
from softmap.kernels import chains
from softmap.kernels.judge import careful_sum
from softmap.kernels.nodes import soft_nodes
from softmap.kernels.packing import pack, unpack
from softmap.kernels.schedule import back_size, cost_size, message_size
from softmap.kernels.vectors import aligned
from softmap.model import Model
from softmap.model.layout import layout

__all__ = ["ChainMarginals", "Chains", "Messages"]


@dataclass
class Messages:
    """M = -λ along the chains, and the momentum over passes.

    `msg` is the result of the last pass, `prev` what momentum compares it with; `clock` holds
    Nesterov's t, the number of restarts and the last product that decides on them, `shift` what the
    last half pass took off each edge.
    """

    msg: Floats
    prev: Floats
    clock: Floats
    shift: Floats


@dataclass(frozen=True)
class ChainMarginals:
    """The regularised primal point of some messages, and the value of the regularised dual."""

    nodes: Floats
    node_entropy: Floats
    coupling: Floats
    smoothed: float


CLOCK = (0.0, 0.0, -1.0)  # as `Messages.clock` begins
POLISH = 1  # hard passes before a bound is read off


class Chains:
    """The schedule and scratch memory for passes over one model.

    Messages live in the order in which a pass reads them (see `kernels.schedule`); λ, couplings and
    node marginals come out in the order of the model.
    """

    def __init__(self, model: Model, team: Team, dtype: DTypeLike = np.float64) -> None:
        self.model, self.team = model, team
        self.lay = layout(model, dtype)
        self.plan = chain_schedule(model, dtype)
        self.dtype = np.dtype(dtype)
        self._soft, self._hard = Paced(team), Paced(team)
        self.real = self.plan.edge >= 0
        self.surplus: Floats = model.graph.degree.astype(np.float64)
        self.surplus[self.plan.nodes] -= 1.0 / self.plan.share[: model.n]
        self._theta = aligned(cost_size(self.plan))
        self._dot = np.zeros(len(self.plan.blocks))
        self._sums = np.zeros(chains.BLOCKS)

    def start(self, lam: Floats | None) -> Messages:
        """Messages that stand for λ (0 if None)."""
        plan = self.plan
        msg, prev = (aligned(f(plan), self.dtype) for f in (message_size, back_size))
        if lam is not None:
            pack(self.lay.half_offset, plan.half_at, plan.half_step, -lam, msg, 0, 2 * self.model.m)
        prev[:] = msg[: len(prev)]
        return Messages(msg, prev, np.array(CLOCK), aligned(len(plan.edge)))

    def lam(self, messages: Floats) -> Floats:
        """λ = -M in the order of the model."""
        flat = np.empty(int(self.model.half_offset[-1]))
        plan = self.plan
        unpack(
            self.lay.half_offset, plan.half_at, plan.half_step, messages, flat,
            0, 2 * self.model.m,
        )  # fmt: skip
        return -flat

    def passes(self, state: Messages, count: int, eta: float, *, momentum: bool) -> None:
        """`count` passes at η (inf: hard-min), forward and backward each."""
        self._run(2 * count, state.msg, state.prev, eta, momentum, state.shift, state.clock)

    def _run(
        self, halves: int, msg: Floats, prev: Floats, eta: float, momentum: bool, shift: Floats,
        clock: Floats,
    ) -> None:  # fmt: skip
        paced = self._hard if eta == np.inf else self._soft
        paced.run(
            halves, chains.passes, self.lay, self.plan, halves, msg, prev, self._theta, eta,
            momentum, shift, self._dot, self._sums, clock,
        )  # fmt: skip

    def nodes(self, messages: Floats, eta: float) -> Floats:
        """Node marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass."""
        self._share(messages)
        return self._soft_nodes(eta)[0]

    def marginals(self, messages: Floats, shift: Floats, eta: float) -> ChainMarginals:
        """Marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass; `shift` is that pass's."""
        theta = self._shares(messages)
        nodes, entropy, minima = self._soft_nodes(eta)
        coupling = np.empty(int(self.model.half_offset[-1]))
        self.team.split(
            chains.couplings, 2 * self.model.m, self.lay, self.plan, messages, theta, coupling
        )
        ends = self.plan.backward_ends
        terms = np.concatenate([shift[self.real], ends * minima, [self.model.constant]])
        return ChainMarginals(nodes, entropy, coupling, float(careful_sum(terms)))

    def bounding(self, messages: Floats) -> Floats:
        """λ whose plain bound is the chain bound after `POLISH` hard passes and a half.

        Hard passes win back part of what the entropy costs the bound. From hard messages they never
        lower it; from smooth ones they may by a little, which concerns speed, not validity.
        """
        msg = aligned(len(messages), self.dtype)
        msg[:] = messages
        shift = np.empty(len(self.plan.edge))
        self._run(2 * POLISH + 1, msg, msg, np.inf, False, shift, np.ones(3))
        theta = self._shares(msg)
        lam = np.empty(int(self.model.half_offset[-1]))
        self.team.split(chains.cut_chains, self.model.m, self.lay, self.plan, msg, theta, lam)
        return lam

    def _soft_nodes(self, eta: float) -> tuple[Floats, Floats, Floats]:
        """Marginals, entropies and soft minima of the shares last computed."""
        n, plan, nodes = self.model.n, self.plan, np.empty(self.model.unary.size)
        entropy, minima = np.empty((2, n))
        self.team.split(
            soft_nodes, n, self.lay, plan.node_at, plan.node_step, self._theta, eta, nodes,
            entropy, minima,
        )  # fmt: skip
        return nodes, entropy, minima

    def _share(self, messages: Floats) -> None:
        rows = len(self.plan.rows)
        self.team.split(chains.shares, rows, self.lay, self.plan, messages, self._theta)

    def _shares(self, messages: Floats) -> Floats:
        """θ̂_i / n_i in the order of the model."""
        self._share(messages)
        out = np.empty(self.model.unary.size)
        self.team.split(chains.by_node, self.model.n, self.lay, self.plan, self._theta, out)
        return out
