"""`Subsolver`: what all subsolvers of a run have in common: `make`, `plan` and the call.

A subsolver is called with a share of time and work, and offers bounds and labels to `Best`. It must
not claim a bound that it has not proved. What it did, and what it hands on to others, is its
`Outcome`: nobody reads an attribute of a subsolver. What it would do next is its `Plan`, by which
the schedule decides who is next. The other methods have defaults: a subsolver defines those for
which it has an answer.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.search import Readable
from softmap.run.best import Best
from softmap.run.budget import UNLIMITED, Budget
from softmap.run.memory import MemoryEstimate, memory_left
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.trace import Status

if TYPE_CHECKING:
    from typing import Self

    from softmap.io.store import Arrays
    from softmap.labels.exact import Log
    from softmap.model import Model
    from softmap.relaxation.flat import FlatModel
    from softmap.run.evidence import Evidence
    from softmap.run.records import LogFiles
    from softmap.run.result import Result
    from softmap.run.warm import WarmStart

__all__ = [
    "Board", "Entry", "LacksMemory", "Occasion", "Once", "Outcome", "Plan", "Room", "Seen", "Share",
    "Subsolver", "View", "by_default", "pairs_only", "two_labels",
]  # fmt: skip

Value = TypeVar("Value")


class LacksMemory(Exception):
    """Raised by `make` if the memory limit leaves too little for a subsolver."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The state of the relaxation at its last check.

    Attributes
    ----------
    done : int
        Number of steps of the method so far.
    work : int
        Number of half-edge messages of the method so far.
    sweeps : float
        `work`, in passes over all half-edges.
    eta : float
        η of the check.
    lam : function
        Returns the current λ of the method, until its next step.
    smoothed : float or None
        Value of the smoothed dual, if known.
    slack : float
        Disagreement of the marginals of edges and nodes.
    decoder : function
        Returns λ from which labels are decoded, or a function that returns labels.
    nodes : function or None
        Returns node marginals; None if there are none, or labels were decoded from them.
    primal : float
        Cost of the best point before this check.
    solved_at : int
        Step at which the LP was solved (0: not yet).
    last : bool
        Whether no step of the method follows.
    """

    done: int
    work: int
    sweeps: float
    eta: float
    lam: Callable[[], NDArray[np.float64]]
    smoothed: float | None = None
    slack: float = math.nan
    decoder: Callable[[], Readable] | None = None
    nodes: Callable[[], NDArray[np.float64]] | None = None
    primal: float = math.inf
    solved_at: int = 0
    last: bool = False

    def solved(self, lam: NDArray[np.float64], nodes: NDArray[np.float64], cost: float) -> Seen:
        """This state, after an LP solver has found λ and node marginals of this cost."""
        at = self.solved_at or self.done
        return replace(self, decoder=lambda: lam, nodes=lambda: nodes, primal=cost, solved_at=at)


class Entry(Generic[Value]):
    """A key of the board; it belongs to the subsolver that hands on values under it.

    Parameters
    ----------
    name : str
        What is handed on.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Entry({self.name!r})"


@dataclass(frozen=True, eq=False)
class Board:
    """What subsolvers have handed on to others.

    Attributes
    ----------
    seen : Seen or None
        The last check of the relaxation.
    evidence : Evidence or None
        Evidence of an earlier result.
    entries : mapping
        What single subsolvers have handed on, by their entries.
    start : WarmStart or None
        The warm start of the run.
    state : function or None
        Returns the relaxation as it stands, without a check.
    """

    seen: Seen | None = None
    evidence: Evidence | None = None
    entries: Mapping[Entry[Any], Any] = field(default_factory=dict)
    start: WarmStart | None = None
    state: Callable[[], Seen] | None = None

    def get(self, entry: Entry[Value]) -> Value | None:
        """What was last handed on under an entry; None if nothing was."""
        return self.entries.get(entry)

    def decoded(self) -> Board:
        """This board, without the marginals and messages that labels were decoded from."""
        seen = None if self.seen is None else replace(self.seen, decoder=None, nodes=None)
        return replace(self, seen=seen)

    def updated(self, outcome: Board) -> Board:
        """Add what a subsolver hands on."""
        return Board(
            outcome.seen or self.seen,
            outcome.evidence or self.evidence,
            {**self.entries, **outcome.entries},
            self.start,
            outcome.state or self.state,
        )


@dataclass(frozen=True, eq=False)
class Outcome(Board):
    """What a slice of a subsolver has done beside its offers to `Best`, and what it hands on.

    Attributes
    ----------
    active : bool
        Whether another slice may improve something.
    ran : bool
        Whether anything was done; if not, the trace has no row of it.
    ended : Status or None
        Why the subsolver has ended, if that may end the run.
    work : int or None
        Number of half-edge messages that the budget does not know yet; None: that of the share.
    prepared : float
        Time of the slice that could gain nothing yet, such as a long set-up, in seconds.
    """

    active: bool = True
    ran: bool = True
    ended: Status | None = None
    work: int | None = None
    prepared: float = 0.0


@dataclass(frozen=True, eq=False)
class Share:
    """A slice of a run for one subsolver: until a time, and for an amount of work.

    Attributes
    ----------
    budget : Budget
        The budget of the run.
    end : float
        Time of `time.perf_counter`; +inf if the slice is limited by work alone.
    work : int
        Amount of work, in message entries.
    early : bool
        Whether the LP is still being solved, in a run without a time limit: what the subsolver
        keeps between such slices is lost when the run is resumed.
    last : bool
        Whether the run has ended: nothing but this follows.
    board : Board
        What other subsolvers have handed on.
    proof : LogFiles or None
        Provides files for the proofs of searches, if a proof is asked for.
    store : function
        Stores the run, if that is asked for. The relaxation calls it before the check of a limit,
        which a run without this limit does not make.
    """

    budget: Budget
    end: float = math.inf
    work: int = UNLIMITED
    early: bool = False
    last: bool = False
    board: Board = field(default_factory=Board)
    proof: LogFiles | None = None
    store: Callable[[], object] = lambda: None

    @property
    def left(self) -> float:
        """The seconds until the end of the slice, at least 0 and at most 1e9."""
        return min(max(0.0, min(self.end - time.perf_counter(), self.budget.left)), 1e9)

    @property
    def run_left(self) -> float:
        """The seconds until the end of the run, for what cannot be interrupted and resumed."""
        return min(max(0.0, self.budget.left), 1e9)

    @cached_property
    def deadline(self) -> core.Deadline:
        """The end of the slice, which compiled loops look at; Ctrl-C stops it."""
        return self.budget.interrupts.within(self.left)

    @cached_property
    def run_end(self) -> core.Deadline:
        """The end of the run, for what cannot be interrupted and resumed."""
        return self.budget.interrupts.within(self.budget.left)

    def part(self, fraction: float) -> core.Deadline:
        """The end of a first part of the slice."""
        return self.deadline.within(fraction * self.left)

    def within(self, seconds: float) -> Share:
        """The same slice with an earlier end."""
        return replace(self, end=min(self.end, time.perf_counter() + seconds))

    def over(self) -> bool:
        """Whether the slice has ended, by time or by Ctrl-C."""
        return self.left <= 0.0 or self.budget.interrupts.noted


class Occasion(Enum):
    """When a subsolver is asked for its plan."""

    TURN = auto()  # the schedule chooses who is next
    CHECKED = auto()  # a slice has ended
    HANDOVER = auto()  # a slice of another subsolver than the relaxation comes next
    END = auto()  # the run has ended


@dataclass(frozen=True, eq=False)
class View:
    """What a subsolver sees of the run when it is asked for its plan.

    Attributes
    ----------
    best : Best
        The best values so far; a plan reads them only.
    board : Board
        What other subsolvers have handed on.
    bound_seconds : float
        Time of one evaluation of the bound in this run, in seconds.
    now : float
        Time of `time.perf_counter`, in seconds.
    occasion : Occasion
        When the plan is asked for.
    recalling : bool
        Whether an earlier result is still to be evaluated.
    slow : bool
        Whether the first check of the relaxation takes long beside the time limit.
    """

    best: Best
    board: Board = field(default_factory=Board)
    bound_seconds: float = 0.0
    now: float = 0.0
    occasion: Occasion = Occasion.TURN
    recalling: bool = False
    slow: bool = False


class Plan(NamedTuple):
    """What a subsolver would do next.

    Attributes
    ----------
    why : str
        What the next slice is for.
    urgent : bool
        Whether it comes before all slices that are not urgent.
    proves : bool
        Whether it may raise the bound.
    leads : bool
        Whether other subsolvers wait until this one has ended, in runs without a time limit.
    whole : bool
        Whether the subsolver itself decides where the slice ends.
    begin : float
        Expected time until the slice may gain something, in seconds.
    """

    why: str
    urgent: bool = False
    proves: bool = True
    leads: bool = False
    whole: bool = False
    begin: float = 0.0


class Room(NamedTuple):
    """The memory of a run beside that of the relaxation, in bytes; +inf without a limit.

    Attributes
    ----------
    left : float
        All of it.
    each : float
        The part of one subsolver.
    """

    left: float
    each: float

    @classmethod
    def of(cls, problem: Problem, options: Options) -> Room:
        """Return the memory that the options leave."""
        left = memory_left(problem.model, options.memory_limit, options.tuning)
        return cls(left, options.tuning.of(MemoryEstimate).share * left)


class Subsolver(ABC):
    """It improves the best bound or labels, in slices; each slice continues the one before.

    `make` decides whether a run has one, `plan` says what it would do next, and the call does it.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.

    Attributes
    ----------
    name : str
        The name of the subsolver in traces, reports and warnings.
    number : int or None
        What stands for the name in files of earlier versions.
    evidence : type or None
        Its class of evidence, if that has data of its own, which files keep.
    room : Room
        The memory for it.
    """

    name: ClassVar[str]
    number: ClassVar[int | None] = None
    evidence: ClassVar[type[Evidence] | None] = None

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.options, self.tuning = problem, options, options.tuning
        self.room = Room.of(problem, options)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Self | None:
        """Return the subsolver of a run; None if it is of no use for the problem and the options.

        Raises `LacksMemory` if it needs more than its part of the memory.
        """
        return cls(problem, options)

    @abstractmethod
    def plan(self, view: View) -> Plan | None:
        """What the next slice would be; None if there is nothing to do now. Nothing is changed."""

    @abstractmethod
    def __call__(self, best: Best, share: Share) -> Outcome:
        """Run for one slice, and offer bounds and labels."""

    # --- the other methods ------------------------------------------------------------------------

    def begin(self, best: Best, share: Share, *, alone: bool) -> Board:
        """Take what the run starts with from the board, and hand on what others need from now on.

        Parameters
        ----------
        best : Best
            The best values so far.
        share : Share
            The run.
        alone : bool
            Whether the first slice of the run is its own, which may be prepared now.
        """
        return Board()

    def snapshot(self) -> Arrays:
        """Return what a checkpoint keeps of it, as arrays by name."""
        return {}

    def restore(self, arrays: Arrays) -> None:  # noqa: B027 - most subsolvers begin anew
        """Take back the arrays of `snapshot`; raise an exception if they are none."""

    def abandon(self) -> None:  # noqa: B027 - most subsolvers keep nothing that is read later
        """Let go of what is incomplete, since an exception has ended the subsolver."""

    @classmethod
    def at_once(cls, model: Model, options: Options) -> Result | None:
        """Return the result of a model that needs no run, not even its network."""
        return None

    @classmethod
    def refute(cls, hard: FlatModel, files: LogFiles, deadline: Any = None) -> Log | None:
        """Return the records of a proof that no labelling obeys the hard constraints, if found.

        Parameters
        ----------
        hard : FlatModel
            The hard constraints: all finite costs are 0.
        files : LogFiles
            Provides files for the records.
        deadline : core.Deadline, optional
            When to stop.
        """
        return None

    def fitting(self, needed: float) -> Self:
        """Return itself; raise `LacksMemory` if it needs more memory, in bytes, than its part."""
        if needed > self.room.each:
            raise LacksMemory
        return self


class Once(Subsolver):
    """A subsolver that runs once, before the relaxation."""

    def plan(self, view: View) -> Plan | None:
        if view.recalling or view.occasion is not Occasion.TURN:
            return None
        return Plan("before the relaxation", urgent=True, whole=True)


# --- questions that several subsolvers ask --------------------------------------------------------


def by_default(options: Options) -> bool:
    """Whether the default method runs on the CPU, and labels are wanted."""
    return options.method == "anneal" and options.backend == "cpu" and options.goal != "lp"


def pairs_only(problem: Problem) -> bool:
    """Whether the model has edges, and no factors of more than two variables."""
    model = problem.model
    return model.m > 0 and model.is_plain


def two_labels(problem: Problem) -> bool:
    """Whether no variable has more than two labels."""
    model = problem.model
    return bool((model.visible_counts <= 2).all())
