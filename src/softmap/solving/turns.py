"""The schedule of the stages after the relaxation: turns of growing length.

A stage that gains nothing pauses for ever more rounds, and time goes to those that do.
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
    from softmap.solving.prooffile import ProofFile
    from softmap.solving.warm import WarmStart

__all__ = ["Stages", "TurnLengths"]


@dataclass(frozen=True, eq=False)
class TurnLengths:
    """How long turns are, and how many there are.

    Attributes
    ----------
    first_turn, first_part : float
        Seconds of the first turn of each stage, at least; and as a part of the time limit.
    first_work : int
        Numbers sent in messages in the first turn, where time is not limited.
    growth : float
        Factor by which turns grow.
    lead : int
        Doublings of the first turns where a search is known to succeed.
    effort : int
        Rounds of turns of a run without any limit.
    patience : int
        A stage pauses for up to `2**patience - 1` rounds after turns without gain.
    early_entries : int
        Table entries of a model up to which it is searched before the LP is solved: to begin a
        search takes about 0.3 µs per entry.
    elimination : float
        Part of the time left that such a search may take on a model of small width.
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
    """How often a stage had a turn, and how many rounds it pauses."""

    taken: int = 0
    fruitless: int = 0
    pause: int = 0

    def due(self) -> bool:
        """Whether it takes part in this round: after turns without gain it pauses ever longer."""
        self.pause -= 1
        return self.pause < 0

    def note(self, *, gained: bool) -> None:
        self.taken += 1
        self.fruitless = 0 if gained else min(self.fruitless + 1, TURNS.patience)
        self.pause = 2**self.fruitless - 1


class Stages:
    """The stages of one run, in turns of growing length.

    Parameters
    ----------
    problem : Problem
    options : Options
    warm : WarmStart, optional
    proof : ProofFile, optional
        Gives searches files for their logs.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        warm: WarmStart | None = None,
        proof: ProofFile | None = None,
    ) -> None:
        self.problem, self.options, self.warm = problem, options, warm
        kinds: tuple[type[Stage], ...] = (Partial, Search, Tighten, Improve)
        if options.goal == "labels":
            kinds = (Improve, Tighten)
        self.stages = [kind(problem, options, proof) for kind in kinds]
        for stage in self.stages:
            if isinstance(stage, Tighten) and warm is not None:
                stage.start_from(warm.clusters)
        self._turns = [_Turns() for _ in self.stages]
        # where a search has proved the optimum of a similar model, its first turns are longer
        self._lead = TURNS.lead if warm is not None and warm.searched else 0

    def may_search_early(self, budget: Budget) -> Search | None:
        """The exact search, if it may have a turn while the relaxation is still being solved."""
        search = next((s for s in self.stages if isinstance(s, Search) and s.active), None)
        if search is None:
            return None
        short = search.entries <= TURNS.early_entries and search.fits(budget)
        return search if short or search.narrow else None

    def search_early(self, search: Search, best: Best, budget: Budget) -> None:
        """A short turn of the exact search; a long one for a model of small width."""
        before = budget.work
        share = self._share(self.stages.index(search), budget)
        if search.narrow and share.timed:  # elimination will end the run
            share = Share(budget, time.perf_counter() + TURNS.elimination * max(0.0, budget.left))
        search(best, share)
        if budget.time_limit is None:
            search.forget()
        budget.spend(before - budget.work)  # the limit is for the relaxation until that has ended

    def run(self, best: Best, budget: Budget) -> Generator[StageName, None, Status]:
        """Give turns until the gap is closed, a limit is reached or nothing is left to try."""
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
                continue  # all pause
            proofs_left = any(stage.active and stage.proves for stage in self.stages)
            if rounds >= 2 and budget.time_limit is None and not proofs_left:
                return Status.EXHAUSTED
            rounds += 1
            if self._effort_ends(budget) and (rounds >= TURNS.effort or self._as_before(best)):
                return Status.EFFORT

    def _due(self, k: int, rounds: int, best: Best, budget: Budget) -> bool:
        """Whether stage k takes part in this round."""
        stage = self.stages[k]
        if not stage.active or not stage.fits(budget) or not self._turns[k].due():
            return False
        if rounds > 0 or not stage.proves:
            return True
        # a warm run tries something else first: better labels, or a search
        enough = self._effort_ends(budget) and self._as_before(best)
        return not enough and not (self._lead > 0 and stage.name is StageName.TIGHTEN)

    def _take_turn(self, k: int, best: Best, budget: Budget) -> None:
        share, before = self._share(k, budget), (best.bound, -best.energy)
        self.stages[k](best, share)
        gained = any(new > old for new, old in zip((best.bound, -best.energy), before, strict=True))
        self._turns[k].note(gained=gained or not share.timed)  # work is granted to all alike

    def _effort_ends(self, budget: Budget) -> bool:
        """Whether a default effort, not a limit, ends the run."""
        return budget.unlimited and self.options.goal != "optimal"

    def _as_before(self, best: Best) -> bool:
        """Whether the gap is no larger than that of the result the run began from."""
        return self.warm is not None and self.warm.enough(best)

    def _share(self, k: int, budget: Budget) -> Share:
        """The next turn of stage k: longer with each that it has had."""
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
