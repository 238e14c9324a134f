"""`Stage`: what all stages of a run have in common.

A stage is called with a share of time and work, and offers bounds and labels to `Best`. It must
not claim a bound that it has not proved. What it did, and what it hands on to other stages, is its
`Outcome`: nobody reads an attribute of a stage. `softmap.solving.schedule` decides which stage
runs when.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.search import Readable
from softmap.methods.base import find
from softmap.solving.best import Best
from softmap.solving.budget import Budget
from softmap.solving.memory import TAKES, memory_left
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.schedule import UNLIMITED
from softmap.solving.trace import StageName, Status

if TYPE_CHECKING:
    from softmap.labels.cuts import Expansions
    from softmap.solving.evidence import Evidence
    from softmap.solving.prooffile import ProofFile

__all__ = [
    "Estimates", "Handed", "Once", "Outcome", "Seen", "Share", "Stage", "Trait",
    "traits",
]  # fmt: skip


class Estimates(NamedTuple):
    """What is known of a run, to tell how soon a stage may gain something.

    Attributes
    ----------
    bound : float
        Time of one evaluation of the bound in this run, in seconds.
    energy : float
        Energy of the best labels; +inf if none obey the hard constraints.
    """

    bound: float
    energy: float = math.inf


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


@dataclass(frozen=True, eq=False)
class Handed:
    """What stages have handed on to others.

    Attributes
    ----------
    seen : Seen or None
        The last check of the relaxation.
    expansions : Expansions or None
        Expansion moves that can be continued.
    evidence : Evidence or None
        Evidence of an earlier result.
    """

    seen: Seen | None = None
    expansions: Expansions | None = None
    evidence: Evidence | None = None

    def decoded(self) -> Handed:
        """This record, without the marginals and messages that labels were decoded from."""
        seen = None if self.seen is None else replace(self.seen, decoder=None, nodes=None)
        return replace(self, seen=seen)

    def updated(self, outcome: Outcome) -> Handed:
        """Add what a stage hands on."""
        return Handed(
            outcome.seen or self.seen,
            outcome.expansions or self.expansions,
            outcome.evidence or self.evidence,
        )


@dataclass(frozen=True, eq=False)
class Outcome(Handed):
    """What a slice of a stage has done beside its offers to `Best`, and what it hands on.

    Attributes
    ----------
    active : bool
        Whether another slice may improve something.
    ran : bool
        Whether anything was done; if not, the trace has no row of it.
    ended : Status or None
        Why the stage has ended, if that may end the run.
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
    """A slice of a run for one stage: until a time, and for an amount of work.

    Attributes
    ----------
    budget : Budget
        The budget of the run.
    end : float
        Time of `time.perf_counter`; +inf if the slice is limited by work alone.
    work : int
        Amount of work, in message entries.
    early : bool
        Whether the LP is still being solved, in a run without a time limit: what the stage keeps
        between such slices is lost when the run is resumed.
    handed : Handed
        What other stages have handed on.
    """

    budget: Budget
    end: float = math.inf
    work: int = UNLIMITED
    early: bool = False
    handed: Handed = field(default_factory=Handed)

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


class Trait(Enum):
    """A property of the model or the options that some stages need; the value says which."""

    DEFAULT = "the default method runs on the CPU, and labels are wanted"
    PAIRS = "the model has edges, and no factors of more than two variables"
    FACTORS = "the model has factors with a table over more than two variables"
    MANY = "the model has factors over many variables"
    HARD = "some costs are infinite"
    LOGICAL = "some costs are infinite, or the model has factors over more than two variables"
    TWO_LABELS = "no variable has more than two labels"
    LARGE = "the model has enough variables for moves by minimum cuts"
    DENSE = "few variables have many edges each"
    EXACT = "the LP is small, without factors, and left to an LP solver if passes are slow"
    LP = "nothing but the LP is wanted"


def traits(problem: Problem, options: Options) -> frozenset[Trait]:
    """Return the traits of a run, which decide about most stages before any of them is made."""
    model, tuning = problem.model, options.tuning
    factors, hard = len(model.auxiliaries) > 0, model.has_forbidden
    small = model.unary.size + model.edge_size <= tuning.interior_size and not factors
    cpu = options.method == "anneal" and options.backend == "cpu"
    dense = 2 * model.m > tuning.spins_degree * model.n and model.n <= tuning.dense_variables
    has = {
        Trait.DEFAULT: cpu and options.goal != "lp",
        Trait.PAIRS: model.m > 0 and not factors and not len(model.running),
        Trait.FACTORS: factors,
        Trait.MANY: len(problem.given.required) > 0,
        Trait.HARD: hard,
        Trait.LOGICAL: hard or factors,
        Trait.TWO_LABELS: bool((model.num_labels[: model.num_visible] <= 2).all()),
        Trait.LARGE: model.num_variables >= tuning.label_search.fused,
        Trait.DENSE: dense,
        Trait.EXACT: small and find(options.method).exact_finish and not options.whole_run,
        Trait.LP: options.goal == "lp",
    }
    return frozenset(trait for trait, holds in has.items() if holds)


class Stage(ABC):
    """A stage improves the best bound or labels, in slices; each slice continues the one before.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.
    proof : ProofFile, optional
        Provides files for the proofs of searches.

    Attributes
    ----------
    name : StageName
        The name of the stage in the trace.
    proves : bool
        Whether the stage may raise the bound.
    leads : bool
        Whether other stages wait until it has ended, in runs without a time limit.
    on_call : bool
        Whether the stage runs only when it is urgent.
    needs : frozenset of Trait
        The traits of the runs that the stage is made for.
    memory_left : float
        Memory beside the relaxation, in bytes; +inf without a limit.
    room : float
        Memory for the stage, in bytes.
    schedule : RunSchedule
        The schedule of the run.
    """

    name: ClassVar[StageName]
    proves: ClassVar[bool] = True
    leads: ClassVar[bool] = False
    on_call: ClassVar[bool] = False
    needs: ClassVar[frozenset[Trait]] = frozenset()

    def __init__(self, problem: Problem, options: Options, proof: ProofFile | None = None) -> None:
        self.problem, self.options, self.tuning = problem, options, options.tuning
        self.memory_left = memory_left(problem.model, options.memory_limit)
        self.room = TAKES.share * self.memory_left
        self.schedule = options.schedule
        self._proof = proof

    def applies(self) -> bool:
        """Whether the stage supports the size of the model and the options, if `needs` are met."""
        return True

    def memory(self) -> float:
        """Smallest memory of the stage, in bytes, beside that of the relaxation."""
        return 0.0

    def begin(self, known: Estimates) -> float:
        """Expected time until the next slice may gain something, in seconds; +inf if it cannot.

        Parameters
        ----------
        known : Estimates
            What is known of the run so far.
        """
        return 0.0

    def urgent(self, best: Best, handed: Handed) -> bool:
        """Whether the stage runs before all stages that are not urgent."""
        return False

    def abandon(self) -> None:  # noqa: B027 - most stages keep nothing that is read later
        """Let go of what is incomplete, since an exception has ended the stage."""

    @abstractmethod
    def __call__(self, best: Best, share: Share) -> Outcome:
        """Run for one slice, and offer bounds and labels."""


class Once(Stage):
    """A stage that runs once, before the relaxation."""

    on_call = True

    needs = frozenset({Trait.DEFAULT})

    def urgent(self, best: Best, handed: Handed) -> bool:
        return True
