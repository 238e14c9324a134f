"""The paper's methods: block rule × order × scheme, each class one line of that table.

`Standard` is Algorithm 1 and `Accelerated` the scheme of Algorithms 2 and 3; a method names its
rule and its order and inherits the rest. Constants are derived in `docs/theory/acceleration.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softmap.algorithms.base import Floats, Proposal, State
from softmap.algorithms.rules import Order, Rule, gain
from softmap.kernels import accelerated, rng, standard
from softmap.layout import layout
from softmap.model import Model
from softmap.objective import check_eta, check_lam, half_states

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
    """What every randomised method carries on.

    Attributes
    ----------
    model : Model
        The problem; not part of what is stored.
    rng : uint64[4]
        The generator; nothing else is random.
    widest : int
        max |N_i| · d_i, room for the largest star.
    updates : int
        Updates done.
    """

    model: Model
    rng: NDArray[np.uint64]
    widest: int
    updates: int = 0


@dataclass(kw_only=True)
class StandardState(RandomisedState):
    """Current λ, what follows from it, and the best iterate; see `kernels.standard.Standard`."""

    lam: Floats
    message: Floats
    S: Floats
    mu: Floats
    half_level: Floats
    node_level: Floats
    norm: Floats
    total: Floats
    saved: Floats
    stamp: NDArray[np.int64]
    epoch: NDArray[np.int64]

    def arrays(self) -> standard.Standard:
        """The arrays as the kernels take them."""
        return standard.Standard(*(getattr(self, name) for name in standard.Standard._fields))

    def best(self) -> Floats:
        """The iterate of least Σ ‖ν‖₁² so far."""
        old = np.repeat(self.stamp == self.epoch[0], np.diff(self.model.half_offset))
        return np.where(old, self.saved, self.lam)


@dataclass(kw_only=True)
class AcceleratedState(RandomisedState):
    """θ_{k-1} and two arrays: v, and either λ (as printed) or (λ - v) / θ_{k-1}² (as proved)."""

    theta: float = 1.0
    v: Floats
    w: Floats
    gain: Floats


class Randomised:
    """What the two schemes share: η, the first λ, the generator.

    Parameters
    ----------
    eta : float
        Inverse temperature, in one over the units of the costs.
    """

    name: ClassVar[str]
    rule: ClassVar[Rule]
    order: ClassVar[Order]

    def __init__(self, eta: float) -> None:
        self.eta = check_eta(eta)

    def _first(self, model: Model, lam: Floats | None) -> Floats:
        if lam is None:
            return np.zeros(int(model.half_offset[-1]))
        barred = np.isposinf(model.unary)[half_states(model)]
        return np.where(barred, 0.0, check_lam(model, lam))

    def _switches(self) -> tuple[bool, bool]:
        return self.order is Order.STARS, self.rule is Rule.MINIMISE


class Standard(Randomised):
    """Algorithm 1: update random blocks; propose the iterate of least Σ ‖ν‖₁² over all so far."""

    def init(self, model: Model, lam: Floats | None, seed: int) -> StandardState:
        """Begin at λ (0 if None)."""
        first = self._first(model, lam)
        state = StandardState(
            model=model,
            rng=rng.seeded(seed),
            widest=_widest(model),
            lam=first,
            message=np.empty_like(first),
            S=np.empty_like(first),
            mu=np.empty(model.unary.size),
            half_level=np.empty(2 * model.m),
            node_level=np.empty(model.n),
            norm=np.zeros(2 * model.m),
            total=np.zeros(3),
            saved=first.copy(),
            stamp=np.zeros(2 * model.m, dtype=np.int64),
            epoch=np.ones(1, dtype=np.int64),
        )
        standard.begin(layout(model), self.eta, state.arrays())
        return state

    def step(self, state: StandardState, count: int) -> None:
        """Do `count` updates; a model without edges has nothing to update."""
        if not state.model.m:
            return
        lay, run = layout(state.model), state.arrays()
        stars, exact = self._switches()
        state.work += standard.run_standard(
            lay, stars, exact, self.eta, count, run, state.rng, state.widest
        )
        state.updates += count

    def propose(self, state: StandardState) -> Proposal:
        """The iterate of least Σ ‖ν‖₁², λ⁰ and the current one included."""
        return Proposal(state.best(), self.eta)


class Accelerated(Randomised):
    """Algorithms 2 and 3: block updates at y = θ v + (1 - θ) λ; propose the current λ.

    Parameters
    ----------
    eta : float
    constants : {"sharp", "lemma", "printed"}, optional
        The step of v (see `softmap.algorithms.rules`); by default the sharpest proved one, or the
        printed one where the method is the printed one.
    """

    printed: ClassVar[bool] = False

    def __init__(self, eta: float, constants: str | None = None) -> None:
        super().__init__(eta)
        self.constants = constants or ("printed" if self.printed else "sharp")

    def init(self, model: Model, lam: Floats | None, seed: int) -> AcceleratedState:
        """Begin with λ⁰ = v⁰ = λ (0 if None) and θ_{-1} = 1."""
        first = self._first(model, lam)
        return AcceleratedState(
            model=model,
            rng=rng.seeded(seed),
            widest=_widest(model),
            v=first,
            w=first.copy() if self.printed else np.zeros_like(first),
            gain=gain(self.constants, model, self.order, self.eta),
        )

    def step(self, state: AcceleratedState, count: int) -> None:
        """Do `count` updates; a model without edges has nothing to update."""
        if not state.model.m:
            return
        lay = layout(state.model)
        stars, exact = self._switches()
        state.theta, work = accelerated.run_accelerated(
            lay, stars, exact, self.printed, self.eta, state.gain, count, state.theta,
            state.v, state.w, state.rng, state.widest,
        )  # fmt: skip
        state.work += work
        state.updates += count

    def propose(self, state: AcceleratedState) -> Proposal:
        """λ^(k)."""
        if self.printed:
            return Proposal(state.w.copy(), self.eta)
        return Proposal(state.v + state.theta**2 * state.w, self.eta)


def _widest(model: Model) -> int:
    return int((model.graph.degree * model.num_labels).max())


class EMP(Standard):
    """Algorithm 1 with edge updates."""

    name = "emp"
    rule, order = Rule.MINIMISE, Order.EDGES


class SMP(Standard):
    """Algorithm 1 with star updates."""

    name = "smp"
    rule, order = Rule.MINIMISE, Order.STARS


class BCD(Standard):
    """Block-coordinate descent with step 1/η, the baseline of the paper's experiments."""

    name = "bcd"
    rule, order = Rule.GRADIENT, Order.EDGES


class AccelEMP(Accelerated):
    """Algorithm 2 as its proof needs it: λ^(k+1) = y^(k) off the block."""

    name = "accel-emp"
    rule, order = Rule.MINIMISE, Order.EDGES


class AccelSMP(Accelerated):
    """Algorithm 3 as its proof needs it: λ^(k+1) = y^(k) off the block, v-step of the proof."""

    name = "accel-smp"
    rule, order = Rule.MINIMISE, Order.STARS


class AccelBCD(Accelerated):
    """Accelerated block-coordinate descent (Lee and Sidford), in the same estimate sequence."""

    name = "accel-bcd"
    rule, order = Rule.GRADIENT, Order.EDGES


class AccelEMPPrinted(AccelEMP):
    """Algorithm 2 to the letter: λ^(k+1) = λ^(k) off the block."""

    name = "accel-emp-printed"
    printed = True


class AccelSMPPrinted(AccelSMP):
    """Algorithm 3 to the letter: λ^(k+1) = λ^(k) off the block, printed v-step."""

    name = "accel-smp-printed"
    printed = True
