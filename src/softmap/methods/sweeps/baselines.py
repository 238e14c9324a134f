"""Known methods, for comparison: chain passes at η = ∞, and colour-parallel stars.

They are TRW-S (Kolmogorov 2006), the annealed method over stars, MPLP (Globerson and Jaakkola 2007,
blocks around a node), max-sum diffusion (Werner 2007) and Nesterov's gradient method on the
smoothed dual (Savchynskyy et al. 2011).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.base import Floats, Proposal, State, SweepMethod
from softmap.methods.policy import Ask
from softmap.methods.sweeps.anneal import Annealed
from softmap.methods.sweeps.chains import Chains
from softmap.methods.sweeps.loops import Messages
from softmap.methods.sweeps.planning import decoding_order
from softmap.methods.sweeps.stars import Rule, Stars
from softmap.model import Model
from softmap.relaxation.gaps import cost_scale
from softmap.relaxation.polytope import Coupled


@dataclass(frozen=True)
class Sharpness:
    """η of these methods, in units of 1 / scale of the costs.

    Attributes
    ----------
    rounded : float
        η of the marginals of methods at η = ∞.
    nesterov : float
        η of Nesterov's method.
    """

    rounded: float = 1e4
    nesterov: float = 1e3


SHARPNESS = Sharpness()


@dataclass(kw_only=True)
class TRWSState(State):
    """Messages of the hard-min recursion."""

    messages: Messages


class TRWS(SweepMethod):
    """TRW-S: hard-min passes over monotonic chains.

    Its bound never decreases; it may converge to a value below the LP optimum.

    Parameters
    ----------
    eta : float, optional
        η of the proposed marginals only; the messages do not depend on it.
    threads : int, default 1
    """

    name = "trws"

    def init(
        self,
        model: Model,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> TRWSState:
        self.chains = Chains(model, self.threads, deadline)
        self.eta = self.given_eta or SHARPNESS.rounded / cost_scale(model)
        return TRWSState(messages=self.chains.start(lam))

    def step(self, state: TRWSState, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` passes, each forward and backward."""
        messages = state.messages
        done = self.chains.passes(messages, count, np.inf, momentum=False, deadline=deadline)
        state.work += 2 * self.chains.model.m * done

    def propose(self, state: TRWSState) -> Proposal:
        return self.answer(state, Ask.EVERYTHING)

    def answer(self, state: TRWSState, ask: Ask, deadline: core.Deadline | None = None) -> Proposal:
        """Propose marginals and their point, unless the deadline passes first, and the bound."""
        chains, messages = self.chains, state.messages
        chains.resend(messages, np.inf)
        found = chains.marginals(messages, self.eta)
        points: tuple[Coupled, ...] = ()
        if found.point_cost is not None:
            with suppress(core.OutOfTime):
                points = (found.point_cost(found.nodes, whole=True, deadline=deadline),)
        abandoned = not points and deadline is not None and deadline.passed
        proved = chains.prove(messages, deadline=deadline)
        return Proposal(
            proved.lam, self.eta, found.coupling, (found.nodes,), None, proved.bound, points,
            proved.labels, abandoned,
        )  # fmt: skip

    def last_bound(self, state: TRWSState, limit: core.Deadline) -> Proposal:
        """Propose the bound of the messages, which takes half a pass, and no marginals."""
        proved = self.chains.prove(state.messages, 0, limit=limit)
        return Proposal(proved.lam, self.eta, bound=proved.bound, labels=proved.labels)

    def restart_point(self, state: TRWSState) -> Floats:
        return self.chains.current_lam(state.messages, np.inf)

    def undo_proposal(self, state: TRWSState) -> None:
        self.chains.undo_proposal(state.messages)

    def decode_order(self, model: Model) -> NDArray[np.int64]:
        return decoding_order(model.graph, model.num_variables)


class AnnealStar(Annealed):
    """The annealed method over stars (the paper's blocks), one colour at a time."""

    name = "anneal-star"
    engine_type = Stars


@dataclass(kw_only=True)
class SweepState(State):
    """The messages of a method that sweeps over stars."""

    messages: Messages


class Sweeping(SweepMethod):
    """Base class of methods that sweep over stars by one rule and propose their current λ.

    Parameters
    ----------
    eta : float, optional
        η of the proposed marginals; by default from the scale of the costs.
    threads : int, default 1
    """

    rule: ClassVar[Rule] = Rule.STAR
    sharpness: ClassVar[float] = SHARPNESS.rounded
    momentum: ClassVar[bool] = False

    def init(
        self,
        model: Model,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> SweepState:
        """Return the initial state at λ (0 if None)."""
        self.stars = Stars(model, self.threads, deadline)
        self.eta = self.given_eta or self.sharpness / cost_scale(model)
        return SweepState(messages=self.stars.start(lam))

    def step(self, state: SweepState, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` sweeps over all colours."""
        eta = self.eta if self.rule is Rule.GRADIENT else np.inf
        momentum, rule = self.momentum, self.rule
        done = self.stars.passes(
            state.messages, count, eta, momentum=momentum, rule=rule, deadline=deadline
        )
        state.work += 2 * self.stars.model.m * done

    def restart_point(self, state: SweepState) -> Floats:
        return self.stars.lam(state.messages.msg)

    def propose(self, state: SweepState) -> Proposal:
        """Propose the current λ."""
        return Proposal(self.restart_point(state), self.eta)


class MPLP(Sweeping):
    """MPLP: hard-min star updates, exact block ascent on the bound, which may stall."""

    name = "mplp"


class Diffusion(Sweeping):
    """Max-sum diffusion: each half-edge update makes `C_i - Σ λ` and `min C_e + λ` equal."""

    name = "diffusion"
    rule = Rule.DIFFUSION


class Nesterov(Sweeping):
    """Accelerated gradient descent on L at a fixed η, with adaptive restart.

    The Hessian of L is at most η (|N_i| / 2 + 1) on the half-edges of node i: a variance is at most
    half a squared 2-norm, a node sums |N_i| half-edges, an edge two. The step is one over that.

    Parameters
    ----------
    eta : float, optional
        η of the whole run; 1000 / scale of the costs by default.
    threads : int, default 1
    """

    name = "nesterov"
    rule = Rule.GRADIENT
    sharpness = SHARPNESS.nesterov
    momentum = True

    def propose(self, state: SweepState) -> Proposal:
        """Propose the λ that the last gradient step reached, and its -L(λ)."""
        smoothed = self.stars.value(state.messages.msg, self.eta)
        return Proposal(self.restart_point(state), self.eta, smoothed=smoothed)
