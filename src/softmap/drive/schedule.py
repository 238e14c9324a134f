"""Which subsolver of a run is next, and for how long: pure functions of plain numbers.

Runs without a time limit count work, so that they are deterministic: subsolvers that are urgent,
the relaxation until it ends, then rounds of slices of growing work.

Runs with a time limit give the next slice to the subsolver of which most is expected: the fraction
of the gap that it has closed per second in its last slices, or, if that is more, a rate that falls
with the time for which it has closed nothing. Slices grow with the time that a subsolver has had.
None of this depends on the limit, so that a longer limit continues what a shorter one has begun.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from softmap.run.budget import UNLIMITED
from softmap.run.trace import Status
from softmap.tuning import Numbers

if TYPE_CHECKING:
    from softmap.run.options import Options

__all__ = [
    "ByTime",
    "ByWork",
    "Candidate",
    "Clock",
    "History",
    "RunSchedule",
    "ScheduleNumbers",
    "Turn",
    "schedule",
]


@dataclass(frozen=True)
class ScheduleNumbers(Numbers):
    """The numbers of both schedules; those of stages that have numbers of their own are there."""

    # with a time limit
    first_slice: float = 0.05  # s, shortest slice; D35
    growth: float = 0.25  # slice, in the time that the stage has had; D35
    entry: float = 0.25  # most set-up of a stage that has not run, in the time so far; D35
    first_check: int = 40  # evaluations of the bound: the first check of the relaxation; D70
    slow: float = 0.15  # of the time limit: a first check that takes longer is slow; D70
    untried: float = 0.2  # gap expected to be closed in as long as nothing was; D35, D58
    share: float = 0.15  # least fraction of the time of each stage; D35, D58
    falling: float = 2.0  # factor of that fraction for labels while they improve; D79
    least_gain: float = 0.002  # fraction of the gap that counts as progress of a slice; D35
    # without one
    first_work: int = 200_000  # message entries of the first slice; they double; D35
    rounds: int = 4  # slices of each stage in a run without limits; D35
    label_rounds: int = 3  # slices of each stage if none of them proves bounds; D35


@dataclass(frozen=True)
class History:
    """What a subsolver has done so far.

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
        self, numbers: ScheduleNumbers, turn: Turn, seconds: float, prepared: float, gain: float, *,
        fell: bool,
    ) -> History:  # fmt: skip
        """Add a slice.

        Parameters
        ----------
        numbers : ScheduleNumbers
            The numbers of the schedule.
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
        spent = max(0.0, max(numbers.first_slice, min(seconds, turn.seconds)) - prepared)
        idle = 0.0 if gain >= numbers.least_gain else self.idle + spent
        fruitless = 0.0 if fell or not idle else self.fruitless + seconds - prepared
        rate = (self.last[1] + gain) / max(self.last[0] + seconds, 1e-6)
        return replace(
            self, slices=self.slices + 1, rounds=self.rounds + (not turn.early),
            seconds=self.seconds + seconds, idle=idle, fruitless=fruitless, rate=rate,
            last=(seconds, gain),
        )  # fmt: skip


class Candidate(NamedTuple):
    """A subsolver that could run now.

    Attributes
    ----------
    key : int
        Its place among the subsolvers; of equals, the first is preferred.
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
    """The next slice: of which subsolver, for how many seconds, and for how much work.

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
    """The order of slices of a run.

    Attributes
    ----------
    numbers : ScheduleNumbers
        The numbers of the schedule.
    """

    numbers: ScheduleNumbers

    @abstractmethod
    def choose(self, candidates: Sequence[Candidate], clock: Clock) -> Turn | Status:
        """The next slice; the status if there is none.

        Parameters
        ----------
        candidates : sequence of Candidate
            The subsolvers that may still improve something.
        clock : Clock
            The limits of the run.
        """


@dataclass(frozen=True)
class ByWork(RunSchedule):
    """The schedule of a run without a time limit: it counts work, so that it is deterministic.

    Attributes
    ----------
    ends : bool
        Whether a default effort, not a limit or a proof, ends the run.
    proving : bool
        Whether an effort is made for proofs; if not, those that only find labels come first.
    """

    ends: bool = True
    proving: bool = True

    def choose(self, candidates: Sequence[Candidate], clock: Clock) -> Turn | Status:
        leading = next((c for c in candidates if c.leads), None)
        chosen = next((c for c in candidates if c.urgent), leading)
        if chosen is not None:
            early = leading is not None
            return self._turn(chosen, clock, early=early)
        able = [c for c in candidates if not c.whole and math.isfinite(c.begin)]
        if not any(c.proves or c.history.rounds < self.numbers.label_rounds for c in able):
            return Status.EXHAUSTED
        chosen = min(able, key=lambda c: (c.history.rounds, c.proves and not self.proving))
        if self.ends and chosen.history.rounds >= self.numbers.rounds:
            return Status.EFFORT
        return self._turn(chosen, clock, early=False)

    def _turn(self, chosen: Candidate, clock: Clock, *, early: bool) -> Turn:
        if chosen.leads or chosen.whole:
            return Turn(chosen.key, early=early)
        work = self.numbers.first_work << min(chosen.history.slices, 40)
        return Turn(chosen.key, work=max(1, min(work, clock.work)), early=early)


@dataclass(frozen=True)
class ByTime(RunSchedule):
    """The schedule of a run with a time limit.

    Urgent subsolvers come first. Then those that have not run, as soon as their set-up is expected
    to take a small part of the time so far; then those that have had less than their share of the
    time; then the one of which most is expected.
    """

    def choose(self, candidates: Sequence[Candidate], clock: Clock) -> Turn | Status:
        in_time = clock.left > 0  # once it is up, the relaxation alone has a turn: it ends the run
        if urgent := next((c for c in candidates if c.urgent and (in_time or c.leads)), None):
            return self._turn(urgent, clock)
        able = [c for c in candidates if in_time and not c.whole and c.begin <= clock.left]
        if not able:
            return Status.EXHAUSTED if clock.left > 0 else Status.TIME_LIMIT
        soon = self.numbers.entry * clock.spent
        if new := [c for c in able if not c.history.slices and c.begin <= soon]:
            return self._turn(min(new, key=lambda c: c.begin), clock)
        if due := [c for c in able if self._due(c, clock)]:
            return self._turn(min(due, key=lambda c: c.history.seconds), clock)
        return self._turn(
            max(able, key=lambda c: (self._expected_rate(c), -c.history.seconds)), clock
        )

    def _due(self, one: Candidate, clock: Clock) -> bool:
        """Whether a subsolver has had less than its share of the time."""
        numbers, history, share = self.numbers, one.history, self.numbers.share
        if history.fruitless > 0.5 * history.seconds:
            share /= 2
        elif not one.proves:  # labels still fall
            share *= numbers.falling
        return history.seconds + max(numbers.first_slice, one.begin) < share * clock.spent

    def _expected_rate(self, one: Candidate) -> float:
        """The fraction of the gap that a subsolver is expected to close per second."""
        numbers, history = self.numbers, one.history
        idle = history.idle + numbers.first_slice + one.begin
        return max(history.rate, numbers.untried / idle)

    def _turn(self, one: Candidate, clock: Clock) -> Turn:
        if one.whole or (one.leads and one.urgent):
            return Turn(one.key, clock.left)
        numbers = self.numbers
        seconds = max(numbers.first_slice + one.begin, numbers.growth * one.history.seconds)
        return Turn(one.key, min(seconds, clock.left))


def schedule(options: Options) -> RunSchedule:
    """Return the schedule of a run with these options."""
    numbers = options.tuning.of(ScheduleNumbers)
    if options.seconds < math.inf:
        return ByTime(numbers)
    return ByWork(numbers, options.ends, options.proving)
