"""`Budget`: the limits of a run, and how much of them is used.

Limits are kept by loops that look at the deadline, not by predictions. The one estimate is the
time to close a run: to evaluate the bound of the last λ and to assemble the result. It is measured
in the run itself, and all deadlines lie that much before the time limit.
"""

from __future__ import annotations

import math
import time

from softmap.run.interrupts import Interrupts
from softmap.run.trace import Status

__all__ = ["UNLIMITED", "Budget"]

UNLIMITED = 1 << 62
"""More work than any run does."""


class Budget:
    """The limits of one run, and how much of them is used.

    Parameters
    ----------
    time_limit : float, default inf
        Time limit in seconds, set-up included.
    max_work : int, optional
        Largest number of half-edge messages.
    updates : int, optional
        Largest number of steps of the method.
    interrupts : Interrupts, optional
        The Ctrl-C flag.
    checked_apart : bool, default False
        Whether checks compute the bound on the GPU that makes the passes.

    Attributes
    ----------
    work : int
        Number of half-edge messages so far, or the equivalent work of other subsolvers.
    setup_seconds : float
        Time before `start`, in seconds.
    bound_seconds : float
        Time of one evaluation of the bound in this run, in seconds.
    pass_seconds : float
        Least time of a pass so far, in seconds; 0 before the first one.
    labels_seconds : float
        Time in which first labels were found and their energy computed, in seconds.
    check_seconds : float
        Least time so far of a check that cannot be cut short, in seconds; 0 without such a check.
    """

    def __init__(
        self,
        *,
        time_limit: float = math.inf,
        max_work: int | None = None,
        updates: int | None = None,
        interrupts: Interrupts | None = None,
        checked_apart: bool = False,
    ) -> None:
        self.time_limit, self.max_work, self.updates = time_limit, max_work, updates
        self.interrupts = interrupts or Interrupts()
        self.work, self.setup_seconds = 0, 0.0
        self.bound_seconds, self.labels_seconds = 0.0, 0.0
        self.pass_seconds, self.check_seconds = 0.0, 0.0
        self._checked_apart = checked_apart
        self._began, self._earlier = time.perf_counter(), 0.0

    def start(self) -> None:
        """End set-up: `seconds` counts from here."""
        now = time.perf_counter()
        self.setup_seconds, self._began = now - self._began, now

    def resume(self, seconds: float, work: int) -> None:
        """Continue counting from the seconds and work of an earlier part of the run."""
        self._earlier, self._began, self.work = seconds, time.perf_counter(), work

    @property
    def seconds(self) -> float:
        """The seconds since `start`, over all parts of a resumed run."""
        return self._earlier + time.perf_counter() - self._began

    @property
    def left(self) -> float:
        """The seconds until slices must end, so that the run can be closed; +inf without limit."""
        return self.unspent - self.closing

    @property
    def unspent(self) -> float:
        """The seconds until the time limit; +inf without one."""
        return self.time_limit - self.seconds - self.setup_seconds

    def stop(self, updates: int = 0) -> Status | None:
        """Return the status of the limit that is reached, or None."""
        if self.interrupts.noted:
            return Status.INTERRUPTED
        if self.updates is not None and updates >= self.updates:
            return Status.UPDATES
        if self.max_work is not None and self.work >= self.max_work:
            return Status.WORK_LIMIT
        return Status.TIME_LIMIT if self.left <= 0 else None

    @property
    def work_left(self) -> int:
        """The work until `max_work`, at least 1; `UNLIMITED` without one."""
        return UNLIMITED if self.max_work is None else max(1, self.max_work - self.work)

    def spend(self, work: int) -> None:
        """Add to the work done."""
        self.work += work

    # --- the one estimate -------------------------------------------------------------------------

    @property
    def closing(self) -> float:
        """The expected time to close the run, in seconds; at most half of the time limit."""
        if self._checked_apart:  # the last check, and labels twice: to round and to price them
            expected = 2 * self.labels_seconds + 2 * self.pass_seconds + self.check_seconds
        else:
            # the last bound takes up to two thirds of a pass, the result no longer than the first
            expected = self.bound_seconds + (self.pass_seconds or self.bound_seconds)
        return min(expected, 0.5 * self.time_limit)

    def time_of_answer(self, seconds: float, labels: float) -> None:
        """Note the time of the first bound and labels, and the part of it for labels."""
        self.bound_seconds, self.labels_seconds = seconds, labels

    def time_of_pass(self, seconds: float) -> None:
        """Note the time of a pass; noise only makes timings longer, so that the least counts."""
        self.pass_seconds = min(self.pass_seconds or seconds, seconds)

    def time_of_check(self, seconds: float) -> None:
        """Note the time of a check that computes everything even if the time is up."""
        self.check_seconds = min(self.check_seconds or seconds, seconds)
