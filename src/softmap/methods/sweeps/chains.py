"""Passes over monotonic chains of one model: what the annealed solver and TRW-S are made of."""

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
from softmap.methods.sweeps.planning import Schedule, aligned, chain_schedule, surpluses
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Potential, Potts, TruncatedLinear, TruncatedQuadratic
from softmap.relaxation.point import Coupled, needs_coupling

__all__ = ["ChainMarginals", "Chains", "Proved", "polish"]


@dataclass(frozen=True)
class ChainLimits:
    """When chain passes keep a copy, polish, and trust single precision.

    Attributes
    ----------
    large : int
        Numbers in λ from which on a bound in single precision is taken as it is.
    spare : int
        Numbers in messages up to which a copy of one direction is kept.
    polish : int
        Hard passes before a bound is read off.
    unpolished : int
        Passes before which hard ones gain 1 to 3 % of the gap, and cost a third of a check.
    """

    large: int = 1 << 21
    spare: int = 1 << 23
    polish: int = 1
    unpolished: int = 20


CHAINS = ChainLimits()


@dataclass(frozen=True)
class Proved:
    """λ, or a function that makes it; what it proves, and what reads labels off, where known."""

    lam: Any
    bound: float | None = None
    labels: Callable[[], NDArray[np.int64]] | None = None


@dataclass(frozen=True)
class ChainMarginals:
    """The regularised primal point of some messages, and the value of the regularised dual.

    `coupling` is κ, or a function that makes it, or None where points do not depend on it; `price`
    tells what points cost, where that takes no κ.
    """

    nodes: Floats
    node_entropy: Floats
    coupling: Any
    smoothed: float
    price: Callable[..., Coupled] | None = None


def polish(passes: int) -> int:
    """Hard passes that pay before the bound is read off, after so many passes."""
    return CHAINS.polish if passes >= CHAINS.unpolished else 0


@dataclass(frozen=True)
class Shortcuts:
    """What passes over a model tell without λ or κ being made.

    Attributes
    ----------
    bounds : bool
        The costs that passes see are the model's, so that a bound of theirs is one of the model's.
        In single precision it loses some digits that λ still has; large models do without these.
    labels : bool
        Labels are read off messages.
    points : bool
        Points are priced without κ.
    """

    bounds: bool
    labels: bool
    points: bool

    @classmethod
    def of(cls, model: Model, dtype: np.dtype[Any]) -> Shortcuts:
        """Those that passes in one precision can take."""
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

    Messages live in the order in which a pass reads them (see `kernels.schedule`); λ, couplings and
    node marginals come out in the order of the model.
    """

    def __init__(self, model: Model, threads: int, dtype: DTypeLike = np.float64) -> None:
        self.model = model
        self.plan = chain_schedule(model, dtype)
        self.loops = ChainLoops(model, self.plan, threads)
        self.surplus = surpluses(model, self.plan)
        self.making = threading.RLock()  # λ, after a run, for whichever thread asks
        self._shortcuts = Shortcuts.of(model, np.dtype(dtype))
        self._keeps_coupling = needs_coupling(model)
        self._last: HalfPass | None = None

    def keep_couplings(self) -> None:
        """Hand out couplings even where points do not depend on them."""
        self._keeps_coupling = True

    def start(self, lam: Floats | None) -> Messages:
        """Messages that stand for λ (0 if None)."""
        plan, loops = self.plan, self.loops
        dtype = plan.table.dtype
        msg, prev = (aligned(size, dtype) for size in (plan.message_size, plan.back_size))
        if lam is not None:
            core.to_messages(loops.layout, plan.native, lam, msg, loops.threads)
            prev[:] = msg[: len(prev)]
        return Messages(msg, prev, np.array(CLOCK), aligned(len(plan.edge)))

    def begin_with(self, state: Messages, small: Coarser, lam: Floats) -> None:
        """Set the messages of a run that has not begun to what λ of a smaller model tells.

        Those sent forward need not be set: the first pass makes them.
        """
        loops = self.loops
        core.spread(
            loops.layout, self.plan.native, lam, small.source, small.part, state.msg, loops.threads
        )
        state.prev[:] = state.msg[: len(state.prev)]
        self._last = None

    def standing(self, state: Messages, eta: float) -> Floats:
        """λ where the passes of a run stand, also after it, for whichever thread asks."""
        with self.making:
            self.resend(state, eta)
            return self.loops.lam(state.msg)

    def passes(self, state: Messages, count: int, eta: float, *, momentum: bool) -> None:
        """`count` passes at η (inf: hard-min), forward and backward each."""
        _restore_prev(state, self.plan.back_size)
        self.loops.passes(2 * count, state, eta, momentum=momentum)
        self._came(state, eta, forward=False)

    def sampled_passes(self, state: Messages, count: int, eta: float, sampling: Sampling) -> None:
        """`count` passes with momentum; every few of them marginals enter the average."""
        _restore_prev(state, self.plan.back_size)
        self.loops.sampled_passes(state, count, eta, sampling)
        self._came(state, eta, forward=False)

    def resend(self, state: Messages, eta: float) -> None:
        """Send forward at η once more where `prove` has overwritten what was sent."""
        if state.overwritten:
            self.loops.passes(1, state, eta, momentum=False)
            self._came(state, eta, forward=True)

    def _came(self, state: Messages, eta: float, *, forward: bool) -> None:
        """Remember the half pass that all messages in its direction come from."""
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
        """-L(λ) from what the last half pass took off the edges, and the soft minima of shares."""
        forward = self._last is not None and self._last.forward
        ends = self.plan.forward_ends if forward else self.plan.backward_ends
        shift[self.plan.idle] = 0.0
        parts = shift, ends * minima
        terms = np.array([*map(core.careful_sum, parts), self.model.constant])
        return float(core.careful_sum(terms))

    def prove(self, state: Messages, hard: int = CHAINS.polish) -> Proved:
        """The chain bound after `hard` hard passes and a half, and the λ that proves it.

        Hard passes win back part of what the entropy costs the bound. From hard messages they never
        lower it; from smooth ones they may by a little, which concerns speed, not validity. The
        messages sent forward and the shifts are overwritten: the next pass makes them anew.
        """
        messages, shift, model = state.msg, state.shift, self.model
        sent = KeptBound(self, state, _kept_back(state, self.plan))
        if hard:
            polished = Messages(messages, messages, np.ones(3), shift)
            self.loops.passes(2 * hard, polished, np.inf, momentum=False)
        bound = self.loops.lowered(messages, shift, sent.token)
        if hard:  # what proves the bound is remembered, what passes go on from comes back
            sent.swap()
        self._last, state.overwritten = None, True
        labels = sent.labels if self._shortcuts.labels else None
        if not self._shortcuts.bounds:
            bound = core.dual_bound(layout(model), sent(), model.constant, self.loops.threads)
        return Proved(sent, bound, labels)

    def bounding(self, messages: Floats, hard: int = CHAINS.polish) -> Floats:
        """λ whose plain bound is the chain bound after `hard` hard passes and a half."""
        shift = np.empty(len(self.plan.edge))
        lam = self.prove(Messages(messages, messages[:0], np.ones(3), shift), hard).lam
        made: Floats = lam() if callable(lam) else lam
        return made


def _kept_back(state: Messages, plan: Schedule) -> Floats:
    """A copy of the messages into early ends; on large models in place of those of `prev`.

    Then a run holds the messages of both directions, one direction for momentum, and one of the
    best bound, and no more: the next pass, which makes `prev` anew, comes after the choice between
    two bounds.
    """
    sent = state.msg[: plan.back_size]
    if plan.message_size <= CHAINS.spare or not len(state.prev):
        return sent.copy()
    room, state.prev = state.prev, state.prev[:0].copy()
    room[:] = sent
    return room


def _restore_prev(state: Messages, size: int) -> None:
    """Make `prev`, where its memory went to a bound."""
    if not len(state.prev):
        state.prev = aligned(size, state.msg.dtype)
        state.prev[:] = state.msg[:size]


def _alike(potential: Potential) -> bool:
    """Whether weights are all of one kind, so that edges that share a tile are coupled alike."""
    if not isinstance(potential, Potts | TruncatedLinear | TruncatedQuadratic):
        return True
    plain = (potential.weights >= 0) & np.isfinite(potential.weights)
    return bool(plain.all() or not plain.any())


def _rounded(model: Model) -> bool:
    """Whether tables, times their weights, are not the same in single precision."""
    data = [p.kernel_data(*model.end_labels(a, b)) for a, b, p in model.groups()]
    given = [(each.table, each.weight) for each in data if each.table is not None]
    if any(weight is not None and (weight != 1.0).any() for _, weight in given):
        return True  # tiles hold products
    tables = (table for table, _ in given)
    parts = (part for table in tables for part in np.array_split(table, 1 + (table.size >> 16)))
    with np.errstate(over="ignore"):
        return any(bool((part.astype(np.float32) != part).any()) for part in parts)


# --- what is kept of messages: one direction, of which λ and κ are made on demand -----------------


@dataclass(frozen=True, eq=False)
class HalfPass:
    """The last half pass over some messages."""

    messages: Floats
    eta: float
    forward: bool


class KeptPoint:
    """What κ is made of: the messages in one direction, if the others are known to follow."""

    def __init__(self, chains: Chains, messages: Floats, last: HalfPass | None) -> None:
        self._chains, self._half = chains, last is not None and last.messages is messages
        self._eta, self._forward = (last.eta, last.forward) if last else (math.nan, False)
        kept = messages[self._read()] if self._half else messages
        self._kept = kept.copy()

    def _read(self) -> slice:
        """Where messages are that the last half pass read and left as they are."""
        back = self._chains.plan.back_size
        return slice(back) if self._forward else slice(back, None)

    def __call__(self) -> Floats:
        """κ; the messages of the run stay as they are."""
        loops, messages = self._chains.loops, self._kept
        with self._chains.making:
            if self._half:
                messages = aligned(loops.plan.message_size, self._kept.dtype)
                messages[self._read()] = self._kept
                loops.half_pass(self._forward, messages, self._eta)
            loops.make_shares(messages)
            return loops.couplings(messages, loops.by_node())


class KeptBound:
    """What λ of a chain bound is made of: messages into early ends, half of what λ takes."""

    def __init__(self, chains: Chains, state: Messages, back: Floats) -> None:
        self._chains, self._state, self._back = chains, state, back
        self.token = object()

    def swap(self) -> None:
        """Exchange what is remembered with what lies in the messages of the run."""
        core.exchange(self._state.msg[: len(self._back)], self._back)

    def __call__(self) -> Floats:
        """λ; the messages of the run stay as they are, unless a bound has overwritten them."""
        return self._with(self._chains.loops.cut)

    def labels(self) -> NDArray[np.int64]:
        """Labels read off; likewise. Messages sent forward are enough for it."""
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
