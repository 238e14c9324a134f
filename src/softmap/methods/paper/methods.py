"""The paper's methods: rule × blocks × scheme, each class one line of that table.

`Standard` is Algorithm 1 and `Accelerated` the scheme of Algorithms 2 and 3; a method names its
rule and its blocks and inherits the rest. Constants are derived in `docs/theory/acceleration.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.base import Algorithm, Floats, Proposal, State
from softmap.methods.paper.rules import Blocks, Rule, gain
from softmap.methods.paper.star_order import star_order
from softmap.model import Model
from softmap.randomness import seeded
from softmap.relaxation.dual import check_eta, check_lam, half_states

__all__ = [
    "BCD",
    "EMP",
    "SMP",
    "AccelBCD",
    "AccelEMP",
    "AccelEMPPrinted",
    "AccelSMP",
    "AccelSMPPrinted",
    "Accelerated",
    "AcceleratedState",
    "Standard",
    "StandardState",
]


@dataclass(kw_only=True)
class RandomisedState(State):
    """What every randomised method carries on; half-edge arrays are in star order.

    Attributes
    ----------
    model : Model
        The problem; not part of what is stored.
    rng : uint64[4]
        The generator; nothing else is random.
    updates : int
        Updates done.
    """

    model: Model
    rng: NDArray[np.uint64]
    updates: int = 0


@dataclass(kw_only=True)
class StandardState(RandomisedState):
    """Current λ, what follows from it, and the best iterate.

    Attributes
    ----------
    lam, incoming, S : float64[Σ d]
        λ^(k), the messages into every half-edge, and S = softmax(-η (incoming + λ)).
    mu : float64[Σ d]
        Node marginals at λ^(k).
    half : float64[2m, 2]
        ‖ν‖₁² and the normaliser of S at every half-edge.
    node_level : float64[n]
        The normalisers of μ.
    total : float64[3]
        Σ ‖ν‖₁² as a pair (high, low), and the least so far.
    saved, stamp, epoch : float64[Σ d], int64[2m], int64[1]
        Position k of the best iterate is `saved` where `stamp[k] == epoch[0]`, else `lam`.
    """

    lam: Floats
    incoming: Floats
    S: Floats
    mu: Floats
    half: Floats
    node_level: Floats
    total: Floats
    saved: Floats
    stamp: NDArray[np.int64]
    epoch: NDArray[np.int64]

    def native(self) -> core.StandardRun:
        """The arrays as the compiled loops take them."""
        return core.StandardRun(
            star_order(self.model).native, self.lam, self.incoming, self.S, self.mu, self.half,
            self.node_level, self.total, self.saved, self.stamp, self.epoch,
        )  # fmt: skip

    def current(self) -> Floats:
        """λ^(k)."""
        return star_order(self.model).to_model(self.lam)

    def best(self) -> Floats:
        """The iterate of least Σ ‖ν‖₁² so far."""
        order = star_order(self.model)
        old = np.repeat(self.stamp == self.epoch[0], order.labels)
        return order.to_model(np.where(old, self.saved, self.lam))


@dataclass(kw_only=True)
class AcceleratedState(RandomisedState):
    """θ_{k-1} and two arrays: v, and either λ (as printed) or (λ - v) / θ_{k-1}² (as proved)."""

    theta: float = 1.0
    v: Floats
    w: Floats
    gain: Floats


class Randomised(Algorithm):
    """What the two schemes share: η, the first λ, the switches of the compiled loops.

    Parameters
    ----------
    eta : float
        Inverse temperature, in one over the units of the costs.
    """

    fixed_eta = True
    rule: ClassVar[Rule]
    blocks: ClassVar[Blocks]

    def __init__(self, eta: float) -> None:
        self.eta = check_eta(eta)

    def _first(self, model: Model, lam: Floats | None) -> Floats:
        """λ^(0) in star order, 0 on forbidden states."""
        if lam is None:
            return np.zeros(model.half_size)
        barred = np.isposinf(model.unary)[half_states(model)]
        return star_order(model).from_model(np.where(barred, 0.0, check_lam(model, lam)))

    @property
    def _stars(self) -> bool:
        return self.blocks is Blocks.STARS

    @property
    def _exact(self) -> bool:
        return self.rule is Rule.MINIMISE


class Standard(Randomised):
    """Algorithm 1: update random blocks; propose the iterate of least Σ ‖ν‖₁² over all so far."""

    def init(self, model: Model, lam: Floats | None, seed: int) -> StandardState:
        """Begin at λ (0 if None)."""
        first = self._first(model, lam)
        state = StandardState(
            model=model,
            rng=seeded(seed),
            lam=first,
            incoming=np.empty_like(first),
            S=np.empty_like(first),
            mu=np.empty(model.unary.size),
            half=np.zeros((2 * model.m, 2)),
            node_level=np.empty(model.n),
            total=np.zeros(3),
            saved=first.copy(),
            stamp=np.zeros(2 * model.m, dtype=np.int64),
            epoch=np.ones(1, dtype=np.int64),
        )
        state.native().begin(self.eta)
        return state

    def step(self, state: StandardState, count: int) -> None:
        """Do `count` updates; a model without edges has nothing to update."""
        if not state.model.m:
            return
        run = state.native()
        state.work += run.run(self.eta, self._stars, self._exact, count, state.rng)
        state.updates += count

    def propose(self, state: StandardState) -> Proposal:
        """The iterate of least Σ ‖ν‖₁², λ^(0) and the current one included."""
        return Proposal(state.best(), self.eta)


class Accelerated(Randomised):
    """Algorithms 2 and 3: block updates at y = θ v + (1 - θ) λ; propose the current λ.

    Parameters
    ----------
    eta : float
    constants : {"sharp", "lemma", "printed"}, optional
        The step of v (see `softmap.methods.paper.rules`); by default the sharpest proved one,
        or the printed one where the method is the printed one.
    """

    printed: ClassVar[bool] = False

    def __init__(self, eta: float, constants: str | None = None) -> None:
        super().__init__(eta)
        self.constants = constants or ("printed" if self.printed else "sharp")

    def init(self, model: Model, lam: Floats | None, seed: int) -> AcceleratedState:
        """Begin with λ^(0) = v^(0) = λ (0 if None) and θ_{-1} = 1."""
        first = self._first(model, lam)
        return AcceleratedState(
            model=model,
            rng=seeded(seed),
            v=first,
            w=first.copy() if self.printed else np.zeros_like(first),
            gain=gain(self.constants, model, self.blocks, self.eta),
        )

    def step(self, state: AcceleratedState, count: int) -> None:
        """Do `count` updates; a model without edges has nothing to update."""
        if not state.model.m:
            return
        state.theta, work = core.run_accelerated(
            star_order(state.model).native, self.eta, self._stars, self._exact, self.printed,
            count, state.theta, state.v, state.w, state.gain, state.rng,
        )  # fmt: skip
        state.work += work
        state.updates += count

    def propose(self, state: AcceleratedState) -> Proposal:
        """λ^(k)."""
        with np.errstate(over="ignore", invalid="ignore"):  # at an η far from costs it may diverge
            lam = state.w if self.printed else state.v + state.theta**2 * state.w
        return Proposal(star_order(state.model).to_model(lam), self.eta)


class EMP(Standard):
    """Algorithm 1 with edge updates."""

    name = "emp"
    rule, blocks = Rule.MINIMISE, Blocks.EDGES


class SMP(Standard):
    """Algorithm 1 with star updates."""

    name = "smp"
    rule, blocks = Rule.MINIMISE, Blocks.STARS


class BCD(Standard):
    """Block-coordinate descent with step 1/η, the baseline of the paper's experiments."""

    name = "bcd"
    rule, blocks = Rule.GRADIENT, Blocks.EDGES


class AccelEMP(Accelerated):
    """Algorithm 2 as its proof needs it: λ^(k+1) = y^(k) off the block."""

    name = "accel-emp"
    rule, blocks = Rule.MINIMISE, Blocks.EDGES


class AccelSMP(Accelerated):
    """Algorithm 3 as its proof needs it: λ^(k+1) = y^(k) off the block, v-step of the proof."""

    name = "accel-smp"
    rule, blocks = Rule.MINIMISE, Blocks.STARS


class AccelBCD(Accelerated):
    """Accelerated block-coordinate descent (Lee and Sidford), in the same estimate sequence."""

    name = "accel-bcd"
    rule, blocks = Rule.GRADIENT, Blocks.EDGES


class AccelEMPPrinted(AccelEMP):
    """Algorithm 2 to the letter: λ^(k+1) = λ^(k) off the block."""

    name = "accel-emp-printed"
    printed = True


class AccelSMPPrinted(AccelSMP):
    """Algorithm 3 to the letter: λ^(k+1) = λ^(k) off the block, printed v-step."""

    name = "accel-smp-printed"
    printed = True
