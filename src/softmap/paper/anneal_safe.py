"""`anneal-safe`: the default method with a safeguard in the chain dual, so that its rate is proved.

Theorem and proof are in `docs/theory/rates.md` (passes over chains), the constants in
`softmap.paper.rates`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softmap import core
from softmap.methods.base import Assessment, Floats, Proposal
from softmap.methods.policy import AnnealingRule, Ask
from softmap.methods.sweeps.anneal import Anneal, AnnealState
from softmap.methods.sweeps.chains import ChainNumbers, polish
from softmap.methods.sweeps.loops import CLOCK, Messages
from softmap.model import Network
from softmap.paper import rates
from softmap.paper.chain_dual import ChainDual
from softmap.paper.estimate import NOISE, largest_step, least_step
from softmap.paper.theory import Sizes

EVERY = 250  # passes per safeguard step, which takes as long as two to sixteen passes
FIRST = 1000  # passes before the first one, whose set-up takes as long as thirty


def _empty() -> Floats:
    return np.zeros(0)


@dataclass(kw_only=True)
class AnnealSafeState(AnnealState):
    """The state of an annealed run and of the estimate sequence of its current η.

    Attributes
    ----------
    x, v : float64 arrays
        Changes of shares: the point of least L_T at the last safeguard step, and the minimum of the
        estimate function. Empty before the first step at this η.
    home : float64 array
        The messages of x.
    consensus : float64 array
        Mean of the node marginals at the points y, weighted by a_k.
    value : float
        L_T(x).
    total : float
        A_k: L_T(x) - L_T* is at most R² / (2 A_k).
    guards, restarts, stages, held : int
        Number of safeguard steps, of those after which momentum restarted, of times that η rose by
        the theorem, and of times that it did not rise because the gap was too large.
    """

    x: Floats = field(default_factory=_empty)
    v: Floats = field(default_factory=_empty)
    home: Floats = field(default_factory=_empty)
    consensus: Floats = field(default_factory=_empty)
    value: float = math.inf
    total: float = 0.0
    guards: int = 0
    restarts: int = 0
    stages: int = 0
    held: int = 0


class AnnealSafe(Anneal):
    """The default method with a safeguard that proves an error of O(1 / passes) at any time.

    After every `every` passes, one step of accelerated alternating minimisation in the chain dual
    is made from the best point of this η, to which the momentum's point counts. The passes are
    those of `anneal`, unless the momentum's point is worse by more than the entropy S over η:
    momentum then restarts from the best one. η rises as in `anneal`, but only if the gap is at most
    2 S / η; and it rises once the estimate sequence proves that the error is at most S / η. Models
    with forbidden labels or factor nodes, and those whose messages are kept in single precision,
    have no safeguard steps.

    Parameters
    ----------
    eta : float, optional
        Initial η; by default from the scale of the costs.
    threads : int, default 1
    averaging : bool, default True
        As for `anneal`.
    every : int, default 250
        Number of passes between two safeguard steps.
    first : int, default 1000
        Number of passes before the first one; a multiple of `every`.
    """

    name = "anneal-safe"

    def __init__(
        self,
        *,
        eta: float | None = None,
        threads: int = 1,
        averaging: bool = True,
        every: int = EVERY,
        first: int = FIRST,
    ) -> None:
        super().__init__(eta=eta, threads=threads, averaging=averaging)
        self.every, self.first = every, first
        self.dual: ChainDual | None = None

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> AnnealSafeState:
        state = super().init(model, lam, seed, deadline)
        plain = not model.has_factors and not model.has_forbidden and model.m > 0
        self.guarded = plain and not self.engine.large
        self.dual = None
        if self.guarded:
            cost = math.ldexp(model.cost_sizes.largest, model.cost_sizes.exponent)
            most = int(model.num_labels.max())
            degree = model.graph.degree
            self._sizes = Sizes(model.n, model.m, most, cost, int(degree.min()), int(degree.max()))
            self._entropy = math.log(most) * float(np.abs(self.engine.plan.chains[: model.n]).sum())
        return AnnealSafeState(**vars(state))

    def step(self, state: AnnealState, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` passes, and the safeguard steps that are due between them."""
        assert isinstance(state, AnnealSafeState)
        while count > 0:
            asked = min(count, self.every - state.passes % self.every)
            before = state.passes
            super().step(state, asked, deadline)
            if state.passes - before < asked:
                return
            count -= asked
            due = state.passes >= self.first and state.passes % self.every == 0
            if self.guarded and due:
                self.guard(state, deadline)

    def guard(self, state: AnnealSafeState, deadline: core.Deadline | None = None) -> None:
        """Do one safeguard step (none if the deadline passes first)."""
        if self.dual is None:
            self.dual = ChainDual(self.engine, deadline)
        dual, eta = self.dual, state.eta
        now = dual.value(state.messages, eta)
        if not len(state.x):
            self._move(state, state.messages, now)
            state.v, state.total = state.x, 0.0
            state.consensus = np.zeros(self.engine.model.unary.size)
        total, x, v = state.total, state.x, state.v
        least = least_step(total, dual.levels)
        y = x + least / (total + least) * (v - x)
        there = dual.marginals(y, eta, deadline)
        if there is None:
            return
        value, nodes, messages = there
        consensus = dual.consensus(nodes)
        step = dual.step(nodes, consensus, eta)
        passed = dual.half_pass(messages, eta)
        best = min(state.value, now, passed)
        noise = NOISE * abs(best)
        gain = value - best + dual.product(step, v - y, eta) - noise
        held = total * (state.value - best - noise)
        a = max(largest_step(dual.product(step, step, eta), gain, held), least)
        state.v = v - a * step
        state.total += a
        state.consensus += a / state.total * (consensus - state.consensus)
        state.guards += 1
        state.work += 3 * self.engine.model.m  # a pass over the copies, and half a pass
        if now <= best:
            self._move(state, state.messages, now)
        elif passed < state.value:
            self._move(state, messages, passed)
        if now > state.value + self._entropy / eta:
            state.restarts += 1
            self._restart(state)

    def _move(self, state: AnnealSafeState, messages: Messages, value: float) -> None:
        """Let x be the point of these messages."""
        assert self.dual is not None
        state.value, state.x = value, self.dual.change(messages)
        state.home = messages.msg.copy()

    def _restart(self, state: AnnealSafeState) -> None:
        """Let the passes continue from x, without momentum."""
        messages = state.messages
        self.engine.undo_proposal(messages)
        messages.msg[:] = state.home
        messages.drift[:] = 0.0
        messages.clock[:] = CLOCK
        self.engine.loops.half_pass(False, messages.msg, state.eta, shift=messages.shift)

    def certain(self, state: AnnealSafeState) -> bool:
        """Whether the estimate sequence proves L_T(x) - L_T* ≤ S / η."""
        if self.dual is None or not len(state.x):
            return False
        return state.total >= rates.stage_weight(self._sizes, state.eta, self.dual.lengths)

    def answer(
        self, state: AnnealState, ask: Ask, deadline: core.Deadline | None = None
    ) -> Proposal:
        """Propose what `anneal` does; at the end of a stage also λ of x and the consensus."""
        assert isinstance(state, AnnealSafeState)
        if ask is Ask.BOUND or not self.certain(state):
            return super().answer(state, ask, deadline)
        assert self.dual is not None
        average = (state.mean,) if state.samples > 1 else ()
        more, hard = (
            (*average, state.consensus.copy()),
            polish(state.passes, self.tuning.of(ChainNumbers)),
        )
        proposal = self._proposal(state, more, hard, deadline)
        bound, lam = self.dual.bounding(state.x)
        if proposal.abandoned or (proposal.bound is not None and bound <= proposal.bound):
            return proposal
        parts: dict[str, Any] = {"lam": lam, "bound": None, "labels": None}
        return Proposal(**(vars(proposal) | parts))  # lazy attributes stay lazy

    def observe(self, state: AnnealState, verdict: Assessment) -> None:
        """Raise η if the rule of `anneal` says so and the gap allows it, or if the stage ends."""
        assert isinstance(state, AnnealSafeState)
        eta, certain = state.eta, self.certain(state)
        super().observe(state, verdict)
        if not self.guarded:
            return
        gap = min(verdict.primals, default=math.inf) - verdict.bound
        if state.eta > eta and not (certain or gap <= 2.0 * self._entropy / eta):
            state.eta = eta
            state.held += 1
        elif state.eta == eta and certain:
            state.raise_by(self.tuning.of(AnnealingRule).growth)
            state.stages += 1
        if state.eta != eta:
            state.x = state.v = state.home = _empty()
