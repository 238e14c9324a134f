"""The judge on a device: what it proves stays there until somebody wants to see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softmap.algorithms.base import Floats, Proposal, Verdict
from softmap.cuda.engine import Engine
from softmap.model import Model
from softmap.relaxation.point import PrimalPoint, needs_coupling

__all__ = ["DeviceJudge", "judged_on_device"]


def judged_on_device(model: Model) -> bool:
    """Whether the device can price all edges: no forbidden pairs, no auxiliary nodes."""
    forbidden = any(potential.has_forbidden() for potential in model.potentials)
    return not forbidden and not len(model.auxiliaries)


class _Nodes(Sequence[Any]):
    """Node marginals of the last look, fetched one by one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __len__(self) -> int:
        return 2 if self._engine.averaged else 1

    def __getitem__(self, k: Any) -> Any:
        if k >= len(self):
            raise IndexError(k)
        return self._engine.by_node(self._engine.mean_mu if k else self._engine.mu)


class DeviceJudge:
    """Keeps the best bound and point of a run on the device.

    It has the attributes and verbs of `solving.judge.Judge`, which does what is asked about arrays
    of the host: `host` holds whatever did not come from the device.
    """

    def __init__(self, host: Any, engine: Engine) -> None:
        self._host, self._engine = host, engine
        self.model, self.threads = host.model, host.threads
        self._lam_here = self._point_here = False
        self._eta = 1.0

    @property
    def bound(self) -> float:
        """The best bound."""
        return float(self._host.bound)

    @bound.setter
    def bound(self, value: float) -> None:
        self._host.bound = value

    @property
    def primal(self) -> float:
        """The cost of the best point."""
        return float(self._host.primal)

    @primal.setter
    def primal(self, value: float) -> None:
        self._host.primal = value

    @property
    def lam(self) -> Floats:
        """λ of the best bound."""
        if self._lam_here:
            self._host.lam = self._engine.lam(self._engine.best_lam, 1)
            self._lam_here = False
        lam: Floats = self._host.lam
        return lam

    @lam.setter
    def lam(self, value: Floats) -> None:
        self._host.lam, self._lam_here = value, False

    @property
    def point(self) -> PrimalPoint | None:
        """The best point."""
        if self._point_here:
            engine = self._engine
            nodes = engine.by_node(engine.best_mu)
            keeps = needs_coupling(self.model)
            coupling = engine.lam(engine.best_msg, 2) if keeps else None
            self._host.point = PrimalPoint(self.model, nodes, None, coupling, self._eta)
            self._point_here = False
        point: PrimalPoint | None = self._host.point
        return point

    @point.setter
    def point(self, value: PrimalPoint | None) -> None:
        self._host.point, self._point_here = value, False

    def look(self, proposal: Any) -> Verdict:
        """Judge where the engine stood at its last look, or arrays of the host."""
        if isinstance(proposal, Proposal):
            before = self.bound, self.primal
            verdict: Verdict = self._host.look(proposal)
            self._forget(before)
            return verdict
        engine, found = self._engine, self._engine.found
        if found.bound > self.bound:
            engine.device.copy(engine.polished, engine.best_lam)
            self.bound, self._lam_here = found.bound, True
        best = int(np.argmin(found.primals))
        if found.primals[best] < self.primal:
            engine.device.copy(engine.mean_mu if best else engine.mu, engine.best_mu)
            engine.device.copy(engine.msg, engine.best_msg)
            self.primal, self._point_here, self._eta = found.primals[best], True, proposal.eta
        nodes: Any = _Nodes(engine)
        return Verdict(found.bound, found.primals, found.edge_entropy, found.slack, nodes)

    def notice(self, proposal: Any) -> None:
        """Look at the bound of a proposal only."""
        self.glance(proposal.lam)

    def glance(self, lam: Floats) -> None:
        """Look at the bound of λ only."""
        before = self.bound
        self._host.glance(lam)
        self._lam_here = self._lam_here and self.bound == before

    def accept(self, lam: Floats, nodes: Floats) -> None:
        """Look at the solution of an exact LP solver."""
        before = self.bound, self.primal
        self._host.accept(lam, nodes)
        self._forget(before)

    def _forget(self, before: tuple[float, float]) -> None:
        """What lies on the device is the best only while nothing of the host is better."""
        self._lam_here = self._lam_here and self.bound == before[0]
        self._point_here = self._point_here and self.primal == before[1]

    def credit(self, labels: Any, energy: float) -> None:
        """Take a labelling for what it is: a point of the polytope, too."""
        before = self.bound, self.primal
        self._host.credit(labels, energy)
        self._forget(before)
