"""solve(), iterate(), resume(): the only loops over an algorithm, with stopping and checkpoints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softmap.errors import CheckpointWarning, InfeasibleModel
from softmap.model import Model, checked_model
from softmap.solving.archive import checked_path
from softmap.solving.interrupts import Interrupts
from softmap.solving.options import Options
from softmap.solving.result import Result
from softmap.solving.run import Run
from softmap.solving.stages import LaterStages
from softmap.solving.telling import begin, left, say, shown
from softmap.solving.trace import Snapshot, Status

__all__ = ["iterate", "resume", "solve"]

EVERY = 30.0  # seconds between checkpoints
UNFINISHED = (Status.LP_GAP, Status.STALLED, Status.RELAXED)  # the relaxation has done its part


def solve(  # noqa: PLR0913 - one keyword per thing a user may want to say
    model: Model,
    *,
    method: str = "anneal",
    goal: str = "map",
    lp_gap: float = 1e-4,
    gap: float = 1e-6,
    time_limit: float | None = None,
    max_work: int | None = None,
    updates: int | None = None,
    threads: int | None = None,
    dtype: str | None = None,
    seed: int = 0,
    warm_start: ArrayLike | Result | None = None,
    checkpoint: str | Path | None = None,
    on_snapshot: Callable[[Snapshot], Any] | None = None,
    backend: str = "cpu",
    eta: float | None = None,
    verbose: bool = False,
    progress: bool = False,
) -> Result:
    """Find a labelling and prove how good it is.

    Parameters
    ----------
    model, method : Model, and the name of a method, one of `softmap.METHODS`
    goal : "map", "lp", "labels" or "optimal"
        What follows the LP relaxation: a smaller MAP gap, by a default effort where no limit is
        given; nothing; better labels only; a proof of optimality, however long it takes.
    lp_gap, gap : float, relative gap at which the relaxation counts as solved; that ends the run
    time_limit, max_work, updates
        Stop after so many seconds, half-edge messages, or updates of a randomised method.
    threads, seed : int, all threads if left out; of the randomised methods
    dtype : "float64" ("cpu") or "float32" ("cuda"), of the iterates; bounds are always float64
    warm_start : λ or an earlier `Result`, also of a model whose costs changed a little
    checkpoint : path, written at intervals, at the end and when interrupted; see `resume`
    on_snapshot : function, called with each `Snapshot`; return False to stop
    backend : "cpu" or "cuda", a GPU (method "anneal" only; extras `cuda12`, `cuda13`)
    eta : float, inverse temperature: fixed for the paper's methods, the first one for "anneal"
    verbose, progress : bool, print a line per check; draw a bar
        Libraries listen to the logger "softmap" instead.

    Returns
    -------
    Result : whatever stopped the run, the best labelling, bound and primal point it had

    Examples
    --------
    >>> import softmap
    >>> result = softmap.solve(softmap.generators.potts_grid(8, 8, 3, seed=1))
    >>> result.bound <= result.energy
    True
    """
    options = Options(
        method=method, goal=goal, lp_gap=lp_gap, gap=gap, time_limit=time_limit, max_work=max_work,
        updates=updates, threads=threads, dtype=dtype, seed=seed, warm_start=warm_start,
        checkpoint=checkpoint, on_snapshot=on_snapshot, backend=backend, eta=eta,
        verbose=verbose, progress=progress,
    )  # fmt: skip
    return _begun(model, options)


def iterate(  # noqa: PLR0913 - the keywords of `solve`
    model: Model,
    *,
    method: str = "anneal",
    goal: str = "map",
    lp_gap: float = 1e-4,
    gap: float = 1e-6,
    time_limit: float | None = None,
    max_work: int | None = None,
    updates: int | None = None,
    threads: int | None = None,
    dtype: str | None = None,
    seed: int = 0,
    warm_start: ArrayLike | Result | None = None,
    checkpoint: str | Path | None = None,
    on_snapshot: Callable[[Snapshot], Any] | None = None,
    backend: str = "cpu",
    eta: float | None = None,
    verbose: bool = False,
    progress: bool = False,
) -> Generator[Snapshot, None, Result]:
    """The run of `solve` as a generator of snapshots, one per check; it returns the result.

    Takes what `solve` takes.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.random_tree(20, seed=1)
    >>> bounds = [snapshot.bound for snapshot in softmap.iterate(model)]
    >>> bounds == sorted(bounds)
    True
    """
    options = Options(
        method=method, goal=goal, lp_gap=lp_gap, gap=gap, time_limit=time_limit, max_work=max_work,
        updates=updates, threads=threads, dtype=dtype, seed=seed, warm_start=warm_start,
        checkpoint=checkpoint, on_snapshot=on_snapshot, backend=backend, eta=eta,
        verbose=verbose, progress=progress,
    )  # fmt: skip
    return _loop(Run(checked_model(model, "iterate"), options))


def resume(  # noqa: PLR0913 - the limits of `solve`
    path: str | Path,
    model: Model,
    *,
    lp_gap: float | None = None,
    gap: float | None = None,
    time_limit: float | None = None,
    max_work: int | None = None,
    updates: int | None = None,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    on_snapshot: Callable[[Snapshot], Any] | None = None,
    verbose: bool = False,
    progress: bool = False,
) -> Result:
    """Go on from a checkpoint of this model, to the same result as if never stopped.

    Takes the limits, `threads`, `checkpoint`, `on_snapshot` and displays of `solve`; `lp_gap`,
    `gap` and `updates` stay what they were if left out. Method, η, precision and seed are those of
    the run that was stopped.
    """
    from softmap.solving import checkpoint as storage

    stored = storage.load(checked_path(path), checked_model(model, "resume"))
    changed = {"lp_gap": lp_gap, "gap": gap, "updates": updates}
    kept = stored.settings | {name: v for name, v in changed.items() if v is not None}
    options = Options(
        time_limit=time_limit, max_work=max_work, threads=threads, checkpoint=checkpoint,
        on_snapshot=on_snapshot, verbose=verbose, progress=progress, **kept,
    )  # fmt: skip
    interrupts = Interrupts()
    with interrupts:
        run = Run(model, options, interrupts)
        stored.restore(run)
        return _exhaust(_loop(run))


def _begun(model: Model, options: Options) -> Result:
    """A whole run; Ctrl-C counts from here on, set-up and the assembly of the result included."""
    interrupts = Interrupts()
    with interrupts:
        return _exhaust(_loop(Run(checked_model(model, "solve"), options, interrupts)))


def _loop(run: Run) -> Generator[Snapshot, None, Result]:
    """Advance, check and store until something stops the run; then assemble the result.

    An exception, be it of a callback, carries the result so far as its attribute `result`; so does
    the KeyboardInterrupt of a second Ctrl-C within a second.
    """
    watching = begin(run)
    try:
        try:
            status = yield from shown(_stages(run), watching)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            if not run.interrupts.noted:  # pressed in code of the user's, or of another handler
                run.interrupts.press()
            _keep_whole(run)
        result = _result(run, status)
        say(result, watching)
        if run.interrupts.twice:
            raise left(result)
        return result
    except InfeasibleModel:  # there is nothing to be found
        raise
    except Exception as error:
        _attach_result(run, error)
        raise


def _stages(run: Run) -> Generator[Snapshot, None, Status]:
    """The relaxation, with a checkpoint now and then, and the stages after it."""
    path, saved = run.options.checkpoint, time.perf_counter()
    status = run.ended()  # a resumed run may be at its end
    later = LaterStages(run) if run.options.goal != "lp" else None
    if status is None and run.warm is not None and run.warm.result is not None:
        with run.interrupts:
            snapshot, status = run.recall()
        yield snapshot
        if _asked_to_stop(run, snapshot) and status is None:
            status = Status.CALLBACK
    while status is None:
        with run.interrupts:
            run.storable = False
            status = limited = run.advance()
            if path and limited:
                # stored before this check: a run without this limit does not check here
                _save(run)
            snapshot = run.check(last=limited is not None)
            if later is not None and status is None and run.interlude_due():
                snapshot = later.interlude() or snapshot
            status = run.closed() or status or run.stalled()
            run.storable = limited is None
        yield snapshot
        if _asked_to_stop(run, snapshot) and status is None:
            status = Status.CALLBACK
        if path and not limited and (status or time.perf_counter() - saved > EVERY):
            _save(run)
            saved = time.perf_counter()
    if later is not None and status in UNFINISHED:
        run.storable = False  # later stages are not stored: a resumed run begins them again
        status = yield from _later(run, later)
    return status


def _later(run: Run, later: LaterStages) -> Generator[Snapshot, None, Status]:
    """The stages after the relaxation, each turn between two looks at limits and callbacks."""
    turns = iter(later)
    while True:
        try:
            with run.interrupts:
                snapshot = next(turns)
        except StopIteration as stop:
            status: Status = stop.value
            return status
        yield snapshot
        if _asked_to_stop(run, snapshot):
            return Status.CALLBACK


def _asked_to_stop(run: Run, snapshot: Snapshot) -> bool:
    """Show a snapshot to the user's function; it may answer False, also numpy's."""
    on_snapshot = run.options.on_snapshot
    if on_snapshot is None:
        return False
    with run.interrupts.paused():
        answer = on_snapshot(snapshot)
    return isinstance(answer, bool | np.bool_) and not answer


def _save(run: Run) -> None:
    """Store the run. Where that fails, the last checkpoint is whole, and the run goes on."""
    from softmap.solving import checkpoint as storage

    path = run.options.checkpoint
    try:
        with run.interrupts.finishing():
            storage.save(Path(str(path)), run)
    except (OSError, MemoryError) as error:
        reason = getattr(error, "reason", None) or str(error) or "out of memory"
        warnings.warn(
            f"{path}: the checkpoint cannot be written ({reason}); the run goes on, and an earlier "
            "checkpoint is untouched",
            CheckpointWarning,
            stacklevel=2,
        )


def _keep_whole(run: Run) -> None:
    """Store a run that an exception has ended, if it stands where a resumed run may go on."""
    if run.options.checkpoint and run.storable:
        _save(run)


def _result(run: Run, status: Status) -> Result:
    """The result, however often Ctrl-C is pressed meanwhile."""
    while True:
        try:
            with run.interrupts.finishing():
                if not len(run.trace):
                    run.check(last=True, least=True)
                return run.result(status)
        except KeyboardInterrupt:  # before the block was entered, or by a handler of the program
            status = Status.INTERRUPTED


def _attach_result(run: Run, error: Exception) -> None:
    """Give an exception the result so far, and keep the run on disk."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore", CheckpointWarning)
        _keep_whole(run)
    with suppress(Exception):  # such as out of memory once more, or an exception with slots
        error.result = _result(run, Status.INTERRUPTED)  # type: ignore[attr-defined]
        error.add_note("The result so far is the attribute `result` of this exception.")


def _exhaust(run: Any) -> Result:
    while True:
        try:
            try:
                next(run)
            except KeyboardInterrupt:
                if run.gi_frame is None:  # it came out of the run, which has ended
                    raise
                run.throw(KeyboardInterrupt)
        except StopIteration as stop:
            result: Result = stop.value
            return result
