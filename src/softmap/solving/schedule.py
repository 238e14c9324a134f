"""The schedule of a run: which stage runs next, and for how long.

Runs without a time limit count work, so that they are deterministic: the stages before the
relaxation, the relaxation with short searches in between, then rounds of slices of growing work.

Runs with a time limit give the next slice to the stage of which most is expected: the fraction of
the gap that it has closed per second in its last slices, or, if that is more, a rate that falls
with the time for which it has closed nothing. Slices grow with the time that a stage has had. None
of this depends on the limit, so that a longer limit continues what a shorter one has begun; only
stages that have not run at all are brought forward while there is time for them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from softmap.solving.best import Best
from softmap.solving.budget import Share, Task
from softmap.solving.opening import OPENING, Expand, Opening, Recall
from softmap.solving.options import Options
from softmap.solving.relax import Check, Passes, Relaxation
from softmap.solving.stage import LIMITS, Stage
from softmap.solving.trace import StageName, Status

if TYPE_CHECKING:
    from softmap.labels.cuts import Expansions
    from softmap.solving.prooffile import ProofFile
    from softmap.solving.stages import Search
    from softmap.solving.warm import WarmStart

__all__ = ["Schedule", "ScheduleTuning", "Turn"]

OPEN = (Status.LP_GAP, Status.STALLED, Status.RELAXED)  # statuses after which other stages follow


@dataclass(frozen=True, eq=False)
class ScheduleTuning:
    """Tuning numbers of the schedule.

    Attributes
    ----------
    proofs, others : float
        Fraction of the gap that a stage is expected to close in a slice as long as the time for
        which it has closed nothing: `proofs` for searches and tightening, `others` for passes and
        labels.
    proofs_share, labels_share : float
        Smallest fraction of the time of each stage that may raise the bound, and of others; half of
        it if most of its time was in vain.
    gain : float
        Smallest fraction of the gap that counts as progress of a slice.
    fall : float
        Smallest fall of the energy, relative to it, that counts as progress of labels.
    first : float
        Smallest length of a slice, in seconds.
    soon : float
        Longest set-up of a search that follows the first check at once, in seconds.
    searched : float
        Smallest length of that first slice after its set-up, in seconds.
    growth : float
        Length of a slice as a fraction of the time that the stage has had.
    early : int
        Number of slices for labels before tightening begins, as long as they improve.
    untried : float
        Stages that have not run come first after this fraction of the time limit.
    elimination : float
        Fraction of the time left for a search on a model of small width.
    lead : int
        Number of doublings of the first slices if a search is known to succeed.
    first_work : int
        Work of the first slice without a time limit, in message entries.
    work_growth : float
        Factor by which the work of a stage grows from slice to slice without a time limit.
    effort : int
        Number of rounds in a run without any limit.
    early_entries : int
        Largest number of table entries of a model that is searched before the LP is solved in a run
        without a time limit. The set-up of a search takes about 0.1 µs per entry.
    early_passes : int
        Smallest number of passes before such a search, unless variable elimination solves the
        model: from λ of 20 passes, a search of the paper's random graphs takes three quarters of
        the time from λ of 5.
    """

    proofs: float = 0.2
    others: float = 0.05
    proofs_share: float = 0.15
    labels_share: float = 0.3
    gain: float = 0.002
    fall: float = 1e-4
    first: float = 0.05
    soon: float = 0.6
    searched: float = 0.15
    growth: float = 0.25
    early: int = 4
    untried: float = 0.4
    elimination: float = 0.6
    lead: int = 2
    first_work: int = 200_000
    work_growth: float = 2.0
    effort: int = 4
    early_entries: int = 6_000_000
    early_passes: int = 20


TUNING = ScheduleTuning()


class Turn(NamedTuple):
    """A time slice of a stage; `early` ones, before the LP is solved, do not count as work."""

    stage: Stage
    share: Share
    early: bool = False


@dataclass
class _History:
    """What a stage has done so far.

    Attributes
    ----------
    slices : int
        Number of its time slices.
    seconds : float
        Time that it has had.
    idle : float
        Time since it has last made progress, in seconds.
    rate : float
        Fraction of the gap closed per second in its last two slices.
    vain : float
        Time since it has last made progress or improved the labels, in seconds.
    """

    slices: int = 0
    seconds: float = 0.0
    idle: float = 0.0
    rate: float = 0.0
    vain: float = 0.0
    _last: tuple[float, float] = (0.0, 0.0)

    def note(
        self, seconds: float, granted: float, prepared: float, gain: float, *, fell: bool
    ) -> None:
        """Add a slice.

        Parameters
        ----------
        seconds, granted : float
            Its time, and its length as planned, in seconds.
        prepared : float
            Its time that could gain nothing yet, in seconds.
        gain : float
            Fraction of the gap that it closed.
        fell : bool
            Whether the energy fell.
        """
        last, closed = self._last
        self.slices += 1
        self.seconds += seconds
        # neither what a slice took beyond its length nor a long set-up counts as idle
        spent = max(0.0, max(TUNING.first, min(seconds, granted)) - prepared)
        self.idle = 0.0 if gain >= TUNING.gain else self.idle + spent
        self.rate = (closed + gain) / max(last + seconds, 1e-6)
        self._last = seconds, gain
        self.vain = 0.0 if fell or not self.idle else self.vain + seconds - prepared

    @property
    def in_vain(self) -> bool:
        """Whether the stage has made no progress for most of its time."""
        return self.vain > 0.5 * self.seconds


class Schedule:
    """The stages of one run and the order of their time slices.

    Parameters
    ----------
    relaxation : Relaxation
        The relaxation of the run, with its problem, best values and budget.
    warm : WarmStart, optional
        The warm start of the run.
    proof : ProofFile, optional
        Provides files for the proofs of searches.
    store : function
        Stores the run before the check of a limit; see `Passes`.
    resumed : bool
        Whether the run continues a stored one, which has no opening.

    Attributes
    ----------
    passes : Passes
        The relaxation as a stage.
    status : Status or None
        Why the run has ended.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        warm: WarmStart | None,
        proof: ProofFile | None,
        *,
        store: Callable[[], object],
        resumed: bool,
    ) -> None:
        self.best, self.budget = relaxation.best, relaxation.budget
        self.relaxation, self.warm, self._proof = relaxation, warm, proof
        self.passes = Passes(relaxation, store)
        self.status: Status | None = None
        self.resumable = True
        self._resumed = resumed
        self._opening = self._openings()
        self._histories: dict[Stage, _History] = {}
        self._turns = self._plan()

    @property
    def options(self) -> Options:
        """The options of the run."""
        return self.relaxation.options

    # --- for the driver ---------------------------------------------------------------------------

    @property
    def opens(self) -> bool:
        """Whether stages come before the set-up of the relaxation."""
        return bool(self._opening)

    def next(self) -> Turn | None:
        """Return the next time slice; None, and `status`, if the run has ended."""
        return next(self._turns, None)

    def take(self, turn: Turn) -> tuple[StageName, Check] | None:
        """Run a time slice; return what the trace has to say of it, None if nothing was done."""
        stage, best, passes = turn.stage, self.best, self.passes
        if stage is not passes and self.relaxation.take_labels() and self.relaxation.closed():
            return StageName.LABELS, Check()
        before, work, began = (best.bound, best.energy), self.budget.work, time.perf_counter()
        granted = turn.share.left
        self.resumable = passes.active
        stage(best, turn.share)
        seconds, fall = time.perf_counter() - began, before[1] - best.energy
        fell = not stage.proves and fall > TUNING.fall * abs(best.energy)
        history = self._history(stage)
        history.note(seconds, granted, stage.prepared, _gained(before, best), fell=fell)
        self.resumable &= passes.resumable
        if turn.early:  # `max_work` limits the relaxation here
            self.budget.spend(work - self.budget.work)
        if isinstance(stage, Opening) and not stage.ran:
            return None
        return stage.name, passes.found if stage is passes else Check()

    # --- stages -----------------------------------------------------------------------------------

    def _openings(self) -> list[Opening]:
        """The stages before the relaxation; none for resumed runs and earlier results."""
        if self._resumed or (self.warm is not None and self.warm.result is not None):
            return []
        made = (kind(self.relaxation.problem, self.options, self._proof) for kind in OPENING)
        return [stage for stage in made if stage.active]

    @cached_property
    def stages(self) -> list[Stage]:
        """The stages beside the passes, created lazily: many small models do not need them."""
        if self.options.goal == "lp":
            return []
        from softmap.solving.stages import Improve, Partial, Search, Tighten  # imported late

        kinds: tuple[type[Stage], ...] = (Partial, Search, Tighten, Improve)
        if self.options.goal == "labels" and self.budget.time_limit is None:
            kinds = (Improve, Tighten)  # no effort for proofs
        stages = [kind(self.relaxation.problem, self.options, self._proof) for kind in kinds]
        for stage in stages:
            if isinstance(stage, Tighten) and self.warm is not None:
                stage.start_from(self.warm.clusters)
            if isinstance(stage, Improve):
                stage.start_from(self._expansions())
        return stages

    def _expansions(self) -> Expansions | None:
        """The expansion moves of the opening, to be continued."""
        return next((each.expansions for each in self._opening if isinstance(each, Expand)), None)

    @cached_property
    def _search(self) -> Search | None:
        """The exact search of all variables, if it applies."""
        stages = self.stages
        from softmap.solving.stages import Search  # imported late, as above

        return next((each for each in stages if isinstance(each, Search) and each.active), None)

    @property
    def _lead(self) -> int:
        """Doublings of the first slices: a search has proved the optimum of a similar model."""
        return TUNING.lead if self.warm is not None and self.warm.searched else 0

    def _history(self, stage: Stage) -> _History:
        return self._histories.setdefault(stage, _History())

    # --- the order of slices ----------------------------------------------------------------------

    def _plan(self) -> Generator[Turn, None, None]:
        """Yield all time slices of the run; set `status` at its end."""
        yield from self._open()
        if self.passes.status is None or self.passes.status in OPEN:
            timed = self.budget.time_limit is not None
            self.status = yield from self._by_time() if timed else self._by_work()
        else:
            self.status = self.passes.status

    def _open(self) -> Generator[Turn, None, None]:
        """The stages before the relaxation, its set-up, and the evaluation of an earlier result."""
        passes, budget, relaxation = self.passes, self.budget, self.relaxation
        ready = False
        for stage in self._opening if budget.left > 0 else ():
            if stage.after_setup and not ready:
                relaxation.set_up()
                ready = True
            seconds = stage.share * max(0.0, budget.left)
            yield Turn(stage, Share(budget, time.perf_counter() + seconds), early=True)
            passes.end(relaxation.closed())
            if not passes.active:
                return
        if self._opening and not ready:
            relaxation.set_up()
        elif self._resumed:
            passes.end(relaxation.closed() or relaxation.stalled())
        elif self.warm is not None and self.warm.result is not None:
            yield Turn(Recall(passes, self.warm), Share(budget))

    def _by_work(self) -> Generator[Turn, None, Status]:
        """The relaxation with short searches in between, then rounds of the other stages."""
        passes = self.passes
        while passes.active:
            search = self._early_search()
            if search is None:
                yield Turn(passes, Share(self.budget))
            else:
                yield Turn(search, self._work(search), early=True)
                search.forget()  # a resumed run restarts it, too
                passes.end(self.relaxation.closed())
        assert passes.status is not None
        if passes.status not in OPEN or self.options.goal == "lp":
            return passes.status
        return (yield from self._rounds())

    def _rounds(self) -> Generator[Turn, None, Status]:
        """Slices of growing work for each stage in turn."""
        rounds = 0
        while any(stage.active for stage in self.stages):
            for stage in self.stages:
                if stage.active and (rounds or self._in_first_round(stage)):
                    yield Turn(stage, self._work(stage))
                    if status := self._met() or self.budget.stop():
                        return status
            if rounds >= 2 and not any(stage.active and stage.proves for stage in self.stages):
                break
            rounds += 1
            if self._effort_ends and (rounds >= TUNING.effort or self._as_before()):
                return Status.EFFORT
        return Status.EXHAUSTED

    def _by_time(self) -> Generator[Turn, None, Status]:
        """The slice of which most is expected, until nothing fits into the time left."""
        passes, budget = self.passes, self.budget
        while (stage := self._most_promising()) is not None:
            yield Turn(stage, self._slice(stage))
            if stage is passes and passes.status not in (None, Status.TIME_LIMIT, *OPEN):
                assert passes.status is not None
                return passes.status
            if status := self._met() or budget.stop():
                return status
        return self._why_over()

    # --- without a time limit ---------------------------------------------------------------------

    def _early_search(self) -> Search | None:
        """The exact search, if a short slice of it is due before the relaxation is solved."""
        warm, options = self.warm, self.options
        if options.goal == "lp" or options.whole_run:
            return None
        if warm is not None and warm.result is not None and not warm.searched:
            return None  # the warm-started relaxation is fast
        if not self.relaxation.search_due() or self._search is None:
            return None
        search = self._search
        short = search.entries <= TUNING.early_entries
        short = short and self.relaxation.at.done >= TUNING.early_passes
        return search if search.active and (short or search.narrow) else None

    def _in_first_round(self, stage: Stage) -> bool:
        """Whether a stage runs in the first round; warm-started runs first improve or search."""
        if not stage.proves:
            return True
        enough = self._effort_ends and self._as_before()
        return not enough and not (self._lead > 0 and stage.name is StageName.TIGHTEN)

    @property
    def _effort_ends(self) -> bool:
        """Whether a default effort, not a limit, ends the run."""
        return self.budget.unlimited and self.options.goal != "optimal"

    def _as_before(self) -> bool:
        """Whether the gap is at most that of the result the run was started from."""
        return self.warm is not None and self.warm.enough(self.best)

    def _work(self, stage: Stage) -> Share:
        """The next slice of a stage, limited by work."""
        budget, taken = self.budget, self._history(stage).slices + self._lead
        work = int(TUNING.first_work * TUNING.work_growth ** min(taken, 64))
        if budget.max_work is not None:
            work = max(1, min(work, budget.max_work - budget.work))
        return Share(budget, math.inf, work)

    # --- with a time limit ------------------------------------------------------------------------

    def _most_promising(self) -> Stage | None:
        """The next stage: passes first, then a short search, then what is due, then the best."""
        passes, search = self.passes, self._search
        if passes.active and self._passes_first():
            return passes
        if search is not None and search.active and self._searched_first(search):
            return search
        able = [stage for stage in self.stages if self._able(stage)]
        able += [passes] if passes.active else []
        chosen = max(able, key=self._hope, default=None)
        if due := [stage for stage in able if self._due(stage)]:
            chosen = min(due, key=lambda stage: self._history(stage).seconds)
        return next((stage for stage in able if self._comes_before(stage, chosen)), chosen)

    def _comes_before(self, stage: Stage, chosen: Stage | None) -> bool:
        """Whether labels are improved before another stage begins, as its first slice may be long.

        This ends with the first slice that has not improved them.
        """
        if stage.proves or chosen is None or not chosen.proves or self._history(chosen).slices:
            return False
        history = self._history(stage)
        return history.slices < TUNING.early and not history.vain

    def _searched_first(self, search: Search) -> bool:
        """Whether to search at once: set-up is short, or elimination will end the run."""
        if self.passes.status is Status.TIME_LIMIT:
            return False
        soon = not self._history(search).slices and search.delay(self.budget) <= TUNING.soon
        return (soon and self._able(search)) or self._eliminates(search)

    def _eliminates(self, search: Search) -> bool:
        """Whether a long slice of the search is due: elimination will solve the model.

        A short slice comes first unless its set-up takes long: it solves many of these models.
        """
        late = search.delay(self.budget) > TUNING.soon
        return self._history(search).slices == (0 if late else 1) and search.narrow

    def _due(self, stage: Stage) -> bool:
        """Whether a stage has had less than its share of the time."""
        budget, history = self.budget, self._history(stage)
        assert budget.time_limit is not None
        if not history.slices and budget.seconds > TUNING.untried * budget.time_limit:
            return True
        share = TUNING.proofs_share if stage.proves else TUNING.labels_share
        needed = history.seconds + max(TUNING.first, stage.delay(budget))
        return needed < (0.5 if history.in_vain else 1.0) * share * budget.seconds

    def _passes_first(self) -> bool:
        """Whether only passes may run: the first ones, or those of a method without clock.

        On a GPU, the LP is solved first: that takes a fraction of the time of any other stage.
        """
        options = self.options
        whole = options.whole_run or not self.relaxation.algorithm.sweeping
        alone = whole or options.backend != "cpu" or options.goal == "lp"
        return alone or not self._history(self.passes).slices

    def _able(self, stage: Stage) -> bool:
        """Whether a stage can run now; after the last possible pass, only labels are improved."""
        late = self.passes.status is Status.TIME_LIMIT and stage.proves
        if not stage.active or late or not stage.ready(self.best):
            return False
        begins = stage.delay(self.budget) <= LIMITS.at_most * self.budget.left
        return (begins or stage.fits(self.budget)) and self._left(stage) > 0.0

    def _hope(self, stage: Stage) -> tuple[float, float]:
        """What is expected of a stage; of equals, the one that has had least time is preferred."""
        return self._expected(stage), -self._history(stage).seconds

    def _expected(self, stage: Stage) -> float:
        """The fraction of the gap that a stage is expected to close per second."""
        history = self._history(stage)
        proving = stage.proves and stage is not self.passes
        hope = TUNING.proofs if proving else TUNING.others
        return max(history.rate, hope / (history.idle + TUNING.first + stage.delay(self.budget)))

    def _slice(self, stage: Stage) -> Share:
        """The next slice of a stage, limited by time."""
        budget, history = self.budget, self._history(stage)
        now = time.perf_counter()
        if stage is self.passes and self._passes_first():
            return Share(budget)
        first = not history.slices
        least = TUNING.searched if first and stage is self._search else TUNING.first
        seconds = max(least + stage.delay(budget), TUNING.growth * history.seconds)
        seconds *= 2.0 ** (self._lead if first else 0)
        if stage is self._search and self._eliminates(self._search):
            seconds = TUNING.elimination * budget.left
        return Share(budget, now + max(0.0, min(seconds, self._left(stage))))

    def _left(self, stage: Stage) -> float:
        """The largest length of a slice, in seconds, so that the run ends in time.

        A slice that improves labels may exceed its time by as long as its set-up takes.
        """
        budget = self.budget
        left = budget.left - budget.expected(Task.FINISH)
        return left if stage.proves else left - stage.least(budget)

    def _met(self) -> Status | None:
        """The status if the labels are proved well enough."""
        return None if self.options.whole_run else self.best.labels_met(self.relaxation.tolerances)

    def _why_over(self) -> Status:
        """The status of a run for which no stage is left."""
        if self.options.goal == "lp" and self.passes.status is not None:
            return self.passes.status
        return self.budget.stop() or Status.TIME_LIMIT


def _gained(before: tuple[float, float], best: Best) -> float:
    """The fraction of the gap that a slice has closed; 1 for the first bound or labels."""
    bound, energy = before
    if best.bound <= bound and best.energy >= energy:
        return 0.0
    if not math.isfinite(bound) or math.isfinite(best.energy) > math.isfinite(energy):
        return 1.0
    gap = energy - bound
    if not math.isfinite(gap):  # no labels yet: progress of the bound only
        return min(1.0, (best.bound - bound) / best.problem.unit(best.bound))
    return 1.0 - best.gap / gap if gap > 0 else 0.0
