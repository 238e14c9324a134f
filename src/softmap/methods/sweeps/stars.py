"""Sweeps over the stars of a model, colour by colour: the engine of `anneal-star` and others."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import numpy as np

from softmap import core
from softmap.machine import ThreadChoice
from softmap.methods.base import Floats
from softmap.methods.sweeps.chains import ChainMarginals, ProvedBound
from softmap.methods.sweeps.loops import CLOCK, NONE, Messages, Sampling, sampled_by_turns
from softmap.methods.sweeps.planning import colour_schedule
from softmap.model import Network
from softmap.model.layout import layout
from softmap.relaxation.dual import half_states


class Rule(Enum):
    """The update of a star; the value is the name of the compiled loop."""

    STAR = "star_sweeps"
    DIFFUSION = "diffusion_sweeps"
    GRADIENT = "gradient_sweeps"


class Stars:
    """The colours and the scratch memory for sweeps over one model.

    Messages m = -λ are stored in the order in which a sweep reads them (see `planning`); λ and
    marginals are returned in the order of the model.
    """

    def __init__(self, model: Network, threads: int, deadline: core.Deadline | None = None) -> None:
        self.model, self.threads = model, threads
        self._thread_choice = ThreadChoice(threads)
        self.point_dtype = np.dtype(np.float64)
        self._layout = layout(model)
        self.plan = colour_schedule(model, deadline)
        self.excluded = np.isposinf(model.unary)
        self._bar = np.zeros(self.plan.cost_size)
        i = np.repeat(np.arange(model.n), model.num_labels)[self.excluded]
        x = np.flatnonzero(self.excluded) - model.node_offset[i]
        at, step = self.plan.node_places
        self._bar[at[i] + x * step[i]] = np.inf
        self._theta = np.zeros_like(self._bar)
        self._origin = np.zeros(self.plan.message_size)

    def start(self, lam: Floats | None) -> Messages:
        """Return the messages of λ (0 if None)."""
        msg = np.zeros_like(self._origin)
        if lam is not None:
            flat = np.where(self.excluded[half_states(self.model)], 0.0, lam)
            core.to_messages(self._layout, self.plan.native, flat, msg)
        drift = np.zeros(len(msg), np.float32)
        return Messages(msg, drift, np.array(CLOCK), np.zeros(len(self.plan.blocks)))

    def lam(self, messages: Floats) -> Floats:
        """Return λ = -m in the order of the model."""
        flat = np.empty(self.model.half_size)
        core.to_lam(self._layout, self.plan.native, messages, flat)
        return flat

    def passes(
        self,
        state: Messages,
        count: int,
        eta: float,
        *,
        momentum: bool,
        rule: Rule = Rule.STAR,
        deadline: core.Deadline | None = None,
    ) -> int:
        """Do `count` sweeps at η (inf: hard-min) by one rule; return how many were completed."""
        sweep = getattr(core, rule.value)
        given = state if momentum else replace(state, drift=NONE)
        arrays = self._arrays(given, np.empty(self.model.n))
        return self._thread_choice.run(
            count,
            lambda threads: sweep(
                self._layout, self.plan.native, arrays, count, eta, momentum, threads, deadline
            ),
        )

    def _arrays(self, state: Messages, dot: Floats) -> core.StarArrays:
        """The arrays of a run from `state`, which writes the terms of the nodes to `dot`."""
        return core.StarArrays(
            msg=state.msg,
            drift=state.drift,
            origin=self._origin,
            bar=self._bar,
            theta=self._theta,
            shift=state.shift,
            dot=dot,
            clock=state.clock,
        )

    def sampled_passes(
        self,
        state: Messages,
        count: int,
        eta: float,
        sampling: Sampling,
        deadline: core.Deadline | None = None,
    ) -> int:
        """Do `count` sweeps with momentum; every few sweeps the marginals are averaged."""
        return sampled_by_turns(self, state, count, eta, sampling, deadline)

    def nodes(self, messages: Floats, eta: float) -> Floats:
        """Return the node marginals `μ_i ∝ exp(-η (C_i - Σ λ))`."""
        return self._soft_nodes(messages, eta)[0]

    def marginals(self, state: Messages, eta: float) -> ChainMarginals:
        """Return the marginals of λ, and -L(λ)."""
        nodes, surplus = self._soft_nodes(state.msg, eta)
        return ChainMarginals(nodes, surplus, self.lam(state.msg), self.value(state.msg, eta))

    def value(self, messages: Floats, eta: float) -> float:
        """Return -L(λ), the value of the regularised dual (the plain bound at η = inf)."""
        dot, shift = np.empty(self.model.n), np.zeros(len(self.plan.blocks))
        arrays = self._arrays(Messages(messages.copy(), NONE, np.array(CLOCK), shift), dot)
        core.star_values(self._layout, self.plan.native, arrays, eta, self.threads)
        terms = np.concatenate([dot, shift, [self.model.constant]])
        return float(core.careful_sum(terms))

    def current_lam(self, state: Messages, eta: float) -> Floats:
        """Return the current λ."""
        return self.lam(state.msg)

    def resend(self, state: Messages, eta: float) -> None:
        """Do nothing: `prove` does not change the messages."""

    def undo_proposal(self, state: Messages) -> None:
        """Do nothing: `prove` does not change the messages."""

    def prove(
        self,
        state: Messages,
        hard: int = 1,
        deadline: core.Deadline | None = None,
        limit: core.Deadline | None = None,
    ) -> ProvedBound:
        """Return λ after a few hard-min sweeps; the judge computes its bound, beyond any limit."""
        return ProvedBound(self.bounding(state.msg, hard, deadline))

    def bounding(
        self, messages: Floats, hard: int = 1, deadline: core.Deadline | None = None
    ) -> Floats:
        """Return λ after a few hard-min sweeps, which never lower its bound."""
        msg = messages.copy()
        shift = np.empty(len(self.plan.blocks))
        polished = Messages(msg, NONE, np.ones(3), shift)
        self.passes(polished, hard, np.inf, momentum=False, deadline=deadline)
        return self.lam(msg)

    def _soft_nodes(self, messages: Floats, eta: float) -> tuple[Floats, float]:
        """Return the node marginals, and their part of the entropy Σ_e H_e + Σ_i H_i, negated."""
        model, plan = self.model, self.plan
        shares, nodes = np.empty((2, model.unary.size))
        entropy, minima = np.empty(model.n), np.empty(model.n)
        core.shares(plan.native, messages, self._theta, self.threads)
        core.by_node(self._layout, plan.native, self._theta, shares, self.threads)
        core.soft_nodes(layout(model), shares, eta, nodes, entropy, minima, self.threads)
        return nodes, -float(entropy.sum())
