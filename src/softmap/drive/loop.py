"""`Run`: the objects of one run, and the loop that gives its subsolvers their turns."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.drive.record import Checkpoints, Record
from softmap.drive.schedule import Candidate, Clock, History, ScheduleNumbers, Turn, schedule
from softmap.errors import CheckpointWarning, OptionError, ProofWarning, debugging
from softmap.labels import cheapest
from softmap.labels.feasibility import FeasibilityNumbers
from softmap.machine import usable_cores
from softmap.methods.base import Floats
from softmap.model import Model, Network
from softmap.run.best import Best
from softmap.run.budget import UNLIMITED, Budget
from softmap.run.failures import Failures
from softmap.run.interrupts import Interrupts
from softmap.run.memory import require_memory
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.subsolver import (
    Board,
    LacksMemory,
    Occasion,
    Outcome,
    Plan,
    Seen,
    Share,
    Subsolver,
    View,
)
from softmap.run.trace import RELAXATION, Snapshot, Status, Trace
from softmap.run.values import Tolerances
from softmap.subsolvers.registry import Place, kinds

if TYPE_CHECKING:
    from softmap.drive.prooffile import ProofFile
    from softmap.run.warm import WarmStart

__all__ = ["Run", "prove_infeasible", "write_proof"]

# The ends of the relaxation after which other subsolvers may run.
OPEN = (Status.LP_GAP, Status.STALLED, Status.RELAXED)
# What a subsolver has done whose code has raised an exception.
FAILED = Outcome(active=False, ran=False, work=0)
# Names of rows for labels and bounds that an earlier part of the run has found.
FOUND, PROVED = "labels", "search"


@dataclass(eq=False)
class Seat:
    """A subsolver of a run that has turns.

    Attributes
    ----------
    subsolver : Subsolver
        The subsolver.
    active : bool
        Whether another slice may improve something.
    history : History
        What it has done so far.
    plan : Plan or None
        What it would do next.
    """

    subsolver: Subsolver
    active: bool = True
    history: History = field(default_factory=History)
    plan: Plan | None = None


class Run:
    """One run: its subsolvers, what they have handed on, and the loop that gives them their turns.

    Parameters
    ----------
    model : Model
        The model.
    options : Options
        The options of the run.
    interrupts : Interrupts
        The Ctrl-C flag.
    stored : Checkpoint, optional
        The stored run that this one continues.
    began : float, optional
        When the time limit began, in seconds of `time.perf_counter`; now by default.
    """

    def __init__(
        self,
        model: Model,
        options: Options,
        interrupts: Interrupts,
        stored: Any = None,
        *,
        began: float | None = None,
    ) -> None:
        began = time.perf_counter() if began is None else began
        self.options, self.budget = options, _budget(model.network, options, interrupts, began)
        if options.backend == "cpu":
            require_memory(model.network, options.memory_limit, options.tuning)
        threads = options.threads or usable_cores()
        problem = Problem.of(model, precision=options.precision, threads=threads)
        self.best = Best(problem, options.upper_bound)
        started = options.warm_start is not None or options.initial is not None
        self._warm = _warm_start(problem, options, self.best) if started else None
        recorded = options.proof is not None
        trace = Trace() if stored is None else stored.trace(recorded=recorded)
        self.record = Record(problem, self.best, self.budget, trace)
        path = options.checkpoint
        own = stored is not None and path is not None and Path(path) == stored.path
        self.checkpoints = Checkpoints(path, self._write, own=own)
        self._stored: tuple[float, ...] = ()  # the best values of the last checkpoint
        self._parts = None if stored is None else stored.parts()
        # on the CPU, all options have been checked; whether there is a GPU is known by trying
        answers: tuple[type[Exception], ...] = () if options.backend == "cpu" else (OptionError,)
        self.failures, self._lacks_memory = Failures(*answers), False
        self._schedule = schedule(options)
        self._tolerances = Tolerances(options.lp_gap, options.gap)
        self.proof = None if options.proof is None else _proof_file(options.proof)
        try:
            self._set_up(resumed=stored is not None and len(trace) > 0)
            if stored is not None:
                stored.restore(self.best, self.budget, recorded=recorded)
        except BaseException:  # there is no run that could close it
            if self.proof is not None:
                self.proof.close()
            raise

    def _set_up(self, *, resumed: bool) -> None:
        """Give the first answer, and make the subsolvers that may come first."""
        options, best, warm = self.options, self.best, self._warm
        zero = Seen(0, 0, 0.0, 1.0, lambda: best.lam if warm is None else warm.lam)
        self._board = Board(start=warm, state=lambda: zero)
        self._recalling = not resumed and warm is not None and warm.result is not None
        self._beside = options.goal != "lp"  # whether some are still to be made
        self._leader: Subsolver | None = None
        self._first_answer()  # it comes first, so that set-up knows when it has to end
        numbers = options.tuning.of(ScheduleNumbers)
        checked = numbers.first_check * self.budget.bound_seconds
        # whether the first check of the relaxation takes long beside the time limit
        self._slow = checked > numbers.slow * options.seconds
        before = () if resumed or not self._beside else kinds(Place.BEFORE)
        self._seats = list(map(Seat, self._made(before)))
        if self._slow:
            self._seat_others()
        self._leader = next(iter(self._made(kinds(Place.RELAXATION), alone=not self._seats)), None)
        self._followers = self._made(kinds(Place.CHECKED))
        if self._leader is not None:
            self._seats.append(Seat(self._leader))
        self.budget.start()

    def _made(self, classes: Iterable[type[Subsolver]], *, alone: bool = False) -> list[Subsolver]:
        """Make the subsolvers that are of use for the problem, and have enough memory."""
        made: list[Subsolver] = []
        for kind in classes:
            one = self.failures.attempt_part(kind.name, partial(self._make, kind), None)
            if one is None:
                continue
            begin = partial(one.begin, self.best, self._share(), alone=alone)
            self._board = self._board.updated(self.failures.attempt(one, begin, Board()))
            if self._parts is not None and one not in self.failures:
                self._parts.put_back(one)
            made.append(one)
        return made

    def _make(self, kind: type[Subsolver]) -> Subsolver | None:
        try:
            return kind.make(self.best.problem, self.options)
        except LacksMemory:
            self._lacks_memory = True
            return None

    def _seat_others(self) -> None:
        """Make the subsolvers beside the relaxation, whose turns come before its own."""
        if self._beside:
            self._beside = False
            at = len(self._seats) - (self._leader is not None)
            self._seats[at:at] = map(Seat, self._made(kinds(Place.BESIDE)))

    def _share(self, turn: Turn | None = None, *, last: bool = False) -> Share:
        """The share of a turn, or the whole run."""
        end = math.inf if turn is None else time.perf_counter() + turn.seconds
        work, early = (UNLIMITED, False) if turn is None else (turn.work, turn.early)
        return Share(
            self.budget, end, work, early, last, self._board, self.proof, self.checkpoints.save
        )

    def loop(self, show: Callable[[Snapshot], object]) -> Generator[Snapshot, None, Status]:
        """Give the subsolvers their turns until the run ends; yield a snapshot after each."""
        interrupts, checkpoints, stop = self.budget.interrupts, self.checkpoints, False
        status: Status | None = None
        while status is None:
            with interrupts:
                turn = self._next_turn()
            checkpoints.save_if_due(at_end=stop or isinstance(turn, Status))
            if stop:
                return Status.CALLBACK
            if isinstance(turn, Status):
                return self._explained(turn)
            with interrupts:
                checkpoints.suspend()
                snapshot, status = self._take(turn)
            if snapshot is not None:
                show(snapshot)
                yield snapshot
                stop = self.options.on_snapshot is not None and self._asked_to_stop(snapshot)
        checkpoints.save_if_due(at_end=True)
        return status

    def finished(self, status: Status) -> Result:
        """Return the result, even if Ctrl-C is pressed repeatedly."""
        while True:
            try:
                with self.budget.interrupts.finishing():
                    return self._finished(status)
            except KeyboardInterrupt:  # raised before the block, or by another handler
                status = Status.INTERRUPTED

    def keep(self) -> None:
        """Store a run that an exception has ended, if a resumed run can continue from here."""
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore", CheckpointWarning)
            self.checkpoints.save_if_due(at_end=True)

    # --- one turn ---------------------------------------------------------------------------------

    def _next_turn(self) -> Turn | Status:
        """The next slice of a subsolver that may still improve something; else a status."""
        if self._beside and (self._board.seen is not None or not self._relaxing):
            self._seat_others()
        budget, candidates = self.budget, list[Candidate]()
        for k, seat in enumerate(self._seats):
            seat.plan = self._planned(seat.subsolver, Occasion.TURN) if seat.active else None
            if (plan := seat.plan) is not None:
                kinds_of_turn = plan.urgent, plan.proves, plan.leads, plan.whole
                candidates.append(Candidate(k, *kinds_of_turn, plan.begin, seat.history))
        spent = budget.seconds + budget.setup_seconds
        return self._schedule.choose(candidates, Clock(spent, budget.left, budget.work_left))

    def _planned(self, subsolver: Subsolver, occasion: Occasion) -> Plan | None:
        """What a subsolver would do next; None if it has failed."""
        view = View(
            self.best, self._board, self.budget.bound_seconds, time.perf_counter(),
            occasion, self._recalling, self._slow,
        )  # fmt: skip
        return self.failures.attempt(subsolver, partial(subsolver.plan, view), None)

    def _explained(self, status: Status) -> Status:
        """The status of a run in which no subsolver can do more, with the reason."""
        if status is Status.EXHAUSTED and len(self.failures):
            return Status.FAILED
        if status is Status.EXHAUSTED and self._lacks_memory:
            return Status.MEMORY_LIMIT
        return status

    def _take(self, turn: Turn) -> tuple[Snapshot | None, Status | None]:
        """Run a slice and what follows it; return its row, and why the run ends."""
        seat, best, budget = self._seats[turn.key], self.best, self.budget
        share, leads = self._share(turn), seat.subsolver is self._leader
        if not leads:  # labels that were found in the background come first
            self._follow(Occasion.HANDOVER, share)
        before, began = (best.bound, best.energy), time.perf_counter()
        outcome = self._called(seat.subsolver, share)
        self._follow(Occasion.CHECKED, share)
        self._board = self._board.decoded()
        self._recalling = self._recalling and not leads
        granted = 0 if turn.early or turn.work >= UNLIMITED else turn.work
        budget.spend(granted if outcome.work is None else outcome.work)
        self._note(seat, turn, outcome, before, time.perf_counter() - began)
        status, snapshot = self._status(outcome), None
        # a model that set-up has solved
        solved = best.labels_met(self._tolerances) is not None
        alone = solved and not len(self.record.trace) and not self._state().done
        if outcome.ran or best.energy < before[1] or alone:
            seen = self._with_lam(self._board.seen or self._state())
            snapshot = self.record.note(seat.subsolver.name, seen, check=outcome.seen is not None)
        # a resumed run begins the relaxation again
        again = self._leader is None or self._leader in self.failures
        if self._relaxing or again or (leads and not outcome.ran):
            self.checkpoints.allow()  # a run that is stored now continues as this one does
            self.checkpoints.save_if_due(at_end=not self._relaxing)
        return snapshot, status

    def _follow(self, occasion: Occasion, share: Share) -> None:
        """Call the followers that have something to do."""
        for follower in self._followers:
            if self._planned(follower, occasion) is not None:
                self._called(follower, share)

    def _called(self, subsolver: Subsolver, share: Share) -> Outcome:
        share = replace(share, board=self._board)
        outcome = self.failures.attempt(subsolver, partial(subsolver, self.best, share), FAILED)
        self._board = self._board.updated(outcome)
        return outcome

    def _state(self) -> Seen:
        """The relaxation as it stands."""
        assert self._board.state is not None
        return self._board.state()

    def _with_lam(self, seen: Seen) -> Seen:
        """The state of the relaxation, with the best λ in place of one that cannot be computed."""

        def lam() -> Floats:
            if seen.done != self._state().done:
                return seen.lam()  # raises: λ of this state is lost
            best: Floats = self.best.lam
            if self._leader is None:
                return seen.lam()
            current = self.failures.attempt(self._leader, seen.lam, None)
            return best if current is None else current

        return replace(seen, lam=lam)

    def _note(
        self, seat: Seat, turn: Turn, outcome: Outcome, before: tuple[float, float], seconds: float
    ) -> None:
        """Note what a slice has done."""
        best, plan = self.best, seat.plan
        numbers = self.options.tuning.of(ScheduleNumbers)
        fell = plan is not None and not plan.proves and best.energy < before[1]
        seat.active = outcome.active
        seat.history = seat.history.after(
            numbers, turn, seconds, outcome.prepared, _gained(before, best), fell=fell
        )

    def _status(self, outcome: Outcome) -> Status | None:
        """Why the run ends; None if it continues."""
        if outcome.ended is not None and (outcome.ended not in OPEN or self.options.goal == "lp"):
            return outcome.ended
        if self.options.whole_run:
            return None
        if status := self.best.labels_met(self._tolerances) or self.budget.stop():
            return status
        known = self._warm is not None and self._warm.enough(self.best)
        ended = known and not self._relaxing and self.options.ends
        return Status.EFFORT if ended else None

    @property
    def _relaxing(self) -> bool:
        """Whether more slices of the relaxation may improve something."""
        led = self._leader is not None and self._leader not in self.failures
        return led and self._seats[-1].active  # the last seat is that of the leader

    def _asked_to_stop(self, snapshot: Snapshot) -> bool:
        """Call the user's callback; return whether it returned False (or numpy's False)."""
        assert self.options.on_snapshot is not None
        with self.budget.interrupts.paused():
            answer = self.options.on_snapshot(snapshot)
        return isinstance(answer, bool | np.bool_) and not answer

    # --- the first and the last answer ------------------------------------------------------------

    def _first_answer(self) -> None:
        """Offer the bound of λ = 0 and the labels of least node cost; time both."""
        best, model = self.best, self.best.problem.model
        began = time.perf_counter()
        best.offer_zero()
        bounded = time.perf_counter()
        if not best.found:
            best.offer_labels(cheapest(model, model.unary))
        ended = time.perf_counter()
        self.budget.time_of_answer(ended - began, ended - bounded)

    def _finished(self, status: Status) -> Result:
        best = self.best
        seen = self._with_lam(replace(self._state(), last=True))
        if not len(self.record.trace) and seen.done:
            best.offer_lam(seen.lam())
        self._board = replace(self._board, seen=seen)
        self._follow(Occasion.END, self._share(last=True))
        if best.take_aside():  # what an earlier part of the run had reached after its checkpoint
            status = best.labels_met(self._tolerances) or status
            self.record.note(FOUND, seen)
        if best.labels_met(self._tolerances) is None and best.take_unrecorded():
            status = best.labels_met(self._tolerances) or status
            self.record.note(PROVED, seen)
        if not self.record.complete(seen):  # labels were found, or an exception ended a slice
            self.record.note(FOUND if len(self.record.trace) else RELAXATION, seen)
        result = self.record.result(self.options, seen, status, self.failures.noted)
        self.checkpoints.add(self._add_reached)
        return result

    def _add_reached(self, path: Path) -> None:
        """Add to a stored run what the run has reached since."""
        from softmap.drive import checkpoint  # imported late: few runs are stored

        if self.best.values != self._stored:
            checkpoint.add_reached(path, self.best)

    def _write(self, path: Path) -> None:
        from softmap.drive import checkpoint  # imported late: few runs are stored

        with self.budget.interrupts.finishing():
            every = [*self._followers, *(seat.subsolver for seat in self._seats)]
            parts = checkpoint.taken(every, self._parts)
            checkpoint.save(path, self.options, self.best, self.budget, parts, self.record.trace)
        self._stored = self.best.values


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


def write_proof(proof: ProofFile, best: Best, result: Result, interrupts: Interrupts) -> None:
    """Write the proof file of a run; warn if it is missing or proves less.

    Parameters
    ----------
    proof : ProofFile
        The file.
    best : Best
        The best values of the run.
    result : Result
        The result of the run.
    interrupts : Interrupts
        The Ctrl-C flag.
    """
    log = best.evidence.log if result.proof.stated else None
    try:
        with interrupts.finishing():
            whole = proof.write(best.problem, result, log)
    except (Exception, KeyboardInterrupt) as error:
        if debugging() and not isinstance(error, OSError | MemoryError | KeyboardInterrupt):
            raise
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        said = f"the proof cannot be written ({reason}); the result is complete without it"
        _warn_of_proof(proof, said, written=False)
    else:
        if not whole:
            why = "no record of it was kept"
            if best.unrecorded:
                why = "it was proved before the run was resumed, and not again"
            said = f"the proof is that of a relaxation; the bound, by {result.proof}, "
            said += f"is stated only: {why}"
            _warn_of_proof(proof, said, written=True)


def _warn_of_proof(proof: ProofFile, sentence: str, *, written: bool) -> None:
    warning = ProofWarning(f"{proof.target}: {sentence}", written=written)
    warnings.warn(warning, stacklevel=4)


def prove_infeasible(
    proof: ProofFile, model: Model, options: Options, interrupts: Interrupts
) -> None:
    """Write a proof that a model is infeasible; warn if there is none within the time limit.

    Parameters
    ----------
    proof : ProofFile
        The file.
    model : Model
        The model.
    options : Options
        The options of the run that found it infeasible.
    interrupts : Interrupts
        The Ctrl-C flag.
    """
    seconds = min(options.seconds, options.tuning.of(FeasibilityNumbers).proof_seconds)
    try:
        with interrupts:
            written = proof.write_infeasible(model, interrupts.within(seconds))
        reason = "no search of the hard constraints ended in time"
    except (Exception, KeyboardInterrupt) as error:
        if debugging() and not isinstance(error, OSError | MemoryError | KeyboardInterrupt):
            raise
        written, reason = False, getattr(error, "reason", None) or type(error).__name__
    finally:
        proof.close()
    if not written:
        said = f"the proof of infeasibility cannot be written ({reason})"
        _warn_of_proof(proof, said, written=False)


# --- what a run is made of ------------------------------------------------------------------------


def _budget(model: Network, options: Options, interrupts: Interrupts, began: float) -> Budget:
    apart = options.backend != "cpu" and not model.has_forbidden and not model.has_factors
    return Budget(
        time_limit=options.seconds, max_work=options.max_work, updates=options.updates,
        interrupts=interrupts, checked_apart=apart, began=began,
    )  # fmt: skip


def _warm_start(problem: Problem, options: Options, best: Best) -> WarmStart | None:
    """Return the warm start; a labelling is offered at once."""
    from softmap.run.warm import start_labels, warm_start  # imported late

    labels = start_labels(problem.given, options.initial, options.warm_start)
    if labels is None:
        return warm_start(problem, options.warm_start, options.tuning)
    best.offer_labels(labels)
    return None


def _proof_file(path: str | Path) -> ProofFile:
    from softmap.drive.prooffile import ProofFile  # imported late: few runs write a proof

    return ProofFile(Path(path))
