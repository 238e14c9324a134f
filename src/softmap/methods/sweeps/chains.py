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
from softmap.labels.decoding import DECODING
from softmap.machine import Pace
from softmap.methods.base import Floats
from softmap.methods.sweeps.coarser import Coarser
from softmap.methods.sweeps.messages import AVERAGING, CLOCK, Messages, Sampling
from softmap.methods.sweeps.planning import aligned, chain_schedule
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Potential, Potts, TruncatedLinear, TruncatedQuadratic
from softmap.relaxation.point import Coupled, needs_coupling
from softmap.relaxation.polytope import node_cost

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


class Chains:
    """The schedule and scratch memory for passes over one model.

    Messages live in the order in which a pass reads them (see `kernels.schedule`); λ, couplings and
    node marginals come out in the order of the model.
    """

    def __init__(self, model: Model, threads: int, dtype: DTypeLike = np.float64) -> None:
        self.model, self.dtype = model, np.dtype(dtype)
        self.threads = threads
        self._soft, self._hard = Pace(threads), Pace(threads)
        self._layout = layout(model, dtype)
        self.plan = chain_schedule(model, dtype)
        self._back, self._roomy = self.plan.back_size, self.plan.message_size <= CHAINS.spare
        self._idle = np.flatnonzero(self.plan.edge < 0)  # lanes
        self.surplus: Floats = model.graph.degree.astype(np.float64)
        self.surplus[self.plan.nodes] -= 1.0 / self.plan.share[: model.n]
        self._theta = aligned(self.plan.cost_size)
        self._dot = np.zeros(len(self.plan.blocks))
        self._ends = self.plan.backward_ends  # of the chains in the direction of the last half pass
        self.making = threading.RLock()  # λ, after a run, for whichever thread asks
        # for which λ messages sent forward are in place
        self._latest: object = None
        self._last: HalfPass | None = None
        # costs that passes see are those of the model: a bound of theirs is one of the model's; in
        # single precision it loses some digits that λ still has, which large models do without
        exact = self.dtype == np.float64 or not _rounded(model)
        large = model.half_size > CHAINS.large and not model.has_forbidden
        self._true_costs = exact and (self.dtype == np.float64 or large)
        self._reads = not len(model.auxiliaries) and not model.has_forbidden
        self._prices = exact and not len(model.auxiliaries) and all(map(_alike, model.potentials))
        self._keeps_coupling = needs_coupling(model)

    def keep_couplings(self) -> None:
        """Hand out couplings even where points do not depend on them."""
        self._keeps_coupling = True

    def start(self, lam: Floats | None) -> Messages:
        """Messages that stand for λ (0 if None)."""
        plan = self.plan
        msg, prev = (aligned(size, self.dtype) for size in (plan.message_size, plan.back_size))
        if lam is not None:
            core.to_messages(self._layout, plan.native, lam, msg, self.threads)
            prev[:] = msg[: len(prev)]
        return Messages(msg, prev, np.array(CLOCK), aligned(len(plan.edge)))

    def begin_with(self, state: Messages, small: Coarser, lam: Floats) -> None:
        """Set the messages of a run that has not begun to what λ of a smaller model tells.

        Those sent forward need not be set: the first pass makes them.
        """
        core.spread(
            self._layout, self.plan.native, lam, small.source, small.part, state.msg, self.threads
        )
        state.prev[:] = state.msg[: len(state.prev)]
        self._last = None

    def lam(self, messages: Floats) -> Floats:
        """λ = -M in the order of the model."""
        flat = np.empty(self.model.half_size)
        core.to_lam(self._layout, self.plan.native, messages, flat, self.threads)
        return flat

    def standing(self, state: Messages, eta: float) -> Floats:
        """λ where the passes of a run stand, also after it, for whichever thread asks."""
        with self.making:
            self.resend(state, eta)
            return self.lam(state.msg)

    def passes(self, state: Messages, count: int, eta: float, *, momentum: bool) -> None:
        """`count` passes at η (inf: hard-min), forward and backward each."""
        self._begin_anew(state)
        self._run(2 * count, state, eta, momentum)
        self._came(state, eta, forward=False)

    def sampled_passes(self, state: Messages, count: int, eta: float, sampling: Sampling) -> None:
        """`count` passes with momentum; every few of them marginals enter the average."""
        self._begin_anew(state)
        self._latest = None
        self._soft.run(
            2 * count,
            lambda threads: core.sampled_passes(
                self._layout, layout(self.model), self.plan.native, count, state.msg, state.prev,
                self._theta, eta, state.shift, self._dot, state.clock, sampling.passes,
                AVERAGING.every, sampling.longest, sampling.before, sampling.mean, sampling.samples,
                AVERAGING.recent, threads,
            ),
        )  # fmt: skip
        self._came(state, eta, forward=False)

    def resend(self, state: Messages, eta: float) -> None:
        """Send forward at η once more where `prove` has overwritten what was sent."""
        if state.overwritten:
            self._run(1, state, eta, False)
            self._came(state, eta, forward=True)

    def _came(self, state: Messages, eta: float, *, forward: bool) -> None:
        """Remember the half pass that all messages in its direction come from."""
        self._ends = self.plan.forward_ends if forward else self.plan.backward_ends
        self._last, state.overwritten = HalfPass(state.msg, eta, forward), False

    def _run(self, halves: int, state: Messages, eta: float, momentum: bool) -> None:
        self._latest = None
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
        return self._soft_nodes(messages, eta)[0]

    def marginals(self, state: Messages, eta: float) -> ChainMarginals:
        """Marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass, or one sent forward again."""
        nodes, entropy, minima = self._soft_nodes(state.msg, eta)
        value = self._value(state.shift, minima)
        if len(self.model.auxiliaries):
            return ChainMarginals(nodes, entropy, self._coupling(state.msg), value)
        price = partial(self._price, state.msg, eta) if self._prices else None
        kept = self._keeps_coupling or price is None
        coupling = KeptPoint(self, state.msg, self._last) if kept else None
        return ChainMarginals(nodes, entropy, coupling, value, price)

    def coupling(self, messages: Floats) -> Floats:
        """κ = θ̂_i / n_i - M in the order of the model."""
        self._latest = None
        core.shares(self.plan.native, messages, self._theta, self.threads)
        return self._coupling(messages)

    def _coupling(self, messages: Floats) -> Floats:
        """The same where the shares are in place."""
        theta, coupling = self._by_node(), np.empty(self.model.half_size)
        core.couplings(self._layout, self.plan.native, messages, theta, coupling, self.threads)
        return coupling

    def sending(self, forward: bool) -> slice:
        """Where messages are that a half pass reads and leaves as they are."""
        return slice(self._back) if forward else slice(self._back, None)

    def completed(self, half: Floats, eta: float, *, forward: bool) -> Floats:
        """The messages of both directions: half of them, and what a half pass makes of these."""
        plan = self.plan
        messages, none = aligned(plan.message_size, self.dtype), np.zeros(0, self.dtype)
        messages[self.sending(forward)] = half
        self._latest = None
        core.half_pass(
            self._layout, plan.native, forward, messages, none, self._theta, eta, False,
            np.empty(len(plan.edge)), self._dot, self.threads,
        )  # fmt: skip
        return messages

    def _price(self, messages: Floats, eta: float, nodes: Floats, *, whole: bool) -> Coupled:
        """As `relaxation.point.couple` with κ = θ̂_i / n_i - M, which is nowhere stored.

        To be asked before anything else happens to the shares; entropy and slack only if `whole`.
        """
        model, native = self.model, self.plan.native
        out = np.empty((core.portions(native), 3))
        core.price(
            self._layout, layout(model), native, messages, self._theta, nodes, eta, whole, out,
            self.threads,
        )  # fmt: skip
        terms = np.append(out[:, 0], [node_cost(model, nodes), model.constant])
        total = float(core.careful_sum(terms)) if np.isfinite(terms).all() else math.inf
        entropy, slack = (float(core.careful_sum(out[:, k].copy())) for k in (1, 2))
        return Coupled(total, entropy, slack, None)

    def _value(self, shift: Floats, minima: Floats) -> float:
        """-L(λ) from what a pass took off the edges, and the soft minima of shares."""
        shift[self._idle] = 0.0
        parts = shift, self._ends * minima
        terms = np.array([*map(core.careful_sum, parts), self.model.constant])
        return float(core.careful_sum(terms))

    def prove(self, state: Messages, hard: int = CHAINS.polish) -> Proved:
        """The chain bound after `hard` hard passes and a half, and the λ that proves it.

        Hard passes win back part of what the entropy costs the bound. From hard messages they never
        lower it; from smooth ones they may by a little, which concerns speed, not validity. The
        messages sent forward and the shifts are overwritten: the next pass makes them anew.
        """
        messages, shift = state.msg, state.shift
        sent = KeptBound(self, state, self._copied(state))
        if hard:
            self._run(2 * hard, Messages(messages, messages, np.ones(3), shift), np.inf, False)
        bound = self._lowered(messages, shift)
        if hard:  # what proves the bound is remembered, what passes go on from comes back
            sent.swap()
        self._latest, self._last, state.overwritten = sent.token, None, True
        labels = sent.labels if self._reads else None
        if not self._true_costs:
            bound = core.dual_bound(layout(self.model), sent(), self.model.constant, self.threads)
        return Proved(sent, bound, labels)

    def _copied(self, state: Messages) -> Floats:
        """The messages into early ends; on large models in place of those of `prev`.

        Then a run holds the messages of both directions, one direction for momentum, and one of the
        best bound, and no more: the next pass, which makes `prev` anew, comes after the choice
        between two bounds.
        """
        sent = state.msg[: self._back]
        if self._roomy or not len(state.prev):
            return sent.copy()
        room, state.prev = state.prev, np.zeros(0, self.dtype)
        room[:] = sent
        return room

    def _begin_anew(self, state: Messages) -> None:
        """Make `prev`, where its memory went to a bound."""
        if not len(state.prev):
            state.prev = aligned(self._back, self.dtype)
            state.prev[:] = state.msg[: self._back]

    def bounding(self, messages: Floats, hard: int = CHAINS.polish) -> Floats:
        """λ whose plain bound is the chain bound after `hard` hard passes and a half."""
        shift = np.empty(len(self.plan.edge))
        lam = self.prove(Messages(messages, messages[:0], np.ones(3), shift), hard).lam
        made: Floats = lam() if callable(lam) else lam
        return made

    def _lowered(self, messages: Floats, shift: Floats) -> float:
        """Send forward, hard and rounded down, and add up what that proves."""
        native = self.plan.native
        self._hard.run(
            1,
            lambda threads: core.lowered_half(
                self._layout, native, messages, self._theta, shift, self._dot, threads
            ),
        )
        constant = self.model.constant
        return float(
            core.chain_bound(self._layout, native, self._theta, shift, constant, self.threads)
        )

    def forget(self) -> None:
        """Messages sent forward are not those of any λ."""
        self._latest = None

    def has_sent(self, token: object) -> bool:
        """Whether messages sent forward are those of a bound."""
        return self._latest is token

    def _send(self, messages: Floats, token: object) -> None:
        """Send forward as for a bound, unless that was the last thing that was done."""
        if not self.has_sent(token):
            self._lowered(messages, np.empty(len(self.plan.edge)))
            self._latest = token

    def cut(self, messages: Floats, token: object) -> Floats:
        """λ of the chain bound of messages into early ends."""
        self._send(messages, token)
        shares, lam = self._by_node(), np.empty(self.model.half_size)
        core.cut_chains(
            self._layout, self.plan.native, self.plan.rank, messages, shares, lam, self.threads
        )
        return lam

    def read(self, messages: Floats, token: object) -> NDArray[np.int64]:
        """Labels, the last of a pass decided first, by the messages into early ends."""
        self._send(messages, token)
        labels = np.empty(self.model.n, dtype=np.int64)
        core.read_labels(
            layout(self.model), self.plan.native, messages, DECODING.tie, labels, self.threads
        )
        return labels[: self.model.num_variables]

    def _soft_nodes(self, messages: Floats, eta: float) -> tuple[Floats, Floats, Floats]:
        """Marginals, entropies and soft minima of the shares θ̂_i / n_i."""
        self._latest = None
        core.shares(self.plan.native, messages, self._theta, self.threads)
        plan, nodes = self.plan, np.empty(self.model.unary.size)
        entropy, minima = np.empty(self.model.n), np.empty(self.model.n)
        core.soft_nodes(
            layout(self.model), plan.node_at, plan.node_step, self._theta, eta, nodes, entropy,
            minima, self.threads,
        )  # fmt: skip
        return nodes, entropy, minima

    def _by_node(self) -> Floats:
        """The shares in the order of the model."""
        out = np.empty(self.model.unary.size)
        core.by_node(self._layout, self.plan.native, self._theta, out, self.threads)
        return out


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
        kept = messages[chains.sending(self._forward)] if self._half else messages
        self._kept = kept.copy()

    def __call__(self) -> Floats:
        """κ; the messages of the run stay as they are."""
        chains, messages = self._chains, self._kept
        with chains.making:
            if self._half:
                messages = chains.completed(self._kept, self._eta, forward=self._forward)
            return chains.coupling(messages)


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
        return self._with(self._chains.cut)

    def labels(self) -> NDArray[np.int64]:
        """Labels read off; likewise. Messages sent forward are enough for it."""
        if self._chains.has_sent(self.token):
            return self._chains.read(self._state.msg, self.token)
        labels: NDArray[np.int64] = self._with(self._chains.read)
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
                    self._chains.forget()
