"""`Run`: the objects of one run, and the loop that gives its stages their turns."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.drive.record import Checkpoints, Record
from softmap.errors import CheckpointWarning, OptionError, ProofWarning, debugging
from softmap.labels import cheapest
from softmap.machine import usable_cores
from softmap.methods.base import Algorithm, Floats, make
from softmap.model import Model, Network
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.failures import Failures
from softmap.run.interrupts import Interrupts
from softmap.run.memory import require_memory
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.schedule import UNLIMITED, Candidate, Clock, History, Turn
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
from softmap.run.trace import Snapshot, StageName, Status, Trace
from softmap.run.values import Tolerances
from softmap.subsolvers.passes.decode import Decode
from softmap.subsolvers.passes.interior import Interior
from softmap.subsolvers.passes.passes import Passes
from softmap.subsolvers.passes.vertex import Vertex

if TYPE_CHECKING:
    from softmap.drive.prooffile import ProofFile
    from softmap.run.warm import WarmStart

__all__ = ["Run", "prove_infeasible", "write_proof"]

# The ends of the passes after which other stages may run.
OPEN = (Status.LP_GAP, Status.STALLED, Status.RELAXED)
# What a stage has done whose code has raised an exception.
FAILED = Outcome(active=False, ran=False, work=0)


class Run:
    """One run: its stages, what they have handed on, and the loop that gives them their turns.

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
    """

    def __init__(
        self, model: Model, options: Options, interrupts: Interrupts, stored: Any = None
    ) -> None:
        self.options, self.budget = options, _budget(model.network, options, interrupts)
        if options.backend == "cpu":
            require_memory(model.network, options.memory_limit)
        threads = options.threads or usable_cores()
        problem = Problem.of(model, precision=options.precision, threads=threads)
        self.best = Best(problem, options.upper_bound)
        started = options.warm_start is not None or options.initial is not None
        self._warm = _warm_start(problem, options, self.best) if started else None
        method = _method(problem, options, self._warm)
        recorded = options.proof is not None
        trace = Trace() if stored is None else stored.trace(recorded=recorded)
        self.record = Record(problem, self.best, self.budget, trace)
        path = options.checkpoint
        own = stored is not None and path is not None and Path(path) == stored.path
        self.checkpoints = Checkpoints(path, self._write, own=own)
        self._stored: tuple[float, ...] = ()  # the best values of the last checkpoint
        self.passes = Passes(problem, options, self.best, method, self._warm, self.checkpoints.save)
        self.decode = Decode(problem, options, method)
        self.proof = None if options.proof is None else _proof_file(options.proof)
        resumed = stored is not None and len(trace) > 0
        try:
            self._set_up(interrupts, resumed=resumed)
            if stored is not None:
                given = self.best, self.budget, self.passes, self.decode
                stored.restore(*given, recorded=recorded)
        except BaseException:  # there is no run that could close it
            if self.proof is not None:
                self.proof.close()
            raise

    def _set_up(self, interrupts: Interrupts, *, resumed: bool) -> None:
        """Make the subsolvers, and give the first answer."""
        options = self.options
        # on the CPU, all options have been checked; whether there is a GPU is known by trying
        answers: tuple[type[Exception], ...] = () if options.backend == "cpu" else (OptionError,)
        self.failures, self._lacks_memory = Failures(*answers), False
        self.stages = [*self._made(_kinds(options, resumed=resumed)), self.passes]
        self._followers = [*self._made((Interior, Vertex)), self.decode]
        self._active = [True] * len(self.stages)
        self._histories = [History()] * len(self.stages)
        self._board = Board()
        self._recalling = not resumed and self._warm is not None and self._warm.result is not None
        self._tolerances = Tolerances(options.lp_gap, options.gap)
        self._first_answer()  # it comes first, so that set-up knows when it has to end
        if self.stages[0] is self.passes:
            deadline = interrupts.within(self.budget.left)
            self.failures.attempt(self.passes, lambda: self.passes.set_up(deadline), False)
        self.budget.start()

    def _made(self, kinds: Sequence[type[Subsolver]]) -> list[Subsolver]:
        """Make the subsolvers that are of use for the problem, and have enough memory."""
        attempts = [
            self.failures.attempt_part(kind.name, partial(self._make, kind), None) for kind in kinds
        ]
        return [subsolver for subsolver in attempts if subsolver is not None]

    def _make(self, kind: type[Subsolver]) -> Subsolver | None:
        try:
            return kind.make(self.best.problem, self.options)
        except LacksMemory:
            self._lacks_memory = True
            return None

    def loop(self, show: Callable[[Snapshot], object]) -> Generator[Snapshot, None, Status]:
        """Give the stages their turns until the run ends; show and yield a snapshot after each."""
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
        """The next slice of one of the stages that may still improve something; else a status."""
        budget = self.budget
        plans = {
            k: self._planned(stage, Occasion.TURN)
            for k, stage in enumerate(self.stages)
            if self._active[k]
        }
        candidates = [
            Candidate(
                k, plan.urgent, plan.proves, plan.leads, plan.whole, plan.begin, self._histories[k]
            )
            for k, plan in plans.items()
            if plan is not None
        ]
        self._plans = plans
        spent = budget.seconds + budget.setup_seconds
        return self.options.schedule.choose(candidates, Clock(spent, budget.left, budget.work_left))

    def _planned(self, stage: Subsolver, occasion: Occasion) -> Plan | None:
        """What a subsolver would do next; None if it has failed."""
        view = View(
            self.best, self._board, self.budget.bound_seconds, time.perf_counter(),
            occasion, self._recalling,
        )  # fmt: skip
        return self.failures.attempt(stage, partial(stage.plan, view), None)

    def _explained(self, status: Status) -> Status:
        """The status of a run in which no stage can do more, with the reason."""
        if status is Status.EXHAUSTED and len(self.failures):
            return Status.FAILED
        if status is Status.EXHAUSTED and self._lacks_memory:
            return Status.MEMORY_LIMIT
        return status

    def _take(self, turn: Turn) -> tuple[Snapshot | None, Status | None]:
        """Run a slice and the stages that follow it; return its row, and why the run ends."""
        stage, best, budget = self.stages[turn.key], self.best, self.budget
        share = Share(
            budget, time.perf_counter() + turn.seconds, turn.work, turn.early, proof=self.proof
        )
        if stage is not self.passes:  # labels that were found in the background come first
            self._follow(Occasion.HANDOVER, share)
        before, began = (best.bound, best.energy), time.perf_counter()
        outcome = self._called(stage, share)
        self._follow(Occasion.CHECKED, share)
        self._board = self._board.decoded()
        self._recalling = self._recalling and stage is not self.passes
        granted = 0 if turn.early or turn.work >= UNLIMITED else turn.work
        budget.spend(granted if outcome.work is None else outcome.work)
        self._note(turn, outcome, before, time.perf_counter() - began)
        status, snapshot = self._status(outcome), None
        # a model that set-up has solved
        solved = self.best.labels_met(self._tolerances) is not None
        alone = solved and not len(self.record.trace) and not self.passes.seen().done
        if outcome.ran or best.energy < before[1] or alone:
            seen = self._with_lam(self._board.seen or self.passes.seen())
            snapshot = self.record.note(stage.name, seen, check=outcome.seen is not None)
        again = self.passes in self.failures  # a resumed run begins the relaxation again
        if self._relaxing or again or (stage is self.passes and not outcome.ran):
            self.checkpoints.allow()  # a run that is stored now continues as this one does
            self.checkpoints.save_if_due(at_end=not self._relaxing)
        return snapshot, status

    def _follow(self, occasion: Occasion, share: Share) -> None:
        """Call the followers that have something to do."""
        for follower in self._followers:
            if self._planned(follower, occasion) is not None:
                self._called(follower, share)

    def _called(self, stage: Subsolver, share: Share) -> Outcome:
        share = replace(share, board=self._board)
        outcome = self.failures.attempt(stage, partial(stage, self.best, share), FAILED)
        self._board = self._board.updated(outcome)
        return outcome

    def _with_lam(self, seen: Seen) -> Seen:
        """The state of the relaxation, with the best λ in place of one that cannot be computed."""

        def lam() -> Floats:
            if seen.done != self.passes.seen().done:
                return seen.lam()  # raises: λ of this state is lost
            current = self.failures.attempt(self.passes, seen.lam, None)
            best: Floats = self.best.lam
            return best if current is None else current

        return replace(seen, lam=lam)

    def _note(
        self, turn: Turn, outcome: Outcome, before: tuple[float, float], seconds: float
    ) -> None:
        """Note what a slice has done."""
        tuning, best = self.options.tuning, self.best
        plan = self._plans[turn.key]
        fell = plan is not None and not plan.proves and best.energy < before[1]
        self._active[turn.key] = outcome.active
        self._histories[turn.key] = self._histories[turn.key].after(
            tuning, turn, seconds, outcome.prepared, _gained(before, best), fell=fell
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
        ended = known and not self._relaxing and self.options.schedule.ends
        return Status.EFFORT if ended else None

    @property
    def _relaxing(self) -> bool:
        """Whether more passes may improve something."""
        active = self._active[self.stages.index(self.passes)]
        return active and self.passes not in self.failures

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
        seen = self._with_lam(replace(self.passes.seen(), last=True))
        if not len(self.record.trace) and seen.done:
            best.offer_lam(seen.lam())
        self._board = replace(self._board, seen=seen)
        self._follow(Occasion.END, Share(self.budget))
        labels = self.failures.attempt(self.passes, self.passes.rounded, None)
        if labels is not None:
            best.offer_labels(labels)
        if best.take_aside():  # what an earlier part of the run had reached after its checkpoint
            status = best.labels_met(self._tolerances) or status
            self.record.note(StageName.LABELS, seen)
        if best.labels_met(self._tolerances) is None and best.take_unrecorded():
            status = best.labels_met(self._tolerances) or status
            self.record.note(StageName.SEARCH, seen)
        if not self.record.complete(seen):  # labels were found, or an exception ended a slice
            self.record.note(StageName.LABELS if len(self.record.trace) else StageName.RELAX, seen)
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

        if not self.passes.storable:
            raise OSError("the GPU was not ready within the time limit")
        with self.budget.interrupts.finishing():
            checkpoint.save(
                path, self.options, self.best, self.budget, self.passes, self.decode,
                self.record.trace,
            )  # fmt: skip
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
    seconds = min(options.seconds, options.tuning.infeasible_seconds)
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


def _budget(model: Network, options: Options, interrupts: Interrupts) -> Budget:
    apart = options.backend != "cpu" and not model.has_forbidden and not model.has_factors
    return Budget(
        time_limit=options.seconds, max_work=options.max_work, updates=options.updates,
        interrupts=interrupts, checked_apart=apart,
    )  # fmt: skip


def _warm_start(problem: Problem, options: Options, best: Best) -> WarmStart | None:
    """Return the warm start; a labelling is offered at once."""
    from softmap.run.warm import start_labels, warm_start  # imported late

    labels = start_labels(problem.given, options.initial, options.warm_start)
    if labels is None:
        return warm_start(problem, options.warm_start, options.tuning)
    best.offer_labels(labels)
    return None


def _method(problem: Problem, options: Options, warm: WarmStart | None) -> Algorithm:
    """Return the method, on the CPU or on a GPU."""
    eta = problem.eta(options.eta)
    if eta is None and warm is not None:
        eta = warm.eta(options.method)
    if options.backend == "cpu":
        made = make(options.method, eta=eta, threads=problem.threads)
        return made.with_tuning(options.tuning)
    from softmap.methods.cuda.anneal import CudaAnneal  # imported late: it needs CuPy

    on_device = CudaAnneal(eta=eta, threads=problem.threads, dtype=options.precision)
    return on_device.with_tuning(options.tuning)


def _proof_file(path: str | Path) -> ProofFile:
    from softmap.drive.prooffile import ProofFile  # imported late: few runs write a proof

    return ProofFile(Path(path))


def _kinds(options: Options, *, resumed: bool) -> tuple[type[Subsolver], ...]:
    """The subsolvers beside the relaxation, in order; a resumed run is past the first ones."""
    if options.goal == "lp":
        return ()
    from softmap.subsolvers.registry import AFTER, BEFORE, LABELS  # imported late

    after = AFTER if options.schedule.proves(options.goal) else LABELS
    return (*(() if resumed else BEFORE), *after)
