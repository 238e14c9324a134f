"""`Stage`: what all stages of a run have in common.

A stage is called with a time slice and offers bounds and labels to `Best`. It must not claim a
bound that it has not proved. `softmap.solving.schedule` decides which stage runs when.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from softmap.solving.best import Best
from softmap.solving.budget import Budget, Share, Task
from softmap.solving.memory import room_beside
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.trace import StageName

if TYPE_CHECKING:
    from softmap.solving.prooffile import ProofFile

__all__ = ["LIMITS", "Stage", "StageLimits"]


@dataclass(frozen=True, eq=False)
class StageLimits:
    """Limits of all stages.

    Attributes
    ----------
    at_most : float
        Largest fraction of the time left for the set-up of a stage.
    memory_share : float
        Largest fraction of the memory left by the relaxation for one stage. A search and tightening
        keep their memory between slices.
    """

    at_most: float = 0.5
    memory_share: float = 0.4


LIMITS = StageLimits()


class Stage(ABC):
    """A stage improves the best bound or labels; it runs in time slices and is resumable.

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
    active : bool
        Whether the stage may still improve something.
    room : float
        Memory for the stage, in bytes.
    prepared : float
        Time of the last slice that could gain nothing yet, such as a long set-up, in seconds.
    """

    name: ClassVar[StageName]
    setup: ClassVar[float] = 0.0  # time of the shortest slice, in evaluations of the bound
    proves: ClassVar[bool] = True  # whether the stage may raise the bound

    def __init__(self, problem: Problem, options: Options, proof: ProofFile | None = None) -> None:
        self.problem, self.options = problem, options
        room = room_beside(problem.model, options.memory_limit)
        self.room = LIMITS.memory_share * room
        self._proof, self.prepared = proof, 0.0
        self.fresh_log = None if proof is None else proof.fresh
        self.active = self.applies() and self.takes() <= self.room

    @abstractmethod
    def applies(self) -> bool:
        """Whether the stage supports the kind and size of the model."""

    @abstractmethod
    def __call__(self, best: Best, share: Share) -> None:
        """Run for one time slice, and offer bounds and labels."""

    def ready(self, best: Best) -> bool:
        """Whether the stage can start from the best values so far."""
        return True

    def takes(self) -> float:
        """Smallest memory of the stage, in bytes, without that of the relaxation."""
        return 0.0

    def fits(self, budget: Budget) -> bool:
        """Whether a slice would end well before the time limit and leave time for others."""
        return self.least(budget) <= LIMITS.at_most * budget.left

    def delay(self, budget: Budget) -> float:
        """Expected time until the next slice begins to improve something, in seconds."""
        return self.least(budget)

    def least(self, budget: Budget) -> float:
        """Expected time of the shortest slice, in seconds."""
        return self.setup * budget.expected(Task.BOUND)
