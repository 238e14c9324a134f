"""The solver people use: smooth chain passes, momentum over passes, η annealed by the gap."""

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
from softmap.methods.sweeps.coarser import coarser
from softmap.methods.sweeps.messages import CLOCK, Messages
from softmap.methods.sweeps.ordering import decoding_order
from softmap.methods.sweeps.sampling import SAMPLE, Sampling
from softmap.model import Model
from softmap.relaxation.dual import cost_scale
from softmap.relaxation.point import Coupled

__all__ = ["Anneal", "AnnealState", "Annealed", "Engine", "easily_coupled"]

RULE = Annealing()


@dataclass(frozen=True)
class Recovery:
    """What to do when the smoothed dual falls, which momentum over large factors may cause.

    Attributes
    ----------
    fall : float
        Relative fall of the smoothed dual between two checks that rounding may explain.
    calmer : float
        Factor by which momentum is cut when the dual fell by more.
    """

    fall: float = 1e-6
    calmer: float = 16.0


RECOVERY = Recovery()
COARSE_PASSES = 8  # passes over the coarse model before those over the picture


def easily_coupled(model: Model) -> bool:
    """Whether good edge marginals for averaged node marginals cost little: else they do not pay."""
    for first, last, potential in model.groups():
        rows, cols = model.end_labels(first, last)
        if potential.family != "potts" and last > first and (rows * cols).max() > core.EXCHANGED:
            return False
    return bool(model.m)


class Engine(Protocol):
    """What is annealed: passes over one model, and the regularised primal point they stand for.

    `surplus` says how often H_i is to be taken off Σ_e H_e in the entropy that belongs to it.
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
    """Where an annealed run stands.

    Attributes
    ----------
    messages : Messages
    passes, samples : int
        Passes so far; samples in the average of node marginals.
    mean : float array
        The average of node marginals.
    node_entropy : float
        Entropy of the nodes that is taken off that of the edges, at the last check.
    calm : float
        Factor on the longest momentum: 1, and less after the smoothed dual fell.
    good : float array
        The messages of the last check; empty where momentum cannot lead downhill.
    """

    messages: Messages
    passes: int = 0
    samples: int = 0
    mean: Floats
    node_entropy: float = 0.0
    calm: float = 1.0
    good: Floats = field(default_factory=lambda: np.zeros(0))


class Annealed(Algorithm):
    """Momentum over passes of an engine, warm-started from one η to the next.

    Parameters
    ----------
    eta : float, optional
        First η; from the scale of the costs if left out.
    threads : int, optional
    dtype : "float64" or "float32"
        Precision of the messages; bounds and primals are float64 in any case.
    averaging : bool
        Whether to average node marginals, where points over the average cost little.
    couplings : bool
        Whether proposals come with couplings even where points do not depend on them.
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
        # momentum over factors of many variables may lead downhill: then there is a way back
        good = messages.msg.copy() if len(model.auxiliaries) else np.zeros(0)
        return AnnealState(messages=messages, eta=eta, mean=mean, good=good)

    def step(self, state: AnnealState, count: int) -> None:
        """`count` passes; every few of them the node marginals enter the average."""
        most = self.rule.longest_momentum(state.eta, self.scale)
        if state.calm < 1.0:
            most = max(state.calm * self.rule.momentum * math.sqrt(state.eta * self.scale), 1.0)
        due = self.averaging and state.passes % SAMPLE + count >= SAMPLE
        before = state.mean if due else np.zeros(0)  # it may be part of a point that is kept
        sampling = Sampling(state.passes, state.samples, most, before, np.empty_like(before))
        self.engine.sampled_passes(state.messages, count, state.eta, sampling)
        state.passes, state.samples = sampling.after(count)
        state.mean = sampling.mean if due else state.mean
        state.work += 2 * self.engine.model.m * count

    def lower_eta(self, state: AnnealState, factor: float) -> None:
        """Divide η by a factor, down to the first η of a run that begins with nothing."""
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
        """The current marginals and more, and the bound after hard passes, in this order."""
        messages, engine = state.messages, self.engine
        engine.resend(messages, state.eta)
        found = engine.marginals(messages, state.eta)
        state.node_entropy = float((engine.surplus * found.node_entropy).sum())
        state.smoothed = found.smoothed
        nodes, coupling = (found.nodes, *more), found.coupling
        points: tuple[Coupled, ...] = ()
        if found.price is not None:  # nobody looks at the entropy of an average
            points = tuple(found.price(p, whole=not k) for k, p in enumerate(nodes))
        del found  # marginals are large
        proved = engine.prove(messages, hard)
        return Proposal(
            proved.lam, state.eta, coupling, nodes, state.smoothed, proved.bound, points,
            proved.labels,
        )  # fmt: skip

    def observe(self, state: AnnealState, verdict: Verdict) -> None:
        """Raise η if it is time; go back where the smoothed dual fell."""
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
        """To the messages of the check before, with less momentum from now on."""
        messages = state.messages
        messages.msg[:] = state.good
        messages.prev[:] = messages.msg[: len(messages.prev)]
        messages.clock[:] = CLOCK
        state.calm /= RECOVERY.calmer


class Anneal(Annealed):
    """The annealed solver over monotonic chains: smooth TRW-S passes."""

    name = "anneal"
    engine_type = Chains
    engine: Chains

    def init(self, model: Model, lam: Floats | None, seed: int) -> AnnealState:
        state = super().init(model, lam, seed)
        if self.couplings:
            self.engine.keep_couplings()
        return state

    def start_coarse(self, state: AnnealState, stop: Callable[[], bool]) -> None:
        """Begin at λ of the picture in blocks, if it is one (see `coarser`)."""
        small = coarser(self.engine.model)
        if small is None:
            return
        method = Anneal(threads=self.threads, dtype=self.dtype)
        there = method.init(small.model, None, 0)
        method.start_coarse(there, stop)
        while there.passes < COARSE_PASSES and not stop():
            method.step(there, 1)
        state.work += there.work
        if there.passes < COARSE_PASSES:
            return
        lam = method.restart_point(there)
        del method, there
        self.engine.begin_with(state.messages, small, lam)
        if self.first_eta is None:
            state.eta *= self.rule.growth

    def decode_order(self, model: Model) -> NDArray[np.int64]:
        return decoding_order(model.graph, model.num_variables)
