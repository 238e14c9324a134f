"""One run: an algorithm's state, its judge and its clock; when to check, and when to stop."""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any

import numpy as np

from softmap.algorithms.base import Algorithm, Floats
from softmap.algorithms.registry import PASSES, make
from softmap.algorithms.sweeps.team import Team
from softmap.errors import OptionError
from softmap.labels import forests
from softmap.model import Model
from softmap.model.potentials import Potts
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import check_lam
from softmap.relaxation.gaps import relative_gap
from softmap.solving.interrupts import Interrupts
from softmap.solving.judge import Judge
from softmap.solving.result import Result, Row, Snapshot, Status, Trace

__all__ = ["Run"]

EARLY = (5, 10, 20)  # the first checks, in passes
HAND_OVER = 5_000  # passes after which a small LP that is still open goes to an exact solver
SMALL = 50_000  # node states and edge pairs of such an LP: HiGHS takes seconds
PATIENCE = 400  # passes without progress of either gap (and half of all passes) before giving up


class Run:
    """One run: the algorithm's state, the judge, the clock."""

    def __init__(self, model: Model, algorithm: Algorithm, team: Team, **options: Any) -> None:
        started = time.perf_counter()
        warm_up(algorithm.name, str(options["dtype"]))
        self.given, self.model = model, tighten(model)
        self.algorithm, self.team, self.options = algorithm, team, options
        warm = _warm_start(self.model, options.get("warm_start"))
        self.state = algorithm.init(self.model, warm, options["seed"])
        self.judge = Judge(self.model, team)
        self.trace = Trace()
        self.interrupts = Interrupts()
        self.done, self.earlier = 0, 0.0
        self.best_gaps: tuple[float, float] = (math.inf, math.inf)
        self.improved_at, self.decoded_at = 0, 0
        self.sweeping = algorithm.name in PASSES
        self.next_check = self.interval()
        self.setup_seconds = time.perf_counter() - started
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time in the loop, over all sessions of a resumed run."""
        return self.earlier + time.perf_counter() - self.started

    @property
    def sweeps(self) -> float:
        """Work in units of all half-edges."""
        return self.state.work / max(1, 2 * self.model.m)

    def interval(self) -> int:
        """Steps until the next check: growing, so that judging stays a small part of the run."""
        if self.sweeping:
            for early in EARLY:
                if self.done < early:
                    return early - self.done
            return max(20, self.done // 8)
        total = self.options.get("updates")
        return max(1, total // 40) if total else max(2 * self.model.m, self.done // 5)

    def advance(self) -> Status | None:
        """Go on to the next check, or to the first limit on the way."""
        pace = 1 if self.sweeping else max(1, self.model.n // 10)
        while self.done < self.next_check:
            if status := self.limit():
                return status
            goal = min(self.next_check, self.options.get("updates") or self.next_check)
            count = min(pace, goal - self.done, self.affordable())
            began = time.perf_counter()
            self.algorithm.step(self.state, count)
            self.done += count
            if time.perf_counter() - began < 0.05:
                pace *= 2
        return self.limit()

    def affordable(self) -> int:
        """Steps that certainly stay within `max_work`, at least one: every run stops alike."""
        if self.options["max_work"] is None:
            return self.next_check
        graph = self.model.graph
        dearest = 2 * self.model.m if self.sweeping else int(graph.degree.max())
        return max(1, int(self.options["max_work"] - self.state.work) // max(1, dearest))

    def limit(self) -> Status | None:
        """The limit that has been reached, if any."""
        options = self.options
        if self.interrupts.noted:
            return Status.INTERRUPTED
        if options.get("updates") is not None and self.done >= options["updates"]:
            return Status.UPDATES
        if options["max_work"] is not None and self.state.work >= options["max_work"]:
            return Status.WORK_LIMIT
        if options["time_limit"] is not None and self.seconds >= options["time_limit"]:
            return Status.TIME_LIMIT
        return None

    def check(self, *, last: bool = False) -> Snapshot:
        """Judge where the algorithm stands; it may heed the verdict.

        Labels are decoded at growing intervals, at the last check, and where the LP gap is closed.
        """
        proposal = self.algorithm.propose(self.state)
        due = last or self.done >= 4 * self.decoded_at
        verdict = self.judge.look(proposal, labels=due, work=self.state.work)
        if not due and self.closed():
            self.judge.decode(proposal, self.state.work)
        elif due:
            self.decoded_at = self.done
        if not last and self._slow():
            self._solve_exactly()
        judge = self.judge
        smoothed = math.nan if proposal.smoothed is None else proposal.smoothed
        row = Row(
            self.state.work, self.sweeps, self.seconds, proposal.eta, judge.bound, smoothed,
            judge.primal, judge.energy, verdict.slack,
        )  # fmt: skip
        self.trace.rows.append(row)
        if hasattr(self.algorithm, "heed"):
            self.algorithm.heed(self.state, verdict)
        self.next_check = self.done + self.interval()
        return Snapshot(row, judge.labels)

    def _slow(self) -> bool:
        """Whether this check is the first one past `HAND_OVER`, and the LP small but still open."""
        before = self.trace[-1].sweeps if len(self.trace) else 0.0
        annealed = hasattr(self.algorithm, "heed")
        if not annealed or not before < HAND_OVER <= self.done or self.closed():
            return False
        size = self.model.unary.size + int(self.model.edge_offset[-1])
        return size <= SMALL and not len(self.model.auxiliaries)

    def _solve_exactly(self) -> None:
        """Let an interior-point method end what passes would take long for (decision 11)."""
        from softmap.relaxation import lp

        limit = self.options["time_limit"]
        left = None if limit is None else max(0.0, limit - self.seconds)
        # on one thread, as the last digits would depend on their number
        found = lp.solve(self.model, "ipm", time_limit=left, threads=1)
        if found.status == "Optimal":
            nodes = np.maximum(found.node_marginals, 0.0)
            mass = np.add.reduceat(nodes, self.model.node_offset[:-1])
            nodes /= np.repeat(mass, self.model.num_labels)
            self.judge.accept(found.lam, nodes, self.state.work)

    def gaps(self) -> tuple[float, float]:
        """Relative LP gap and relative MAP gap."""
        judge = self.judge
        lp, label = (max(0.0, upper - judge.bound) for upper in (judge.primal, judge.energy))
        return relative_gap(lp, judge.bound), relative_gap(label, judge.bound)

    def closed(self) -> Status | None:
        """Whether a gap is small enough."""
        lp_gap, gap = self.gaps()
        if gap <= self.options["gap"]:
            return Status.GAP
        return Status.LP_GAP if lp_gap <= self.options["lp_gap"] else None

    def stalled(self) -> Status | None:
        """Whether neither gap has moved for long."""
        gaps = self.gaps()
        if any(new < 0.99 * old for new, old in zip(gaps, self.best_gaps, strict=True)):
            self.best_gaps, self.improved_at = gaps, self.done
        patience = max(PATIENCE, self.done // 2)
        waiting = self.sweeping and self.done - self.improved_at > patience
        return Status.STALLED if waiting else None

    def restart_point(self) -> Floats:
        """λ from which a warm-started run goes on best."""
        if hasattr(self.algorithm, "restart_point"):
            point: Floats = self.algorithm.restart_point(self.state)
            return point
        return self.algorithm.propose(self.state).lam

    def result(self, status: Status) -> Result:
        """The best of the run."""
        judge = self.judge
        return Result(
            model=self.given, method=self.algorithm.name, status=status, labels=judge.labels,
            energy=judge.energy, bound=judge.bound, primal=judge.primal, lam=judge.lam,
            eta=self.trace[-1].eta, trace=self.trace, work=self.state.work, sweeps=self.sweeps,
            seconds=self.seconds, setup_seconds=self.setup_seconds, threads=self.team.threads,
            messages=self.restart_point(), _judge=judge,
        )  # fmt: skip


@cache
def warm_up(method: str, dtype: str) -> None:
    """Compile (or load) the kernels of a method, so that no clock of a user's runs meanwhile."""
    model, team = Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], Potts([0.5])), Team(1)
    algorithm = make(method, eta=1.0, team=team, dtype=dtype)
    state = algorithm.init(model, None, 0)
    algorithm.step(state, 1)
    Judge(model, team).look(algorithm.propose(state))
    forests(model, [0, 0], rounds=1)  # the judge does not search where the gap is closed


def _warm_start(model: Model, given: Any) -> Floats | None:
    if given is None:
        return None
    lam = given.messages if isinstance(given, Result) else given
    flat = check_lam(model, lam).copy()
    if not np.isfinite(flat).all():
        raise OptionError("warm_start holds values that are not finite")
    return flat
