"""Known methods, for comparison: sweeps over stars, colour by colour.

They are the annealed method over stars, MPLP (Globerson and Jaakkola 2007, blocks around a node),
max-sum diffusion (Werner 2007) and Nesterov's gradient method on the smoothed dual (Savchynskyy et
al. 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from softmap import core
from softmap.methods.base import Floats, Proposal, State, SweepMethod
from softmap.methods.sweeps.anneal import Annealed
from softmap.methods.sweeps.loops import Messages
from softmap.methods.sweeps.stars import Rule, Stars
from softmap.methods.sweeps.trws import ROUNDED
from softmap.model import Network
from softmap.relaxation.gaps import cost_scale

NESTEROV = 1e3  # η of methods at a fixed η, in units of 1 / scale of the costs


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
    sharpness: ClassVar[float] = ROUNDED
    momentum: ClassVar[bool] = False

    def init(
        self,
        model: Network,
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
    sharpness = NESTEROV
    momentum = True

    def propose(self, state: SweepState) -> Proposal:
        """Propose the λ that the last gradient step reached, and its -L(λ)."""
        smoothed = self.stars.value(state.messages.msg, self.eta)
        return Proposal(self.restart_point(state), self.eta, smoothed=smoothed)
