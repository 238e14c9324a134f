"""The default method: smoothed chain passes with momentum; η is annealed by the gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.methods.base import Algorithm, Floats, Proposal, State, Verdict
from softmap.methods.policy import Annealing, Ask, Cooling
from softmap.methods.sweeps.chains import (
    ChainMarginals,
    Chains,
    Proved,
    polish,
)
from softmap.methods.sweeps.coarser import COARSENING, coarser
from softmap.methods.sweeps.messages import AVERAGING, CLOCK, Messages, Sampling
from softmap.methods.sweeps.planning import decoding_order
from softmap.model import Model
from softmap.relaxation.dual import cost_scale
from softmap.relaxation.polytope import Coupled

__all__ = ["Anneal", "AnnealState", "Annealed", "Engine", "easily_coupled"]

RULE = Annealing()


@dataclass(frozen=True)
class Recovery:
    """The reaction to a decrease of the smoothed dual (momentum over large factors may cause one).

    Attributes
    ----------
    fall : float
        Largest relative decrease of the smoothed dual between two checks that counts as rounding.
    calmer : float
        The limit of momentum is divided by this after a larger decrease.
    """

    fall: float = 1e-6
    calmer: float = 16.0


RECOVERY = Recovery()


def easily_coupled(model: Model) -> bool:
    """Whether edge marginals are fast to compute from node marginals (Potts or small tables)."""
    for first, last, potential in model.groups():
        rows, cols = model.end_labels(first, last)
        if potential.family != "potts" and last > first and (rows * cols).max() > core.EXCHANGED:
            return False
    return bool(model.m)


class Engine(Protocol):
    """The passes over one model that `Annealed` drives, and their regularised primal point.

    `surplus` holds the factors c_i of the engine's entropy Σ_e H_e - Σ_i c_i H_i.
    """

    model: Model
    surplus: Floats

    def __init__(self, model: Model, threads: int, dtype: DTypeLike) -> None: ...

    def start(self, lam: Floats | None) -> Messages: ...

    def sampled_passes(
        self, state: Messages, count: int, eta: float, sampling: Sampling
    ) -> None: ...

    def nodes(self, messages: Floats, eta: float) -> Floats: ...

    def marginals(self, state: Messages, eta: float) -> ChainMarginals: ...

    def standing(self, state: Messages, eta: float) -> Floats: ...

    def resend(self, state: Messages, eta: float) -> None: ...

    def prove(self, state: Messages, hard: int) -> Proved: ...


@dataclass(kw_only=True)
class AnnealState(Cooling, State):
    """The state of an annealed run.

    Attributes
    ----------
    messages : Messages
    passes : int
        Number of passes so far.
    samples : int
        Number of samples in the average of node marginals.
    mean : float64 array
        The average of node marginals.
    node_entropy : float
        Entropy of the nodes, to be subtracted from that of the edges, at the last check.
    calm : float
        Factor on the limit of momentum: 1 at first, smaller after the smoothed dual decreased.
    good : float64 array
        The messages of the last check; empty if momentum cannot decrease the dual.
    """

    messages: Messages
    passes: int = 0
    samples: int = 0
    mean: Floats
    node_entropy: float = 0.0
    calm: float = 1.0
    good: Floats = field(default_factory=lambda: np.zeros(0))


class Annealed(Algorithm):
    """Passes of an engine with momentum, at an η that rises; messages are kept when η rises.

    Parameters
    ----------
    eta : float, optional
        Initial η; by default from the scale of the costs.
    threads : int, default 1
    dtype : "float64" (default) or "float32"
        Precision of the messages; bounds and primal costs are always float64.
    averaging : bool, default True
        Whether to average node marginals, if points over the average are fast to compute.
    couplings : bool, default False
        Whether proposals have couplings κ even if points do not depend on them.
    """

    sweeping = True
    exact_finish = True
    rule: ClassVar[Annealing] = RULE
    engine_type: ClassVar[type[Engine]]

    def __init__(
        self,
        *,
        eta: float | None = None,
        threads: int = 1,
        dtype: DTypeLike = np.float64,
        averaging: bool = True,
        couplings: bool = False,
    ) -> None:
        self.first_eta, self.dtype = eta, dtype
        self.threads, self.averaging, self.couplings = threads, averaging, couplings

    @classmethod
    def configured(cls, eta: float | None, threads: int, dtype: DTypeLike) -> Self:
        return cls(eta=eta, threads=threads, dtype=dtype)

    def init(self, model: Model, lam: Floats | None, seed: int) -> AnnealState:
        self.engine = self.engine_type(model, self.threads, self.dtype)
        self.averaging = self.averaging and easily_coupled(model)
        self.scale = cost_scale(model)
        eta = self.first_eta or self.rule.first_eta(self.scale)
        mean = np.zeros(model.unary.size)
        messages = self.engine.start(lam)
        # Momentum over large factors may decrease the dual: keep messages to return to.
        good = messages.msg.copy() if len(model.auxiliaries) else np.zeros(0)
        return AnnealState(messages=messages, eta=eta, mean=mean, good=good)

    def step(self, state: AnnealState, count: int) -> None:
        """Do `count` passes; every few passes the node marginals are added to the average."""
        most = self.rule.longest_momentum(state.eta, self.scale)
        if state.calm < 1.0:
            most = max(state.calm * self.rule.momentum * math.sqrt(state.eta * self.scale), 1.0)
        due = self.averaging and state.passes % AVERAGING.every + count >= AVERAGING.every
        before = state.mean if due else np.zeros(0)  # not changed in place: a kept point may use it
        sampling = Sampling(state.passes, state.samples, most, before, np.empty_like(before))
        self.engine.sampled_passes(state.messages, count, state.eta, sampling)
        state.passes, state.samples = sampling.after(count)
        state.mean = sampling.mean if due else state.mean
        state.work += 2 * self.engine.model.m * count

    def lower_eta(self, state: AnnealState, factor: float) -> None:
        """Divide η by a factor, but not below the initial η of a cold start."""
        state.eta = max(state.eta / factor, min(state.eta, self.rule.first_eta(self.scale)))

    def restart_point(self, state: AnnealState) -> Floats:
        return self.engine.standing(state.messages, state.eta)

    def propose(self, state: AnnealState) -> Proposal:
        return self.answer(state, Ask.EVERYTHING)

    def answer(self, state: AnnealState, ask: Ask) -> Proposal:
        if ask is Ask.BOUND:
            return self._brief(state)
        if ask is Ask.POINT:
            return self._proposal(state, (), 0)
        average = (state.mean,) if state.samples > 1 else ()
        return self._proposal(state, average, polish(state.passes))

    def _brief(self, state: AnnealState) -> Proposal:
        messages = state.messages
        self.engine.resend(messages, state.eta)
        nodes = self.engine.nodes(messages.msg, state.eta)
        proved = self.engine.prove(messages, 0)
        return Proposal(
            proved.lam, state.eta, nodes=(nodes,), bound=proved.bound, labels=proved.labels
        )

    def _proposal(self, state: AnnealState, more: tuple[Floats, ...], hard: int) -> Proposal:
        """Propose the current marginals, those in `more`, and the bound after hard-min passes."""
        messages, engine = state.messages, self.engine
        engine.resend(messages, state.eta)
        found = engine.marginals(messages, state.eta)
        state.node_entropy = float((engine.surplus * found.node_entropy).sum())
        state.smoothed = found.smoothed
        nodes, coupling = (found.nodes, *more), found.coupling
        points: tuple[Coupled, ...] = ()
        if found.price is not None:  # the entropy of the averaged point is not needed
            points = tuple(found.price(p, whole=not k) for k, p in enumerate(nodes))
        del found  # frees its marginals, which are large
        proved = engine.prove(messages, hard)
        return Proposal(
            proved.lam, state.eta, coupling, nodes, state.smoothed, proved.bound, points,
            proved.labels,
        )  # fmt: skip

    def observe(self, state: AnnealState, verdict: Verdict) -> None:
        """Raise η if the rule says so; restore earlier messages if the smoothed dual decreased."""
        fell = not state.smoothed >= state.previous - RECOVERY.fall * abs(state.previous)
        if fell and len(state.good):
            self._go_back(state)
            return
        if len(state.good):
            state.good[:] = state.messages.msg
        state.observe(
            self.rule,
            bound=verdict.bound,
            primals=verdict.primals,
            entropy=verdict.edge_entropy - state.node_entropy,
            averaged=state.samples > 1,
        )

    def _go_back(self, state: AnnealState) -> None:
        """Restore the messages of the last check, and lower the limit of momentum."""
        messages = state.messages
        messages.msg[:] = state.good
        messages.prev[:] = messages.msg[: len(messages.prev)]
        messages.clock[:] = CLOCK
        state.calm /= RECOVERY.calmer


class Anneal(Annealed):
    """The annealed method over monotonic chains: smoothed TRW-S passes."""

    name = "anneal"
    engine_type = Chains
    engine: Chains

    def init(self, model: Model, lam: Floats | None, seed: int) -> AnnealState:
        state = super().init(model, lam, seed)
        if self.couplings:
            self.engine.keep_couplings()
        return state

    def start_coarse(self, state: AnnealState, stop: Callable[[], bool]) -> None:
        """Initialise λ coarse-to-fine, if the model can be coarsened (see `coarser`)."""
        small = coarser(self.engine.model)
        if small is None:
            return
        method = Anneal(threads=self.threads, dtype=self.dtype)
        there = method.init(small.model, None, 0)
        method.start_coarse(there, stop)
        while there.passes < COARSENING.passes and not stop():
            method.step(there, 1)
        state.work += there.work
        if there.passes < COARSENING.passes:
            return
        lam = method.restart_point(there)
        del method, there
        self.engine.begin_with(state.messages, small, lam)
        if self.first_eta is None:
            state.eta *= self.rule.growth

    def decode_order(self, model: Model) -> NDArray[np.int64]:
        return decoding_order(model.graph, model.num_variables)
