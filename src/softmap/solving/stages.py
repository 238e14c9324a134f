"""The stages after the relaxation: exact search, of a part or of the whole, and label search.

A stage is called with a share of the budget and offers what it finds; none may claim a bound that
it has not proved. `softmap.solving.tighten` has the fourth one. `Stages` gives them turns.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from softmap.errors import InfeasibleModel
from softmap.labels import neighbourhoods
from softmap.labels.feasible import find_feasible
from softmap.search.exact import ExactResult, ExactSearch, FlatModel, flat_lam, flatten
from softmap.search.partial import PartialSearch
from softmap.solving.best import Best, Tolerances
from softmap.solving.budget import Budget, Share, Task
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.trace import StageName, Status
from softmap.solving.warm import WarmStart

__all__ = ["Improve", "Partial", "Search", "Stage", "Stages", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """Numbers of the stages and of their turns.

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
    at_most : float
        Part of the time left that a stage may take to begin.
    backtracks : int
        Of a turn of the search, at least, where time is not limited.
    longest : float
        Seconds after which such a turn ends in any case.
    few, nearly : int, float
        Without a time limit, models are searched up to this many nodes, or this relative gap.
    dp_entries : int
        Table entries of dynamic programming per unit of work.
    fresh : float
        Part of the MAP gap by which λ must be better for a search to begin anew.
    entries, early_entries : int
        Largest number of table entries of a model that is searched; and before the LP is solved
        (to begin a search takes about 0.3 µs per entry).
    clustered : int
        Largest number of node states of a model that is tightened.
    partial_from : int
        Number of variables from which the loose part of a model is searched by itself.
    loose : float
        Part of the variables up to which it may grow.
    tight : float
        Relative gap at which a search may stop.
    """

    first_turn: float = 0.3
    first_part: float = 0.03
    first_work: int = 200_000
    growth: float = 2.0
    lead: int = 2
    effort: int = 4
    patience: int = 4
    at_most: float = 0.5
    backtracks: int = 50
    longest: float = 10.0
    few: int = 600
    nearly: float = 3e-3
    dp_entries: int = 20
    fresh: float = 0.02
    entries: int = 60_000_000
    early_entries: int = 6_000_000
    clustered: int = 5_000_000
    partial_from: int = 300
    loose: float = 0.3
    tight: float = 1e-10


TUNING = Tuning()


class Stage(ABC):
    """One way to improve the best so far; called in turns, it goes on where it stopped.

    Parameters
    ----------
    problem : Problem
    options : Options

    Attributes
    ----------
    active : bool
        Whether it may still achieve something.
    """

    name: ClassVar[StageName]
    setup: ClassVar[float] = 0.0  # evaluations of the bound that its shortest turn may take
    proves: ClassVar[bool] = True  # whether it may raise the bound

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.options = problem, options
        self.active = self.applies()

    @abstractmethod
    def applies(self) -> bool:
        """Whether the model is of a kind and size that this stage can do something about."""

    @abstractmethod
    def __call__(self, best: Best, share: Share) -> None:
        """Go on for one turn, and offer what was found."""

    def fits(self, budget: Budget) -> bool:
        """Whether a turn would end well before the time limit, and leave others theirs."""
        return self.setup * budget.expected(Task.BOUND) <= TUNING.at_most * budget.left


class Search(Stage):
    """Exact branch and bound over the model, from λ and the best labels."""

    name = StageName.SEARCH
    setup = 300.0

    def applies(self) -> bool:
        self._flat: FlatModel | None = None
        self._search: ExactSearch | None = None
        self._bound = -math.inf  # of the λ it started from, or of its root
        model = self.problem.model
        tied = model.edges[:, 0] >= model.num_variables
        pairs = np.diff(model.edge_offset)[~tied].sum() if model.m else 0
        self.entries = int(pairs) + model.unary.size
        return self.entries <= TUNING.entries

    def __call__(self, best: Best, share: Share) -> None:
        if not share.timed and not self._promising(best):
            return
        backtracks = max(TUNING.backtracks, share.work // self.problem.model.n)
        found = self._current(best, share).go_on(
            incumbent=best.labels if best.found else None,
            time_limit=share.left if share.timed else TUNING.longest,
            end=share.end,
            backtrack_limit=-1 if share.timed else backtracks,
        )
        share.spend()
        if found.infeasible:
            raise InfeasibleModel(
                "no labelling has finite cost: an exact search over all variables found none", None
            )
        self._offer(best, found)

    def forget(self) -> None:
        """Begin anew with the next turn: a run that is stored and resumed must do the same."""
        self._search = None

    def _current(self, best: Best, share: Share) -> ExactSearch:
        """The search that goes on; a new one where λ has become much better."""
        bound, rest = best.lp_bound, best.energy - best.bound
        better = not bound - self._bound <= TUNING.fresh * rest
        if self._search is None or better:
            model = self.problem.model
            if self._flat is None:
                self._flat = flatten(model)
            self._bound = bound
            self._search = ExactSearch(
                self._flat,
                incumbent=best.labels if best.found else None,
                lam=flat_lam(model, best.lam),
                relative_gap=min(TUNING.tight, self.options.gap),
                dp_limit=1e9 if share.timed else float(TUNING.dp_entries * share.work),
                seconds=min(share.budget.left, 1e9),
            )
        return self._search

    def _promising(self, best: Best) -> bool:
        """Whether a search without a clock is short enough: few nodes, or a small gap."""
        return self.problem.model.n <= TUNING.few or best.gaps().map <= TUNING.nearly

    def _offer(self, best: Best, found: ExactResult) -> None:
        if found.labels is not None:
            best.offer_labels(found.labels)
        best.offer_bound(found.lower_bound, Proof(ProofKind.SEARCH, nodes=found.nodes))
        self._bound = max(self._bound, found.root_bound)
        self.active = not found.complete


class Partial(Stage):
    """Exact search of the part of a large model where λ does not decide the labels."""

    name = StageName.SEARCH
    setup = 10.0

    def applies(self) -> bool:
        self._search: PartialSearch | None = None
        model = self.problem.model
        return model.n > TUNING.partial_from and model.m > 0 and not len(model.auxiliaries)

    def __call__(self, best: Best, share: Share) -> None:
        if not best.found:
            return
        model = self.problem.model
        search, largest = self._current(best), int(TUNING.loose * model.n)
        if search.size > largest:
            return
        found = search.go_on(
            time_limit=share.left if share.timed else TUNING.longest,
            backtrack_limit=-1 if share.timed else max(TUNING.backtracks, share.work // model.n),
            largest=largest,
        )
        share.spend()
        best.offer_labels(found.labels)
        best.offer_bound(found.bound, Proof(ProofKind.SEARCH, nodes=found.nodes))
        self.active = not found.complete

    def _current(self, best: Best) -> PartialSearch:
        """The search that goes on, or a new one where that starts from a smaller part."""
        old = self._search
        if old is None or best.energy < old.energy:
            new = PartialSearch(self.problem.model, best.lam, best.labels)
            self._search = new if old is None or new.size < old.size else old
        assert self._search is not None
        return self._search


class Improve(Stage):
    """Large neighbourhoods of the best labels, solved exactly; a feasible start where none is."""

    name = StageName.LABELS
    setup = 2.0
    proves = False

    def applies(self) -> bool:
        self._turns = 0
        return True

    def __call__(self, best: Best, share: Share) -> None:
        model = self.problem.model
        if not best.found:
            nodes = best.point.node_marginals() if best.point else None
            labels = find_feasible(model, nodes, seconds=share.left, work=share.work)
            if labels is not None:
                best.offer_labels(labels)
        if best.found:
            self._turns += 1
            found = neighbourhoods(
                model, best.labels, seconds=share.left, work=share.work,
                seed=self.options.seed + self._turns, gap=best.energy - best.bound,
            )  # fmt: skip
            best.offer_labels(found)
        share.spend()


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
        self.fruitless = 0 if gained else min(self.fruitless + 1, TUNING.patience)
        self.pause = 2**self.fruitless - 1


class Stages:
    """The stages of one run, in turns of growing length.

    Parameters
    ----------
    problem : Problem
    options : Options
    warm : WarmStart, optional
    """

    def __init__(self, problem: Problem, options: Options, warm: WarmStart | None = None) -> None:
        from softmap.solving.tighten import Tighten

        self.problem, self.options, self.warm = problem, options, warm
        kinds: tuple[type[Stage], ...] = (Partial, Search, Tighten, Improve)
        if options.goal == "labels":
            kinds = (Improve, Tighten)
        self.stages = [kind(problem, options) for kind in kinds]
        for stage in self.stages:
            if isinstance(stage, Tighten) and warm is not None:
                stage.start_from(warm.clusters)
        self._turns = [_Turns() for _ in self.stages]
        # where a search has proved the optimum of a similar model, its first turns are longer
        self._lead = TUNING.lead if warm is not None and warm.searched else 0

    def early_search(self, best: Best, budget: Budget) -> StageName | None:
        """A short turn of the exact search while the relaxation is still being solved."""
        search = next((s for s in self.stages if isinstance(s, Search) and s.active), None)
        if search is None or search.entries > TUNING.early_entries or not search.fits(budget):
            return None
        before = budget.work
        search(best, self._share(self.stages.index(search), budget))
        if budget.time_limit is None:
            search.forget()
        budget.spend(before - budget.work)  # the limit is for the relaxation until that has ended
        return search.name

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
                if status := tolerances.labels_met(best.gaps()) or budget.stop():
                    return status
            if not due:
                continue  # all pause
            proofs_left = any(stage.active and stage.proves for stage in self.stages)
            if rounds >= 2 and budget.time_limit is None and not proofs_left:
                return Status.EXHAUSTED
            rounds += 1
            if self._effort_ends(budget) and (rounds >= TUNING.effort or self._as_before(best)):
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
        gained = any(
            new > old for new, old in zip((best.bound, -best.energy), before, strict=True)
        )
        self._turns[k].note(gained=gained or not share.timed)  # work is granted to all alike

    def _effort_ends(self, budget: Budget) -> bool:
        """Whether a default effort, not a limit, ends the run."""
        return budget.unlimited and self.options.goal != "optimal"

    def _as_before(self, best: Best) -> bool:
        """Whether the gap is no larger than that of the result the run began from."""
        return self.warm is not None and self.warm.enough(best)

    def _share(self, k: int, budget: Budget) -> Share:
        """The next turn of stage k: longer with each that it has had."""
        scale = TUNING.growth ** min(self._turns[k].taken + self._lead, 64)
        limit = budget.time_limit
        if limit is None:
            work = int(TUNING.first_work * scale)
            if budget.max_work is not None:
                work = max(1, min(work, budget.max_work - budget.work))
            return Share(budget, math.inf, work)
        first = max(TUNING.first_turn, TUNING.first_part * limit)
        seconds = min(first * scale, max(0.0, budget.left))
        return Share(budget, time.perf_counter() + seconds)
