"""Messages, the compiled loops over those along chains, and averages of marginals over passes."""

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
    """How marginals are averaged over passes.

    Attributes
    ----------
    every : int
        Passes between samples of the averaged marginals.
    recent : float
        Sample k counts like k**recent: about the last tenth of all passes.
    """

    every: int = 5
    recent: float = 8.0


AVERAGING = Averaging()


@dataclass(frozen=True)
class Sampling:
    """Where the samples of a run stand before some passes, and what is to be done after a few.

    Attributes
    ----------
    passes, samples : int
        So far; a sample is due whenever `passes` has become a multiple of `AVERAGING.every`.
    longest : float
        What Nesterov's t is cut to then.
    before, mean : float arrays over `model.node_offset`
        The average so far, and where it is written to; of length 0 where nothing is averaged, or
        no sample is due.
    """

    passes: int
    samples: int
    longest: float
    before: Floats
    mean: Floats

    def after(self, count: int) -> tuple[int, int]:
        """Passes and samples after `count` passes."""
        passes = self.passes + count
        taken = passes // AVERAGING.every - self.passes // AVERAGING.every if len(self.mean) else 0
        return passes, self.samples + taken


def sampled_by_turns(engine: Any, state: Any, count: int, eta: float, sampling: Sampling) -> None:
    """`count` passes of an engine with momentum, turn by turn: what `core.sampled_passes` does."""
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


CLOCK = (0.0, 0.0, -1.0)  # as `Messages.clock` begins


@dataclass
class Messages:
    """M = -λ along the chains, and the momentum over passes.

    `msg` is the result of the last pass, `prev` what momentum compares it with (empty: momentum
    begins anew); `clock` holds Nesterov's t, the number of restarts and the last product that
    decides on them, `shift` what the last half pass took off each edge. Messages sent forward, and
    what was taken off them, may have been `overwritten` by a bound.
    """

    msg: Floats
    prev: Floats
    clock: Floats
    shift: Floats
    overwritten: bool = False


class ChainLoops:
    """The compiled loops over one schedule of chains, and the scratch memory they share.

    The shares θ̂_i / n_i of the nodes are in that memory. After `lowered` they and the messages sent
    forward belong to one bound, known by its `token`, until the next loop overwrites them.
    """

    def __init__(self, model: Model, plan: Schedule, threads: int) -> None:
        self.model, self.plan, self.threads = model, plan, threads
        self.layout = layout(model, plan.table.dtype)
        self._soft, self._hard = Pace(threads), Pace(threads)
        self._theta = aligned(plan.cost_size)
        self._dot = np.zeros(len(plan.blocks))
        self._sent: object = None  # the bound whose messages were sent forward last

    def forget(self) -> None:
        """Messages sent forward are not those of any bound."""
        self._sent = None

    def has_sent(self, token: object) -> bool:
        """Whether messages sent forward, and the shares, are those of a bound."""
        return self._sent is token

    def passes(self, halves: int, state: Messages, eta: float, *, momentum: bool) -> None:
        """Half passes at η (inf: hard-min), forward first."""
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
        """`count` passes with momentum; every few of them marginals enter the average."""
        self.forget()
        self._soft.run(
            2 * count,
            lambda threads: core.sampled_passes(
                self.layout, layout(self.model), self.plan.native, count, state.msg, state.prev,
                self._theta, eta, state.shift, self._dot, state.clock, sampling.passes,
                AVERAGING.every, sampling.longest, sampling.before, sampling.mean, sampling.samples,
                AVERAGING.recent, threads,
            ),
        )  # fmt: skip

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
        """Make the messages of one direction at η.

        Parameters
        ----------
        prev : array, optional
            What momentum compares them with; no momentum if left out.
        shift : array, optional
            What is taken off each edge goes there.
        levels : compiled schedule, optional
            Levels to go through; all of them if left out.
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
        """What decides whether momentum begins anew, after a pass."""
        return float(self._dot.sum())

    def lowered(self, messages: Floats, shift: Floats, token: object) -> float:
        """Send forward, hard and rounded down, and add up what that proves."""
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
        """λ of the chain bound of messages into early ends."""
        self._send(messages, token)
        return self.cut_with(messages, self.by_node())

    def cut_with(self, messages: Floats, shares: Floats) -> Floats:
        """The same from shares in the order of the model."""
        plan, lam = self.plan, np.empty(self.model.half_size)
        core.cut_chains(self.layout, plan.native, plan.rank, messages, shares, lam, self.threads)
        return lam

    def read(self, messages: Floats, token: object) -> NDArray[np.int64]:
        """Labels, the last of a pass decided first, by the messages into early ends."""
        self._send(messages, token)
        labels = np.empty(self.model.n, dtype=np.int64)
        core.read_labels(
            layout(self.model), self.plan.native, messages, DECODING.tie, labels, self.threads
        )
        return labels[: self.model.num_variables]

    def _send(self, messages: Floats, token: object) -> None:
        """Send forward as for a bound, unless that was the last thing that was done."""
        if not self.has_sent(token):
            self.lowered(messages, np.empty(len(self.plan.edge)), token)

    def make_shares(self, messages: Floats) -> None:
        """Put the shares θ̂_i / n_i of some messages in place."""
        self.forget()
        core.shares(self.plan.native, messages, self._theta, self.threads)

    def soft_nodes(self, messages: Floats, eta: float) -> tuple[Floats, Floats, Floats]:
        """Marginals, entropies and soft minima of the shares, which are put in place."""
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
        """As `relaxation.point.couple` with κ = θ̂_i / n_i - M, which is nowhere stored.

        The shares have to be in place; entropy and slack are computed only if `whole`.
        """
        model, native = self.model, self.plan.native
        out = np.empty((core.portions(native), 3))
        core.price(
            self.layout, layout(model), native, messages, self._theta, nodes, eta, whole, out,
            self.threads,
        )  # fmt: skip
        terms = np.append(out[:, 0], [node_cost(model, nodes), model.constant])
        total = float(core.careful_sum(terms)) if np.isfinite(terms).all() else math.inf
        entropy, slack = (float(core.careful_sum(out[:, k].copy())) for k in (1, 2))
        return Coupled(total, entropy, slack, None)

    def by_node(self) -> Floats:
        """The shares that are in place, in the order of the model."""
        out = np.empty(self.model.unary.size)
        core.by_node(self.layout, self.plan.native, self._theta, out, self.threads)
        return out
