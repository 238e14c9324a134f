"""Methods over colour-parallel stars: the annealed one, and those that users know.

MPLP (Globerson and Jaakkola 2007, blocks around a node), max-sum diffusion (Werner 2007) and
Nesterov's gradient method on the smoothed dual (Savchynskyy et al. 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from softmap.methods.base import Algorithm, Floats, Proposal, State
from softmap.methods.sweeps.anneal import Annealed
from softmap.methods.sweeps.messages import Messages
from softmap.methods.sweeps.stars import Rule, Stars
from softmap.methods.sweeps.trws import SHARPNESS
from softmap.model import Model
from softmap.relaxation.dual import cost_scale

__all__ = ["MPLP", "AnnealStar", "Diffusion", "Nesterov"]

FIXED_ETA = 1e3  # η of Nesterov's method, in units of 1 / scale of the costs


class AnnealStar(Annealed):
    """The annealed solver over stars, the paper's own block, a colour at a time."""

    name = "anneal-star"
    engine_type = Stars


@dataclass(kw_only=True)
class SweepState(State):
    """Messages of a method that sweeps over stars."""

    messages: Messages


class Sweeping(Algorithm):
    """Sweeps by one rule, from which the method proposes λ itself.

    Parameters
    ----------
    eta : float, optional
        Of the marginals that the judge is shown; from the scale of the costs if left out.
    """

    sweeping = True
    rule: ClassVar[Rule] = Rule.STAR
    sharpness: ClassVar[float] = SHARPNESS
    momentum: ClassVar[bool] = False

    def __init__(
        self, *, eta: float | None = None, threads: int = 1, dtype: DTypeLike = np.float64
    ) -> None:
        self.given, self.dtype, self.threads = eta, dtype, threads

    @classmethod
    def configured(cls, eta: float | None, threads: int, dtype: DTypeLike) -> Self:
        return cls(eta=eta, threads=threads, dtype=dtype)

    def init(self, model: Model, lam: Floats | None, seed: int) -> SweepState:
        """Begin at λ (0 if None)."""
        self.stars = Stars(model, self.threads, self.dtype)
        self.eta = self.given or self.sharpness / cost_scale(model)
        return SweepState(messages=self.stars.start(lam))

    def step(self, state: SweepState, count: int) -> None:
        """`count` sweeps over all colours."""
        eta = self.eta if self.rule is Rule.GRADIENT else np.inf
        momentum, rule = self.momentum, self.rule
        self.stars.passes(state.messages, count, eta, momentum=momentum, rule=rule)
        state.work += 2 * self.stars.model.m * count

    def restart_point(self, state: SweepState) -> Floats:
        return self.stars.lam(state.messages.msg)

    def propose(self, state: SweepState) -> Proposal:
        """Where it stands."""
        return Proposal(self.restart_point(state), self.eta)


class MPLP(Sweeping):
    """Hard-min star updates: exact block ascent on the bound, which never falls and may stall."""

    name = "mplp"


class Diffusion(Sweeping):
    """Max-sum diffusion: at one half-edge after the other, `C_i - Σ λ` and `min C_e + λ` meet."""

    name = "diffusion"
    rule = Rule.DIFFUSION


class Nesterov(Sweeping):
    """Accelerated gradient descent on L at a fixed η, with adaptive restart.

    The Hessian of L is at most η (|N_i| / 2 + 1) on the half-edges of node i: a variance is at most
    half a squared 2-norm, a node sums |N_i| half-edges, an edge two. The step is one over that.

    Parameters
    ----------
    eta : float, optional
        Fixed for the whole run; a thousand over the scale of the costs if left out.
    """

    name = "nesterov"
    rule = Rule.GRADIENT
    sharpness = FIXED_ETA
    momentum = True

    def propose(self, state: SweepState) -> Proposal:
        """The last point that a gradient step reached, and its -L."""
        smoothed = self.stars.value(state.messages.msg, self.eta)
        return Proposal(self.restart_point(state), self.eta, smoothed=smoothed)
