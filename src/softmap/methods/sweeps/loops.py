"""The compiled loops over the chains of one model, and the scratch memory that they share.

`Messages` are what a run stores; `chains` says which of them belong to the run, and when.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.labels.decoding import TIE
from softmap.machine import ThreadChoice
from softmap.methods.base import Floats
from softmap.methods.sweeps.planning import Schedule, aligned
from softmap.model import Network
from softmap.model.layout import layout
from softmap.relaxation.polytope import Coupled, node_cost

SAMPLED = 5
"""Passes between two samples of averaged marginals, for all runs: launches on a GPU are recorded
with it. About the last tenth of all passes dominates the average."""


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
    recent : float
        Sample k has the weight k**recent.
    """

    passes: int
    samples: int
    longest: float
    mean: Floats
    recent: float

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
            weight = (sampling.recent + 1.0) / (samples + sampling.recent)
            before = mean.astype(np.float64)
            mean[:] = before + (engine.nodes(state.msg, eta) - before) * weight
    return passes - sampling.passes


Singles = NDArray[np.float32]
CLOCK = (0.0, 0.0, -1.0)  # initial value of `Messages.clock`
NONE: NDArray[Any] = np.zeros(0, np.float32)


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
        Whether forward messages and shifts are not those of the run: states *bound* and *half*.
    aside : float64 or float32 array
        The way back from the messages of a bound to those of the run; empty but in state *bound*.
    proved : weak reference or None
        The `KeptBound` that was computed last.

    Notes
    -----
    `softmap.methods.sweeps.chains` draws the three states *whole*, *bound* and *half*.
    """

    msg: Floats
    drift: Singles
    clock: Floats
    shift: Floats
    overwritten: bool = False

    def __post_init__(self) -> None:  # not fields: a run is stored in another state than *bound*
        self.aside: NDArray[Any] = NONE
        self.proved: weakref.ref[Any] | None = None


class ChainPasses:
    """The compiled passes over one schedule of chains, and the scratch memory they share.

    The scratch memory holds the shares θ̂_i / n_i of the nodes. They belong to one *owner* until the
    next loop. After `lowered` it is a bound, identified by its `token`, and the forward messages
    are those of the bound, too. After other half passes it is the array of messages: no message
    into a node changes after the half pass has reached it.
    """

    def __init__(self, model: Network, plan: Schedule, threads: int) -> None:
        self.model, self.plan, self.threads = model, plan, threads
        self.layout = layout(model)
        self._thread_choice = ThreadChoice(
            threads
        )  # of the passes of the run; loops of checks follow it
        self._shares: Floats | None = None
        self._dot = np.zeros(len(plan.blocks))
        self._owner: object = None  # the token or messages of the shares in the scratch memory

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
        """Record that messages have changed or will: shares and messages have no owner."""
        self._owner = None

    def belongs_to(self, owner: object) -> bool:
        """Whether the shares are those of these messages, or of the bound with this token."""
        return self._owner is owner

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
        loop = partial(
            core.passes, self.layout, self.plan.native, self._arrays(state), halves, eta, momentum,
            deadline=deadline,
        )  # fmt: skip
        done = self._thread_choice.run(halves, loop)
        self._owner = state.msg if done == halves else None
        return done

    def polish(self, halves: int, state: Messages, deadline: core.Deadline | None = None) -> None:
        """Do hard half passes without momentum, forward first, between two passes of a run."""
        arrays, threads = self._arrays(state), self._thread_choice.threads
        done = core.passes(
            self.layout, self.plan.native, arrays, halves, np.inf, False, threads, deadline
        )
        self._owner = state.msg if done == halves else None

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
            now = 1 if self._thread_choice.trying else count - done
            average = core.Averaging(
                sampling.mean, sampling.passes, SAMPLED, sampling.longest, sampling.samples,
                sampling.recent,
            )  # fmt: skip
            loop = partial(
                core.sampled_passes, self.layout, self.plan.native, self._arrays(state), now, eta,
                average, deadline=deadline,
            )  # fmt: skip
            made = self._thread_choice.run(now, loop)
            self._owner = state.msg if made == now else None
            sampling, done = sampling.after(made), done + made
            if made < now:
                break
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
        threads = self._thread_choice.threads
        core.traced_passes(self.layout, self.plan.native, arrays, count, threads, deadline)

    @property
    def product(self) -> float:
        """The inner product of the restart test of momentum, after a pass."""
        return float(self._dot.sum())

    def lowered(
        self,
        messages: Floats,
        shift: Floats,
        token: object,
        deadline: core.Deadline | None = None,
    ) -> float:
        """Do a hard forward half pass, rounded down; return the chain bound of the messages.

        Raises `core.OutOfTime` if the deadline passes first; messages into early endpoints are as
        before then, as they are after a whole half pass.
        """
        native, threads = self.plan.native, self._thread_choice.threads
        arrays = self._arrays(Messages(messages, NONE, np.array(CLOCK), shift))
        core.lowered_half(self.layout, native, arrays, threads, deadline)
        self._owner = token
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
        if not self.belongs_to(token):
            self.lowered(messages, np.empty(len(self.plan.blocks)), token)

    def make_shares(self, messages: Floats) -> None:
        """Compute the shares θ̂_i / n_i of messages in the scratch memory, if it holds others."""
        if self.belongs_to(messages):
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

    def point_cost(
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
