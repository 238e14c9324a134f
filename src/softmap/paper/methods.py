"""The paper's methods, compiled: one class per combination of update rule, blocks and scheme.

`Standard` is Algorithm 1, `Accelerated` the scheme of Algorithms 2 and 3. A method names its rule
and its blocks and inherits the rest. `softmap.paper.algorithms` is what they compute, to read;
constants are derived in `docs/theory/acceleration.md`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.arguments import seeded
from softmap.errors import OptionError
from softmap.methods.base import Algorithm, Floats, Proposal, State
from softmap.model import Network
from softmap.model.layout import layout
from softmap.paper.algorithms import lemma_gain, printed_gain, proved_gain
from softmap.paper.blocks import Order, distribution, edges, stars
from softmap.relaxation.dual import check_eta, check_lam, half_states


class UpdateRule(Enum):
    """The update of a block."""

    MINIMISE = "minimise L over the block (Propositions 'emp-update' and 'smp-update')"
    GRADIENT = "one gradient step on the block, of length 1 / curvature"


class Blocks(Enum):
    """The blocks, and the distribution they are drawn from."""

    EDGES = "one half-edge (e, i), uniformly"
    STARS = "all half-edges of a vertex i, with probability |N_i| / N"

    @property
    def order(self) -> Order:
        """The same blocks as lists: `edges` or `stars`."""
        return edges if self is Blocks.EDGES else stars


def block_size(model: Network, blocks: Blocks) -> Floats:
    """|B| of the block at each vertex (at least 1, also for isolated vertices)."""
    if blocks is Blocks.EDGES:
        return np.ones(model.n)
    return np.maximum(model.graph.degree, 1).astype(np.float64)


def block_probability(model: Network, blocks: Blocks) -> Floats:
    """p_b of a block at every vertex; N = 2m."""
    return block_size(model, blocks) / max(2 * model.m, 1)


def block_curvature(model: Network, blocks: Blocks, eta: float) -> Floats:
    """L_b = η (|B| + 1) / 2, the largest curvature of L on the block at every vertex.

    For an edge block that is η, hence the step 1/η of block-coordinate descent.
    """
    return eta * (block_size(model, blocks) + 1.0) / 2.0


UNSEEN = 256  # updates between two looks at a deadline; each takes some microseconds

GAINS = {"sharp": proved_gain, "lemma": lemma_gain, "printed": printed_gain}


def gain(name: str, model: Network, blocks: Blocks, eta: float) -> Floats:
    """Return the step of v, times θ_k, of the block at each vertex; 0 without edges.

    Parameters
    ----------
    name : {"sharp", "lemma", "printed"}
        The function of `softmap.paper.algorithms`: `proved_gain`, `lemma_gain` or `printed_gain`.
    model : Network
    blocks : Blocks
    eta : float
        Inverse temperature η, in units of 1 / cost.
    """
    if name not in GAINS:
        raise OptionError(f"constants must be one of {', '.join(GAINS)}, not {name!r}")
    out, drawn = np.zeros(model.n), model.graph.degree > 0
    if model.m:
        size, p = block_size(model, blocks)[drawn], block_probability(model, blocks)[drawn]
        out[drawn] = GAINS[name](model, blocks.order, eta, size, p)
    return out


@dataclass(frozen=True)
class StarOrder:
    """The half-edges sorted by node: position k is half-edge `graph.half[k]`.

    Attributes
    ----------
    native : core.StarOrder
        The same, for the compiled loops.
    labels : int64[2m]
        Label count of the half-edge at each position.
    index : int64[Σ d]
        For every entry in star order, its index in λ in the model's order.
    """

    native: core.StarOrder
    labels: NDArray[np.int64]
    index: NDArray[np.int64]

    def from_model(self, lam: Floats) -> Floats:
        """Return λ in star order."""
        return lam[self.index]

    def to_model(self, lam: Floats) -> Floats:
        """Return λ in the model's order of half-edges."""
        out = np.empty_like(lam)
        out[self.index] = lam
        return out


def star_order(model: Network) -> StarOrder:
    """Return the star order of a model; it is computed once per model."""
    cache: dict[str, StarOrder] = model.__dict__.setdefault("_star_order", {})
    if "order" not in cache:
        cache["order"] = _build(model)
    return cache["order"]


def _build(model: Network) -> StarOrder:
    graph = model.graph
    labels = model.num_labels[graph.node[graph.half]]
    place = np.cumsum(labels) - labels
    shift = np.repeat(model.half_offset[graph.half] - place, labels)
    return StarOrder(core.StarOrder(layout(model)), labels, shift + np.arange(len(shift)))


@dataclass(kw_only=True)
class RandomisedState(State):
    """The state that all randomised methods share; half-edge arrays are in star order.

    Attributes
    ----------
    model : Network
        The model; checkpoints leave it out.
    rng : uint64[4]
        State of the only random number generator.
    updates : int
        Number of updates so far.
    """

    model: Network
    rng: NDArray[np.uint64]
    updates: int = 0


@dataclass(kw_only=True)
class StandardState(RandomisedState):
    """The current λ, quantities computed from it, and the best iterate.

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
        Σ ‖ν‖₁² as a double-double (high, low), and its minimum so far.
    saved, stamp, epoch : float64[Σ d], int64[2m], int64[1]
        The best iterate: at position k it is `saved` if `stamp[k] == epoch[0]`, else `lam`.
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
        """The arrays for the compiled loops."""
        return core.StandardRun(
            star_order(self.model).native,
            lam=self.lam,
            incoming=self.incoming,
            S=self.S,
            mu=self.mu,
            half=self.half,
            node_level=self.node_level,
            total=self.total,
            saved=self.saved,
            stamp=self.stamp,
            epoch=self.epoch,
        )

    def current(self) -> Floats:
        """Return λ^(k)."""
        return star_order(self.model).to_model(self.lam)

    def best(self) -> Floats:
        """Return the iterate of least Σ ‖ν‖₁² so far."""
        order = star_order(self.model)
        old = np.repeat(self.stamp == self.epoch[0], order.labels)
        return order.to_model(np.where(old, self.saved, self.lam))


@dataclass(kw_only=True)
class AcceleratedState(RandomisedState):
    """θ_{k-1} and two arrays: v, and λ (printed form) or (λ - v) / θ_{k-1}² (proved form)."""

    theta: float = 1.0
    v: Floats
    w: Floats
    gain: Floats

    def native(self) -> core.AcceleratedRun:
        """The arrays for the compiled loops."""
        order = star_order(self.model).native
        return core.AcceleratedRun(order, v=self.v, w=self.w, gain=self.gain)


class Randomised(Algorithm):
    """Base class of the two schemes: η, the initial λ, the switches of the compiled loops.

    Parameters
    ----------
    eta : float
        Inverse temperature η, in units of 1 / cost.
    """

    fixed_eta = True
    rule: ClassVar[UpdateRule]
    blocks: ClassVar[Blocks]

    def __init__(self, eta: float) -> None:
        self.eta = check_eta(eta)

    def _first(self, model: Network, lam: Floats | None) -> Floats:
        """λ^(0) in star order, 0 on forbidden states."""
        if lam is None:
            return np.zeros(model.half_size)
        excluded = np.isposinf(model.unary)[half_states(model)]
        return star_order(model).from_model(np.where(excluded, 0.0, check_lam(model, lam)))

    @property
    def _stars(self) -> bool:
        return self.blocks is Blocks.STARS

    @property
    def _exact(self) -> bool:
        return self.rule is UpdateRule.MINIMISE

    def step(self, state: Any, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` updates (none if the model has no edges), a few at a time until a deadline."""
        if not state.model.m:
            return
        run, at_once = state.native(), count if deadline is None else UNSEEN
        while count > 0 and not (deadline is not None and deadline.passed):
            now = min(count, self._at_once(state, at_once))
            work = self._update(state, run, now)
            state.work, state.updates = state.work + work, state.updates + now
            count -= now

    def _at_once(self, state: Any, most: int) -> int:
        """Return how many of `most` updates are done before the next look at the deadline."""
        return most

    @abstractmethod
    def _update(self, state: Any, run: Any, count: int) -> int:
        """Do `count` updates in the compiled loop; return the messages computed."""


class Standard(Randomised):
    """Algorithm 1: update random blocks; propose the iterate of least Σ ‖ν‖₁² so far.

    Parameters
    ----------
    eta : float
        Inverse temperature η, in units of 1 / cost.
    P : array, optional
        Probability of each block of `edges(model)` or `stars(model)` of `softmap.paper`. By default
        half-edges are drawn uniformly, and vertices in proportion to their degree.
    """

    def __init__(self, eta: float, P: ArrayLike | None = None) -> None:
        super().__init__(eta)
        self.P = P

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> StandardState:
        """Return the initial state at λ (0 if None)."""
        first = self._first(model, lam)
        self._sums = None if self.P is None else np.cumsum(self._distribution(model, self.P))
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

    def _distribution(self, model: Network, P: ArrayLike) -> Floats:
        size = [len(block) for block in self.blocks.order(model)]
        return distribution(P, np.array(size))

    def _update(self, state: Any, run: Any, count: int) -> int:
        return int(run.run(self.eta, self._stars, self._exact, count, state.rng, self._sums))

    def propose(self, state: StandardState) -> Proposal:
        """Propose the iterate of least Σ ‖ν‖₁² among λ^(0), …, λ^(k)."""
        return Proposal(state.best(), self.eta)


class Accelerated(Randomised):
    """Algorithms 2 and 3: block updates at y = θ v + (1 - θ) λ; propose the current λ.

    Parameters
    ----------
    eta : float
        Inverse temperature η, in units of 1 / cost.
    constants : {"sharp", "lemma", "printed"}, optional
        The step of v, see `gain`. "sharp" by default; "printed" for the printed methods.
    """

    printed: ClassVar[bool] = False

    def __init__(self, eta: float, constants: str | None = None) -> None:
        super().__init__(eta)
        self.constants = constants or ("printed" if self.printed else "sharp")

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> AcceleratedState:
        """Return the initial state λ^(0) = v^(0) = λ (0 if None) and θ_{-1} = 1."""
        first = self._first(model, lam)
        return AcceleratedState(
            model=model,
            rng=seeded(seed),
            v=first,
            w=first.copy() if self.printed else np.zeros_like(first),
            gain=gain(self.constants, model, self.blocks, self.eta),
        )

    def _update(self, state: Any, run: Any, count: int) -> int:
        given = self.eta, self._stars, self._exact, self.printed, count, state.theta, state.rng
        state.theta, work = run.run(*given)
        return int(work)

    def propose(self, state: AcceleratedState) -> Proposal:
        """Propose λ^(k)."""
        with np.errstate(over="ignore", invalid="ignore"):  # diverges at unsuitable η
            lam = state.w if self.printed else state.v + state.theta**2 * state.w
        return Proposal(star_order(state.model).to_model(lam), self.eta)


class EMP(Standard):
    """Algorithm 1 with edge updates."""

    name = "emp"
    rule, blocks = UpdateRule.MINIMISE, Blocks.EDGES


class SMP(Standard):
    """Algorithm 1 with star updates."""

    name = "smp"
    rule, blocks = UpdateRule.MINIMISE, Blocks.STARS


class BCD(Standard):
    """Block-coordinate descent with step 1/η, the baseline of the paper's experiments."""

    name = "bcd"
    rule, blocks = UpdateRule.GRADIENT, Blocks.EDGES


class AccelEMP(Accelerated):
    """Algorithm 2 as its proof needs it: λ^(k+1) = y^(k) off the block."""

    name = "accel-emp"
    rule, blocks = UpdateRule.MINIMISE, Blocks.EDGES


class AccelSMP(Accelerated):
    """Algorithm 3 as its proof needs it: λ^(k+1) = y^(k) off the block, v-step of the proof."""

    name = "accel-smp"
    rule, blocks = UpdateRule.MINIMISE, Blocks.STARS


class AccelBCD(Accelerated):
    """Accelerated block-coordinate descent (Lee and Sidford), in the same estimate sequence."""

    name = "accel-bcd"
    rule, blocks = UpdateRule.GRADIENT, Blocks.EDGES


class AccelEMPPrinted(AccelEMP):
    """Algorithm 2 exactly as printed: λ^(k+1) = λ^(k) off the block."""

    name = "accel-emp-printed"
    printed = True


class AccelSMPPrinted(AccelSMP):
    """Algorithm 3 exactly as printed: λ^(k+1) = λ^(k) off the block, printed v-step."""

    name = "accel-smp-printed"
    printed = True


class AccelBCDPrinted(AccelBCD):
    """Accelerated block-coordinate descent in the scheme that Algorithm 2 prints."""

    name = "accel-bcd-printed"
    printed = True
