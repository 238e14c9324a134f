"""`solve`, `iterate` and `resume`: the course of a run from start to end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from softmap.clock import call_began
from softmap.drive.loop import Run, prove_infeasible, write_proof
from softmap.drive.record import Watcher, watcher
from softmap.errors import InfeasibleModel, OptionError
from softmap.io.store import checked_path
from softmap.model import Model, checked_model
from softmap.run.failures import Failures
from softmap.run.interrupts import Interrupts
from softmap.run.options import PAPER, Options, apart, with_options
from softmap.run.result import Result
from softmap.run.trace import Snapshot, Status
from softmap.subsolvers.registry import Place, kinds
from softmap.tuning import TUNING, Tuning

__all__ = ["iterate", "resume", "resumed", "run_to_end", "solve", "steps"]


def _summed(model: Model, given: dict[str, Any]) -> Any:
    """Answer `solve(model, sum_over=...)`, which is `marginal_map` now."""
    from softmap import marginal_map  # imported late: few runs sum

    said = "softmap.solve(model, sum_over=...) is softmap.marginal_map(model, sum_over=...)"
    warnings.warn(said, DeprecationWarning, stacklevel=3)
    return marginal_map(model, **given)


@with_options(Options, without=PAPER, moved={"sum_over": _summed})
def solve(model: Model, options: Options) -> Result:
    """Find a labelling of low cost, and prove how far it can be from the optimum.

    Parameters
    ----------
    model : Model
        The model whose energy is minimised.
    method : str, default "anneal"
        The method that solves the LP relaxation: "anneal" or "trws", or another one of
        `softmap.METHODS`, which are there to be compared with.
    goal : "map", "lp", "labels" or "optimal", default "map"
        What the run does after the LP relaxation. "map": close the gap between labelling and
        bound, with a default effort if no limit is given. "lp": nothing. "labels": search for
        better labels (with a time limit, as "map"). "optimal": continue until optimality is
        proved.
    lp_gap : float, default 1e-4
        Relative gap at which the relaxation counts as solved.
    gap : float, default 1e-6
        Relative gap between labelling and bound that ends the run.
    time_limit : float, optional
        Stop after this many seconds. No limit by default.
    memory_limit : int, optional
        Memory limit of the run in bytes, with the model but without Python and its libraries. A run
        that needs more raises `NotEnoughMemory` before it starts; subsolvers that need more than it
        leaves are skipped. By default, all memory of the machine.
    max_work : int, optional
        Stop after this many messages along half-edges. No limit by default.
    threads : int, optional
        Number of CPU threads; by default all that this process may use.
    dtype : "float64" or "float32", optional
        Precision of the iterates; by default "float64" on the CPU and "float32" on a GPU.
        Bounds are always computed in float64.
    seed : int, default 0
        Seed of the random numbers.
    warm_start : array, mapping or Result, optional
        An earlier result, possibly of a model with slightly different costs; or λ; or a labelling
        (integers, or a mapping from names to states), which has the same effect as `initial`.
    initial : int array or mapping, optional
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
    tuning : softmap.tuning.Tuning, optional
        Other numbers than the default ones, for experiments: `Tuning(ScheduleNumbers(share=0.1))`.
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
    return run_to_end(model, options)


def run_to_end(model: Model, options: Options) -> Result:
    """Return the result of a run with these options.

    Parameters
    ----------
    model : Model
        The model.
    options : Options
        The options of the run.
    """
    began = call_began()
    model = checked_model(model, "solve")
    failures, interrupts = Failures(OptionError), Interrupts()
    with interrupts:  # handles Ctrl-C from here on, during set-up and assembly, too
        for kind in kinds(Place.BEFORE):
            result = failures.attempt_part(kind.name, partial(kind.at_once, model, options), None)
            if result is not None:
                return result
        return _exhaust(_begin(model, options, interrupts, began=began))


@with_options(Options, without=PAPER)
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
    return steps(model, options)


def steps(model: Model, options: Options) -> Generator[Snapshot, None, Result]:
    """Return a generator of the snapshots of a run with these options.

    Parameters
    ----------
    model : Model
        The model.
    options : Options
        The options of the run.
    """
    began = call_began()
    generator: Generator[Snapshot, None, Result] = _begin(
        checked_model(model, "iterate"), options, Interrupts(), began=began
    )
    return generator


def resume(  # noqa: PLR0913 - the limits of `solve`
    path: str | Path,
    model: Model,
    *,
    lp_gap: float | None = None,
    gap: float | None = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    max_work: int | None = None,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    proof: str | Path | None = None,
    on_snapshot: Callable[[Snapshot], Any] | None = None,
    tuning: Tuning = TUNING,
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
    threads : int, optional
        Number of CPU threads; by default all that this process may use.
    checkpoint : str or Path, optional
        File to which this run is written; it may be `path`. Nothing is written by default.
    proof : str or Path, optional
        File to which a proof of the bound is written.
    on_snapshot : function, optional
        Called with a `Snapshot` after each check; the run stops if it returns False.
    tuning : softmap.tuning.Tuning, optional
        Other numbers than the default ones, for experiments: `Tuning(ScheduleNumbers(share=0.1))`.
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
    >>> stopped = softmap.solve(model, goal="lp", checkpoint=path, max_work=1_000)
    >>> softmap.resume(path, model).bound >= stopped.bound
    True
    """
    limits = {
        "time_limit": time_limit, "memory_limit": memory_limit, "max_work": max_work,
        "threads": threads, "checkpoint": checkpoint, "proof": proof, "on_snapshot": on_snapshot,
        "tuning": tuning, "verbose": verbose, "progress": progress,
    }  # fmt: skip
    return resumed(path, model, {"lp_gap": lp_gap, "gap": gap}, limits)


def resumed(
    path: str | Path, model: Model, changed: dict[str, Any], limits: dict[str, Any]
) -> Result:
    """Continue a stored run.

    Parameters
    ----------
    path : str or Path
        The checkpoint.
    model : Model
        The model of the run that was stopped.
    changed : dict
        Options of the stored run that have other values now; None keeps the stored one.
    limits : dict
        The options that a checkpoint does not store.
    """
    from softmap.drive import checkpoint as storage  # imported late: few runs are stored

    stored = storage.load(checked_path(path), checked_model(model, "resume"))
    kept = stored.settings | {name: v for name, v in changed.items() if v is not None}
    options = Options(**limits, **kept)
    if options.proof is not None:
        apart(proof=Path(options.proof), path=stored.path)
    interrupts = Interrupts()
    with interrupts:
        return _exhaust(_begin(model, options, interrupts, stored))


def _begin(
    model: Model,
    options: Options,
    interrupts: Interrupts,
    stored: Any = None,
    *,
    began: float | None = None,
) -> Any:
    """Set up a new or resumed run and its display, which starts before the set-up."""
    watching = watcher(model, options)
    try:
        return _steps(Run(model, options, interrupts, stored, began=began), watching)
    except BaseException as error:
        watching.close()
        if isinstance(error, InfeasibleModel) and options.proof is not None:
            from softmap.drive.prooffile import ProofFile  # imported late

            prove_infeasible(ProofFile(Path(options.proof)), model, options, interrupts)
        raise


def _steps(run: Run, watching: Watcher) -> Generator[Snapshot, None, Result]:
    """Run subsolvers in slices until the run stops.

    An exception (also of a callback) gets the result so far as its attribute `result`; so does the
    KeyboardInterrupt of a second Ctrl-C within a second. Checkpoint and proof are written then and
    if a loop over `iterate` is left early.
    """
    interrupts = run.budget.interrupts
    try:
        try:
            status = yield from run.loop(watching.show)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            if not interrupts.noted:  # raised in the user's code, or by another handler
                interrupts.press()
            run.keep()
        result = run.finished(status)
        if run.proof is not None:
            write_proof(run.proof, run.best, result, interrupts)
        watching.end(result)
        if interrupts.twice:
            error = KeyboardInterrupt("Ctrl-C was pressed twice")
            error.result = result  # type: ignore[attr-defined]
            raise error
        return result
    except InfeasibleModel:  # there is no result
        if run.proof is not None:
            prove_infeasible(run.proof, run.best.problem.posed, run.options, interrupts)
        raise
    except BaseException as error:  # SystemExit, or the end of a generator, too
        if not isinstance(getattr(error, "result", None), Result):
            _keep(run, error)
        raise
    finally:
        watching.close()
        if run.proof is not None:
            run.proof.close()


def _keep(run: Run, error: BaseException) -> None:
    """Store a run that an exception ends, write its proof, and attach its result."""
    run.keep()
    if isinstance(error, GeneratorExit) and run.options.checkpoint is run.options.proof is None:
        return  # nobody can read the result
    with suppress(Exception):  # for example out of memory again, or an exception with slots
        result = run.finished(Status.INTERRUPTED)
        error.result = result  # type: ignore[attr-defined]
        error.add_note("The result so far is the attribute `result` of this exception.")
        if run.proof is not None:
            write_proof(run.proof, run.best, result, run.budget.interrupts)


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
