"""The times of the tightening stage: the end of a slice, and what still fits before the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TypeVar

__all__ = ["Times", "TimesTuning", "TurnClock"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class TimesTuning:
    """Time estimates before anything was timed.

    Attributes
    ----------
    after : float
        Time of a bound, in passes.
    building : float
        Seconds per message entry to choose clusters and to build a tightened model.
    calmer : float
        Factor of the estimated time of a pass after a faster one.
    """

    after: float = 6.0
    building: float = 1e-6
    calmer: float = 0.8


TUNING = TimesTuning()


@dataclass(frozen=True)
class TurnClock:
    """The end of a time slice.

    Attributes
    ----------
    turn, end : float
        Times of `time.perf_counter`: the end of the time slice, and the end of the run.
    stopped : function
        Whether the run is to end at once, for example by Ctrl-C.
    """

    turn: float = math.inf
    end: float = math.inf
    stopped: Callable[[], object] = bool

    @property
    def over(self) -> object:
        """Whether the time slice is over."""
        return time.perf_counter() >= self.turn or self.stopped()


@dataclass
class Times:
    """How long the parts of the stage take, and what fits into the time left.

    Attributes
    ----------
    clock : TurnClock
        The current time slice.
    step : float
        Estimated time of a pass, in seconds.
    prepared : float
        Time of adding clusters, in seconds, until passes over them have reached the bound that was
        known before: this time cannot raise it.
    """

    clock: TurnClock = field(default_factory=TurnClock)
    step: float = 0.0
    prepared: float = 0.0
    _entry: float = TUNING.building
    _check: float | None = None  # time of the last bound, in seconds

    def stepped(self, seconds: float) -> None:
        """Note the time of a pass."""
        self.step = max(TUNING.calmer * self.step, seconds)

    def checked(self, seconds: float) -> None:
        """Note the time of a bound."""
        self._check = seconds

    def grew(self, seconds: float, old: int, new: int) -> None:
        """Note the time of adding clusters, and the message entries of a pass before and after."""
        self._entry, self._check = seconds / new, None
        self.step *= new / old  # until a pass is timed

    @property
    def late(self) -> bool:
        """Whether one more pass, with a bound, would end too late."""
        after = TUNING.after * self.step if self._check is None else self._check
        return time.perf_counter() + self.step + after >= self.clock.end

    def fits(self, entries: float, passes: float) -> bool:
        """Whether there is time to add clusters with so many message entries, and for passes."""
        return time.perf_counter() + self._entry * entries + passes * self.step < self.clock.end

    def preparing(self, steps: Generator[None, None, T]) -> Generator[None, None, T]:
        """Add the time of the steps, without that between them, to `prepared`."""
        while True:
            began = time.perf_counter()
            try:
                next(steps)
            except StopIteration as end:
                found: T = end.value
                return found
            finally:
                self.prepared += time.perf_counter() - began
            yield
