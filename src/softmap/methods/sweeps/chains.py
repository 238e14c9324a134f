"""Passes over monotonic chains of one model: the core of the annealed solver and of TRW-S.

The messages into early endpoints are in one of two states::

               ┌──────────┐     prove      ┌────────────┐
     start ──▶ │  of the  │ ─────────────▶ │   of the   │
    passes ──▶ │   run    │ ◀───────────── │ last bound │
               └──────────┘     undo_proposal     └────────────┘

A bound is computed from the messages of the run after some hard passes. `Messages.aside` tells how
to return from there: a copy of the messages of the run, or, on a large model, how far each of them
was moved, in single precision and in the memory of momentum, which restarts. `undo_proposal`
returns, and hands the messages of the bound to its `KeptBound` if the bound is still in use.

Forward messages are recomputed by every pass. `Messages.overwritten` says that they are not those
of the run, after a bound; `resend` recomputes them if they are needed without a pass.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.labels.decoding import TIE
from softmap.machine import Pace
from softmap.methods.base import Floats
from softmap.methods.sweeps.planning import Schedule, aligned, chain_schedule, copied
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials import Potential, Potts, TruncatedLinear, TruncatedQuadratic
from softmap.relaxation.polytope import Coupled, needs_coupling, node_cost
from softmap.tuning import TUNING

SAMPLED = TUNING.checks.first
"""Number of passes between two samples of averaged marginals; sample k has weight `k**recent`, so
that about the last tenth of all passes dominates."""


@dataclass(frozen=True)
class Sampling:
    """The state of sampling before some passes.

    Attributes
    ----------
    passes, samples : int
        Number of passes and samples so far. A sample is due whenever `passes` is a multiple of
        `SAMPLED`.
    longest : float
        Upper limit of Nesterov's t, applied at the same passes.
    mean : float64 or float32 array over `model.node_offset`
        The average so far, which is updated in place; empty if nothing is averaged or no sample is
        due.
    """

    passes: int
    samples: int
    longest: float
    mean: Floats

    def after(self, count: int) -> Sampling:
        """Return the state of sampling after `count` more passes."""
        passes = self.passes + count
        taken = passes // SAMPLED - self.passes // SAMPLED if len(self.mean) else 0
        return replace(self, passes=passes, samples=self.samples + taken)


def sampled_by_turns(
    engine: Any,
    state: Any,
    count: int,
    eta: float,
    sampling: Sampling,
    deadline: core.Deadline | None = None,
) -> int:
    """Do `count` passes with momentum and sampling; the Python twin of `core.sampled_passes`."""
    passes, samples, mean = sampling.passes, sampling.samples, sampling.mean
    while passes < sampling.passes + count:
        now = min(sampling.passes + count - passes, SAMPLED - passes % SAMPLED)
        made = engine.passes(state, now, eta, momentum=True, deadline=deadline)
        passes += made
        if made < now or passes % SAMPLED:
            break
        state.clock[0] = min(state.clock[0], sampling.longest)
        if len(mean):
            samples += 1
            weight = (TUNING.recent + 1.0) / (samples + TUNING.recent)
            before = mean.astype(np.float64)
            mean[:] = before + (engine.nodes(state.msg, eta) - before) * weight
    return passes - sampling.passes


Singles = NDArray[np.float32]
CLOCK = (0.0, 0.0, -1.0)  # initial value of `Messages.clock`
NONE = np.zeros(0, np.float32)


@dataclass
class Messages:
    """The messages M = -λ along the chains, and the momentum over passes.

    Attributes
    ----------
    msg : array
        Messages after the last pass.
    drift : float32 array
        What momentum adds to the messages before a pass, up to a factor; empty if it restarts.
    clock : float64[3]
        Nesterov's t, the number of restarts, and the last inner product of the restart test.
    shift : array
        Sum of the constants that the last half pass subtracted from the messages of each block.
    overwritten : bool
        Whether a bound, or a pass that was stopped, has overwritten forward messages and shifts.
    aside : float64 or float32 array
        The way back from the messages of a bound to those of the run; empty in state *run*.
    proved : function
        Returns the bound that was computed last, or None if it is not in use.
    """

    msg: Floats
    drift: Singles
    clock: Floats
    shift: Floats
    overwritten: bool = False

    def __post_init__(self) -> None:
        self.aside: NDArray[Any] = NONE
        self.proved: Callable[[], KeptBound | None] = lambda: None


class ChainPasses:
    """The compiled passes over one schedule of chains, and the scratch memory they share.

    The scratch memory holds the shares θ̂_i / n_i of the nodes. After `lowered`, the shares and the
    forward messages belong to one bound, identified by its `token`, until the next loop. After
    other half passes, the shares are those of the messages: no message into a node changes after
    the half pass has reached it.
    """

    def __init__(self, model: Model, plan: Schedule, threads: int) -> None:
        self.model, self.plan, self.threads = model, plan, threads
        self.layout = layout(model)
        self._pace = Pace(threads)  # of the passes of the run; loops of checks follow it
        self._shares: Floats | None = None
        self._dot = np.zeros(len(plan.blocks))
        self._sent: object = None  # token of the bound of the current forward messages
        self._shared: Floats | None = None  # the messages whose shares the scratch memory holds

    @property
    def _theta(self) -> Floats:
        """The scratch memory, allocated if it was released."""
        if self._shares is None:
            self._shares = aligned(self.plan.cost_size)
        return self._shares

    def release(self) -> None:
        """Free the scratch memory until the next loop."""
        self.forget()
        self._shares = None

    def forget(self) -> None:
        """Record that messages have changed or will: they belong to no bound, nor do the shares."""
        self._sent = self._shared = None

    def has_sent(self, token: object) -> bool:
        """Whether the forward messages and the shares are those of the bound `token`."""
        return self._sent is token

    def _arrays(self, state: Messages) -> core.ChainArrays:
        """The arrays of a loop, which changes the messages."""
        self.forget()
        return core.ChainArrays(
            state.msg, state.drift, self._theta, state.shift, self._dot, state.clock
        )

    def passes(
        self,
        halves: int,
        state: Messages,
        eta: float,
        *,
        momentum: bool,
        deadline: core.Deadline | None = None,
    ) -> int:
        """Do half passes at η (inf: hard-min), forward first; return how many were completed."""
        loop = partial(self._passes, halves, state, eta, momentum, deadline)
        return self._pace.run(halves, loop)

    def polish(self, halves: int, state: Messages, deadline: core.Deadline | None = None) -> None:
        """Do hard half passes without momentum, forward first, between two passes of a run."""
        self._passes(halves, state, np.inf, False, deadline, self._pace.threads)

    def _passes(
        self,
        halves: int,
        state: Messages,
        eta: float,
        momentum: bool,
        deadline: core.Deadline | None,
        threads: int,
    ) -> int:
        done: int = core.passes(
            self.layout, self.plan.native, self._arrays(state), halves, eta, momentum, threads,
            deadline,
        )  # fmt: skip
        self._shared = state.msg if done == halves else None
        return done

    def sampled_passes(
        self,
        state: Messages,
        count: int,
        eta: float,
        sampling: Sampling,
        deadline: core.Deadline | None = None,
    ) -> int:
        """Do passes with momentum, and add marginals to the average at intervals.

        Returns the number of passes that were completed before the deadline.
        """
        done = 0
        while done < count:
            now = 1 if self._pace.trying else count - done
            made = self._pace.run(
                now, partial(self._soft_passes, state, now, eta, sampling, deadline)
            )
            sampling, done = sampling.after(made), done + made
            if made < now:
                break
        return done

    def _soft_passes(
        self,
        state: Messages,
        count: int,
        eta: float,
        sampling: Sampling,
        deadline: core.Deadline | None,
        threads: int,
    ) -> int:
        average = core.Averaging(
            sampling.mean, sampling.passes, SAMPLED, sampling.longest, sampling.samples,
            TUNING.recent,
        )  # fmt: skip
        done: int = core.sampled_passes(
            self.layout, self.plan.native, self._arrays(state), count, eta, average, threads,
            deadline,
        )  # fmt: skip
        self._shared = state.msg if done == count else None
        return done

    def half_pass(
        self,
        forward: bool,
        messages: Floats,
        eta: float,
        *,
        drift: Singles | None = None,
        shift: Floats | None = None,
        levels: Any = None,
    ) -> None:
        """Compute the messages of one direction at η, in place.

        Parameters
        ----------
        forward : bool
            The direction.
        messages : array
            The messages of both directions.
        eta : float
            Inverse temperature; inf is hard-min.
        drift : float32 array, optional
            The drift of momentum; no momentum by default.
        shift : array, optional
            Output: the sum of the constants subtracted from the messages of each block.
        levels : compiled schedule, optional
            The levels to process; all by default.
        """
        momentum, moving = drift is not None, NONE if drift is None else drift
        taken = np.empty(len(self.plan.blocks)) if shift is None else shift
        native = self.plan.native if levels is None else levels
        arrays = self._arrays(Messages(messages, moving, np.array(CLOCK), taken))
        core.half_pass(self.layout, native, arrays, forward, eta, momentum, self.threads)

    def traced_passes(
        self, count: int, state: Messages, deadline: core.Deadline | None = None
    ) -> None:
        """Do hard passes; what they subtract from messages into early endpoints goes to `aside`."""
        arrays = self._arrays(replace(state, drift=state.aside))
        threads = self._pace.threads
        core.traced_passes(self.layout, self.plan.native, arrays, count, threads, deadline)

    @property
    def product(self) -> float:
        """The inner product of the restart test of momentum, after a pass."""
        return float(self._dot.sum())

    def lowered(self, messages: Floats, shift: Floats, token: object) -> float:
        """Do a hard forward half pass, rounded down; return the chain bound of the messages."""
        native, threads = self.plan.native, self._pace.threads
        arrays = self._arrays(Messages(messages, NONE, np.array(CLOCK), shift))
        core.lowered_half(self.layout, native, arrays, threads)
        self._sent = token
        constant = self.model.constant
        return float(core.chain_bound(native, self._theta, shift, constant, self.threads))


class ChainLoops(ChainPasses):
    """The passes over chains, and the loops that compute λ, labels and points of their messages."""

    def lam(self, messages: Floats) -> Floats:
        """λ = -M in the order of the model."""
        flat = np.empty(self.model.half_size)
        core.to_lam(self.layout, self.plan.native, messages, flat, self.threads)
        return flat

    def cut(self, messages: Floats, token: object) -> Floats:
        """λ of the chain bound of messages into early endpoints."""
        self._send(messages, token)
        return self.cut_with(messages, self.by_node())

    def cut_with(self, messages: Floats, shares: Floats) -> Floats:
        """As `cut`, from shares in the order of the model."""
        plan, lam = self.plan, np.empty(self.model.half_size)
        core.cut_chains(self.layout, plan.native, messages, shares, lam, self.threads)
        return lam

    def read(self, messages: Floats, token: object) -> NDArray[np.int64]:
        """Decode labels in reverse order of a pass, from the messages into early endpoints."""
        self._send(messages, token)
        labels = np.empty(self.model.n, dtype=np.int64)
        core.read_labels(self.layout, self.plan.native, messages, TIE, labels, self.threads)
        return labels[: self.model.num_variables]

    def _send(self, messages: Floats, token: object) -> None:
        """Do the half pass of `lowered` unless the forward messages are those of `token`."""
        if not self.has_sent(token):
            self.lowered(messages, np.empty(len(self.plan.blocks)), token)

    def make_shares(self, messages: Floats) -> None:
        """Compute the shares θ̂_i / n_i of messages in the scratch memory, if it holds others."""
        if self._shared is messages:
            return
        self.forget()
        core.shares(self.plan.native, messages, self._theta, self.threads)

    def blend(self, messages: Floats, eta: float, weight: float, mean: Floats) -> None:
        """Compute the shares; move an average by `weight` towards their marginals."""
        self.make_shares(messages)
        core.blend(self.layout, self.plan.native, self._theta, eta, weight, mean, self.threads)

    def marginals(
        self, messages: Floats, eta: float, *, forward: bool, dtype: DTypeLike = np.float64
    ) -> tuple[Floats, float, float]:
        """Compute the shares; return their marginals, and sums of entropies and of soft minima.

        The entropy of a node counts as often as `surpluses` says, the soft minimum of its share
        once per chain that ends at the node in a forward (or backward) half pass.
        """
        self.make_shares(messages)
        nodes = aligned(self.model.unary.size, dtype)
        sums = core.marginals(
            self.layout, self.plan.native, self._theta, eta, forward, nodes, self.threads
        )
        return nodes, *sums

    def soft(self, shares: Floats, eta: float) -> tuple[Floats, Floats, Floats]:
        """Return marginals, entropies and soft minima of shares in the order of the model."""
        nodes, (entropy, minima) = np.empty(self.model.unary.size), np.empty((2, self.model.n))
        core.soft_nodes(self.layout, shares, eta, nodes, entropy, minima, self.threads)
        return nodes, entropy, minima

    def couplings(self, messages: Floats, shares: Floats) -> Floats:
        """κ = θ̂_i / n_i - M in the order of the model, from shares in that order."""
        coupling = np.empty(self.model.half_size)
        core.couplings(self.layout, self.plan.native, messages, shares, coupling, self.threads)
        return coupling

    def price(
        self,
        messages: Floats,
        eta: float,
        nodes: Floats,
        *,
        whole: bool,
        deadline: core.Deadline | None = None,
    ) -> Coupled:
        """As `relaxation.polytope.couple` with κ = θ̂_i / n_i - M, which is not stored.

        The scratch memory must hold the shares; entropy and slack are computed only if `whole`.
        Raises `core.OutOfTime` if the deadline passes first.
        """
        model, native = self.model, self.plan.native
        out = np.empty((core.portions(native), 3))
        core.price(
            self.layout, native, messages, self._theta, nodes, eta, whole, out, self.threads,
            deadline,
        )  # fmt: skip
        terms = np.append(out[:, 0], [node_cost(model, nodes, self.threads), model.constant])
        total = float(core.careful_sum(terms)) if np.isfinite(terms).all() else math.inf
        entropy, slack = (float(core.careful_sum(out[:, k].copy())) for k in (1, 2))
        return Coupled(total, entropy, slack, None)

    def by_node(self) -> Floats:
        """The shares in the scratch memory, in the order of the model."""
        out = np.empty(self.model.unary.size)
        core.by_node(self.layout, self.plan.native, self._theta, out, self.threads)
        return out


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ChainLimits:
    """Sizes at which chain passes copy messages, do hard passes, or round to single precision.

    Attributes
    ----------
    spare : int
        Largest number of message entries for which momentum outlasts a bound, and the messages of
        the best bound and node marginals are in double precision.
    in_single : float
        Largest cost of a model whose messages may be rounded to single precision; messages may be
        larger than costs.
    polish : int
        Number of hard passes before a bound is computed.
    unpolished : int
        Number of passes before which hard passes are skipped: they would gain 1 to 3 % of the gap
        and take a third of the time of a check.
    """

    spare: int = 1 << 23
    in_single: float = 2.0**100
    polish: int = 1
    unpolished: int = 20


CHAINS = ChainLimits()


@dataclass(frozen=True)
class ProvedBound:
    """λ or a function that returns it, its bound, and a function that decodes labels, if known."""

    lam: Any
    bound: float | None = None
    labels: Callable[[], NDArray[np.int64]] | None = None


@dataclass(frozen=True)
class ChainMarginals:
    """The regularised primal point of some messages, and the value of the regularised dual.

    `node_entropy` is what the entropies of nodes take off those of edges. `coupling` is κ, a
    function that returns κ, or None if points do not depend on it. `price` is a function that
    computes the cost of a point without κ, or None.
    """

    nodes: Floats
    node_entropy: float
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
    labels : bool
        Whether labels can be decoded from messages.
    points : bool
        Whether the cost of points can be computed without κ.
    """

    labels: bool
    points: bool

    @classmethod
    def of(cls, model: Model) -> Shortcuts:
        """The shortcuts available for a model."""
        plain = not len(model.auxiliaries)
        return cls(
            labels=plain and not model.has_forbidden,
            points=plain and all(map(_alike, model.potentials)),
        )


class Chains:
    """Passes over one model, and the bounds, points and labels of the messages they lead to.

    Messages are stored in the order in which a pass reads them (see `kernels.schedule`). λ,
    couplings and node marginals are returned in the order of the model.
    """

    def __init__(self, model: Model, threads: int, deadline: core.Deadline | None = None) -> None:
        self.model = model
        self.plan = chain_schedule(model, threads, deadline)
        self.loops = ChainLoops(model, self.plan, threads)
        self.making = threading.RLock()  # any thread may ask for λ after a run
        self._shortcuts = Shortcuts.of(model)
        self._keeps_coupling = needs_coupling(model)
        # The cost of a point in single precision is that of its `normalised` marginals.
        self.large = self.plan.message_size > CHAINS.spare and _ranges_over_singles(model)
        rounded = self.large and self._shortcuts.points
        self.point_dtype = np.dtype(np.float32 if rounded else np.float64)
        self._last: HalfPass | None = None

    def keep_couplings(self) -> None:
        """Return couplings even if points do not depend on them."""
        self._keeps_coupling = True

    def start(self, lam: Floats | None) -> Messages:
        """The messages M = -λ; 0 if λ is None."""
        plan, loops = self.plan, self.loops
        msg = aligned(plan.message_size)
        if lam is not None:
            core.to_messages(loops.layout, plan.native, lam, msg, loops.threads)
        drift = aligned(plan.back_size, np.float32)
        return Messages(msg, drift, np.array(CLOCK), np.zeros(len(plan.blocks)))

    def begin_with(self, state: Messages, lam: Floats, source: Ints, part: Floats) -> None:
        """Initialise the messages of a new run from λ of another model.

        Half-edge h gets `part[h]` times the λ of half-edge `source[h]`, or 0 if that is -1. Forward
        messages are not set, because the first pass computes them.
        """
        loops = self.loops
        loops.forget()
        core.spread(loops.layout, self.plan.native, lam, source, part, state.msg, loops.threads)
        state.drift[:] = 0.0
        self._last = None

    def standing(self, state: Messages, eta: float) -> Floats:
        """The current λ of a run; safe to call from any thread, also after the run."""
        with self.making:
            self.resend(state, eta)
            return self.loops.lam(state.msg)

    def passes(
        self,
        state: Messages,
        count: int,
        eta: float,
        *,
        momentum: bool,
        deadline: core.Deadline | None = None,
    ) -> int:
        """Do `count` passes at η (inf: hard-min), each forward and backward.

        Returns the number of passes that were completed before the deadline. One that was not has
        changed the messages that it had reached.
        """
        self._make_ready(state)
        done = self.loops.passes(2 * count, state, eta, momentum=momentum, deadline=deadline) // 2
        self._ended(state, eta, complete=done == count)
        return done

    def sampled_passes(
        self,
        state: Messages,
        count: int,
        eta: float,
        sampling: Sampling,
        deadline: core.Deadline | None = None,
    ) -> int:
        """As `passes` with momentum; marginals are added to the average at intervals."""
        self._make_ready(state)
        done = self.loops.sampled_passes(state, count, eta, sampling, deadline)
        self._ended(state, eta, complete=done == count)
        return done

    def _ended(self, state: Messages, eta: float, *, complete: bool) -> None:
        """Record the last pass. If it stopped, forward messages and shifts are to be recomputed."""
        if complete:
            self._came(state, eta, forward=False)
        else:
            self._last, state.overwritten = None, True

    def resend(self, state: Messages, eta: float) -> None:
        """Return to the messages of the run, if `prove` has overwritten them."""
        self.undo_proposal(state)
        if state.overwritten:
            self.loops.passes(1, state, eta, momentum=False)
            self._came(state, eta, forward=True)

    def _came(self, state: Messages, eta: float, *, forward: bool) -> None:
        """Record the last half pass: all messages in its direction come from it."""
        self._last, state.overwritten = HalfPass(state.msg, eta, forward), False

    def nodes(self, messages: Floats, eta: float) -> Floats:
        """Node marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass."""
        nodes = aligned(self.model.unary.size, self.point_dtype)
        self.loops.blend(messages, eta, 1.0, nodes)
        return nodes

    def marginals(self, state: Messages, eta: float) -> ChainMarginals:
        """Marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass, or one sent forward again."""
        forward = self._last is not None and self._last.forward
        self._hand_back()
        nodes, entropy, minima = self.loops.marginals(
            state.msg, eta, forward=forward, dtype=self.point_dtype
        )
        value = self._value(state.shift, minima)
        if len(self.model.auxiliaries):
            coupling = self.loops.couplings(state.msg, self.loops.by_node())
            return ChainMarginals(nodes, entropy, coupling, value)
        price = partial(self.loops.price, state.msg, eta) if self._shortcuts.points else None
        kept = self._keeps_coupling or price is None
        point = KeptPoint(self, state.msg, self._last) if kept else None
        return ChainMarginals(nodes, entropy, point, value, price)

    def _hand_back(self) -> None:
        """Return freed memory of a large model to the system before more is allocated."""
        if self.large:
            core.give_back()

    def _value(self, shift: Floats, minima: float) -> float:
        """-L(λ) from the shifts of the last half pass and the soft minima at the ends of chains."""
        total = core.careful_sum(shift, self.loops.threads)
        return float(core.careful_sum(np.array([total, minima, self.model.constant])))

    def prove(
        self, state: Messages, hard: int = CHAINS.polish, deadline: core.Deadline | None = None
    ) -> ProvedBound:
        """The chain bound after `hard` hard passes and a half, and the λ that proves it.

        Hard passes recover part of the loss of the bound to the entropy. They never lower the bound
        of hard messages, but may slightly lower that of smooth messages; the bound stays valid. The
        forward messages and the shifts are overwritten; the next pass recomputes them. Hard passes
        end at the deadline, the half pass after them does not.
        """
        self.undo_proposal(state)
        self._hand_back()
        sent = KeptBound(self, state)
        if self.large:
            self._polish(state, hard, deadline)
        else:
            state.aside = copied(state.msg[: self.plan.back_size], self.loops.threads)
            if hard:
                polished = Messages(state.msg, NONE, np.ones(3), state.shift)
                self.loops.polish(2 * hard, polished, deadline)
        bound = self.loops.lowered(state.msg, state.shift, sent.token)
        state.proved, self._last, state.overwritten = weakref.ref(sent), None, True
        labels = sent.labels if self._shortcuts.labels else None
        return ProvedBound(sent, bound, labels)

    def _polish(self, state: Messages, hard: int, deadline: core.Deadline | None) -> None:
        """Do `hard` hard passes over a large model before a bound is computed.

        Messages are rounded to single precision, in which those of a bound are kept.
        """
        self._allot_drift(state)
        state.drift[:] = 0.0
        state.aside, state.drift = state.drift, NONE
        if hard:
            self.loops.traced_passes(hard, state, deadline)
        core.round_off(state.msg, state.aside, self.loops.threads)

    def undo_proposal(self, state: Messages) -> None:
        """Return to the messages into early endpoints that the run had before `prove`.

        The messages of the bound are stored only now, and only if the bound is still in use: then
        the worse of two bounds has been dropped. A large run thus holds the messages of both
        directions and, in single precision, those of one direction for momentum and one for the
        best bound. Each message returns up to a rounding error, in single precision, of the
        distance that it was moved.
        """
        if not len(state.aside):
            return
        with self.making:
            sent, threads, bound = state.msg[: len(state.aside)], self.loops.threads, state.proved()
            if self.large:
                if bound is not None:
                    bound.keep(copied(sent, threads, np.float32))
                core.put_back(state.msg, state.aside, threads)
                state.drift = state.aside
            else:
                core.exchange(sent, state.aside, threads)
                if bound is not None:
                    bound.keep(state.aside)
            state.aside = NONE

    def _make_ready(self, state: Messages) -> None:
        """Return to the messages of the run, and allocate the drift of momentum if necessary."""
        self.undo_proposal(state)
        self._allot_drift(state)

    def _allot_drift(self, state: Messages) -> None:
        if not len(state.drift):
            state.drift = aligned(self.plan.back_size, np.float32)

    def bounding(self, messages: Floats, hard: int = CHAINS.polish) -> Floats:
        """λ whose dual bound is the chain bound after `hard` hard passes and a half."""
        shift = np.empty(len(self.plan.blocks))
        state = Messages(messages, NONE, np.ones(3), shift)
        lam: Floats = self.prove(state, hard).lam()
        self.undo_proposal(state)
        return lam


def _alike(potential: Potential) -> bool:
    """Whether all weights, or none, are finite and nonnegative, so that tiles are uniform."""
    if not isinstance(potential, Potts | TruncatedLinear | TruncatedQuadratic):
        return True
    plain = (potential.weights >= 0) & np.isfinite(potential.weights)
    return bool(plain.all() or not plain.any())


def _ranges_over_singles(model: Model) -> bool:
    """Whether messages are numbers of single precision, if they are rounded."""
    sizes = model.cost_sizes
    return math.ldexp(sizes.largest, sizes.exponent) <= CHAINS.in_single


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
        self._kept = np.empty_like(kept)
        core.copy_into(kept, self._kept, chains.loops.threads)

    def _read(self) -> slice:
        """The slice of the messages that the last half pass only read."""
        back = self._chains.plan.back_size
        return slice(back) if self._forward else slice(back, None)

    def __call__(self) -> Floats:
        """Compute κ; the messages of the run are not changed."""
        loops, messages = self._chains.loops, self._kept
        with self._chains.making:
            if self._half:
                messages = aligned(loops.plan.message_size)
                messages[self._read()] = self._kept
                loops.half_pass(self._forward, messages, self._eta)
            loops.make_shares(messages)
            return loops.couplings(messages, loops.by_node())


class KeptBound:
    """Lazy λ of a chain bound: keeps the messages into early endpoints, half the size of λ.

    They are in the place of the run's until `Chains.undo_proposal` hands them over.
    """

    def __init__(self, chains: Chains, state: Messages) -> None:
        self._chains, self._state = chains, state
        self._back: NDArray[Any] | None = None
        self.token = object()

    def keep(self, back: NDArray[Any]) -> None:
        """Store the messages; those of large models are in single precision."""
        self._back = back

    def __call__(self) -> Floats:
        """Compute λ; messages of the run change only if a bound has overwritten them before."""
        return self._with(self._chains.loops.cut)

    def labels(self) -> NDArray[np.int64]:
        """Decode labels from the forward messages, recomputed if they were overwritten.

        A large model releases scratch memory to the search for labels that follows.
        """
        loops = self._chains.loops
        labels: NDArray[np.int64]
        if loops.has_sent(self.token):
            labels = loops.read(self._state.msg, self.token)
        else:
            labels = self._with(loops.read)
        if self._chains.large:
            loops.release()
        return labels

    def _with(self, work: Callable[[Floats, object], Any]) -> Any:
        """Call `work` with the messages of the bound in the place of the run's."""
        chains, state = self._chains, self._state
        with chains.making:
            back = self._back  # another thread may have stored it while this one waited
            if back is None:
                return work(state.msg, self.token)
            chains.undo_proposal(state)
            threads = chains.loops.threads
            changed = state.msg[: len(back)] if state.overwritten else state.msg
            own = copied(changed, threads)
            try:
                core.copy_into(back, state.msg[: len(back)], threads)
                return work(state.msg, self.token)
            finally:
                core.copy_into(own, changed, threads)
                if not state.overwritten:
                    chains.loops.forget()
