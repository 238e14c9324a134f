"""Passes over monotonic chains of one model: the core of the annealed solver and of TRW-S."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.methods.base import Floats
from softmap.methods.sweeps.coarser import Coarser
from softmap.methods.sweeps.messages import CLOCK, ChainLoops, Messages, Sampling
from softmap.methods.sweeps.planning import aligned, chain_schedule, surpluses
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Potential, Potts, TruncatedLinear, TruncatedQuadratic
from softmap.relaxation.point import Coupled, needs_coupling

__all__ = ["ChainMarginals", "Chains", "Proved", "polish"]


@dataclass(frozen=True)
class ChainLimits:
    """Sizes at which chain passes copy messages, do hard passes, or accept single precision.

    Attributes
    ----------
    large : int
        Number of entries of λ above which a bound computed in single precision is used.
    spare : int
        Largest number of message entries for which a second copy of one direction is kept.
    polish : int
        Number of hard passes before a bound is computed.
    unpolished : int
        Number of passes before which hard passes are skipped: they would gain 1 to 3 % of the gap
        and take a third of the time of a check.
    """

    large: int = 1 << 21
    spare: int = 1 << 23
    polish: int = 1
    unpolished: int = 20


CHAINS = ChainLimits()


@dataclass(frozen=True)
class Proved:
    """λ or a function that returns it, its bound, and a function that decodes labels, if known."""

    lam: Any
    bound: float | None = None
    labels: Callable[[], NDArray[np.int64]] | None = None


@dataclass(frozen=True)
class ChainMarginals:
    """The regularised primal point of some messages, and the value of the regularised dual.

    `coupling` is κ, a function that returns κ, or None if points do not depend on it. `price` is a
    function that computes the cost of a point without κ, or None.
    """

    nodes: Floats
    node_entropy: Floats
    coupling: Any
    smoothed: float
    price: Callable[..., Coupled] | None = None


def polish(passes: int) -> int:
    """Number of hard passes before the bound is computed, given the passes so far."""
    return CHAINS.polish if passes >= CHAINS.unpolished else 0


@dataclass(frozen=True)
class Shortcuts:
    """The values that can be computed from messages without forming λ or κ.

    Attributes
    ----------
    bounds : bool
        Whether the chain bound is a bound of the model: passes use the model's exact costs. In
        single precision it is slightly lower than the bound of λ, which is accepted for large
        models only.
    labels : bool
        Whether labels can be decoded from messages.
    points : bool
        Whether the cost of points can be computed without κ.
    """

    bounds: bool
    labels: bool
    points: bool

    @classmethod
    def of(cls, model: Model, dtype: np.dtype[Any]) -> Shortcuts:
        """The shortcuts available for a model and a precision."""
        exact = dtype == np.float64 or not _rounded(model)
        large = model.half_size > CHAINS.large and not model.has_forbidden
        plain = not len(model.auxiliaries)
        return cls(
            bounds=exact and (dtype == np.float64 or large),
            labels=plain and not model.has_forbidden,
            points=exact and plain and all(map(_alike, model.potentials)),
        )


class Chains:
    """Passes over one model, and the bounds, points and labels of the messages they lead to.

    Messages are stored in the order in which a pass reads them (see `kernels.schedule`). λ,
    couplings and node marginals are returned in the order of the model.
    """

    def __init__(self, model: Model, threads: int, dtype: DTypeLike = np.float64) -> None:
        self.model = model
        self.plan = chain_schedule(model, dtype)
        self.loops = ChainLoops(model, self.plan, threads)
        self.surplus = surpluses(model, self.plan)
        self.making = threading.RLock()  # any thread may ask for λ after a run
        self._shortcuts = Shortcuts.of(model, np.dtype(dtype))
        self._keeps_coupling = needs_coupling(model)
        self._last: HalfPass | None = None

    def keep_couplings(self) -> None:
        """Return couplings even if points do not depend on them."""
        self._keeps_coupling = True

    def start(self, lam: Floats | None) -> Messages:
        """The messages M = -λ; 0 if λ is None."""
        plan, loops = self.plan, self.loops
        dtype = plan.table.dtype
        msg, prev = (aligned(size, dtype) for size in (plan.message_size, plan.back_size))
        if lam is not None:
            core.to_messages(loops.layout, plan.native, lam, msg, loops.threads)
            prev[:] = msg[: len(prev)]
        return Messages(msg, prev, np.array(CLOCK), aligned(len(plan.edge)))

    def begin_with(self, state: Messages, small: Coarser, lam: Floats) -> None:
        """Initialise the messages of a new run from λ of a coarsened model.

        Forward messages are not set, because the first pass computes them.
        """
        loops = self.loops
        core.spread(
            loops.layout, self.plan.native, lam, small.source, small.part, state.msg, loops.threads
        )
        state.prev[:] = state.msg[: len(state.prev)]
        self._last = None

    def standing(self, state: Messages, eta: float) -> Floats:
        """The current λ of a run; safe to call from any thread, also after the run."""
        with self.making:
            self.resend(state, eta)
            return self.loops.lam(state.msg)

    def passes(self, state: Messages, count: int, eta: float, *, momentum: bool) -> None:
        """Do `count` passes at η (inf: hard-min), each forward and backward."""
        self._restore_prev(state)
        self.loops.passes(2 * count, state, eta, momentum=momentum)
        self._came(state, eta, forward=False)

    def sampled_passes(self, state: Messages, count: int, eta: float, sampling: Sampling) -> None:
        """Do `count` passes with momentum, and add marginals to the average at intervals."""
        self._restore_prev(state)
        self.loops.sampled_passes(state, count, eta, sampling)
        self._came(state, eta, forward=False)

    def resend(self, state: Messages, eta: float) -> None:
        """Recompute the forward messages at η if `prove` has overwritten them."""
        if state.overwritten:
            self.loops.passes(1, state, eta, momentum=False)
            self._came(state, eta, forward=True)

    def _came(self, state: Messages, eta: float, *, forward: bool) -> None:
        """Record the last half pass: all messages in its direction come from it."""
        self._last, state.overwritten = HalfPass(state.msg, eta, forward), False

    def nodes(self, messages: Floats, eta: float) -> Floats:
        """Node marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass."""
        return self.loops.soft_nodes(messages, eta)[0]

    def marginals(self, state: Messages, eta: float) -> ChainMarginals:
        """Marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass, or one sent forward again."""
        nodes, entropy, minima = self.loops.soft_nodes(state.msg, eta)
        value = self._value(state.shift, minima)
        if len(self.model.auxiliaries):
            coupling = self.loops.couplings(state.msg, self.loops.by_node())
            return ChainMarginals(nodes, entropy, coupling, value)
        price = partial(self.loops.price, state.msg, eta) if self._shortcuts.points else None
        kept = self._keeps_coupling or price is None
        point = KeptPoint(self, state.msg, self._last) if kept else None
        return ChainMarginals(nodes, entropy, point, value, price)

    def _value(self, shift: Floats, minima: Floats) -> float:
        """-L(λ) from the shifts of the last half pass and the soft minima of θ̂_i / n_i."""
        forward = self._last is not None and self._last.forward
        ends = self.plan.forward_ends if forward else self.plan.backward_ends
        shift[self.plan.idle] = 0.0
        sums = (core.careful_sum(part, self.loops.threads) for part in (shift, ends * minima))
        terms = np.array([*sums, self.model.constant])
        return float(core.careful_sum(terms))

    def prove(self, state: Messages, hard: int = CHAINS.polish) -> Proved:
        """The chain bound after `hard` hard passes and a half, and the λ that proves it.

        Hard passes recover part of the loss of the bound to the entropy. They never lower the bound
        of hard messages, but may slightly lower that of smooth messages; the bound stays valid. The
        forward messages and the shifts are overwritten; the next pass recomputes them.
        """
        messages, shift, model = state.msg, state.shift, self.model
        sent = KeptBound(self, state, self._kept_back(state))
        if hard:
            polished = Messages(messages, messages, np.ones(3), shift)
            self.loops.passes(2 * hard, polished, np.inf, momentum=False)
        bound = self.loops.lowered(messages, shift, sent.token)
        if hard:  # keep the messages of the bound, restore those of the run
            sent.swap()
        self._last, state.overwritten = None, True
        labels = sent.labels if self._shortcuts.labels else None
        if not self._shortcuts.bounds:
            bound = core.dual_bound(layout(model), sent(), model.constant, self.loops.threads)
        return Proved(sent, bound, labels)

    def _kept_back(self, state: Messages) -> Floats:
        """A copy of the messages into early endpoints; on large models in the memory of `prev`.

        A large run thus holds the messages of both directions, one direction for momentum, and one
        direction for the best bound. `prev` is allocated again only by the next pass, after the
        worse of two bounds was dropped.
        """
        plan, sent = self.plan, state.msg[: self.plan.back_size]
        if plan.message_size <= CHAINS.spare or not len(state.prev):
            room = aligned(len(sent), sent.dtype)
        else:
            room, state.prev = state.prev, state.prev[:0].copy()
        core.copy_into(sent, room, self.loops.threads)
        return room

    def _restore_prev(self, state: Messages) -> None:
        """Allocate and fill `prev` if `_kept_back` has taken its memory."""
        size = self.plan.back_size
        if not len(state.prev):
            state.prev = aligned(size, state.msg.dtype)
            core.copy_into(state.msg[:size], state.prev, self.loops.threads)

    def bounding(self, messages: Floats, hard: int = CHAINS.polish) -> Floats:
        """λ whose dual bound is the chain bound after `hard` hard passes and a half."""
        shift = np.empty(len(self.plan.edge))
        lam = self.prove(Messages(messages, messages[:0], np.ones(3), shift), hard).lam
        made: Floats = lam() if callable(lam) else lam
        return made


def _alike(potential: Potential) -> bool:
    """Whether all weights, or none, are finite and nonnegative, so that tiles are uniform."""
    if not isinstance(potential, Potts | TruncatedLinear | TruncatedQuadratic):
        return True
    plain = (potential.weights >= 0) & np.isfinite(potential.weights)
    return bool(plain.all() or not plain.any())


def _rounded(model: Model) -> bool:
    """Whether tables times weights change when rounded to single precision."""
    data = [p.kernel_data(*model.end_labels(a, b)) for a, b, p in model.groups()]
    given = [(each.table, each.weight) for each in data if each.table is not None]
    if any(weight is not None and (weight != 1.0).any() for _, weight in given):
        return True  # tiles hold products, which are rounded
    tables = (table for table, _ in given)
    parts = (part for table in tables for part in np.array_split(table, 1 + (table.size >> 16)))
    with np.errstate(over="ignore"):
        return any(bool((part.astype(np.float32) != part).any()) for part in parts)


# --- lazy λ and κ: only the messages of one direction are kept -----------------------------------


@dataclass(frozen=True, eq=False)
class HalfPass:
    """The last half pass over some messages."""

    messages: Floats
    eta: float
    forward: bool


class KeptPoint:
    """Lazy κ: keeps the messages of one direction if they determine the other direction."""

    def __init__(self, chains: Chains, messages: Floats, last: HalfPass | None) -> None:
        self._chains, self._half = chains, last is not None and last.messages is messages
        self._eta, self._forward = (last.eta, last.forward) if last else (math.nan, False)
        kept = messages[self._read()] if self._half else messages
        self._kept = kept.copy()

    def _read(self) -> slice:
        """The slice of the messages that the last half pass only read."""
        back = self._chains.plan.back_size
        return slice(back) if self._forward else slice(back, None)

    def __call__(self) -> Floats:
        """Compute κ; the messages of the run are not changed."""
        loops, messages = self._chains.loops, self._kept
        with self._chains.making:
            if self._half:
                messages = aligned(loops.plan.message_size, self._kept.dtype)
                messages[self._read()] = self._kept
                loops.half_pass(self._forward, messages, self._eta)
            loops.make_shares(messages)
            return loops.couplings(messages, loops.by_node())


class KeptBound:
    """Lazy λ of a chain bound: keeps the messages into early endpoints, half the size of λ."""

    def __init__(self, chains: Chains, state: Messages, back: Floats) -> None:
        self._chains, self._state, self._back = chains, state, back
        self.token = object()

    def swap(self) -> None:
        """Exchange the kept messages with those of the run."""
        core.exchange(self._state.msg[: len(self._back)], self._back, self._chains.loops.threads)

    def __call__(self) -> Floats:
        """Compute λ; messages of the run change only if a bound has overwritten them before."""
        return self._with(self._chains.loops.cut)

    def labels(self) -> NDArray[np.int64]:
        """Decode labels from the forward messages, recomputed if they were overwritten."""
        loops = self._chains.loops
        if loops.has_sent(self.token):
            return loops.read(self._state.msg, self.token)
        labels: NDArray[np.int64] = self._with(loops.read)
        return labels

    def _with(self, work: Callable[[Floats, object], Any]) -> Any:
        with self._chains.making:
            forward = self._state.msg[len(self._back) :]
            needed = None if self._state.overwritten else forward.copy()
            self.swap()
            try:
                return work(self._state.msg, self.token)
            finally:
                self.swap()
                if needed is not None:
                    forward[:] = needed
                    self._chains.loops.forget()
