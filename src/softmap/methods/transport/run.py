"""One run of transport: the ladder of η, and the best plan and bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softmap.methods.transport.arrays import open_network
from softmap.methods.transport.problem import TransportProblem
from softmap.methods.transport.results import Floats, Ladder, Moment, Transport


class TransportRun:
    """One run: the ladder of η, and the best plan and bound."""

    def __init__(
        self,
        problem: TransportProblem,
        ladder: Ladder,
        gap: float,
        limit: Any,
        on_moment: Any = None,
        backend: str = "cpu",
    ) -> None:
        self.problem, self.ladder, self.gap = problem, ladder, gap
        self.limit, self.on_moment = limit, on_moment
        self.backend, self.network = backend, open_network(problem, backend)
        self.entries = int(problem.model.half_offset[-1])
        self.bound, self.cost = -math.inf, math.inf
        self.lam = np.zeros(self.entries)
        self.kept: tuple[float, Floats, Floats] | None = None  # η, messages, marginals of the plan
        self.trace: list[Moment] = []
        self.passes = 0

    def start(self) -> None:
        """Offer the bound of λ = 0 and the plan of independent nodes: an answer at any moment."""
        self.bound = self.problem.bound(self.lam)
        first = self.ladder.first / max(self._range(), 1e-300)
        self._offer_point(first, None)

    def climb(self) -> None:
        """Make passes level by level, and a check after each, until the gap is closed."""
        scale = max(self._range(), 1e-300)
        eta, last = self.ladder.first / scale, self.ladder.last / scale
        while eta <= last and not self._closed() and not self.limit.passed:
            finished = self._level(eta)
            if finished:
                self._check(eta)
            moment = Moment(eta, self.passes, self.cost, self.bound)
            self.trace.append(moment)
            stop = self.on_moment is not None and self.on_moment(moment) is False
            if stop or not finished:
                break
            eta *= self._rise()

    def result(self) -> Transport:
        """Return the best plan and bound."""
        problem = self.problem
        assert self.kept is not None
        eta, messages, marginals = self.kept
        potentials = np.where(problem.free(), 0.0, problem.kept(self.lam))

        def plan(edge: int) -> Floats:
            network = problem.compiled() if self.backend == "cpu" else self.network
            network.set_messages(messages)
            i, j = problem.model.edges[edge]
            p, q = (np.ascontiguousarray(problem.split(marginals)[k]) for k in (i, j))
            out = np.zeros((len(p), len(q)))
            network.coupled(edge, eta, p, q, out)
            return out

        return Transport(
            self.cost,
            self.bound,
            problem.split(marginals),
            problem.split(potentials),
            problem.is_forest(),
            self.trace,
            plan,
        )

    def _range(self) -> float:
        return float(self.problem.ranges.max(initial=0.0))

    def _closed(self) -> bool:
        return self.cost - self.bound <= self.gap * abs(self.bound)

    def _rise(self) -> float:
        """Return the next ratio of η: the gap falls as 1/η, so that the last one may be smaller."""
        needed = (self.cost - self.bound) / max(self.gap * abs(self.bound), 1e-300)
        return max(self.ladder.least, min(self.ladder.factor, 1.1 * needed))

    def _level(self, eta: float) -> bool:
        """Make the passes of a level; return False if the deadline passed."""
        edges = max(1, self.problem.model.m)
        for _ in range(self.ladder.most // self.ladder.passes):
            done, loss = self.network.passes(
                self.ladder.passes, eta, True, self.problem.ranges, self.limit
            )
            self.passes += done
            if done < self.ladder.passes:
                return False
            if eta * loss <= self.ladder.loose * edges:
                break
        return True

    def _check(self, eta: float) -> None:
        lam, sides = np.empty(self.entries), np.empty(self.entries)
        if self.network.sides(eta, sides, self.limit):
            self._offer_point(eta, sides)
        if self.network.multipliers(eta, lam, self.limit):
            bound = self.problem.bound(lam)
            if bound > self.bound:
                self.bound, self.lam = bound, lam

    def _offer_point(self, eta: float, sides: Floats | None) -> None:
        """Keep the plan of the messages if it is the best; without sides, that of no messages."""
        problem = self.problem
        if sides is None:
            sides = (1.0 / problem.model.num_labels).repeat(problem.model.num_labels)[problem.owner]
        marginals = problem.averaged(sides)
        parts = [np.ascontiguousarray(part) for part in problem.split(marginals)]
        cost = math.fsum(problem.model.unary * marginals)
        for e, (i, j) in enumerate(problem.model.edges):
            cost += self.network.coupled(e, eta, parts[i], parts[j])[0]
        if cost < self.cost:
            messages = np.empty(self.entries)
            self.network.messages(messages)
            self.cost, self.kept = cost, (eta, messages, marginals)
