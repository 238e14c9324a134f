"""Passes over monotonic chains of one model: what the annealed solver and TRW-S are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from softmap import core
from softmap.algorithms.base import Floats
from softmap.algorithms.pace import Pace
from softmap.algorithms.sweeps.planning import chain_schedule
from softmap.algorithms.sweeps.schedule import aligned
from softmap.model import Model
from softmap.model.layout import layout

__all__ = ["ChainMarginals", "Chains", "Messages", "polish"]


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
UNPOLISHED = 20  # passes before which they gain 1 to 3 % of the gap, and cost a third of a check


def polish(passes: int) -> int:
    """Hard passes that pay before the bound is read off, after so many passes."""
    return POLISH if passes >= UNPOLISHED else 0


class Chains:
    """The schedule and scratch memory for passes over one model.

    Messages live in the order in which a pass reads them (see `kernels.schedule`); λ, couplings and
    node marginals come out in the order of the model.
    """

    def __init__(self, model: Model, threads: int, dtype: DTypeLike = np.float64) -> None:
        self.model, self.threads, self.dtype = model, threads, np.dtype(dtype)
        self._layout = layout(model, dtype)
        self.plan = chain_schedule(model, dtype)
        self._soft, self._hard = Pace(threads), Pace(threads)
        self._real = self.plan.edge >= 0
        self.surplus: Floats = model.graph.degree.astype(np.float64)
        self.surplus[self.plan.nodes] -= 1.0 / self.plan.share[: model.n]
        self._theta = aligned(self.plan.cost_size)
        self._dot = np.zeros(len(self.plan.blocks))

    def start(self, lam: Floats | None) -> Messages:
        """Messages that stand for λ (0 if None)."""
        plan = self.plan
        msg, prev = (aligned(size, self.dtype) for size in (plan.message_size, plan.back_size))
        if lam is not None:
            core.to_messages(self._layout, plan.native, lam, msg, self.threads)
        prev[:] = msg[: len(prev)]
        return Messages(msg, prev, np.array(CLOCK), aligned(len(plan.edge)))

    def lam(self, messages: Floats) -> Floats:
        """λ = -M in the order of the model."""
        flat = np.empty(int(self.model.half_offset[-1]))
        core.to_lam(self._layout, self.plan.native, messages, flat, self.threads)
        return flat

    def passes(self, state: Messages, count: int, eta: float, *, momentum: bool) -> None:
        """`count` passes at η (inf: hard-min), forward and backward each."""
        self._run(2 * count, state, eta, momentum)

    def _run(self, halves: int, state: Messages, eta: float, momentum: bool) -> None:
        pace = self._hard if eta == np.inf else self._soft
        pace.run(
            halves,
            lambda threads: core.passes(
                self._layout, self.plan.native, halves, state.msg, state.prev, self._theta, eta,
                momentum, state.shift, self._dot, state.clock, threads,
            ),
        )  # fmt: skip

    def nodes(self, messages: Floats, eta: float) -> Floats:
        """Node marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass."""
        return self._soft_nodes(self._shares(messages), eta)[0]

    def marginals(self, messages: Floats, shift: Floats, eta: float) -> ChainMarginals:
        """Marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass; `shift` is that pass's."""
        theta = self._shares(messages)
        nodes, entropy, minima = self._soft_nodes(theta, eta)
        smoothed = self._value(shift, minima)
        coupling = np.empty(int(self.model.half_offset[-1]))
        core.couplings(self._layout, self.plan.native, messages, theta, coupling, self.threads)
        return ChainMarginals(nodes, entropy, coupling, smoothed)

    def _value(self, shift: Floats, minima: Floats) -> float:
        """-L(λ) from what a pass took off the edges, and the soft minima of shares."""
        ends = self.plan.backward_ends * minima
        terms = np.concatenate([shift[self._real], ends, [self.model.constant]])
        return float(core.careful_sum(terms))

    def bounding(self, messages: Floats, hard: int = POLISH) -> Floats:
        """λ whose plain bound is the chain bound after `hard` hard passes and a half.

        Hard passes win back part of what the entropy costs the bound. From hard messages they never
        lower it; from smooth ones they may by a little, which concerns speed, not validity. Without
        a whole one, the messages sent forward are overwritten: the next pass makes them anew.
        """
        msg = messages
        if hard:
            msg = aligned(len(messages), self.dtype)
            msg[:] = messages
        shift = np.empty(len(self.plan.edge))
        self._run(2 * hard + 1, Messages(msg, msg, np.ones(3), shift), np.inf, False)
        del shift  # as long as there are edges
        theta = self._shares(msg)
        lam = np.empty(int(self.model.half_offset[-1]))
        core.cut_chains(
            self._layout, self.plan.native, self.plan.rank, msg, theta, lam, self.threads
        )
        return lam

    def _soft_nodes(self, theta: Floats, eta: float) -> tuple[Floats, Floats, Floats]:
        """Marginals, entropies and soft minima of the shares θ̂_i / n_i."""
        n, nodes = self.model.n, np.empty_like(theta)
        entropy, minima = np.empty(n), np.empty(n)
        at, step = self.model.node_offset[:-1], np.ones(n, dtype=np.int64)
        core.soft_nodes(
            layout(self.model), at, step, theta, eta, nodes, entropy, minima, self.threads
        )
        return nodes, entropy, minima

    def _shares(self, messages: Floats) -> Floats:
        """θ̂_i / n_i in the order of the model."""
        core.shares(self.plan.native, messages, self._theta, self.threads)
        out = np.empty(self.model.unary.size)
        core.by_node(self._layout, self.plan.native, self._theta, out, self.threads)
        return out
