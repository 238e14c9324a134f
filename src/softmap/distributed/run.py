"""One run over parts: the annealed passes, when to check, and when to stop.

The policy is that of `softmap.algorithms.sweeps.anneal` and `softmap.solving.run`. Every decision
rests on numbers that are the same in all processes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from softmap.algorithms.sweeps.anneal import (
    FIRST_ETA,
    GROWTH,
    MEMORY,
    READY,
    RECENT,
    SAMPLE,
    SETTLED,
)
from softmap.distributed.judge import Finding, look
from softmap.distributed.labels import LabelsByParts
from softmap.distributed.parts import Part, Whole
from softmap.distributed.passes import Arrays, Passes
from softmap.distributed.survey import survey, tightened
from softmap.distributed.team import Team
from softmap.relaxation.gaps import gap_unit, relative_gap
from softmap.solving.trace import PROVED, Row, Status, Trace

__all__ = ["Limits", "Progress", "Run"]

EARLY = (5, 10, 20)  # the first checks, in passes
PATIENCE = 400  # passes without progress after which a run gives up


@dataclass(frozen=True)
class Limits:
    """When to stop: relative gaps, seconds, passes."""

    lp_gap: float = 1e-4
    gap: float = 1e-6
    time_limit: float | None = None
    max_passes: int | None = None


@dataclass
class Progress:
    """Where a run stands, besides its arrays: plain numbers, the same in all processes."""

    eta: float
    passes: int = 0
    samples: int = 0
    bound: float = -math.inf
    primal: float = math.inf
    smoothed: float = -math.inf
    previous: float = -math.inf
    next_check: int = EARLY[0]
    labelled_at: int = 0
    improved_at: int = 0
    best_lp_gap: float = math.inf
    best_gap: float = math.inf
    seconds: float = 0.0
    trace: Trace = field(default_factory=Trace)


class Run:
    """The parts of this process, their messages, and the best that all have found."""

    def __init__(
        self, team: Team, whole: Whole, parts: list[Part], eta: float | None, threads: int
    ) -> None:
        self.team, self.whole = team, whole
        tight = tightened(team, whole, parts)
        self.survey = survey(team, tight)
        self.passes = Passes(team, whole, tight, threads)
        self.labels = LabelsByParts(self.passes)
        self.progress = Progress(eta or FIRST_ETA / self.survey.scale)
        self.lam: Arrays = {
            number: np.zeros(int(chains.part.model.half_offset[-1]))
            for number, chains in self.passes.chains.items()
        }
        self._earlier, self._began = 0.0, time.perf_counter()

    def started(self, earlier: float) -> None:
        """Count time from now on, after so many seconds of an earlier run."""
        self._earlier, self._began = earlier, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the run began; only the first process's counts."""
        return self._earlier + time.perf_counter() - self._began

    def advance(self, limits: Limits) -> Status | None:
        """Go on to the next check, or to the first limit on the way."""
        state = self.progress
        target = state.next_check
        if limits.max_passes is not None:
            target = min(target, limits.max_passes)
        while state.passes < target:
            count = min(target - state.passes, SAMPLE - state.passes % SAMPLE)
            self.passes.run(count, state.eta)
            state.passes += count
            if state.passes % SAMPLE == 0:
                self._sample()
            if self._late(limits):
                return Status.TIME_LIMIT
        done = limits.max_passes is not None and state.passes >= limits.max_passes
        return Status.WORK_LIMIT if done else None

    def _late(self, limits: Limits) -> bool:
        """Whether time is up, by the first process's clock."""
        if limits.time_limit is None:
            return False
        return bool(self.team.together(self.seconds >= limits.time_limit))

    def _sample(self) -> None:
        state = self.progress
        longest = MEMORY * np.sqrt(state.eta * self.survey.scale)
        self.passes.settle()
        self.passes.clock[0] = min(self.passes.clock[0], max(longest, 10.0))
        if self.survey.averaging:
            state.samples += 1
            self.passes.sample(state.eta, (RECENT + 1.0) / (state.samples + RECENT))

    def check(self, limits: Limits, *, last: bool) -> Status | None:
        """Judge, look for labels now and then, raise η if it is time; a gap that is closed."""
        state = self.progress
        self.passes.settle()
        eta = state.eta
        found = look(self.passes, eta, state.samples > 1, state.passes)
        if found.bound > state.bound:
            state.bound, self.lam = found.bound, found.lam
        state.primal = min(state.primal, *found.primals)
        state.smoothed = found.smoothed
        due = last or state.passes >= 4 * state.labelled_at
        if due or not math.isfinite(self.labels.energy):
            self._find_labels(found)
        closed = self._closed(limits)
        if closed and not due:
            self._find_labels(found)
            closed = self._closed(limits)
        if due:
            state.labelled_at = state.passes
        self._note(found, eta)
        self._heed(found)
        early = next((p for p in EARLY if p > state.passes), None)
        state.next_check = early or state.passes + max(20, state.passes // 8)
        return closed or self._stalled()

    def ended(self, limits: Limits) -> Status | None:
        """Whether a run that is resumed has nothing left to do, and why."""
        if not len(self.progress.trace):
            return None
        return self._closed(limits) or self._stalled()

    def _find_labels(self, found: Finding) -> None:
        self.labels.look(found.lam, found.nodes, self.progress.passes)
        self.progress.primal = min(self.progress.primal, self.labels.energy)

    def _note(self, found: Finding, eta: float) -> None:
        state = self.progress
        state.seconds = self.team.together(self.seconds)
        work = 2 * self.whole.edges * state.passes
        row = Row(
            work, float(state.passes), state.seconds, eta, state.bound, found.smoothed,
            state.primal, self.labels.energy, found.slack,
        )  # fmt: skip
        state.trace.rows.append(row)

    def _heed(self, found: Finding) -> None:
        """Raise η once the entropy, not the optimisation, makes most of the gap."""
        state = self.progress
        gap = min(found.primals) - found.bound
        if np.isfinite(gap):
            entropy = found.edge_entropy - found.node_entropy
            regularised = found.primals[0] - entropy / state.eta - found.smoothed
            ready = regularised < READY * gap
        else:
            ready = found.smoothed - state.previous < SETTLED * (found.bound - found.smoothed)
        state.previous = found.smoothed
        if ready:
            state.eta *= GROWTH

    def gaps(self) -> tuple[float, float]:
        """Relative LP gap and relative MAP gap."""
        state = self.progress
        unit = gap_unit(state.bound, self.whole.constant, self.survey.step)
        return (
            relative_gap(state.primal - state.bound, unit),
            relative_gap(self.labels.energy - state.bound, unit),
        )

    def _closed(self, limits: Limits) -> Status | None:
        lp_gap, gap = self.gaps()
        if gap <= limits.gap:
            return Status.OPTIMAL if gap <= PROVED else Status.GAP
        return Status.LP_GAP if lp_gap <= limits.lp_gap else None

    def _stalled(self) -> Status | None:
        state, (lp_gap, gap) = self.progress, self.gaps()
        if lp_gap < 0.99 * state.best_lp_gap or gap < 0.99 * state.best_gap:
            state.best_lp_gap, state.best_gap, state.improved_at = lp_gap, gap, state.passes
        patience = max(PATIENCE, state.passes // 2)
        return Status.STALLED if state.passes - state.improved_at > patience else None
