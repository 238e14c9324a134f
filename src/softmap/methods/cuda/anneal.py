"""The annealed chain solver with its messages on a device, and the judge of what they prove."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.later import made
from softmap.methods.base import Assessment, Floats, Proposal, State
from softmap.methods.cuda.arena import Lam
from softmap.methods.cuda.cupy_device import chosen_device, find_device, require_cupy
from softmap.methods.cuda.engine import DeviceEngine, Kept
from softmap.methods.cuda.waiting import UNSEEN, Aside
from softmap.methods.policy import AnnealingRule, Ask, Cooling, longest_momentum
from softmap.methods.sweeps.anneal import Annealed, AnnealNumbers, easily_coupled
from softmap.model import Network
from softmap.relaxation.gaps import cost_scale
from softmap.relaxation.polytope import PrimalPoint, needs_coupling
from softmap.tuning import Numbers

LOG = logging.getLogger("softmap")


def judged_on_device(model: Network) -> bool:
    """Whether the device can price all edges: no forbidden pairs, no auxiliary nodes."""
    forbidden = any(potential.has_forbidden() for potential in model.potentials)
    return not forbidden and not model.has_factors


class _Nodes(Sequence[Any]):
    """Node marginals of the last look, fetched one by one."""

    def __init__(self, engine: DeviceEngine) -> None:
        self._engine = engine

    def __len__(self) -> int:
        return 2 if self._engine.averaged else 1

    def __getitem__(self, k: Any) -> Any:
        if k >= len(self):
            raise IndexError(k)
        points = self._engine.points
        return self._engine.arena.by_node(points.mean_mu if k else points.mu)


class DeviceJudge:
    """Judges where an engine stood at its last look; what is best stays on the device.

    It has the verbs of `softmap.run.judge.Judge`, which judges whatever comes from the host.

    Parameters
    ----------
    host : Judge
    engine : DeviceEngine
    kept : Kept
        Where the engine keeps the best.
    """

    whole = True

    def __init__(self, host: Any, engine: DeviceEngine, kept: Kept) -> None:
        self._host, self._engine, self._kept, self.best = host, engine, kept, host.best
        self.solution = host.solution
        self._handed: PrimalPoint | None = None  # the last point that was handed out

    def bound(self, proposal: Any) -> float:
        """Judge the bound of a proposal only."""
        return float(self.best.offer_lam(proposal.lam))

    def look(self, proposal: Any) -> Assessment:
        """Judge where the engine stood at its last look, or arrays of the host."""
        if isinstance(proposal, Proposal):
            verdict: Assessment = self._host.look(proposal)
            return verdict
        engine, found, kept = self._engine, self._engine.found, self._kept
        copy, messages, points = engine.device.copy, engine.messages, engine.points
        if found.bound > self.best.lp_bound:
            copy(messages.polished, kept.lam)
            self.best.offer_lp_bound(found.bound, lambda: engine.arena.lam(kept.lam, Lam.CUT))
        least = int(np.argmin(found.primals))
        if found.primals[least] < self.best.point_cost:
            if self._handed is not None:  # its κ is still in the arrays that are replaced now
                made(self._handed, "coupling")
                self._handed = None
            copy(points.mean_mu if least else points.mu, kept.mu)
            copy(messages.msg, kept.msg)
            self.best.offer_point(found.primals[least], partial(self._point, proposal.eta))
        nodes: Any = _Nodes(engine)
        return Assessment(found.bound, found.primals, found.edge_entropy, found.slack, nodes)

    def _point(self, eta: float) -> PrimalPoint:
        arena, kept = self._engine.arena, self._kept
        model, nodes = arena.model, arena.by_node(kept.mu)
        lazy: Any = partial(arena.lam, kept.msg, Lam.COUPLINGS) if needs_coupling(model) else None
        self._handed = PrimalPoint(model, nodes, None, lazy, eta)
        return self._handed


@dataclass(frozen=True)
class DeviceNumbers(Numbers):
    """Sizes that decide how a run on a GPU works."""

    frugal_states: int = 1_000_000  # node states above which a run for the LP decodes nothing; D48


@dataclass(init=False, eq=False)
class DeviceMessages:
    """The arrays of a checkpoint; reading or setting an attribute copies from or to the device."""

    msg: Floats
    prev: Floats
    control: Floats
    mean: Floats

    def __init__(self, engine: DeviceEngine) -> None:
        object.__setattr__(self, "_device", engine.device)
        mean = engine.device.zeros(1, np.float32) if engine.points.mean is None else None
        arrays = {
            "msg": engine.messages.msg, "prev": engine.messages.prev,
            "control": engine.clock.control, "mean": engine.points.mean if mean is None else mean,
        }  # fmt: skip
        object.__setattr__(self, "_arrays", arrays)

    def __getattr__(self, name: str) -> Any:
        if name not in {f.name for f in fields(DeviceMessages)}:
            raise AttributeError(name)
        return self._device.fetch(self._arrays[name])

    def __setattr__(self, name: str, value: NDArray[Any]) -> None:
        self._device.put(self._arrays[name], value)


@dataclass(kw_only=True)
class CudaState(Cooling, State):
    """The state of a run on a device; see `sweeps.anneal.AnnealState`."""

    messages: DeviceMessages
    passes: int = 0
    samples: int = 0
    node_entropy: float = 0.0
    calm: float = 1.0
    good: Floats = field(default_factory=lambda: np.zeros(0))  # unused: no restore on a device


class DeviceProposal:
    """A proposal whose arrays are copied from the device on first access."""

    bound = None  # the judge computes the bound of λ
    points = ()
    abandoned = False

    def __init__(self, engine: DeviceEngine, eta: float, smoothed: float | None = None) -> None:
        self._engine, self.eta, self.smoothed = engine, eta, smoothed
        self.labels = None if engine.kept is None else self._decoded  # else decoded from λ

    def _decoded(self) -> NDArray[np.int64]:
        return self._engine.decode()[: self._engine.model.num_variables]

    @cached_property
    def lam(self) -> Floats:
        """The λ of the bound."""
        return self._engine.arena.lam(self._engine.messages.polished, Lam.CUT)

    @cached_property
    def coupling(self) -> Floats:
        """The κ of the edge marginals."""
        return self._engine.arena.lam(self._engine.messages.msg, Lam.COUPLINGS)

    @cached_property
    def nodes(self) -> tuple[Floats, ...]:
        """The node marginals, the current ones first."""
        by_node, points = self._engine.arena.by_node, self._engine.points
        means = (by_node(points.mean_mu),) if self._engine.averaged else ()
        return (by_node(points.mu), *means)


class CudaAnneal(Annealed):
    """`anneal` on a device: the same passes, in a node order with wide levels.

    Parameters
    ----------
    eta : float, optional
        Initial η; by default from the scale of the costs.
    threads : int, default 1
        Number of host threads.
    dtype : "float32" (default) or "float64"
        Precision of the messages.
    """

    name = "anneal"

    def __init__(
        self,
        *,
        eta: float | None = None,
        threads: int = 1,
        dtype: DTypeLike = np.float32,
    ) -> None:
        super().__init__(eta=eta, threads=threads)
        self.dtype, self._warned = np.dtype(dtype).name, False
        require_cupy()

    def init(  # type: ignore[override]
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> CudaState:
        """Return the initial state; CuPy is imported and kernels are compiled in the background.

        Raises `OutOfTime` if the deadline passes first.
        """
        try:
            if deadline is not None:
                deadline.require()
            self.scale, self.averaging = cost_scale(model), easily_coupled(model)
            eta, number = (
                self.given_eta or self.tuning.of(AnnealingRule).first / self.scale,
                chosen_device(),
            )
            engine = Aside()(lambda: self._started(model, lam, eta, number, deadline), deadline)
        except core.OutOfTime:
            if not self._warned:  # a run may try again, at its end
                LOG.warning(
                    "backend='cuda': the device or its kernels were not ready in time, so that the "
                    "run ends with what the CPU has found; kernels are still compiled, for the "
                    "next run"
                )
            self._warned = True
            raise
        self.cuda, self.device, self.on_device = engine, engine.device, engine.kept is not None
        self.leaves_cores = self.on_device  # type: ignore[misc]
        most = self.tuning.of(DeviceNumbers).frugal_states
        self.frugal = self.on_device and model.unary.size > most  # type: ignore[misc]
        state = CudaState(messages=DeviceMessages(engine), eta=eta)
        self._set(state)
        return state

    def _started(
        self, model: Network, lam: Floats | None, eta: float, number: int | None,
        deadline: core.Deadline | None,
    ) -> DeviceEngine:  # fmt: skip
        """Return an engine that is ready for passes; it runs beside the run, which it leaves alone.

        Parameters
        ----------
        model : Network
        lam : float64 array or None
            The initial λ.
        eta : float
            The initial η.
        number : int or None
            The device that the caller uses.
        deadline : core.Deadline or None
            The end of the run.
        """
        engine = DeviceEngine(
            model, find_device(number), self.dtype, averaging=self.averaging,
            keeping=judged_on_device(model), deadline=deadline,
            recent=self.tuning.of(AnnealNumbers).recent,
        )  # fmt: skip
        if deadline is not None:
            deadline.require()
        engine.start(lam)
        rule = self.tuning.of(AnnealingRule)
        engine.clock.set_eta(eta, longest_momentum(rule, eta, self.scale))
        engine.record()
        return engine

    def step(  # type: ignore[override]
        self, state: CudaState, count: int, deadline: core.Deadline | None = None
    ) -> None:
        """Do `count` passes; a deadline is looked at between launches."""
        self._set(state)
        with suppress(core.OutOfTime):  # kernels for this η may still be compiled
            self.cuda.ready(deadline)
        before, at_once = state.passes, count if deadline is None else 1
        while count > 0 and not (deadline is not None and deadline.passed):
            at_once, began = min(at_once, count), time.perf_counter()
            self.cuda.passes(at_once)
            self.device.synchronize()  # so that the time of a pass is known
            each, count = (time.perf_counter() - began) / at_once, count - at_once
            at_once = max(1, int(UNSEEN / max(each, 1e-9)))
        state.passes, state.samples = self.cuda.clock.passes, self.cuda.clock.samples
        state.work += 2 * self.cuda.model.m * (state.passes - before)

    def _set(self, state: CudaState) -> None:
        clock = self.cuda.clock
        if (clock.passes, clock.samples, clock.eta) != (state.passes, state.samples, state.eta):
            rule = self.tuning.of(AnnealingRule)
            clock.set_eta(state.eta, longest_momentum(rule, state.eta, self.scale))
            clock.set_counts(state.passes, state.samples)

    def propose(self, state: CudaState) -> Proposal:  # type: ignore[override]
        self._set(state)
        found = self.cuda.look()
        state.node_entropy, state.smoothed = found.node_entropy, found.smoothed
        return DeviceProposal(self.cuda, state.eta, found.smoothed)  # type: ignore[return-value]

    def answer(  # type: ignore[override]
        self, state: CudaState, ask: Ask, deadline: core.Deadline | None = None
    ) -> Proposal:
        """Return `propose`: a check on the device always computes everything."""
        return self.propose(state)

    def judge_by(self, host: Any) -> Any:
        """Return a judge on the device if it can compute all edge marginals, else `host`."""
        kept = self.cuda.kept
        return host if kept is None else DeviceJudge(host, self.cuda, kept)

    def restart_point(self, state: CudaState) -> Floats:  # type: ignore[override]
        return self.cuda.arena.lam(self.cuda.messages.msg, Lam.PLAIN)

    def undo_proposal(self, state: CudaState) -> None:  # type: ignore[override]
        """Do nothing: a look leaves the messages as they are."""

    def rounded(self, state: Any) -> NDArray[np.int64] | None:
        """Return the labels of largest marginal at the last check, for a large model."""
        if not self.frugal:
            return None
        labels = self.cuda.arena.labels(self.cuda.points.label)
        return labels[: self.cuda.model.num_variables]
