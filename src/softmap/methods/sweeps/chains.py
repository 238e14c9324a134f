"""Passes over monotonic chains of one model: the core of the annealed solver and of TRW-S.

The messages of a run are in one of three states::

                 ┌─────────┐    prove    ┌─────────┐
     passes ───▶ │  whole  │ ──────────▶ │  bound  │
      start      └─────────┘             └─────────┘
                      ▲                       │
                      │ resend                │ undo_proposal
                      │                       ▼
                      │                  ┌─────────┐
                      └───────────────── │  half   │ ◀─── a pass or a bound that
                                         └─────────┘      was stopped, begin_with

*whole*: the messages of both directions are those of the run. *bound*: they are those of the bound
that was computed last, which is some hard passes further; `Messages.aside` tells how to return. It
is a copy of the messages of the run into early endpoints, or, on a large model, how far each of
them was moved, in single precision and in the memory of momentum, which restarts. *half*: those
into early endpoints are those of the run. That suffices for a pass, which recomputes the forward
messages, so that passes may begin in each of the states (from *bound* by way of *half*).

`undo_proposal` hands the messages of the bound to its `KeptBound` if the bound is still in use.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.base import Floats
from softmap.methods.sweeps.loops import CLOCK, NONE, ChainLoops, Messages, Sampling
from softmap.methods.sweeps.planning import aligned, chain_schedule, copied
from softmap.model import Network
from softmap.model.potentials import Potential, Potts, TruncatedLinear, TruncatedQuadratic
from softmap.relaxation.polytope import Coupled, needs_coupling
from softmap.tuning import TUNING, Numbers

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ChainNumbers(Numbers):
    """Sizes of models of chain passes, and when their bounds are polished."""

    # message entries for which momentum outlasts a bound, and points are in double precision
    spare: int = 1 << 23  # most message entries for which messages are copied; D43
    polished: int = 20  # passes from which on a bound is preceded by a hard pass; D53


IN_SINGLE = 2.0**100
"""Largest cost of a model whose messages may be rounded to single precision; messages may be larger
than costs."""


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
    function that returns κ, or None if points do not depend on it. `point_cost` is a function that
    computes the cost of a point without κ, or None.
    """

    nodes: Floats
    node_entropy: float
    coupling: Any
    smoothed: float
    point_cost: Callable[..., Coupled] | None = None


def polish(passes: int, numbers: ChainNumbers) -> int:
    """Number of hard passes before the bound is computed, given the passes so far.

    In the first checks of a run, one would gain 1 to 3 % of the gap in a third of their time.
    """
    return int(passes >= numbers.polished)


class Chains:
    """Passes over one model, and the bounds, points and labels of the messages they lead to.

    Messages are stored in the order in which a pass reads them (see `kernels.schedule`). λ,
    couplings and node marginals are returned in the order of the model.

    Parameters
    ----------
    model : Network
        The model.
    threads : int
        Number of threads.
    deadline : core.Deadline, optional
        When to stop the set-up: `core.OutOfTime` is raised.
    numbers : ChainNumbers, optional
        The numbers of the run.
    """

    def __init__(
        self,
        model: Network,
        threads: int,
        deadline: core.Deadline | None = None,
        numbers: ChainNumbers | None = None,
    ) -> None:
        self.model = model
        self.plan = chain_schedule(model, threads, deadline)
        self.loops = ChainLoops(model, self.plan, threads)
        self.making = threading.RLock()  # any thread may ask for λ after a run
        plain = not model.has_factors
        self._reads_labels = plain and not model.has_forbidden  # from messages, without λ
        self._costs_points = plain and all(map(_alike, model.potentials))  # without κ
        self._keeps_coupling = needs_coupling(model)
        # The cost of a point in single precision is that of its `normalised` marginals.
        spare = (numbers or TUNING.of(ChainNumbers)).spare
        self.large = self.plan.message_size > spare and _ranges_over_singles(model)
        rounded = self.large and self._costs_points
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
        messages are not set.
        """
        loops = self.loops
        loops.forget()
        core.spread(loops.layout, self.plan.native, lam, source, part, state.msg, loops.threads)
        state.drift[:] = 0.0
        self._note(state, None)

    def current_lam(self, state: Messages, eta: float) -> Floats:
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
        self.undo_proposal(state)
        done = self.loops.passes(2 * count, state, eta, momentum=momentum, deadline=deadline) // 2
        self._note(state, HalfPass(state.msg, eta, forward=False) if done == count else None)
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
        self.undo_proposal(state)
        done = self.loops.sampled_passes(state, count, eta, sampling, deadline)
        self._note(state, HalfPass(state.msg, eta, forward=False) if done == count else None)
        return done

    def _note(self, state: Messages, last: HalfPass | None) -> None:
        """Record the half pass that the messages of one direction come from; None: state *half*."""
        self._last, state.overwritten = last, last is None

    def resend(self, state: Messages, eta: float) -> None:
        """Return to the messages of the run, if `prove` has overwritten them."""
        self.undo_proposal(state)
        if state.overwritten:
            self.loops.passes(1, state, eta, momentum=False)
            self._note(state, HalfPass(state.msg, eta, forward=True))

    def nodes(self, messages: Floats, eta: float) -> Floats:
        """Node marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass."""
        nodes = aligned(self.model.unary.size, self.point_dtype)
        self.loops.blend(messages, eta, 1.0, nodes)
        return nodes

    def marginals(self, state: Messages, eta: float) -> ChainMarginals:
        """Marginals `μ_i ∝ exp(-η θ̂_i / n_i)` after a full pass, or one sent forward again."""
        forward = self._last is not None and self._last.forward
        if self.large:
            core.give_back()
        nodes, entropy, minima = self.loops.marginals(
            state.msg, eta, forward=forward, dtype=self.point_dtype
        )
        shifts = core.careful_sum(state.shift, self.loops.threads)
        value = float(core.careful_sum(np.array([shifts, minima, self.model.constant])))
        if self.model.has_factors:
            coupling = self.loops.couplings(state.msg, self.loops.by_node())
            return ChainMarginals(nodes, entropy, coupling, value)
        point_cost = partial(self.loops.point_cost, state.msg, eta) if self._costs_points else None
        kept = self._keeps_coupling or point_cost is None
        point = KeptPoint(self, state.msg, self._last) if kept else None
        return ChainMarginals(nodes, entropy, point, value, point_cost)

    def prove(
        self,
        state: Messages,
        hard: int = 1,
        deadline: core.Deadline | None = None,
        limit: core.Deadline | None = None,
    ) -> ProvedBound:
        """The chain bound after `hard` hard passes and a half, and the λ that proves it.

        Hard passes recover part of the loss of the bound to the entropy. They never lower the bound
        of hard messages, but may slightly lower that of smooth messages; the bound stays valid. The
        forward messages and the shifts are overwritten; the next pass recomputes them. Hard passes
        end at the deadline. The half pass after them does not: only if `limit` passes,
        `core.OutOfTime` is raised.
        """
        self.undo_proposal(state)
        sent = KeptBound(self, state)
        if self.large:
            core.give_back()
            self._polish(state, hard, deadline)
        else:
            state.aside = copied(state.msg[: self.plan.back_size], self.loops.threads)
            if hard:
                polished = Messages(state.msg, NONE, np.ones(3), state.shift)
                self.loops.polish(2 * hard, polished, deadline)
        self._note(state, None)
        try:
            bound = self.loops.lowered(state.msg, state.shift, sent.token, limit)
        except core.OutOfTime:
            state.proved = None
            self.undo_proposal(state)
            raise
        state.proved = weakref.ref(sent)
        labels = sent.labels if self._reads_labels else None
        return ProvedBound(sent, bound, labels)

    def _polish(self, state: Messages, hard: int, deadline: core.Deadline | None) -> None:
        """Do `hard` hard passes over a large model before a bound is computed.

        Messages are rounded to single precision, in which those of a bound are kept.
        """
        state.drift[:] = 0.0
        state.aside, state.drift = state.drift, NONE
        if hard:
            self.loops.traced_passes(hard, state, deadline)
        core.round_off(state.msg, state.aside, self.loops.threads)

    def undo_proposal(self, state: Messages) -> None:
        """Return to the messages into early endpoints that the run had before `prove`.

        The messages of the best bound are copied only here, if a later check has not replaced that
        bound: the worse of the two bounds has been dropped by then. A large run holds the messages
        of both directions and, in single precision, those of one direction for momentum and one for
        the best bound. Each message returns up to a rounding error, in single precision, of the
        distance that it was moved.
        """
        if not len(state.aside):
            return
        with self.making:
            sent, threads = state.msg[: len(state.aside)], self.loops.threads
            bound = None if state.proved is None else state.proved()
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


def _alike(potential: Potential) -> bool:
    """Whether all weights, or none, are finite and nonnegative, so that tiles are uniform."""
    if not isinstance(potential, Potts | TruncatedLinear | TruncatedQuadratic):
        return True
    plain = (potential.weights >= 0) & np.isfinite(potential.weights)
    return bool(plain.all() or not plain.any())


def _ranges_over_singles(model: Network) -> bool:
    """Whether messages are numbers of single precision, if they are rounded."""
    sizes = model.cost_sizes
    return math.ldexp(sizes.largest, sizes.exponent) <= IN_SINGLE


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

    They are in the place of the run's until `Chains.undo_proposal` hands them over: state *bound*.
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
        if loops.belongs_to(self.token):
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
