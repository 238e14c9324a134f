"""Which stage of a run is next, and for how long: pure functions of plain numbers.

All that differs between runs with and without a time limit is here: `ByTime` and `ByWork` answer
what the run and its stages would otherwise have to ask. `Options.schedule` makes one of them.

Runs without a time limit count work, so that they are deterministic: stages that are urgent, the
relaxation until it ends, then rounds of slices of growing work.

Runs with a time limit give the next slice to the stage of which most is expected: the fraction of
the gap that it has closed per second in its last slices, or, if that is more, a rate that falls
with the time for which it has closed nothing. Slices grow with the time that a stage has had. None
of this depends on the limit, so that a longer limit continues what a shorter one has begun.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from softmap.run.trace import Status
from softmap.tuning import Tuning

__all__ = [
    "UNLIMITED", "ByTime", "ByWork", "Candidate", "Clock", "History", "RunSchedule", "Turn",
]  # fmt: skip

Value = TypeVar("Value")

UNLIMITED = 1 << 62
"""More work than any run does."""


@dataclass(frozen=True)
class History:
    """What a stage has done so far.

    Attributes
    ----------
    slices : int
        Number of its slices.
    rounds : int
        Number of its slices after the relaxation.
    seconds : float
        Time that it has had.
    idle : float
        Time since it has last made progress, in seconds.
    fruitless : float
        Time since it has last made progress or improved the labels, in seconds.
    rate : float
        Fraction of the gap closed per second in its last two slices.
    last : (float, float)
        Time and progress of its last slice.
    """

    slices: int = 0
    rounds: int = 0
    seconds: float = 0.0
    idle: float = 0.0
    fruitless: float = 0.0
    rate: float = 0.0
    last: tuple[float, float] = (0.0, 0.0)

    def after(
        self, tuning: Tuning, turn: Turn, seconds: float, prepared: float, gain: float, *,
        fell: bool,
    ) -> History:  # fmt: skip
        """Add a slice.

        Parameters
        ----------
        tuning : Tuning
            The numbers of the run.
        turn : Turn
            The slice as it was planned.
        seconds : float
            Its time.
        prepared : float
            Its time that could gain nothing yet, in seconds.
        gain : float
            Fraction of the gap that it closed.
        fell : bool
            Whether the energy fell.
        """
        # neither what a slice took beyond its length nor a long set-up counts as idle
        spent = max(0.0, max(tuning.first_slice, min(seconds, turn.seconds)) - prepared)
        idle = 0.0 if gain >= tuning.least_gain else self.idle + spent
        fruitless = 0.0 if fell or not idle else self.fruitless + seconds - prepared
        rate = (self.last[1] + gain) / max(self.last[0] + seconds, 1e-6)
        return replace(
            self, slices=self.slices + 1, rounds=self.rounds + (not turn.early),
            seconds=self.seconds + seconds, idle=idle, fruitless=fruitless, rate=rate,
            last=(seconds, gain),
        )  # fmt: skip


class Candidate(NamedTuple):
    """A stage that could run now.

    Attributes
    ----------
    key : int
        Its place among the stages; of equals, the first is preferred.
    urgent, proves, leads, whole : bool
        See `Plan` of `softmap.run.subsolver`.
    begin : float
        Expected time until its next slice may gain something, in seconds.
    history : History
        What it has done so far.
    """

    key: int
    urgent: bool = False
    proves: bool = True
    leads: bool = False
    whole: bool = False
    begin: float = 0.0
    history: History = History()


class Turn(NamedTuple):
    """The next slice: of which stage, for how many seconds, and for how much work.

    `early` slices come before the LP is solved; they do not count as work.
    """

    key: int
    seconds: float = math.inf
    work: int = UNLIMITED
    early: bool = False


class Clock(NamedTuple):
    """The limits of a run: seconds so far, seconds and work that are left."""

    spent: float = 0.0
    left: float = math.inf
    work: int = UNLIMITED


@dataclass(frozen=True)
class RunSchedule(ABC):
    """The order of slices of a run, and what depends on whether its time is limited.

    Attributes
    ----------
    tuning : Tuning
        The numbers of the run.
    ends : bool
        Whether a default effort, not a limit or a proof, ends the run.
    """

    tuning: Tuning
    ends: bool = False

    @abstractmethod
    def choose(self, candidates: Sequence[Candidate], clock: Clock) -> Turn | Status:
        """The next slice; the status if there is none.

        Parameters
        ----------
        candidates : sequence of Candidate
            The stages that may still improve something.
        clock : Clock
            The limits of the run.
        """

    @abstractmethod
    def proves(self, goal: str) -> bool:
        """Whether stages that only prove have turns, for the goal of the run."""

    @abstractmethod
    def racing(self, threads: int) -> int:
        """The number of threads for work whose result depends on timing, out of `threads`."""

    @abstractmethod
    def either(self, *, timed: Value, counted: Value) -> Value:
        """The value for runs with a time limit, or for those that count work.

        Parameters
        ----------
        timed : object
            The value if the time of the run is limited.
        counted : object
            The value if nothing may depend on timing.
        """


@dataclass(frozen=True)
class ByWork(RunSchedule):
    """The schedule of a run without a time limit: it counts work, so that it is deterministic."""

    ends: bool = True

    def proves(self, goal: str) -> bool:
        return goal != "labels"

    def racing(self, threads: int) -> int:
        return 1

    def either(self, *, timed: Value, counted: Value) -> Value:
        return counted

    def choose(self, candidates: Sequence[Candidate], clock: Clock) -> Turn | Status:
        leading = next((c for c in candidates if c.leads), None)
        chosen = next((c for c in candidates if c.urgent), leading)
        if chosen is not None:
            early = leading is not None
            return self._turn(chosen, clock, early=early)
        able = [c for c in candidates if not c.whole and math.isfinite(c.begin)]
        if not any(c.proves or c.history.rounds < self.tuning.rounds - 1 for c in able):
            return Status.EXHAUSTED
        chosen = min(able, key=lambda c: c.history.rounds)
        if self.ends and chosen.history.rounds >= self.tuning.rounds:
            return Status.EFFORT
        return self._turn(chosen, clock, early=False)

    def _turn(self, chosen: Candidate, clock: Clock, *, early: bool) -> Turn:
        if chosen.leads or chosen.whole:
            return Turn(chosen.key, early=early)
        work = self.tuning.first_work << min(chosen.history.slices, 40)
        return Turn(chosen.key, work=max(1, min(work, clock.work)), early=early)


@dataclass(frozen=True)
class ByTime(RunSchedule):
    """The schedule of a run with a time limit.

    Urgent stages come first. Then those that have not run, as soon as their set-up is expected to
    take a small part of the time so far; then those that have had less than their share of the
    time; then the one of which most is expected.
    """

    def proves(self, goal: str) -> bool:
        return True

    def racing(self, threads: int) -> int:
        return threads

    def either(self, *, timed: Value, counted: Value) -> Value:
        return timed

    def choose(self, candidates: Sequence[Candidate], clock: Clock) -> Turn | Status:
        in_time = clock.left > 0  # once it is up, the relaxation alone has a turn: it ends the run
        if urgent := next((c for c in candidates if c.urgent and (in_time or c.leads)), None):
            return self._turn(urgent, clock)
        able = [c for c in candidates if in_time and not c.whole and c.begin <= clock.left]
        if not able:
            return Status.EXHAUSTED if clock.left > 0 else Status.TIME_LIMIT
        soon = self.tuning.growth * clock.spent
        if new := [c for c in able if not c.history.slices and c.begin <= soon]:
            return self._turn(min(new, key=lambda c: c.begin), clock)
        if due := [c for c in able if self._due(c, clock)]:
            return self._turn(min(due, key=lambda c: c.history.seconds), clock)
        return self._turn(
            max(able, key=lambda c: (self._expected_rate(c), -c.history.seconds)), clock
        )

    def _due(self, stage: Candidate, clock: Clock) -> bool:
        """Whether a stage has had less than its share of the time."""
        tuning, history, share = self.tuning, stage.history, self.tuning.share
        if history.fruitless > 0.5 * history.seconds:
            share /= 2
        elif not stage.proves:  # labels still fall
            share *= tuning.falling
        return history.seconds + max(tuning.first_slice, stage.begin) < share * clock.spent

    def _expected_rate(self, stage: Candidate) -> float:
        """The fraction of the gap that a stage is expected to close per second."""
        tuning, history = self.tuning, stage.history
        return max(history.rate, tuning.untried / (history.idle + tuning.first_slice + stage.begin))

    def _turn(self, stage: Candidate, clock: Clock) -> Turn:
        if stage.whole or (stage.leads and stage.urgent):
            return Turn(stage.key, clock.left)
        tuning = self.tuning
        seconds = max(tuning.first_slice + stage.begin, tuning.growth * stage.history.seconds)
        return Turn(stage.key, min(seconds, clock.left))
