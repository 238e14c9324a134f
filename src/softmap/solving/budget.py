"""The budget of a run: limits of time, work and updates, Ctrl-C, and time estimates."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import FrameType, TracebackType
from typing import Any, ClassVar

from softmap import core
from softmap.model import Model
from softmap.solving.trace import Status

__all__ = ["Budget", "Interrupts", "Share", "Task", "TimeGuess"]


class Task(Enum):
    """Parts of a run whose time is estimated."""

    SETUP = "the set-up of the method"
    STEP = "a step of the method"
    BOUND = "the bound of one λ"
    CHECK = "a check with a point"
    BRIEF = "a check without a point"
    READ = "labels of least cost, each variable by itself, and their energy"
    MOVES = "labels moved one by one while that lowers the energy"
    LABELS = "a search for labels"
    FINISH = "the assembly of the result"


@dataclass(frozen=True, eq=False)
class TimeGuess:
    """Time estimates of the parts of a run before they are measured.

    Attributes
    ----------
    ordering : float
        Set-up time per edge of a new graph, in seconds.
    filling : float
        Set-up time per entry of the model, in seconds.
    step : float
        Time of a pass, in evaluations of the bound.
    check : float
        Additional time of a full check over a brief check, in passes.
    labels : float
        Time of a search for labels, in passes.
    brief : float
        Time of a brief check, in passes.
    finish : float
        Time to assemble the result, in passes.
    speed_up : float
        Passes on t threads are taken to be `t**speed_up` times as fast as on one.
    moves : float
        Time of ICM, relative to that of decoding labels.
    warm_up : float
        Time of a first call on any model, in seconds.
    closing : float
        Largest fraction of the time limit for the last check with a search for labels.
    overrun : float
        Tolerated excess over the time limit, in seconds.
    """

    ordering: float = 8e-7
    filling: float = 4e-9
    step: float = 2.0
    check: float = 5.0
    labels: float = 6.0
    brief: float = 2.0
    finish: float = 0.7
    speed_up: float = 0.6
    moves: float = 8.0
    warm_up: float = 0.02
    closing: float = 0.4
    overrun: float = 0.05


GUESS = TimeGuess()


class Interrupts:
    """A context in which the first Ctrl-C only sets a flag; a second one raises KeyboardInterrupt.

    Two Ctrl-C within a second, also in two consecutive runs, abort the whole program: the run then
    ends with a KeyboardInterrupt. The signal SIGTERM has the effect of Ctrl-C. Contexts may be
    nested. Nothing happens outside the main thread, or if the program has its own signal handler.

    Attributes
    ----------
    noted : bool
        Whether Ctrl-C was pressed, or SIGTERM received.
    twice : bool
        Whether this happened twice within a second.
    broken : bool
        Whether an exception left the innermost block, whose work may be incomplete.
    """

    last: ClassVar[float] = -math.inf  # time of the last Ctrl-C, in any run
    soon: ClassVar[float] = 1.0  # two Ctrl-C within this many seconds abort the whole program
    # Signals that are handled, with the handlers that are replaced. A worker process has none: its
    # parent ends it.
    replaced: ClassVar[dict[int, tuple[Any, ...]]] = {
        signal.SIGINT: (signal.default_int_handler,),
        signal.SIGTERM: (signal.SIG_DFL, signal.default_int_handler),
    }

    def __init__(self) -> None:
        self.noted = self.twice = self.broken = False
        self._before: dict[int, Any] = {}
        self._depth = self._patient = 0
        self._stop = core.StopFlag()

    def __enter__(self) -> Interrupts:
        self._depth += 1
        if self._depth == 1:
            self._install()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.broken = kind is not None
        self._depth -= 1
        if self._depth == 0:
            self._remove()

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """A block that not even a second Ctrl-C interrupts: short, and it must complete."""
        self._patient += 1
        try:
            with self:
                yield
        finally:
            self._patient -= 1

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block that Ctrl-C interrupts at once, as in the user's own code."""
        for number in self._before:
            signal.signal(number, signal.default_int_handler)
        try:
            yield
        finally:
            for number in self._before:
                signal.signal(number, self._note)

    @property
    def stop(self) -> core.StopFlag | None:
        """A flag that Ctrl-C sets, for compiled loops; None if Ctrl-C is handled elsewhere."""
        return self._stop if signal.SIGINT in self._before else None

    def _install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number, usual in self.replaced.items():
            if (before := signal.getsignal(number)) in usual:
                self._before[number] = before
                signal.signal(number, self._note)

    def _remove(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def press(self) -> None:
        """Record a Ctrl-C."""
        now = time.monotonic()
        self.twice = self.twice or now - Interrupts.last < self.soon
        Interrupts.last = now

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.press()
        if (self.noted or self.twice) and not self._patient:
            raise KeyboardInterrupt
        self.noted = True
        self._stop.set()


class _Timings:
    """The last measured time of each task, in seconds; an estimate until it was timed."""

    def __init__(self) -> None:
        self._each: dict[Task, float] = {}
        self._in_steps: dict[Task, float] = {}
        self._step_is_guess = False

    def known(self, task: Task) -> bool:
        return task in self._each

    def note(self, task: Task, seconds: float) -> None:
        if task is Task.READ:
            self._each[Task.MOVES] = GUESS.moves * seconds
        if task is Task.STEP and self._step_is_guess:
            # the first step also touches its memory for the first time
            seconds, self._step_is_guess = min(seconds, self._each[task]), False
        self._each[task] = seconds

    def guess(self, bound: float, steps: float, width: float, threads: int) -> None:
        """Estimate all tasks from the time of one bound, in seconds; `steps` make a pass.

        The assembly of the result uses one thread for most of its time, so that it takes more
        passes on more threads.

        The minimum of several estimates is kept: noise only makes timings longer.
        """
        step = GUESS.step * bound / max(steps, 1.0)
        self._each[Task.STEP] = min(step, self._each.get(Task.STEP, step))
        self._step_is_guess = True
        alone = max(1.0, (threads / 2) ** GUESS.speed_up)
        passes = {
            Task.CHECK: GUESS.brief + GUESS.check * width,
            Task.BRIEF: GUESS.brief,
            Task.LABELS: GUESS.labels,
            Task.FINISH: GUESS.finish * alone,
        }
        self._in_steps = {task: count * max(steps, 1.0) for task, count in passes.items()}

    def expected(self, *tasks: Task) -> float:
        step = self._each.get(Task.STEP, 0.0)
        return sum(self._each.get(task, self._in_steps.get(task, 0.0) * step) for task in tasks)


class Budget:
    """The limits of one run, and how much of them is used.

    Parameters
    ----------
    time_limit : float, optional
        Time limit in seconds, set-up included.
    max_work : int, optional
        Largest number of half-edge messages.
    updates : int, optional
        Largest number of steps of the method.
    interrupts : Interrupts, optional
        The Ctrl-C flag.

    Attributes
    ----------
    work : int
        Number of half-edge messages so far, or the equivalent work of other stages.
    setup_seconds : float
        Time before `start`, in seconds.
    """

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        max_work: int | None = None,
        updates: int | None = None,
        interrupts: Interrupts | None = None,
    ) -> None:
        self.time_limit, self.max_work, self.updates = time_limit, max_work, updates
        self.interrupts = interrupts or Interrupts()
        self.work, self.setup_seconds = 0, 0.0
        self._uncounted: Callable[[], float] = float
        self._timings = _Timings()
        self._began, self._earlier = time.perf_counter(), 0.0

    # --- limits -----------------------------------------------------------------------------------

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
        """The seconds until the time limit; +inf without one."""
        if self.time_limit is None:
            return math.inf
        return self.time_limit + self._uncounted() - self.seconds - self.setup_seconds

    def leave_out(self, seconds: Callable[[], float]) -> None:
        """Leave the seconds of the run that a function counts out of the time limit."""
        self._uncounted = seconds

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
    def unlimited(self) -> bool:
        """Whether neither time nor work is limited."""
        return self.time_limit is None and self.max_work is None

    def spend(self, work: int) -> None:
        """Add to the work done."""
        self.work += work

    def affordable(self, cost: int, wanted: int) -> int:
        """Return the number of steps of `cost` messages within `max_work`, at least one."""
        if self.max_work is None:
            return wanted
        return min(wanted, max(1, (self.max_work - self.work) // max(1, cost)))

    # --- time estimates ---------------------------------------------------------------------------

    @contextmanager
    def timed(self, task: Task, count: int = 1) -> Iterator[None]:
        """Time a block that does `count` repetitions of a task, unless it raises."""
        began = time.perf_counter()
        yield
        self.note(task, (time.perf_counter() - began) / count)

    def note(self, task: Task, seconds: float) -> None:
        """Record the time of a task that was done elsewhere."""
        self._timings.note(task, seconds)

    def known(self, task: Task) -> bool:
        """Whether a task was timed or estimated before."""
        return self._timings.known(task)

    def guess_setup(self, model: Model) -> None:
        """Estimate the set-up time of a method from the size of the model."""
        numbers = model.nbytes // 8 + model.half_size
        edges = 0 if model.graph.remembered else model.m
        self.note(Task.SETUP, GUESS.ordering * edges + GUESS.filling * numbers)

    def guess(
        self, evaluate: Callable[[], object], steps: float, width: float, threads: int = 1
    ) -> None:
        """Estimate the time of all tasks from one evaluation of the bound.

        Parameters
        ----------
        evaluate : function
            Evaluates the bound of some λ.
        steps : float
            Number of steps of the method in a pass.
        width : float
            Time of a check relative to that of Potts models with few labels.
        threads : int, default 1
            Number of threads of a pass.
        """
        with self.timed(Task.BOUND):
            evaluate()
        if self.expected(Task.BOUND) < GUESS.warm_up:  # the first call may have been mostly warm-up
            with self.timed(Task.BOUND):
                evaluate()
        self._timings.guess(self.expected(Task.BOUND), steps, width, threads)

    def expected(self, *tasks: Task) -> float:
        """Return the expected seconds of one repetition of each task; 0 for unknown ones."""
        return self._timings.expected(*tasks)

    def fits(self, *tasks: Task) -> bool:
        """Whether one repetition of each task fits into the time left."""
        return self.expected(*tasks) <= self.left + GUESS.overrun

    def fitting(self, task: Task, seconds: float, *after: Task) -> int:
        """Return how many repetitions of a task fit into `seconds` before the tasks `after`."""
        each = max(self.expected(task), 1e-12)
        return int(max(0.0, min((seconds - self.expected(*after)) / each, 1e15)))

    def closing(self) -> tuple[Task, ...]:
        """Return the tasks after the last step: a check, labels and the result.

        If these would take much of the time limit, it is the most thorough check that fits.
        """
        whole = Task.CHECK, Task.LABELS, Task.FINISH
        if self.time_limit is not None and self.expected(*whole) <= GUESS.closing * self.time_limit:
            return whole
        thorough = self.fits(Task.STEP, Task.CHECK, Task.FINISH)
        return (Task.CHECK if thorough else Task.BRIEF), Task.FINISH


@dataclass(frozen=True)
class Share:
    """The time slice of a stage: until a deadline, or for an amount of work.

    Attributes
    ----------
    budget : Budget
        The budget of the run.
    deadline : float
        Time of `time.perf_counter`; +inf if the slice is limited by work.
    work : int
        Amount of work, in message entries.
    """

    budget: Budget
    deadline: float = math.inf
    work: int = 1 << 62

    @property
    def left(self) -> float:
        """The seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.perf_counter())

    @property
    def timed(self) -> bool:
        """Whether the slice is limited by time, not by work."""
        return math.isfinite(self.deadline)

    @property
    def end(self) -> float:
        """The seconds until the run must end, without the assembly of the result."""
        return min(self.budget.left - self.budget.expected(Task.FINISH), 1e9)

    def spend(self) -> None:
        """Add the granted work to the budget; nothing if the slice is limited by time."""
        if not self.timed:
            self.budget.spend(self.work)
