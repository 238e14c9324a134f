"""The schedule of the stages after the relaxation: rounds of time slices of growing length.

A stage that makes no progress is skipped for an increasing number of rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softmap.solving.best import Best, Tolerances
from softmap.solving.budget import Budget, Share
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.stages import Improve, Partial, Search, Stage, Tighten
from softmap.solving.trace import StageName, Status

if TYPE_CHECKING:
    from softmap.labels.cuts import Expansions
    from softmap.solving.prooffile import ProofFile
    from softmap.solving.warm import WarmStart

__all__ = ["Stages", "TurnLengths"]


@dataclass(frozen=True, eq=False)
class TurnLengths:
    """Lengths and numbers of the time slices of stages.

    Attributes
    ----------
    first_turn : float
        Smallest length of the first slice of each stage, in seconds.
    first_part : float
        Length of the first slice as a fraction of the time limit.
    first_work : int
        Work of the first slice without a time limit, in message entries.
    growth : float
        Factor by which the length grows from slice to slice.
    lead : int
        Number of doublings of the first slices if a search is known to succeed.
    effort : int
        Number of rounds in a run without any limit.
    patience : int
        A stage without progress is skipped for up to `2**patience - 1` rounds.
    early_entries : int
        Largest number of table entries of a model that is searched before the LP is solved. The
        set-up of a search takes about 0.3 µs per entry.
    elimination : float
        Fraction of the time left for a search before the LP on a model of small width.
    """

    first_turn: float = 0.3
    first_part: float = 0.03
    first_work: int = 200_000
    growth: float = 2.0
    lead: int = 2
    effort: int = 4
    patience: int = 4
    early_entries: int = 6_000_000
    elimination: float = 0.6


TURNS = TurnLengths()


@dataclass
class _Turns:
    """The number of slices of a stage, and of rounds for which it is skipped."""

    taken: int = 0
    fruitless: int = 0
    pause: int = 0

    def due(self) -> bool:
        """Whether the stage runs in this round; without progress it is skipped ever longer."""
        self.pause -= 1
        return self.pause < 0

    def note(self, *, gained: bool) -> None:
        self.taken += 1
        self.fruitless = 0 if gained else min(self.fruitless + 1, TURNS.patience)
        self.pause = 2**self.fruitless - 1


class Stages:
    """The stages of one run, scheduled in slices of growing length.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.
    warm : WarmStart, optional
        The warm start of the run.
    proof : ProofFile, optional
        Provides files for the proofs of searches.
    expansions : Expansions, optional
        The expansion moves of the opening, which `Improve` continues.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        warm: WarmStart | None = None,
        proof: ProofFile | None = None,
        expansions: Expansions | None = None,
    ) -> None:
        self.problem, self.options, self.warm = problem, options, warm
        kinds: tuple[type[Stage], ...] = (Partial, Search, Tighten, Improve)
        if options.goal == "labels":
            kinds = (Improve, Tighten)
        self.stages = [kind(problem, options, proof) for kind in kinds]
        for stage in self.stages:
            if isinstance(stage, Tighten) and warm is not None:
                stage.start_from(warm.clusters)
            if isinstance(stage, Improve):
                stage.start_from(expansions)
        self._turns = [_Turns() for _ in self.stages]
        # The first slices are longer if a search has proved the optimum of a similar model.
        self._lead = TURNS.lead if warm is not None and warm.searched else 0

    def may_search_early(self, budget: Budget) -> Search | None:
        """Return the exact search if it may run before the relaxation is solved, else None."""
        search = next((s for s in self.stages if isinstance(s, Search) and s.active), None)
        if search is None:
            return None
        short = search.entries <= TURNS.early_entries and search.fits(budget)
        return search if short or search.narrow else None

    def search_early(self, search: Search, best: Best, budget: Budget) -> None:
        """Run a short slice of the exact search, or a long one on a model of small width."""
        before = budget.work
        share = self._share(self.stages.index(search), budget)
        if search.narrow and share.timed:  # elimination will end the run
            share = Share(budget, time.perf_counter() + TURNS.elimination * max(0.0, budget.left))
        search(best, share)
        if budget.time_limit is None:
            search.forget()
        budget.spend(before - budget.work)  # not counted: `max_work` limits the relaxation here

    def run(self, best: Best, budget: Budget) -> Generator[StageName, None, Status]:
        """Run slices until the gap is closed, a limit is reached or no stage can progress."""
        tolerances, rounds = Tolerances(self.options.lp_gap, self.options.gap), 0
        while True:
            if not any(stage.active and stage.fits(budget) for stage in self.stages):
                return budget.stop() or Status.TIME_LIMIT
            due = [k for k in range(len(self.stages)) if self._due(k, rounds, best, budget)]
            for k in due:
                self._take_turn(k, best, budget)
                yield self.stages[k].name
                if status := best.labels_met(tolerances) or budget.stop():
                    return status
            if not due:
                continue  # all stages are skipped in this round
            proofs_left = any(stage.active and stage.proves for stage in self.stages)
            if rounds >= 2 and budget.time_limit is None and not proofs_left:
                return Status.EXHAUSTED
            rounds += 1
            if self._effort_ends(budget) and (rounds >= TURNS.effort or self._as_before(best)):
                return Status.EFFORT

    def _due(self, k: int, rounds: int, best: Best, budget: Budget) -> bool:
        """Whether stage k runs in this round."""
        stage = self.stages[k]
        if not stage.active or not stage.fits(budget) or not self._turns[k].due():
            return False
        if rounds > 0 or not stage.proves:
            return True
        # a warm-started run first improves labels or searches
        enough = self._effort_ends(budget) and self._as_before(best)
        return not enough and not (self._lead > 0 and stage.name is StageName.TIGHTEN)

    def _take_turn(self, k: int, best: Best, budget: Budget) -> None:
        share, before = self._share(k, budget), (best.bound, -best.energy)
        self.stages[k](best, share)
        gained = any(new > old for new, old in zip((best.bound, -best.energy), before, strict=True))
        self._turns[k].note(gained=gained or not share.timed)  # no skipping without a time limit

    def _effort_ends(self, budget: Budget) -> bool:
        """Whether a default effort, not a limit, ends the run."""
        return budget.unlimited and self.options.goal != "optimal"

    def _as_before(self, best: Best) -> bool:
        """Whether the gap is at most that of the result the run was started from."""
        return self.warm is not None and self.warm.enough(best)

    def _share(self, k: int, budget: Budget) -> Share:
        """Return the next time slice of stage k, which grows with each one."""
        scale = TURNS.growth ** min(self._turns[k].taken + self._lead, 64)
        limit = budget.time_limit
        if limit is None:
            work = int(TURNS.first_work * scale)
            if budget.max_work is not None:
                work = max(1, min(work, budget.max_work - budget.work))
            return Share(budget, math.inf, work)
        first = max(TURNS.first_turn, TURNS.first_part * limit)
        seconds = min(first * scale, max(0.0, budget.left))
        return Share(budget, time.perf_counter() + seconds)
