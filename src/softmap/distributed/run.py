"""One run over parts: the annealed passes, when to check, and when to stop.

The policy is that of `softmap.algorithms.sweeps.anneal` and `softmap.solving.checking`. Every
decision rests on numbers that are the same in all processes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softmap.algorithms.sweeps.anneal import (
    FIRST_ETA,
    GROWTH,
    MEMORY,
    READY,
    SETTLED,
)
from softmap.algorithms.sweeps.chains import polish
from softmap.algorithms.sweeps.sampling import RECENT, SAMPLE
from softmap.distributed.judge import Judgement, Question, judge
from softmap.distributed.labels import LabelsByParts
from softmap.distributed.parts import Part, Whole
from softmap.distributed.passes import Passes
from softmap.distributed.survey import survey, tightened
from softmap.distributed.team import Team
from softmap.relaxation.gaps import gap_unit, relative_gap, stated_primal
from softmap.solving.checking import HASTY, HOPE, RIVALS, passes_to_next
from softmap.solving.trace import PROVED, Row, Status, Trace

__all__ = ["PartsLimits", "PartsProgress", "PartsRun"]

PATIENCE = 400  # passes without progress after which a run gives up


@dataclass(frozen=True)
class PartsLimits:
    """When to stop: relative gaps, seconds, passes."""

    lp_gap: float = 1e-4
    gap: float = 1e-6
    time_limit: float | None = None
    max_passes: int | None = None


@dataclass
class PartsProgress:
    """Where a run stands, besides its arrays: plain numbers, the same in all processes.

    `next_check`, `refined_at`, `labelled_at` and `improved_at` are passes: of the next check, the
    last that asked for everything, the last search for labels, and when a gap last improved.
    `gain` is the part of the gap that was left when the average was priced, too, the last time.
    """

    eta: float
    passes: int = 0
    samples: int = 0
    bound: float = -math.inf
    primal: float = math.inf
    smoothed: float = -math.inf
    previous: float = -math.inf
    next_check: int = passes_to_next(0, math.inf)
    refined_at: int = 0
    labelled_at: int = 0
    improved_at: int = 0
    best_lp_gap: float = math.inf
    best_gap: float = math.inf
    gain: float = 1.0
    seconds: float = 0.0
    trace: Trace = field(default_factory=Trace)


class PartsRun:
    """The parts of this process, their messages, and the best that all have found."""

    def __init__(
        self, team: Team, whole: Whole, parts: list[Part], eta: float | None, threads: int
    ) -> None:
        self.team, self.whole = team, whole
        tight = tightened(team, parts)
        self.survey = survey(team, tight)
        self.passes = Passes(team, whole, tight, threads)
        self.labels = LabelsByParts(self.passes)
        self.progress = PartsProgress(eta or FIRST_ETA / self.survey.scale)
        self.lam = {
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

    def advance(self, limits: PartsLimits) -> Status | None:
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

    def _late(self, limits: PartsLimits) -> bool:
        """Whether time is up, by the first process's clock."""
        if limits.time_limit is None:
            return False
        return bool(self.team.together(self.seconds >= limits.time_limit))

    def _sample(self) -> None:
        state = self.progress
        longest = MEMORY * np.sqrt(state.eta * self.survey.scale)
        self.passes.shorten_memory(max(longest, 10.0))
        if self.survey.averaging:
            state.samples += 1
            weight = (RECENT + 1.0) / (state.samples + RECENT)
            self.passes.sample(state.eta, weight)

    def check(self, limits: PartsLimits, *, last: bool) -> Status | None:
        """Judge, look for labels now and then, raise η if it is time; a gap that is closed."""
        state, eta = self.progress, self.progress.eta
        self.passes.settle()
        question = self._question(limits, last)
        found = judge(self.passes, eta, question, state.samples > 1, polish(state.passes))
        if found.bound > state.bound:
            state.bound, self.lam = found.bound, found.lam
        state.primal = min(state.primal, *found.primals, self.labels.energy)
        if question is Question.GLIMPSE:
            self.labels.round(found.nodes)
            state.primal = min(state.primal, self.labels.energy)
            if not self._closed(limits):
                self.labels.read_off(found.lam, found.nodes)
                state.primal = min(state.primal, self.labels.energy)
        else:
            state.smoothed = found.smoothed
            self._label(found, limits, last)
        closed = self._closed(limits)
        self._note(found, eta)
        if question is not Question.GLIMPSE:
            self._heed(found)
        state.next_check = state.passes + self._interval(limits)
        return closed or self._stalled()

    def _interval(self, limits: PartsLimits) -> int:
        return passes_to_next(self.progress.passes, self.gaps()[0] / max(limits.lp_gap, 1e-12))

    def _question(self, limits: PartsLimits, last: bool) -> Question:
        """All there is to ask where that may end the run, now and then, and at the end."""
        state = self.progress
        if state.passes <= HASTY and not last:
            return Question.GLIMPSE  # labels give an upper value, too, and a point costs more
        if not last and state.passes < 2 * state.refined_at:
            near = self.gaps()[0] <= HOPE * limits.lp_gap
            tight = self.labels.energy <= state.primal < math.inf
            if not (near or tight):
                return Question.SKETCH
        state.refined_at = state.passes
        return Question.ALL

    def _label(self, found: Judgement, limits: PartsLimits, last: bool) -> None:
        """Search for labels at growing intervals while they may be the best point, at the end, and
        until some obey hard constraints."""
        state = self.progress
        gap = state.primal - state.bound
        rivals = not state.labelled_at or not self.labels.energy - state.bound > RIVALS * gap
        due = last or (state.passes >= 4 * state.labelled_at and rivals)
        if due or not math.isfinite(self.labels.energy):
            self._find_labels(found)
        if due:
            state.labelled_at = state.passes
        elif self._closed(limits) and self.gaps()[1] > limits.lp_gap:
            self._find_labels(found)

    def ended(self, limits: PartsLimits) -> Status | None:
        """Whether a run that is resumed has nothing left to do, and why."""
        if not len(self.progress.trace):
            return None
        return self._closed(limits) or self._stalled()

    def _find_labels(self, found: Judgement) -> None:
        self.labels.search(found.lam, found.nodes, self.progress.passes)
        self.progress.primal = min(self.progress.primal, self.labels.energy)

    @property
    def primal(self) -> float:
        """The cost of the best point."""
        state = self.progress
        return stated_primal(state.primal, state.bound, self.labels.energy)

    def _note(self, found: Judgement, eta: float) -> None:
        state = self.progress
        state.seconds = self.team.together(self.seconds)
        work = 2 * self.whole.edges * state.passes
        row = Row(
            work, float(state.passes), state.seconds, eta, state.bound, found.smoothed,
            self.primal, self.labels.energy, found.slack,
        )  # fmt: skip
        state.trace.rows.append(row)

    def _heed(self, found: Judgement) -> None:
        """Raise η once the entropy, not the optimisation, makes most of the gap."""
        state = self.progress
        gap = self._gap(found)
        if np.isfinite(gap):
            entropy = found.edge_entropy - found.node_entropy
            regularised = found.primals[0] - entropy / state.eta - found.smoothed
            ready = regularised < READY * gap
        else:
            ready = found.smoothed - state.previous < SETTLED * (found.bound - found.smoothed)
        state.previous = found.smoothed
        if ready:
            state.eta *= GROWTH
            state.previous = -math.inf

    def _gap(self, found: Judgement) -> float:
        """The LP gap of all that was asked for, or as it would be with what a sketch left out."""
        state = self.progress
        gap, first = min(found.primals) - found.bound, found.primals[0] - found.bound
        if len(found.primals) == 1 and state.samples > 1:
            return gap * state.gain
        state.gain = gap / first if 0 < first < math.inf else 1.0
        return gap

    def release_lam(self, number: int) -> NDArray[np.float64]:
        """λ of a part, which the run does not need any more."""
        return self.lam.pop(number)

    def gaps(self) -> tuple[float, float]:
        """Relative LP gap and relative MAP gap."""
        state = self.progress
        unit = gap_unit(state.bound, self.whole.constant, self.survey.step)
        return (
            relative_gap(state.primal - state.bound, unit),
            relative_gap(self.labels.energy - state.bound, unit),
        )

    def _closed(self, limits: PartsLimits) -> Status | None:
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
