"""Messages, the compiled loops over chains, and averages of marginals over passes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.decoding import DECODING
from softmap.machine import Pace
from softmap.methods.base import Floats
from softmap.methods.sweeps.planning import Schedule, aligned
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation.point import Coupled
from softmap.relaxation.polytope import node_cost

__all__ = ["CLOCK", "ChainLoops", "Messages", "Sampling", "sampled_by_turns"]


@dataclass(frozen=True)
class Averaging:
    """The averaging of marginals over passes.

    Attributes
    ----------
    every : int
        Number of passes between two samples.
    recent : float
        Sample k has weight `k**recent`: about the last tenth of all passes dominates.
    """

    every: int = 5
    recent: float = 8.0


AVERAGING = Averaging()


@dataclass(frozen=True)
class Sampling:
    """The state of sampling before some passes.

    Attributes
    ----------
    passes, samples : int
        Number of passes and samples so far. A sample is due whenever `passes` is a multiple of
        `AVERAGING.every`.
    longest : float
        Upper limit of Nesterov's t, applied at the same passes.
    before, mean : float64 arrays over `model.node_offset`
        The average so far, and the output array. Both are empty if nothing is averaged or no sample
        is due.
    """

    passes: int
    samples: int
    longest: float
    before: Floats
    mean: Floats

    def after(self, count: int) -> tuple[int, int]:
        """Return the numbers of passes and samples after `count` more passes."""
        passes = self.passes + count
        taken = passes // AVERAGING.every - self.passes // AVERAGING.every if len(self.mean) else 0
        return passes, self.samples + taken


def sampled_by_turns(engine: Any, state: Any, count: int, eta: float, sampling: Sampling) -> None:
    """Do `count` passes with momentum and sampling; the Python twin of `core.sampled_passes`."""
    passes, samples, mean = sampling.passes, sampling.samples, sampling.mean
    mean[:] = sampling.before
    while count > 0:
        now = min(count, AVERAGING.every - passes % AVERAGING.every)
        engine.passes(state, now, eta, momentum=True)
        passes, count = passes + now, count - now
        if passes % AVERAGING.every:
            return
        state.clock[0] = min(state.clock[0], sampling.longest)
        if len(mean):
            samples += 1
            mean += (engine.nodes(state.msg, eta) - mean) * (
                (AVERAGING.recent + 1.0) / (samples + AVERAGING.recent)
            )


CLOCK = (0.0, 0.0, -1.0)  # initial value of `Messages.clock`


@dataclass
class Messages:
    """The messages M = -λ along the chains, and the momentum over passes.

    Attributes
    ----------
    msg : array
        Messages after the last pass.
    prev : array
        Messages that momentum extrapolates from; empty if momentum restarts.
    clock : float64[3]
        Nesterov's t, the number of restarts, and the last inner product of the restart test.
    shift : array
        Constant subtracted from each message by the last half pass.
    overwritten : bool
        Whether computing a bound has overwritten the forward messages and their shifts.
    """

    msg: Floats
    prev: Floats
    clock: Floats
    shift: Floats
    overwritten: bool = False


class ChainLoops:
    """The compiled loops over one schedule of chains, and the scratch memory they share.

    The scratch memory holds the shares θ̂_i / n_i of the nodes. After `lowered`, the shares and the
    forward messages belong to one bound, identified by its `token`, until the next loop.
    """

    def __init__(self, model: Model, plan: Schedule, threads: int) -> None:
        self.model, self.plan, self.threads = model, plan, threads
        self.layout = layout(model, plan.table.dtype)
        self._soft, self._hard = Pace(threads), Pace(threads)
        self._theta = aligned(plan.cost_size)
        self._dot = np.zeros(len(plan.blocks))
        self._sent: object = None  # token of the bound of the current forward messages

    def forget(self) -> None:
        """Record that the forward messages belong to no bound."""
        self._sent = None

    def has_sent(self, token: object) -> bool:
        """Whether the forward messages and the shares are those of the bound `token`."""
        return self._sent is token

    def passes(self, halves: int, state: Messages, eta: float, *, momentum: bool) -> None:
        """Do `halves` half passes at η (inf: hard-min), forward first."""
        self.forget()
        pace = self._hard if eta == np.inf else self._soft
        pace.run(
            halves,
            lambda threads: core.passes(
                self.layout, self.plan.native, halves, state.msg, state.prev, self._theta, eta,
                momentum, state.shift, self._dot, state.clock, threads,
            ),
        )  # fmt: skip

    def sampled_passes(self, state: Messages, count: int, eta: float, sampling: Sampling) -> None:
        """Do `count` passes with momentum, and add marginals to the average at intervals."""
        self.forget()

        def soft_passes(threads: int) -> None:
            core.sampled_passes(
                self.layout, layout(self.model), self.plan.native, count, state.msg, state.prev,
                self._theta, eta, state.shift, self._dot, state.clock, sampling.passes,
                AVERAGING.every, sampling.longest, sampling.before, sampling.mean, sampling.samples,
                AVERAGING.recent, threads,
            )  # fmt: skip

        self._soft.run(2 * count, soft_passes)

    def half_pass(
        self,
        forward: bool,
        messages: Floats,
        eta: float,
        *,
        prev: Floats | None = None,
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
        prev : array, optional
            Messages that momentum extrapolates from; no momentum by default.
        shift : array, optional
            Output: the constant subtracted from each message.
        levels : compiled schedule, optional
            The levels to process; all by default.
        """
        self.forget()
        momentum, before = prev is not None, messages[:0] if prev is None else prev
        taken = np.empty(len(self.plan.edge)) if shift is None else shift
        native = self.plan.native if levels is None else levels
        core.half_pass(
            self.layout, native, forward, messages, before, self._theta, eta, momentum, taken,
            self._dot, self.threads,
        )  # fmt: skip

    @property
    def product(self) -> float:
        """The inner product of the restart test of momentum, after a pass."""
        return float(self._dot.sum())

    def lowered(self, messages: Floats, shift: Floats, token: object) -> float:
        """Do a hard forward half pass, rounded down; return the chain bound of the messages."""
        self.forget()
        native = self.plan.native
        self._hard.run(
            1,
            lambda threads: core.lowered_half(
                self.layout, native, messages, self._theta, shift, self._dot, threads
            ),
        )
        self._sent = token
        constant = self.model.constant
        return float(
            core.chain_bound(self.layout, native, self._theta, shift, constant, self.threads)
        )

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
        core.cut_chains(self.layout, plan.native, plan.rank, messages, shares, lam, self.threads)
        return lam

    def read(self, messages: Floats, token: object) -> NDArray[np.int64]:
        """Decode labels in reverse order of a pass, from the messages into early endpoints."""
        self._send(messages, token)
        labels = np.empty(self.model.n, dtype=np.int64)
        core.read_labels(
            layout(self.model), self.plan.native, messages, DECODING.tie, labels, self.threads
        )
        return labels[: self.model.num_variables]

    def _send(self, messages: Floats, token: object) -> None:
        """Do the half pass of `lowered` unless the forward messages are those of `token`."""
        if not self.has_sent(token):
            self.lowered(messages, np.empty(len(self.plan.edge)), token)

    def make_shares(self, messages: Floats) -> None:
        """Compute the shares θ̂_i / n_i of some messages in the scratch memory."""
        self.forget()
        core.shares(self.plan.native, messages, self._theta, self.threads)

    def soft_nodes(self, messages: Floats, eta: float) -> tuple[Floats, Floats, Floats]:
        """Compute the shares; return their marginals, entropies and soft minima."""
        self.make_shares(messages)
        plan, nodes = self.plan, np.empty(self.model.unary.size)
        entropy, minima = np.empty(self.model.n), np.empty(self.model.n)
        core.soft_nodes(
            layout(self.model), plan.node_at, plan.node_step, self._theta, eta, nodes, entropy,
            minima, self.threads,
        )  # fmt: skip
        return nodes, entropy, minima

    def couplings(self, messages: Floats, shares: Floats) -> Floats:
        """κ = θ̂_i / n_i - M in the order of the model, from shares in that order."""
        coupling = np.empty(self.model.half_size)
        core.couplings(self.layout, self.plan.native, messages, shares, coupling, self.threads)
        return coupling

    def price(self, messages: Floats, eta: float, nodes: Floats, *, whole: bool) -> Coupled:
        """As `relaxation.point.couple` with κ = θ̂_i / n_i - M, which is not stored.

        The scratch memory must hold the shares; entropy and slack are computed only if `whole`.
        """
        model, native = self.model, self.plan.native
        out = np.empty((core.portions(native), 3))
        core.price(
            self.layout, layout(model), native, messages, self._theta, nodes, eta, whole, out,
            self.threads,
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
