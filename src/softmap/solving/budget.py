"""What a run may spend: time, work, updates, and Ctrl-C; and what a step is expected to cost."""

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
    """What parts of a run are guessed to cost before they were timed.

    Attributes
    ----------
    ordering, filling : float
        Seconds that set-up takes per edge, where its graph is new, and per number of the model.
    step : float
        A pass, in evaluations of the bound.
    check, labels, brief, finish : float
        A whole check (beyond a brief one), a search for labels, a brief check and the assembly of
        the result, in passes.
    moves : float
        Labels moved one by one, in times of reading labels.
    warm_up : float
        Seconds that a first call may take whatever the model.
    closing : float
        Part of the time limit that a last check with a search for labels may take.
    overrun : float
        Seconds by which the time limit may be overrun knowingly.
    """

    ordering: float = 8e-7
    filling: float = 4e-9
    step: float = 2.0
    check: float = 5.0
    labels: float = 6.0
    brief: float = 2.0
    finish: float = 0.7
    moves: float = 8.0
    warm_up: float = 0.02
    closing: float = 0.4
    overrun: float = 0.05


GUESS = TimeGuess()


class Interrupts:
    """While entered, the first Ctrl-C is only noted; a second one interrupts as usual.

    Two presses within a second, also of two runs one after the other, mean that the whole program
    is to be left: the run then ends with a KeyboardInterrupt. May be entered several times, one
    inside another. Does nothing outside the main thread, or where the program handles the signal
    itself.

    Attributes
    ----------
    noted : bool
        Ctrl-C was pressed.
    twice : bool
        And again within a second.
    broken : bool
        An exception left the innermost block: what it did may be half done.
    """

    last: ClassVar[float] = -math.inf  # when Ctrl-C was pressed, in whichever run
    soon: ClassVar[float] = 1.0  # seconds between two presses that mean: leave, not only this run

    def __init__(self) -> None:
        self.noted = self.twice = self.broken = False
        self._before: Any = None
        self._depth = self._patient = 0

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
        """In this block not even a second Ctrl-C interrupts: what is short and must be whole."""
        self._patient += 1
        try:
            with self:
                yield
        finally:
            self._patient -= 1

    @contextmanager
    def paused(self) -> Iterator[None]:
        """In this block Ctrl-C interrupts at once, as it does in the user's own code."""
        installed = self._before is not None
        self._remove()
        try:
            yield
        finally:
            if installed:
                self._install()

    def _install(self) -> None:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if usual and threading.current_thread() is threading.main_thread():
            self._before = signal.default_int_handler
            signal.signal(signal.SIGINT, self._note)

    def _remove(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def press(self) -> None:
        """Take note of a press."""
        now = time.monotonic()
        self.twice = self.twice or now - Interrupts.last < self.soon
        Interrupts.last = now

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.press()
        if (self.noted or self.twice) and not self._patient:
            raise KeyboardInterrupt
        self.noted = True


class _Timings:
    """Seconds of each task, from the last time it was done; guessed until then."""

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
            # the first step also fetches memory for the first time
            seconds, self._step_is_guess = min(seconds, self._each[task]), False
        self._each[task] = seconds

    def guess(self, bound: float, steps: float, width: float) -> None:
        """Guess all tasks from the seconds of one bound; `steps` make a pass.

        The minimum of several guesses holds: noise only ever makes timings longer.
        """
        step = GUESS.step * bound / max(steps, 1.0)
        self._each[Task.STEP] = min(step, self._each.get(Task.STEP, step))
        self._step_is_guess = True
        passes = {
            Task.CHECK: GUESS.brief + GUESS.check * width,
            Task.BRIEF: GUESS.brief,
            Task.LABELS: GUESS.labels,
            Task.FINISH: GUESS.finish,
        }
        self._in_steps = {task: count * max(steps, 1.0) for task, count in passes.items()}

    def expected(self, *tasks: Task) -> float:
        step = self._each.get(Task.STEP, 0.0)
        return sum(self._each.get(task, self._in_steps.get(task, 0.0) * step) for task in tasks)


class Budget:
    """Limits of one run, and where it stands in them.

    Parameters
    ----------
    time_limit : float, optional
        Seconds, set-up included if `setup_counts`.
    max_work, updates : int, optional
        Half-edge messages; steps of a randomised method.
    interrupts : Interrupts, optional
        Ctrl-C.
    setup_counts : bool
        Whether set-up counts towards the time limit: not on a GPU, where the first run compiles.

    Attributes
    ----------
    work : int
        Half-edge messages of the relaxation, and what other stages count in their place.
    setup_seconds : float
        Time before `start`.
    """

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        max_work: int | None = None,
        updates: int | None = None,
        interrupts: Interrupts | None = None,
        setup_counts: bool = True,
    ) -> None:
        self.time_limit, self.max_work, self.updates = time_limit, max_work, updates
        self.interrupts = interrupts or Interrupts()
        self.work, self.setup_seconds = 0, 0.0
        self._setup_counts = setup_counts
        self._timings = _Timings()
        self._began, self._earlier = time.perf_counter(), 0.0

    # --- limits -----------------------------------------------------------------------------------

    def start(self) -> None:
        """End set-up: `seconds` counts from here."""
        now = time.perf_counter()
        self.setup_seconds, self._began = now - self._began, now

    def resume(self, seconds: float, work: int) -> None:
        """Count from here on, after an earlier part of the run."""
        self._earlier, self._began, self.work = seconds, time.perf_counter(), work

    @property
    def seconds(self) -> float:
        """Time since `start`, over all parts of a resumed run."""
        return self._earlier + time.perf_counter() - self._began

    @property
    def left(self) -> float:
        """Seconds until the time limit, +inf without one."""
        if self.time_limit is None:
            return math.inf
        return self.time_limit - self.seconds - (self.setup_seconds if self._setup_counts else 0.0)

    def stop(self, updates: int = 0) -> Status | None:
        """The limit that is reached, if any."""
        if self.interrupts.noted:
            return Status.INTERRUPTED
        if self.updates is not None and updates >= self.updates:
            return Status.UPDATES
        if self.max_work is not None and self.work >= self.max_work:
            return Status.WORK_LIMIT
        return Status.TIME_LIMIT if self.left <= 0 else None

    @property
    def limits_setup(self) -> bool:
        """Whether the time limit holds for set-up, too."""
        return self.time_limit is not None and self._setup_counts

    @property
    def unlimited(self) -> bool:
        """Whether neither time nor work is limited."""
        return self.time_limit is None and self.max_work is None

    def spend(self, work: int) -> None:
        """Count work."""
        self.work += work

    def affordable(self, cost: int, wanted: int) -> int:
        """Steps of at most `cost` messages that stay within `max_work`, at least one."""
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
        """Note how long a task took that was done elsewhere."""
        self._timings.note(task, seconds)

    def known(self, task: Task) -> bool:
        """Whether a task was timed or guessed before."""
        return self._timings.known(task)

    def guess_setup(self, model: Model) -> None:
        """Guess how long a method takes to set up for a model, by its size."""
        numbers = model.nbytes // 8 + model.half_size
        edges = 0 if model.graph.remembered else model.m
        self.note(Task.SETUP, GUESS.ordering * edges + GUESS.filling * numbers)

    def guess(self, evaluate: Callable[[], object], steps: float, width: float) -> None:
        """Guess the cost of all tasks from one evaluation of the bound.

        Parameters
        ----------
        evaluate : function
            Evaluates the bound of some λ.
        steps : float
            Steps of the method that make a pass.
        width : float
            How much dearer a check is than for Potts models with few labels.
        """
        with self.timed(Task.BOUND):
            evaluate()
        if self.expected(Task.BOUND) < GUESS.warm_up:  # which may have been most of it
            with self.timed(Task.BOUND):
                evaluate()
        self._timings.guess(self.expected(Task.BOUND), steps, width)

    def expected(self, *tasks: Task) -> float:
        """Seconds of one repetition of each task; 0 for those that are unknown."""
        return self._timings.expected(*tasks)

    def fits(self, *tasks: Task) -> bool:
        """Whether one repetition of each task fits into the time left."""
        return self.expected(*tasks) <= self.left + GUESS.overrun

    def fitting(self, task: Task, seconds: float, *after: Task) -> int:
        """Repetitions of a task that fit into `seconds` and leave time for others after them."""
        each = max(self.expected(task), 1e-12)
        return int(max(0.0, min((seconds - self.expected(*after)) / each, 1e15)))

    def closing(self) -> tuple[Task, ...]:
        """What is to follow the last step: a check, labels and the result.

        Where these would take much of the limit: the most thorough check that fits.
        """
        whole = Task.CHECK, Task.LABELS, Task.FINISH
        if self.time_limit is not None and self.expected(*whole) <= GUESS.closing * self.time_limit:
            return whole
        thorough = self.fits(Task.STEP, Task.CHECK, Task.FINISH)
        return (Task.CHECK if thorough else Task.BRIEF), Task.FINISH


@dataclass(frozen=True)
class Share:
    """A stage's share of a budget: until a moment, or for an amount of work.

    Attributes
    ----------
    budget : Budget
        The whole.
    deadline : float
        Moment of `time.perf_counter`; +inf where work ends the turn.
    work : int
        Amount of work, in numbers sent in messages.
    """

    budget: Budget
    deadline: float = math.inf
    work: int = 1 << 62

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.perf_counter())

    @property
    def timed(self) -> bool:
        """Whether time, not work, ends the turn."""
        return math.isfinite(self.deadline)

    @property
    def end(self) -> float:
        """Seconds until everything must have ended, the assembly of the result aside."""
        return min(self.budget.left - self.budget.expected(Task.FINISH), 1e9)

    def spend(self) -> None:
        """Count the work that was granted; nothing where time ends the turn."""
        if not self.timed:
            self.budget.spend(self.work)
