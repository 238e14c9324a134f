"""One run: an algorithm's state, its judge and its clock; when to check, and when to stop."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.algorithms.base import Floats
from softmap.labels import LabelSearch
from softmap.later import made, unmade
from softmap.machine import usable_cores
from softmap.model import Model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.gaps import relative_gap, stated_primal
from softmap.relaxation.point import PrimalPoint
from softmap.solving.backends import method_on
from softmap.solving.beside import Beside
from softmap.solving.checking import check, passes_to_next
from softmap.solving.interrupts import Interrupts
from softmap.solving.judge import Judge
from softmap.solving.labelling import take_labels
from softmap.solving.memory import require_memory
from softmap.solving.options import Options
from softmap.solving.pace import Pace, width_of
from softmap.solving.proof import Proof
from softmap.solving.result import Result
from softmap.solving.settling import makes_way
from softmap.solving.trace import PROVED, Row, Snapshot, StageName, Status, Trace
from softmap.solving.units import Units
from softmap.solving.warm import warm_start

__all__ = ["Run"]

FIRST_INTERLUDE = 5  # passes before an exact search is tried for the first time
MOMENT = 0.1  # seconds between two looks at limits and Ctrl-C, where a step is shorter than that
PREPARED = 8  # passes that must be ahead for it to pay to begin with a smaller model,
TAKEN = 4  # which takes about as long as so many
# Labels that solve the LP as well as any point are likely to be proved by some more passes: up to
# so many times those that solved it, and so many in any case.
MORE, PROVING = 2, 100
# A run gives up when neither gap has improved for so many passes, and for half of all passes.
PATIENCE = 400
LARGE = 1 << 19  # numbers from which on λ is handed out as what it is made of


class Run:
    """One run: the algorithm's state, the judge, the search for labels, the clock.

    Attributes
    ----------
    given, model : Model
        As handed over, and as the run works on it: in `units` of its own, without the states that
        hard constraints rule out.
    done : int
        Steps of the algorithm so far.
    next_check, checked_at, refined_at, decoded_at, solved_at, improved_at : int
        Steps at the next check, the last one, the last that asked for all there is, the last search
        for labels, when the LP was solved (0: not yet), and (in passes) when a gap last improved.
    awaited : Beside or None
        A search for labels beside the passes, whose outcome the next check takes.
    gave_up, storable : bool
        Neither gap has improved for long; a run resumed from here goes on as this one would.
    """

    def __init__(
        self, model: Model, options: Options, interrupts: Interrupts | None = None
    ) -> None:
        started = time.perf_counter()
        if options.backend == "cpu":
            require_memory(model, options.precision)
        self.given, self.options = model, options
        self.units = Units(model, options.precision)
        self.model = tighten(self.units.model)
        self.threads = options.threads or usable_cores()
        self.warm = warm_start(self.units, options.warm_start)
        eta = self.units.eta(options.eta)
        if eta is None and self.warm is not None:
            eta = self.warm.eta(options.method)
        how = {"eta": eta, "threads": self.threads, "dtype": options.precision}
        self.algorithm = algorithm = method_on(options.backend, options.method, **how)
        begun = None if self.warm is None else self.warm.lam
        self.state = algorithm.init(self.model, begun, options.seed)
        self.judge: Judge = algorithm.judge_by(Judge(self.model, self.threads))
        if not self.model.cost_sizes.largest:  # nothing costs anything: λ = 0 proves all there is
            self.judge.glance(self.judge.lam)
        self.search = LabelSearch(self.model, algorithm.decode_order(self.model))
        self.awaited: Beside[LabelSearch] | None = None
        self.trace, self.pace = Trace(), Pace()
        self.interrupts = interrupts or Interrupts()
        self.done, self.earlier = 0, 0.0
        self.best_gaps: tuple[float, float] = (math.inf, math.inf)
        self.improved_at, self.decoded_at, self.checked_at, self.refined_at = 0, 0, 0, 0
        self.solved_at = 0
        self.proved, self.proof, self.later_work = -math.inf, Proof(), 0
        self.next_interlude = FIRST_INTERLUDE
        self.eta = 1.0  # of the last check
        self._restart: tuple[int, Floats] | None = None
        self.gave_up, self.storable = False, True
        self.next_check = self.interval()
        self.gaps()  # finds the unit of the costs, once
        self._tidy()
        self.setup_seconds = time.perf_counter() - started
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time in the loop, over all sessions of a resumed run."""
        return self.earlier + time.perf_counter() - self.started

    @property
    def sweeps(self) -> float:
        """Work in units of all half-edges."""
        return self.state.work / max(1, 2 * self.model.m)

    def interval(self) -> int:
        """Steps until the next check."""
        if self.algorithm.sweeping:
            asked = max(self.options.lp_gap, self.options.gap, 1e-12)
            return passes_to_next(self.done, self.gaps()[0] / asked)
        total = self.options.updates
        return max(1, total // 40) if total else max(2 * self.model.m, self.done // 5)

    def advance(self) -> Status | None:
        """Go on to the next check, or to the first limit on the way."""
        if self.left <= 0:  # there is no time even to find out how long a step takes
            return Status.TIME_LIMIT
        least = 1 if self.algorithm.sweeping else max(1, self.model.n // 10)
        if self.options.time_limit and not self.pace.known("step") and not self.algorithm.frugal:
            self._guess()
        if not self.state.work and self.warm is None:
            self._look_ahead()
        while self.done < self.next_check:
            if status := self.limit() or makes_way(self) or self._out_of_time():
                return status
            goal = min(self.next_check, self.options.updates or self.next_check)
            timed = self.done > 0 and self.pace.known("step")
            count = max(least, self.pace.fitting("step", MOMENT) if timed else 0)
            count = min(count, goal - self.done, self.affordable())
            if self.options.time_limit is not None:
                count = max(1, min(count, self.pace.fitting("step", self.left, *self._after())))
            with self.pace.timed("step", count):
                self.algorithm.step(self.state, count)
            self.done += count
        return self.limit()

    @property
    def left(self) -> float:
        """Seconds until the time limit, +inf without one.

        Set-up counts, except on a GPU, where the first run compiles its kernels.
        """
        limit, setup = self.options.time_limit, self.setup_seconds
        counted = self.seconds + (setup if self.options.backend == "cpu" else 0.0)
        return math.inf if limit is None else limit - counted

    def _guess(self) -> None:
        """What steps and checks will cost, guessed from one cheap look before the first of them.

        Where that leaves no time for any, a second look tells whether the machine just stood still.
        """
        steps = 1 if self.algorithm.sweeping else 2 * self.model.m
        for _ in range(2):
            self.pace.begin(lambda: self.judge.glance(self.judge.lam), steps, width_of(self.model))
            if not self._out_of_time():
                return

    def _look_ahead(self) -> None:
        """Let the method begin nearer to the end, where there will be passes that gain by it."""
        options, passes = self.options, [self.options.updates or PREPARED]
        if options.max_work is not None:
            passes.append(self.affordable())
        if options.time_limit is not None:
            passes.append(self.pace.fitting("step", self.left, "brief", "end") - TAKEN)
        if min(passes) >= PREPARED:
            self.algorithm.look_ahead(self.state, lambda: self.limit() is not None)
            self._tidy()

    def _tidy(self) -> None:
        """Hand back what a large model has needed for a moment: else it adds to what comes next."""
        if self.model.half_size > LARGE:
            core.give_back()

    def _out_of_time(self) -> Status | None:
        """Whether the next step, and what follows it, would take longer than the time limit."""
        if self.options.time_limit is None:
            return None
        late = not self.pace.in_time(self.left, "step", *self._after())
        return Status.TIME_LIMIT if late else None

    def _after(self) -> tuple[str, ...]:
        return self.pace.after(self.left, self.options.time_limit)

    @property
    def bound(self) -> float:
        """The best lower bound that any stage has proved."""
        return max(self.judge.bound, self.proved)

    @property
    def primal(self) -> float:
        """The cost of the best point."""
        return stated_primal(self.judge.primal, self.judge.bound, self.search.energy)

    def keep_bound(self, bound: float, proof: Proof) -> None:
        """Take a bound that a later stage has proved, if it is the best."""
        if bound > self.bound:
            self.proved, self.proof = bound, proof

    def keep_labels(self, labels: NDArray[np.int64]) -> None:
        """Take a labelling that a later stage has found, if it is the best."""
        self.search.take(labels)
        self.judge.credit(self.search.labels, self.search.energy)

    def spend(self, work: int) -> None:
        """Count the work of a later stage."""
        self.later_work += work

    @property
    def work(self) -> int:
        """Half-edge messages of the relaxation, and what later stages count in their place."""
        return self.state.work + self.later_work

    def note(
        self, stage: StageName, smoothed: float | None = None, slack: float = math.nan
    ) -> Snapshot:
        """A row about a check, or about a turn of a later stage."""
        solved = self.gaps()[0] <= self.options.lp_gap
        self.solved_at = (self.solved_at or self.done) if solved else 0
        return self._noted(self._row(stage, smoothed, slack))

    def recall(self) -> tuple[Snapshot, Status | None]:
        """Begin with what an earlier result knows; it may be all that was asked for."""
        assert self.warm is not None
        self.warm.recall(self)
        snapshot = self.note(StageName.RELAX)
        return snapshot, self.closed() or self.warm.ended(self)

    def interlude_due(self) -> bool:
        """Whether a later stage may try its luck now: after growing numbers of passes."""
        if self.warm is not None and self.warm.result is not None and not self.warm.searched:
            return False  # the relaxation will not take long
        if not self.algorithm.sweeping or self.done < self.next_interlude:
            return False
        self.next_interlude = 4 * self.done
        return True

    def affordable(self) -> int:
        """Steps that certainly stay within `max_work`, at least one: every run stops alike."""
        if self.options.max_work is None:
            return self.next_check
        graph = self.model.graph
        dearest = 2 * self.model.m if self.algorithm.sweeping else int(graph.degree.max())
        return max(1, (self.options.max_work - self.state.work) // max(1, dearest))

    def limit(self) -> Status | None:
        """The limit that has been reached, if any."""
        options = self.options
        if self.interrupts.noted:
            return Status.INTERRUPTED
        if options.updates is not None and self.done >= options.updates:
            return Status.UPDATES
        if options.max_work is not None and self.work >= options.max_work:
            return Status.WORK_LIMIT
        if self.left <= 0:
            return Status.TIME_LIMIT
        return None

    def check(self, *, last: bool = False, least: bool = False) -> Snapshot:
        """Judge where the algorithm stands; see `checking.check`."""
        snapshot = check(self, last=last, least=least)
        self._tidy()
        return snapshot

    def restart_point(self) -> Floats:
        """λ where the algorithm stands, computed once."""
        if not self.done and self.warm is None:
            return self.judge.lam  # which is 0 still
        if self._restart is None or self._restart[0] != self.done:
            lam = self.algorithm.restart_point(self.state)
            # a method of the paper that diverges may have left the numbers
            self._restart = self.done, lam if np.isfinite(lam).all() else self.judge.lam
        return self._restart[1]

    def _noted(self, row: Row) -> Snapshot:
        snapshot = self.units.snapshot(row, self.search.labels)
        if len(self.trace) and snapshot.row.primal > self.trace[-1].primal:
            # the user's units may have rounded an earlier one down
            kept = replace(snapshot.row, primal=self.trace[-1].primal)
            snapshot = replace(snapshot, row=kept)
        self.trace.rows.append(snapshot.row)
        return snapshot

    def _row(self, stage: StageName, smoothed: float | None, slack: float) -> Row:
        return Row(
            work=self.work,
            sweeps=self.sweeps,
            seconds=self.seconds,
            eta=self.eta,
            bound=self.bound,
            smoothed=math.nan if smoothed is None else smoothed,
            primal=self.primal,
            energy=self.search.energy,
            slack=slack,
            stage=stage,
        )

    def gaps(self) -> tuple[float, float]:
        """Relative LP gap and relative MAP gap."""
        lower, bound = self.judge.bound, self.bound
        relaxed = relative_gap(self.judge.primal - lower, self.units.unit(lower))
        return relaxed, relative_gap(self.search.energy - bound, self.units.unit(bound))

    def closed(self, *, labels_only: bool = False) -> Status | None:
        """Whether a gap is small enough: that of the labels, or (unless asked not) of the LP."""
        lp_gap, gap = self.gaps()
        if gap <= self.options.gap:
            return Status.OPTIMAL if gap <= PROVED else Status.GAP
        going_on = labels_only or lp_gap > self.options.lp_gap or self.proving()
        return None if going_on else Status.LP_GAP

    def proving(self) -> bool:
        """Whether the LP is solved, by labels as well as by any point: passes may prove them."""
        if self.gaps()[0] > self.options.lp_gap:
            return False
        asked = self.algorithm.sweeping and self.options.goal != "lp"
        tight = self.search.energy <= self.judge.primal
        return asked and tight and self.done < max(MORE * self.solved_at, PROVING)

    def stalled(self) -> Status | None:
        """Whether neither gap has moved for long; not where a number of updates was asked for."""
        gaps, passes = self.gaps(), self.done if self.algorithm.sweeping else int(self.sweeps)
        if any(new < 0.99 * old for new, old in zip(gaps, self.best_gaps, strict=True)):
            self.best_gaps, self.improved_at = gaps, passes
        patience = max(PATIENCE, passes // 2)
        asked = not self.algorithm.sweeping and self.options.updates is not None
        self.gave_up = not asked and passes - self.improved_at > patience
        return Status.STALLED if self.gave_up else None

    def ended(self) -> Status | None:
        """Whether a run that is resumed has nothing left to do, and why."""
        if not len(self.trace):
            return None
        return self.closed() or (Status.STALLED if self.gave_up else None)

    def result(self, status: Status) -> Result:
        """The best of the run."""
        if take_labels(self, patient=status is not Status.INTERRUPTED):
            self.note(StageName.LABELS)
        rounded = self.algorithm.rounded(self.state)
        if rounded is not None and math.isinf(self.search.energy):
            self.keep_labels(rounded)
            self.note(StageName.LABELS)
        judge, search = self.judge, self.search
        point = judge.point or PrimalPoint(self.model, labels=search.labels)
        lam: Any = unmade(judge, "lam")
        messages: Any = self.restart_point
        if self.model.half_size <= LARGE:  # else they are made when somebody asks for them
            lam, messages = judge.lam, self.restart_point()
            made(point, "coupling")
        found = Result(
            model=self.given,
            method=self.algorithm.name,
            status=status,
            labels=search.labels[: self.given.num_visible],
            energy=search.energy,
            bound=self.bound,
            primal=self.primal,
            lam=lam,
            eta=self.trace[-1].eta,
            trace=self.trace,
            work=self.work,
            sweeps=self.sweeps,
            seconds=self.seconds,
            setup_seconds=self.setup_seconds,
            threads=self.threads,
            messages=messages,
            point=point,
            lp_bound=judge.bound,
            proof=self.proof,
            tolerances=(self.options.lp_gap, self.options.gap),
        )
        return self.units.result(found, self.model)
