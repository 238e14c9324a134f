"""Sweeps over the stars of one model, colour by colour: the engine of `anneal-star` and others."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from softmap.algorithms.base import Floats
from softmap.algorithms.sweeps.chains import CLOCK, POLISH, ChainMarginals, Messages
from softmap.algorithms.sweeps.schedule import colour_schedule
from softmap.algorithms.team import Paced, Team
from softmap.kernels import chains, stars
from softmap.kernels.judge import careful_sum
from softmap.kernels.nodes import soft_nodes
from softmap.kernels.packing import pack, unpack
from softmap.kernels.schedule import cost_size, message_size
from softmap.kernels.stars import DIFFUSION, GRADIENT, STAR
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation.dual import half_states

__all__ = ["DIFFUSION", "GRADIENT", "STAR", "Stars"]


class Stars:
    """The colours and scratch memory for sweeps over one model.

    Messages m = -λ live in the order in which a sweep reads them (see `kernels.schedule`); λ and
    marginals come out in the order of the model.
    """

    def __init__(self, model: Model, team: Team, dtype: DTypeLike = np.float64) -> None:
        self.model, self.team, self.dtype = model, team, np.dtype(dtype)
        self._paced = Paced(team)
        self.lay = layout(model, dtype)
        self.plan = colour_schedule(model, dtype)
        self.real = self.plan.edge >= 0
        # L belongs to the entropy Σ_e H_e + Σ_i H_i
        self.surplus: Floats = np.full(model.n, -1.0)
        self.barred = np.isposinf(model.unary)
        self._bar = np.zeros(cost_size(self.plan))
        i = np.repeat(np.arange(model.n), model.num_labels)[self.barred]
        x = np.flatnonzero(self.barred) - model.node_offset[i]
        self._bar[self.plan.node_at[i] + x * self.plan.node_step[i]] = np.inf
        self._theta = np.zeros_like(self._bar)
        self._unused = np.zeros(len(self.plan.blocks))
        self._sums = np.zeros(chains.BLOCKS)
        self._origin = np.zeros(message_size(self.plan), self.dtype)

    def start(self, lam: Floats | None) -> Messages:
        """Messages that stand for λ (0 if None)."""
        msg = np.zeros_like(self._origin)
        if lam is not None:
            flat = np.where(self.barred[half_states(self.model)], 0.0, -lam)
            places = self.lay.half_offset, self.plan.half_at, self.plan.half_step
            pack(*places, flat, msg, 0, 2 * self.model.m)
        return Messages(msg, msg.copy(), np.array(CLOCK), np.zeros(len(self.plan.edge)))

    def lam(self, messages: Floats) -> Floats:
        """λ = -m in the order of the model."""
        flat = np.empty(int(self.model.half_offset[-1]))
        places = self.lay.half_offset, self.plan.half_at, self.plan.half_step
        unpack(*places, messages, flat, 0, 2 * self.model.m)
        return -flat

    def passes(
        self, state: Messages, count: int, eta: float, *, momentum: bool, rule: int = STAR
    ) -> None:
        """`count` sweeps at η (inf: hard-min) by one of the rules of `kernels.stars`."""
        dot = np.empty(self.model.n)
        self._sweep(
            rule, count, state.msg, state.prev, eta, momentum, state.shift, dot, state.clock
        )

    def nodes(self, messages: Floats, eta: float) -> Floats:
        """Node marginals `μ_i ∝ exp(-η (C_i - Σ λ))`."""
        return self._soft_nodes(messages, eta)[0]

    def marginals(self, messages: Floats, shift: Floats, eta: float) -> ChainMarginals:
        """Marginals of λ, and -L(λ)."""
        nodes, entropy = self._soft_nodes(messages, eta)
        return ChainMarginals(nodes, entropy, self.lam(messages), self.value(messages, eta))

    def value(self, messages: Floats, eta: float) -> float:
        """-L(λ), the value of the regularised dual (the plain bound at η = inf)."""
        dot, shift = np.empty(self.model.n), np.zeros(len(self.plan.edge))
        msg = messages.copy()
        self._sweep(stars.VALUE, 1, msg, msg, eta, False, shift, dot, np.ones(3))
        return float(careful_sum(np.concatenate([dot, shift[self.real], [self.model.constant]])))

    def bounding(self, messages: Floats) -> Floats:
        """λ after a few hard sweeps, which never lower its plain bound."""
        msg, dot = messages.copy(), np.empty(self.model.n)
        shift = np.empty(len(self.plan.edge))
        self._sweep(STAR, POLISH, msg, msg, np.inf, False, shift, dot, np.ones(3))
        return self.lam(msg)

    def _sweep(
        self, rule: int, count: int, msg: Floats, prev: Floats, eta: float, momentum: bool,
        shift: Floats, dot: Floats, clock: Floats,
    ) -> None:  # fmt: skip
        self._paced.run(
            count, stars.sweeps, self.lay, self.plan, rule, count, msg, prev, self._origin,
            self._bar, self._theta, eta, momentum, shift, dot, self._unused, self._sums, clock,
        )  # fmt: skip

    def _soft_nodes(self, messages: Floats, eta: float) -> tuple[Floats, Floats]:
        n, plan, theta = self.model.n, self.plan, self._theta
        nodes, (entropy, minima) = np.empty(self.model.unary.size), np.empty((2, n))
        self.team.split(chains.shares, len(plan.rows), self.lay, plan, messages, theta)
        self.team.split(
            soft_nodes, n, self.lay, plan.node_at, plan.node_step, theta, eta, nodes, entropy,
            minima,
        )  # fmt: skip
        return nodes, entropy
