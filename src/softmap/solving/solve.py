"""`solve`, `iterate` and `resume`: the course of a run from start to end."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.errors import CheckpointWarning, InfeasibleModel, ProofWarning
from softmap.machine import usable_cores
from softmap.model import Model, checked_model
from softmap.solving.archive import checked_path
from softmap.solving.best import Best
from softmap.solving.budget import Budget, Interrupts
from softmap.solving.memory import require_memory
from softmap.solving.options import Options, with_options
from softmap.solving.problem import Problem
from softmap.solving.record import Checkpoints, Record, Watcher, finished, watcher
from softmap.solving.relax import Relaxation
from softmap.solving.result import Result
from softmap.solving.schedule import Schedule
from softmap.solving.trace import Snapshot, StageName, Status, Trace

if TYPE_CHECKING:
    from softmap.solving.prooffile import ProofFile

__all__ = ["iterate", "resume", "solve"]

INFEASIBLE_SECONDS = 60.0
"""Time limit, in seconds, of the search that writes a proof of infeasibility."""


@with_options(Options)
def solve(model: Model, options: Options) -> Result:
    """Find a labelling and prove how good it is.

    Parameters
    ----------
    model : Model
        The model whose energy is minimised.
    method : str, default "anneal"
        The method that solves the LP relaxation: one of `softmap.METHODS`.
    goal : "map", "lp", "labels" or "optimal", default "map"
        What to do beside solving the LP relaxation. "map": reduce the gap between labelling and
        bound, with a default effort if no limit is given. "lp": nothing. "labels": as "map" within
        a time limit; without one, no effort is made to prove the labels. "optimal": continue until
        optimality is proved.
    lp_gap : float, default 1e-4
        Relative gap at which the relaxation counts as solved.
    gap : float, default 1e-6
        Relative gap between labelling and bound that ends the run.
    time_limit : float, optional
        Stop after this many seconds. No limit by default.
    memory_limit : int, optional
        Memory limit of the run in bytes, with the model but without Python and its libraries. A run
        that needs more raises `NotEnoughMemory` before it starts; later stages that need more are
        skipped. By default, all memory of the machine.
    max_work : int, optional
        Stop after this many messages along half-edges. No limit by default.
    updates : int, optional
        Stop after this many updates: passes, or single updates of a randomised method. A method
        other than "anneal" does all updates even if the gaps are closed earlier.
    threads : int, optional
        Number of CPU threads; by default all that this process may use.
    dtype : "float64" or "float32", optional
        Precision of the iterates; by default "float64" on the CPU and "float32" on a GPU.
        Bounds are always computed in float64.
    seed : int, default 0
        Seed of the random numbers.
    warm_start : array, mapping or Result, optional
        An earlier result, possibly of a model with slightly different costs; or λ; or a labelling
        (integers, or a mapping from names to states), which has the same effect as `labels`.
    labels : int array or mapping, optional
        Initial labelling, by number or by name. Its cost is the first upper bound.
    upper_bound : float, optional
        Search only for labellings that cost less. The run stops when it has proved that there is
        none (status NONE_BELOW), or for the same reasons as a run without an upper bound. All
        bounds are bounds on the cost of every labelling, whether or not a labelling costs as little
        as this number.
    checkpoint : str or Path, optional
        File to which the run is written at intervals, at the end and when it is interrupted;
        `softmap.resume` continues from it.
    proof : str or Path, optional
        File to which a proof of the bound is written, for `softmap.verify` and others to check.
    on_snapshot : function, optional
        Called with a `Snapshot` after each check; the run stops if it returns False.
    backend : "cpu" or "cuda", default "cpu"
        Where passes run. "cuda" is a GPU, for the method "anneal" only; it needs the extra `cuda12`
        or `cuda13`.
    eta : float, optional
        Inverse temperature. The paper's methods require it and keep it fixed. "anneal" starts from
        it; by default it is chosen from the costs.
    verbose : bool, default False
        Print a line per check. Libraries can use the logger "softmap" instead.
    progress : bool, default False
        Draw a progress bar.

    Returns
    -------
    Result
        The best labelling, bound and primal point, whatever stopped the run.

    Raises
    ------
    OptionError
        An option has an invalid value.
    InfeasibleModel
        No labelling has finite cost.
    NotEnoughMemory
        The run would need more memory than available, or than `memory_limit`.

    Examples
    --------
    >>> import softmap
    >>> result = softmap.solve(softmap.generators.potts_grid(8, 8, 3, seed=1))
    >>> result.bound <= result.energy
    True
    """
    interrupts = Interrupts()
    with interrupts:  # handles Ctrl-C from here on, during set-up and assembly, too
        return _exhaust(_steps(_begin(checked_model(model, "solve"), options, interrupts)))


@with_options(Options)
def iterate(model: Model, options: Options) -> Generator[Snapshot, None, Result]:
    """Run `solve` as a generator of snapshots, one per check.

    Parameters
    ----------
    model : Model
        The model whose energy is minimised.
    **options
        The options of `solve`, with the same meaning and defaults.

    Yields
    ------
    Snapshot
        The current bound, energy and best labelling.

    Returns
    -------
    Result
        The result of `solve`, as the value of the generator's `StopIteration`.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.random_tree(20, seed=1)
    >>> bounds = [snapshot.bound for snapshot in softmap.iterate(model)]
    >>> bounds == sorted(bounds)
    True
    """
    return _steps(_begin(checked_model(model, "iterate"), options, Interrupts()))


def resume(  # noqa: PLR0913 - the limits of `solve`
    path: str | Path,
    model: Model,
    *,
    lp_gap: float | None = None,
    gap: float | None = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    max_work: int | None = None,
    updates: int | None = None,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    proof: str | Path | None = None,
    on_snapshot: Callable[[Snapshot], Any] | None = None,
    verbose: bool = False,
    progress: bool = False,
) -> Result:
    """Continue a stored run; the result is the same as without the interruption.

    Method, goal, η, precision, backend and seed are those of the stored run.

    Parameters
    ----------
    path : str or Path
        The checkpoint.
    model : Model
        The model of the run that was stopped.
    lp_gap : float, optional
        Relative gap at which the relaxation counts as solved; by default that of the stored run.
    gap : float, optional
        Relative gap between labelling and bound that ends the run; by default as before.
    time_limit : float, optional
        Stop after this many seconds, those of the stopped run included. No limit by default.
    memory_limit : int, optional
        Bytes that the run may take, as for `solve`.
    max_work : int, optional
        Stop after this many messages in all. No limit by default.
    updates : int, optional
        Stop after this many updates in all; by default that of the stored run.
    threads : int, optional
        Number of CPU threads; by default all that this process may use.
    checkpoint : str or Path, optional
        File to which this run is written; it may be `path`. Nothing is written by default.
    proof : str or Path, optional
        File to which a proof of the bound is written.
    on_snapshot : function, optional
        Called with a `Snapshot` after each check; the run stops if it returns False.
    verbose : bool, default False
        Print a line per check.
    progress : bool, default False
        Draw a progress bar.

    Returns
    -------
    Result
        The result, as of `solve`.

    Raises
    ------
    CheckpointError
        The file is not a checkpoint of this model, or it is damaged.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.potts_grid(8, 8, 3, seed=1)
    >>> path = getfixture("tmp_path") / "run.npz"
    >>> stopped = softmap.solve(model, goal="lp", checkpoint=path, max_work=2_000)
    >>> softmap.resume(path, model).bound >= stopped.bound
    True
    """
    from softmap.solving import checkpoint as storage  # imported late: few runs are stored

    stored = storage.load(checked_path(path), checked_model(model, "resume"))
    changed = {"lp_gap": lp_gap, "gap": gap, "updates": updates}
    kept = stored.settings | {name: v for name, v in changed.items() if v is not None}
    options = Options(
        time_limit=time_limit, memory_limit=memory_limit, max_work=max_work, threads=threads,
        checkpoint=checkpoint, proof=proof, on_snapshot=on_snapshot, verbose=verbose,
        progress=progress, **kept,
    )  # fmt: skip
    interrupts = Interrupts()
    with interrupts:
        return _exhaust(_steps(_begin(model, options, interrupts, stored)))


@dataclass(frozen=True, eq=False)
class _Run:
    """The objects of one run; each changes only its own state."""

    options: Options
    best: Best
    budget: Budget
    relaxation: Relaxation
    record: Record
    schedule: Schedule
    checkpoints: Checkpoints
    watching: Watcher
    proof: ProofFile | None

    def note(self, stage: StageName, *check: Any) -> Snapshot:
        """Add a row to the trace."""
        return self.record.note(self.relaxation, stage, *check)

    def finished(self, status: Status) -> Result:
        """Return the result, even if Ctrl-C is pressed repeatedly."""
        while True:
            try:
                with self.budget.interrupts.finishing():
                    if not len(self.record.trace):
                        self.note(StageName.RELAX, self.relaxation.least_check())
                    return finished(self.relaxation, self.record, status)
            except KeyboardInterrupt:  # raised before the block, or by another handler
                status = Status.INTERRUPTED

    def write_proof(self, result: Result) -> None:
        """Write the proof file if it was requested; warn if it is missing or proves less."""
        if self.proof is None:
            return
        searched = self.best.log if result.proof.stated else None
        try:
            with self.budget.interrupts.finishing():
                whole = self.proof.write(self.relaxation.problem, result, searched)
        except (OSError, MemoryError, KeyboardInterrupt) as error:
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            said = f"the proof cannot be written ({reason}); the result is complete without it"
            self._warn_of_proof(said, written=False)
        else:
            if not whole:
                said = f"the proof is that of the relaxation; the bound, by {result.proof.kind}, "
                self._warn_of_proof(f"{said}is stated only: no record of it was kept", written=True)

    def _warn_of_proof(self, sentence: str, *, written: bool) -> None:
        assert self.proof is not None
        warning = ProofWarning(f"{self.proof.target}: {sentence}", written=written)
        warnings.warn(warning, stacklevel=3)

    def asked_to_stop(self, snapshot: Snapshot) -> bool:
        """Call the user's callback; return whether it returned False (or numpy's False)."""
        if self.options.on_snapshot is None:
            return False
        with self.budget.interrupts.paused():
            answer = self.options.on_snapshot(snapshot)
        return isinstance(answer, bool | np.bool_) and not answer


def _begin(model: Model, options: Options, interrupts: Interrupts, stored: Any = None) -> _Run:
    """Set up a new or resumed run; its display starts before the set-up."""
    watching = watcher(model, options)
    try:
        return _set_up(model, options, interrupts, stored, watching)
    except BaseException as error:
        watching.close()
        if isinstance(error, InfeasibleModel) and options.proof is not None:
            from softmap.solving.prooffile import ProofFile  # imported late

            _prove_infeasible(ProofFile(Path(options.proof)), model, options, interrupts)
        raise


def _set_up(
    model: Model, options: Options, interrupts: Interrupts, stored: Any, watching: Watcher
) -> _Run:
    on_cpu = options.backend == "cpu"
    budget = Budget(
        time_limit=options.time_limit, max_work=options.max_work, updates=options.updates,
        interrupts=interrupts,
    )  # fmt: skip
    if on_cpu:
        require_memory(model, options.precision, options.memory_limit)
    threads = options.threads or usable_cores()
    problem = Problem.of(model, precision=options.precision, threads=threads)
    best = Best(problem, options.upper_bound)
    warm = labels = None
    if options.warm_start is not None or options.labels is not None:
        from softmap.solving.warm import start_labels, warm_start  # imported late

        labels = start_labels(problem.given, options.labels, options.warm_start)
        warm = None if labels is not None else warm_start(problem, options.warm_start)
    relaxation = Relaxation(problem, options, best, budget, warm)
    if labels is not None:
        best.offer_labels(labels)
    trace = Trace() if stored is None else stored.trace()
    checkpoints = Checkpoints(options.checkpoint, relaxation, trace)
    proof = None
    if options.proof is not None:
        from softmap.solving.prooffile import ProofFile  # imported late: few runs write a proof

        proof = ProofFile(Path(options.proof))
    resumed = stored is not None and len(trace) > 0
    schedule = Schedule(relaxation, warm, proof, store=checkpoints.save, resumed=resumed)
    if not schedule.opens:
        relaxation.set_up()
    budget.start()
    if stored is not None:
        stored.restore(relaxation)
    record = Record(problem, best, budget, trace)
    return _Run(options, best, budget, relaxation, record, schedule, checkpoints, watching, proof)


def _steps(run: _Run) -> Generator[Snapshot, None, Result]:
    """Run stages in time slices until the run stops.

    An exception (also of a callback) gets the result so far as its attribute `result`; so does the
    KeyboardInterrupt of a second Ctrl-C within a second.
    """
    watching, interrupts = run.watching, run.budget.interrupts
    try:
        try:
            status = yield from _shown(_stages(run), watching.show)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            if not interrupts.noted:  # raised in the user's code, or by another handler
                interrupts.press()
            run.checkpoints.keep_whole()
        result = run.finished(status)
        run.write_proof(result)
        watching.end(result)
        if interrupts.twice:
            error = KeyboardInterrupt("Ctrl-C was pressed twice")
            error.result = result  # type: ignore[attr-defined]
            raise error
        return result
    except InfeasibleModel:  # there is no result
        if run.proof is not None:
            _prove_infeasible(run.proof, run.relaxation.problem.given, run.options, interrupts)
        raise
    except Exception as error:
        _attach_result(run, error)
        raise
    finally:
        watching.close()
        if run.proof is not None:
            run.proof.close()


def _prove_infeasible(
    proof: ProofFile, model: Model, options: Options, interrupts: Interrupts
) -> None:
    """Write a proof that a model is infeasible; warn if there is none within the time limit."""
    seconds = min(options.time_limit or math.inf, INFEASIBLE_SECONDS)
    try:
        with interrupts:
            written = proof.write_infeasible(model, seconds, interrupts.stop)
        reason = "no search of the hard constraints ended in time"
    except (OSError, MemoryError, KeyboardInterrupt) as error:
        written, reason = False, getattr(error, "reason", None) or type(error).__name__
    finally:
        proof.close()
    if not written:
        said = f"{proof.target}: the proof of infeasibility cannot be written ({reason})"
        warnings.warn(ProofWarning(said, written=False), stacklevel=3)


def _stages(run: _Run) -> Generator[Snapshot, None, Status]:
    """Run the time slices of the schedule; yield a snapshot after each."""
    schedule, checkpoints, interrupts = run.schedule, run.checkpoints, run.budget.interrupts
    stop = False
    while True:
        with interrupts:
            turn = schedule.next()
        if schedule.resumable:
            checkpoints.save_if_due(at_end=stop or turn is None or not schedule.passes.active)
        if turn is None:
            assert schedule.status is not None
            return schedule.status
        if stop:
            return Status.CALLBACK
        with interrupts:
            checkpoints.suspend()
            row = schedule.take(turn)
            snapshot = None if row is None else run.note(*row)
            if schedule.resumable:
                checkpoints.allow()
        if snapshot is not None:
            yield snapshot
            stop = run.asked_to_stop(snapshot)


def _shown(
    stages: Generator[Snapshot, None, Status], show: Callable[[Snapshot], Any]
) -> Generator[Snapshot, None, Status]:
    """Yield the snapshots of a run after displaying them."""
    while True:
        try:
            snapshot = next(stages)
        except StopIteration as stop:
            status: Status = stop.value
            return status
        show(snapshot)
        try:
            yield snapshot
        except KeyboardInterrupt as error:
            stages.throw(error)


def _attach_result(run: _Run, error: Exception) -> None:
    """Attach the result so far to an exception, and store the run."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore", CheckpointWarning)
        run.checkpoints.keep_whole()
    with suppress(Exception):  # for example out of memory again, or an exception with slots
        error.result = run.finished(Status.INTERRUPTED)  # type: ignore[attr-defined]
        error.add_note("The result so far is the attribute `result` of this exception.")


def _exhaust(run: Any) -> Result:
    while True:
        try:
            try:
                next(run)
            except KeyboardInterrupt:
                if run.gi_frame is None:  # raised by the run itself, which has ended
                    raise
                run.throw(KeyboardInterrupt)
        except StopIteration as stop:
            result: Result = stop.value
            return result
