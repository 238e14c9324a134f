"""solve(), iterate(), resume(): the only loops over an algorithm, with stopping and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from softmap.errors import OptionError
from softmap.model import Model
from softmap.solving import checkpoint as storage
from softmap.solving.archive import checked_path
from softmap.solving.options import Options
from softmap.solving.result import Result
from softmap.solving.run import Run
from softmap.solving.stages import LaterStages
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
    dtype: str = "float64",
    seed: int = 0,
    warm_start: ArrayLike | Result | None = None,
    checkpoint: str | Path | None = None,
    on_snapshot: Callable[[Snapshot], Any] | None = None,
    backend: str = "cpu",
    eta: float | None = None,
) -> Result:
    """Find a labelling and prove how good it is.

    Parameters
    ----------
    model : Model
    method : str
        "anneal" (default), or one of `softmap.METHODS`.
    goal : "map", "lp", "labels" or "optimal"
        What follows the LP relaxation: a smaller MAP gap, by a default effort where no limit is
        given; nothing; better labels only; a proof of optimality, however long it takes.
    lp_gap, gap : float
        Relative LP gap at which the relaxation counts as solved, and MAP gap that ends the run.
    time_limit, max_work, updates
        Stop after so many seconds, half-edge messages, or updates of a randomised method.
    threads : int, all available ones if left out
    dtype : "float64" or "float32"
        Precision of the iterates; bounds and primals are always evaluated in float64.
    seed : int, of the randomised methods
    warm_start : λ or an earlier `Result`, also of a model whose costs changed a little
    checkpoint : path
        Written at intervals, at the end and when interrupted; see `resume`.
    on_snapshot : function, called with each `Snapshot`; return False to stop
    backend : "cpu", the only one
    eta : float
        Inverse temperature: fixed for the paper's methods, the first one for "anneal".

    Returns
    -------
    Result : whatever stopped the run, the best labelling, bound and primal point it had

    Examples
    --------
    >>> import softmap
    >>> result = softmap.solve(softmap.generators.potts_grid(8, 8, 3, seed=1))
    >>> result.bound <= result.primal and result.bound <= result.energy
    True
    """
    options = Options(
        method=method, goal=goal, lp_gap=lp_gap, gap=gap, time_limit=time_limit, max_work=max_work,
        updates=updates, threads=threads, dtype=dtype, seed=seed, warm_start=warm_start,
        checkpoint=checkpoint, on_snapshot=on_snapshot, backend=backend, eta=eta,
    )  # fmt: skip
    return _exhaust(_loop(Run(_checked(model), options)))


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
    dtype: str = "float64",
    seed: int = 0,
    warm_start: ArrayLike | Result | None = None,
    checkpoint: str | Path | None = None,
    on_snapshot: Callable[[Snapshot], Any] | None = None,
    backend: str = "cpu",
    eta: float | None = None,
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
    )  # fmt: skip
    return _loop(Run(_checked(model), options))


def resume(
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
) -> Result:
    """Go on from a checkpoint of this model, to the same result as if never stopped.

    Takes the limits, `threads`, `checkpoint` and `on_snapshot` of `solve`; `lp_gap`, `gap` and
    `updates` stay what they were if left out. Method, η, precision and seed are those of the run
    that was stopped.
    """
    stored = storage.load(checked_path(path), _checked(model))
    changed = {"lp_gap": lp_gap, "gap": gap, "updates": updates}
    kept = stored.settings | {name: v for name, v in changed.items() if v is not None}
    options = Options(
        time_limit=time_limit, max_work=max_work, threads=threads, checkpoint=checkpoint,
        on_snapshot=on_snapshot, **kept,
    )  # fmt: skip
    run = Run(model, options)
    stored.restore(run)
    return _exhaust(_loop(run))


def _checked(model: Model) -> Model:
    if not isinstance(model, Model):
        raise OptionError(f"expected a softmap.Model, not {type(model).__name__}")
    return model


def _loop(run: Run) -> Generator[Snapshot, None, Result]:
    """Advance, check and store until something stops the run; then the later stages."""
    path, on_snapshot = run.options.checkpoint, run.options.on_snapshot
    saved, limited = time.perf_counter(), None
    status = run.closed() if len(run.trace) else None  # a resumed run may be at its end
    later = LaterStages(run) if run.options.goal != "lp" else None
    try:
        while status is None:
            with run.interrupts:
                status = run.advance()
                if path and status:
                    # stored before this check: a run without this limit does not check here
                    storage.save(Path(path), run)
                snapshot = run.check(last=status is not None)
                if later is not None and status is None and run.interlude_due():
                    snapshot = later.interlude() or snapshot
            limited, status = status, run.closed() or status or run.stalled()
            yield snapshot
            if on_snapshot is not None and on_snapshot(snapshot) is False and status is None:
                status = Status.CALLBACK
            if path and not limited and (status or time.perf_counter() - saved > EVERY):
                storage.save(Path(path), run)
                saved = time.perf_counter()
        if later is not None and status in UNFINISHED:
            status = yield from _later(run, later)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        if path and not limited and not run.interrupts.broken:
            storage.save(Path(path), run)
        if not len(run.trace):
            run.check(last=True)
    return run.result(status)


def _later(run: Run, later: LaterStages) -> Generator[Snapshot, None, Status]:
    """The stages after the relaxation, each turn between two looks at limits and callbacks."""
    turns, on_snapshot = iter(later), run.options.on_snapshot
    while True:
        try:
            with run.interrupts:
                snapshot = next(turns)
        except StopIteration as stop:
            status: Status = stop.value
            return status
        yield snapshot
        if on_snapshot is not None and on_snapshot(snapshot) is False:
            return Status.CALLBACK


def _exhaust(run: Generator[Snapshot, None, Result]) -> Result:
    while True:
        try:
            try:
                next(run)
            except KeyboardInterrupt:
                run.throw(KeyboardInterrupt)
        except StopIteration as stop:
            result: Result = stop.value
            return result
