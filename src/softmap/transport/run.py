"""One run of transport: the ladder of η, and the best plan and bound of its problems."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softmap.arguments import wrong
from softmap.extend import core
from softmap.transport.arrays import open_network
from softmap.transport.problem import TransportProblem
from softmap.transport.results import (
    Floats,
    Ladder,
    Moment,
    Transport,
    TransportStatus,
)
from softmap.transport.sampling import SampledProblem

HANDED = 0.03  # gap of a smaller problem at which all labels take over (decision 98)


class BestTransport:
    """The best plan and bound of a problem so far.

    Parameters
    ----------
    problem : TransportProblem
        The problem.
    gap : float
        Relative gap to reach.
    """

    def __init__(self, problem: TransportProblem, gap: float) -> None:
        self.problem, self.gap = problem, gap
        self.bound, self.cost = -math.inf, math.inf
        self.trace: list[Moment] = []
        self._lam = np.zeros(int(problem.model.half_offset[-1]))
        self._kept: tuple[float, Floats, Floats] | None = None  # η, messages, marginals of the plan

    def excess(self) -> float:
        """Return how many times larger the gap is than the one to reach."""
        if not math.isfinite(self.cost - self.bound):
            return math.inf
        allowed, left = self.gap * abs(self.bound), self.cost - self.bound
        return left / max(allowed, 1e-300) if left > allowed else 0.0

    def offer_bound(self, lam: Floats) -> None:
        """Keep the bound of λ if it is the best."""
        bound = self.problem.bound(lam)
        if bound > self.bound:
            self.bound, self._lam = bound, lam

    def offer_plan(self, cost: float, eta: float, messages: Floats, marginals: Floats) -> None:
        """Keep the plan of messages if it is the best."""
        if cost < self.cost:
            self.cost, self._kept = cost, (eta, messages, marginals)

    def note(self, eta: float, passes: int) -> Moment:
        """Append a row to the trace, and return it."""
        self.trace.append(Moment(eta, passes, self.cost, self.bound))
        return self.trace[-1]

    def result(self, status: TransportStatus) -> Transport:
        """Return the best plan and bound, for a run that has ended with this status."""
        problem = self.problem
        assert self._kept is not None
        eta, messages, marginals = self._kept
        potentials = np.where(problem.free(), 0.0, problem.kept(self._lam))

        return Transport(
            self.cost,
            self.bound,
            problem.split(marginals),
            problem.split(potentials),
            problem.is_forest(),
            self.trace,
            Plans(problem, eta, messages, problem.split(marginals)),
            TransportStatus.GAP if self.excess() <= 0 else status,
        )


@dataclass(frozen=True)
class Plans:
    """The plans of messages: one is computed when it is asked for, and none is kept."""

    problem: TransportProblem
    eta: float
    messages: Floats
    marginals: list[Floats]

    def __call__(self, edge: int) -> Floats:
        if edge >= self.problem.model.m:
            raise wrong("edge", edge, f"one of {self.problem.model.m} edges")
        network = self.problem.compiled()
        network.set_messages(self.messages)
        i, j = self.problem.model.edges[edge]
        p, q = np.ascontiguousarray(self.marginals[i]), np.ascontiguousarray(self.marginals[j])
        out = np.zeros((len(p), len(q)))
        network.coupled(edge, self.eta, p, q, out)
        return out


class TransportRun:
    """One run: the ladder of η over one problem, or over the disjoint union of several.

    Parameters
    ----------
    problem : TransportProblem
        The problem, or the union of `parts`, one after another.
    ladder : Ladder
        How η rises.
    gap : float
        Relative gap to reach.
    limit : core.Deadline
        The end of the run.
    on_snapshot : function, optional
        Called with each `Moment` of the first part.
    backend : {"cpu", "cuda"}
        Where messages and plans are computed.
    parts : list of TransportProblem, optional
        Problems without a common node, if there are several.
    """

    def __init__(
        self,
        problem: TransportProblem,
        ladder: Ladder,
        gap: float,
        limit: Any,
        on_snapshot: Any = None,
        backend: str = "cpu",
        parts: list[TransportProblem] | None = None,
    ) -> None:
        self.problem, self.ladder = problem, ladder
        self.limit, self.on_snapshot, self._backend = limit, on_snapshot, backend
        self.best = [BestTransport(part, gap) for part in parts or [problem]]
        self.passes, self.status = 0, TransportStatus.GAP

    @cached_property
    def network(self) -> Any:
        """The messages, made after the first answer."""
        return open_network(self.problem, self._backend, self.limit)

    def start(self) -> None:
        """Offer the bound of λ = 0 and a plan that needs no messages: an answer at any moment.

        The last bound and plan of the run take about as long: so much earlier do passes end.
        """
        began = time.perf_counter()
        for best in self.best:
            best.offer_bound(np.zeros(int(best.problem.model.half_offset[-1])))
        self._offer_plans(0.0, None, self.problem.compiled())
        closing = min(time.perf_counter() - began, 0.5 * self.limit.left)
        self.limit = self.limit.at(self.limit.end - closing)

    def climb(self) -> None:
        """Make passes level by level, and a check after each, until the gap is closed.

        A level whose passes misplace too much mass continues after its check: at a higher η,
        messages would be further from those of its optimum, and so would plan and bound.
        """
        eta, left, stalled = self._first(), list[float](), False
        last = self.ladder.last / self._range()
        while self._excess() > 0:
            if self.limit.passed:
                self.status = TransportStatus.TIME_LIMIT
                return
            if eta > last:
                self.status = TransportStatus.STALLED if stalled else TransportStatus.PRECISION
                return
            misplaced = self._level(eta, self.ladder.most << len(left))
            if misplaced is not None:
                self._check(eta)
            moment, *_ = [best.note(eta, self.passes) for best in self.best]
            if self.on_snapshot is not None and self.on_snapshot(moment) is False:
                self.status = TransportStatus.CALLBACK
                return
            if misplaced is None:
                self.status = TransportStatus.TIME_LIMIT
                return
            left.append(misplaced)
            stalled |= misplaced > 0.5 * min(left[: -self.ladder.extended], default=math.inf)
            if stalled or self._settled(eta, misplaced):
                # The gap falls as 1/η, so that the last step may be smaller.
                eta *= min(self.ladder.factor, 1.1 * max(self._excess(), 1.0))
                left.clear()

    def results(self) -> list[Transport]:
        """Return the best plan and bound of each problem."""
        return [best.result(self.status) for best in self.best]

    def _range(self) -> float:
        return max(float(self.problem.ranges.max(initial=0.0)), 1e-300)

    def _excess(self) -> float:
        return max(best.excess() for best in self.best)

    def _first(self) -> float:
        """Return the first η; if tables are large, that of messages of some of their labels."""
        first = self.ladder.first / self._range()
        if self.limit.passed or not SampledProblem.worthwhile(self.problem):
            return first
        sample = SampledProblem(self.problem)
        run = TransportRun(sample.problem, self.ladder, HANDED, self.limit)
        run.climb()
        eta = run.best[0].trace[-1].eta if run.best[0].trace else first
        messages = sample.messages(run.network, eta, self.limit)
        if messages is not None:
            self.network.set_messages(messages)
        return eta

    def _settled(self, eta: float, misplaced: float) -> bool:
        """Whether so little mass is misplaced that η may rise."""
        return eta * misplaced <= self.ladder.loose * max(1, self.problem.model.m)

    def _level(self, eta: float, most: int) -> float | None:
        """Make passes of a level; return the misplaced mass, or None if the deadline passed."""
        misplaced = math.inf
        early = not self.best[0].trace and math.isfinite(self.limit.left)
        for k in range(most // self.ladder.passes):
            done, misplaced = self.network.passes(
                self.ladder.passes, eta, True, self.problem.ranges, self.limit
            )
            self.passes += done
            if done < self.ladder.passes:
                return None
            if self._settled(eta, misplaced):
                break
            if early and k == 0:  # an answer even if time does not suffice for the level
                self._check(eta)
        return float(misplaced)

    def _check(self, eta: float) -> None:
        entries = len(self.problem.owner)
        lam, sides = np.empty(entries), np.empty(entries)
        if self.network.sides(eta, sides, self.limit):
            with suppress(core.OutOfTime):
                self._offer_plans(eta, sides, self.network)
        if self.network.multipliers(eta, lam, self.limit):
            parts = self._parts(lam, lambda problem: len(problem.owner))
            for best, part in zip(self.best, parts, strict=True):
                best.offer_bound(part)

    def _parts(self, flat: Any, size: Any) -> list[Any]:
        """Return the parts of an array that belong to each problem."""
        return np.split(flat, np.cumsum([size(best.problem) for best in self.best[:-1]]))

    def _offer_plans(self, eta: float, sides: Floats | None, network: Any) -> None:
        """Offer the plans of the messages of a network; without sides, those of no messages."""
        whole, messages = self.problem, np.empty(len(self.problem.owner))
        if sides is None:
            sides = (1.0 / whole.model.num_labels).repeat(whole.model.num_labels)[whole.owner]
        marginals = whole.averaged(sides)
        ends = [np.ascontiguousarray(part) for part in whole.split(marginals)]
        costs = np.array(
            [
                network.coupled(e, eta, ends[i], ends[j])[0]
                for e, (i, j) in enumerate(whole.model.edges)
            ]
        )
        network.messages(messages)
        for best, edges, masses, own in zip(
            self.best,
            self._parts(costs, lambda problem: problem.model.m),
            self._parts(marginals, lambda problem: problem.mass.size),
            self._parts(messages, lambda problem: len(problem.owner)),
            strict=True,
        ):
            cost = math.fsum([*edges, *(best.problem.model.unary * masses)])
            best.offer_plan(cost, eta, own, masses)
