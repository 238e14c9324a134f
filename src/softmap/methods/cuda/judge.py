"""The judge on a device: what it proves stays there until somebody wants to see it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from softmap.methods.base import Proposal, Verdict
from softmap.methods.cuda.arena import Lam
from softmap.methods.cuda.arrays import Kept
from softmap.methods.cuda.engine import Engine
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
        points = self._engine.points
        return self._engine.arena.by_node(points.mean_mu if k else points.mu)


class DeviceJudge:
    """Judges where an engine stood at its last look; what is best stays on the device.

    It has the verbs of `solving.judge.Judge`, which judges whatever comes from the host.

    Parameters
    ----------
    host : Judge
    engine : Engine
    kept : Kept
        Where the engine keeps the best.
    """

    def __init__(self, host: Any, engine: Engine, kept: Kept) -> None:
        self._host, self._engine, self._kept, self.best = host, engine, kept, host.best
        self.solution = host.solution

    def bound(self, proposal: Any) -> float:
        """Judge the bound of a proposal only."""
        return float(self.best.offer_lam(proposal.lam))

    def look(self, proposal: Any) -> Verdict:
        """Judge where the engine stood at its last look, or arrays of the host."""
        if isinstance(proposal, Proposal):
            verdict: Verdict = self._host.look(proposal)
            return verdict
        engine, found, kept = self._engine, self._engine.found, self._kept
        copy, messages, points = engine.device.copy, engine.messages, engine.points
        if found.bound > self.best.lp_bound:
            copy(messages.polished, kept.lam)
            self.best.offer_lp_bound(found.bound, lambda: engine.arena.lam(kept.lam, Lam.CUT))
        least = int(np.argmin(found.primals))
        if found.primals[least] < self.best.point_cost:
            copy(points.mean_mu if least else points.mu, kept.mu)
            copy(messages.msg, kept.msg)
            self.best.offer_point(found.primals[least], partial(self._point, proposal.eta))
        nodes: Any = _Nodes(engine)
        return Verdict(found.bound, found.primals, found.edge_entropy, found.slack, nodes)

    def _point(self, eta: float) -> PrimalPoint:
        arena, kept = self._engine.arena, self._kept
        model, nodes = arena.model, arena.by_node(kept.mu)
        coupling = arena.lam(kept.msg, Lam.COUPLINGS) if needs_coupling(model) else None
        return PrimalPoint(model, nodes, None, coupling, eta)
