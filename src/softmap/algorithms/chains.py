"""Passes over monotonic chains of one model: what the annealed solver and TRW-S are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from softmap.algorithms.base import Floats
from softmap.algorithms.order import chain_schedule
from softmap.algorithms.team import Team
from softmap.kernels import chains, judge
from softmap.kernels.sending import buffers_for
from softmap.layout import layout
from softmap.model import Model

__all__ = ["ChainMarginals", "Chains", "Messages"]


@dataclass
class Messages:
    """M = -λ along the chains, and the momentum over passes.

    `msg` is the point the next pass starts from, `prev` the result of the last pass; `clock` holds
    Nesterov's t and the number of restarts, `shift` what the last half pass took off each edge.
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


class Chains:
    """The schedule and scratch memory for passes over one model."""

    def __init__(self, model: Model, team: Team, dtype: DTypeLike = np.float64) -> None:
        self.model, self.team = model, team
        self.lay, self.exact = layout(model, dtype), layout(model)
        self.plan = chain_schedule(model)
        self.dtype = np.dtype(dtype)
        self._theta = np.empty(model.unary.size, self.dtype)
        self._dot = np.zeros(2 * model.m)
        self._sums = np.zeros(chains.BLOCKS)

    def start(self, lam: Floats | None) -> Messages:
        """Messages that stand for λ (0 if None)."""
        size = int(self.model.half_offset[-1])
        msg = np.zeros(size, self.dtype) if lam is None else (-lam).astype(self.dtype)
        return Messages(msg, msg.copy(), np.array([1.0, 0.0]), np.zeros(self.model.m))

    def passes(self, state: Messages, count: int, eta: float, *, momentum: bool) -> None:
        """`count` passes at η (inf: hard-min), forward and backward each."""
        self.team.run(
            chains.passes, self.lay, self.plan, count, state.msg, state.prev, self._theta,
            eta, momentum, state.shift, self._dot, self._sums, state.clock,
        )  # fmt: skip

    def marginals(self, messages: Floats, shift: Floats, eta: float) -> ChainMarginals:
        """Marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass; `shift` is that pass's."""
        msg = messages.astype(np.float64)
        theta = self._reparametrised(msg)
        nodes, info = np.empty_like(theta), np.empty((self.model.n, 2))
        self.team.split(
            judge.soft_nodes, self.model.n, self.exact, theta, self.plan.share, eta, nodes, info
        )
        coupling = np.empty_like(msg)
        self.team.split(
            chains.couplings, 2 * self.model.m, self.exact, self.plan, msg, theta, coupling
        )
        ends = self.plan.backward_ends
        smoothed = math.fsum(shift) + math.fsum(ends * info[:, 1]) + self.model.constant
        return ChainMarginals(nodes, info[:, 0], coupling, smoothed)

    def bounding(self, messages: Floats) -> Floats:
        """λ whose plain bound is at least the chain bound of the messages: one hard half pass."""
        msg = messages.astype(np.float64)
        theta = np.empty_like(self.model.unary)
        shift, dot = np.empty(self.model.m), np.empty(2 * self.model.m)
        self.team.run(_hard_forward, self.exact, self.plan, msg, theta, shift, dot)
        lam = np.empty_like(msg)
        theta = self._reparametrised(msg)
        self.team.split(chains.cut_chains, self.model.m, self.exact, self.plan, msg, theta, lam)
        return lam

    def _reparametrised(self, msg: Floats) -> Floats:
        theta = np.empty_like(self.model.unary)
        nodes = self.plan.nodes
        self.team.split(
            lambda lay, a, b: chains.reparametrise(lay, nodes, a, b, msg, theta),
            self.model.n,
            self.exact,
        )
        return theta


def _hard_forward(lay, plan, msg, theta, shift, dot, team):  # type: ignore[no-untyped-def]
    buffers = buffers_for(lay)
    chains.half_pass(lay, plan, True, msg, msg, theta, np.inf, shift, dot, buffers, team)
