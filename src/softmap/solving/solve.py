"""solve(), iterate(), resume(): the only loops over an algorithm, with stopping and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from softmap.algorithms.registry import make
from softmap.algorithms.sweeps.team import Team
from softmap.errors import OptionError
from softmap.model import Model
from softmap.solving import checkpoint as storage
from softmap.solving.result import Result, Snapshot, Status
from softmap.solving.run import Run

__all__ = ["Result", "Snapshot", "Status", "iterate", "resume", "solve"]

EVERY = 30.0  # seconds between checkpoints


def _loop(run: Run, settings: dict[str, Any]) -> Generator[Snapshot, None, Result]:
    path, on_snapshot = run.options["checkpoint"], run.options["on_snapshot"]
    saved, limited = time.perf_counter(), None
    status = run.closed() if len(run.trace) else None  # a resumed run may be at its end
    try:
        while status is None:
            with run.interrupts:
                status = run.advance()
                if path and status:
                    # before the judge looks: the run that goes on will not look here
                    storage.save(path, run.given, settings, run)
                snapshot = run.check(last=status is not None)
            limited, status = status, run.closed() or status or run.stalled()
            yield snapshot
            if on_snapshot is not None and on_snapshot(snapshot) is False and status is None:
                status = Status.CALLBACK
            if path and not limited and (status or time.perf_counter() - saved > EVERY):
                storage.save(path, run.given, settings, run)
                saved = time.perf_counter()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        if path and not limited and not run.interrupts.broken:
            storage.save(path, run.given, settings, run)
        if not len(run.trace):
            run.check(last=True)
    return run.result(status)


def iterate(  # noqa: PLR0913 - one keyword per thing a user may want to say
    model: Model,
    *,
    method: str = "anneal",
    lp_gap: float = 1e-4,
    gap: float = 1e-6,
    time_limit: float | None = None,
    max_work: int | None = None,
    threads: int | None = None,
    dtype: str = "float64",
    seed: int = 0,
    warm_start: ArrayLike | Result | None = None,
    checkpoint: str | Path | None = None,
    on_snapshot: Callable[[Snapshot], Any] | None = None,
    backend: str = "numba",
    eta: float | None = None,
    updates: int | None = None,
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
    limits = {"lp_gap": lp_gap, "gap": gap, "time_limit": time_limit, "max_work": max_work}
    _check_limits(limits, updates, seed, dtype, backend)
    team = Team(threads)
    settings = {"method": method, "eta": eta, "dtype": dtype, "seed": seed}
    algorithm = make(method, eta=eta, team=team, dtype=dtype)
    run = Run(
        model, algorithm, team, **limits, updates=updates, seed=seed, dtype=dtype,
        warm_start=warm_start, on_snapshot=on_snapshot,
        checkpoint=Path(checkpoint) if checkpoint else None,
    )  # fmt: skip
    return _loop(run, {**settings, "updates": updates, "lp_gap": lp_gap, "gap": gap})


def solve(model: Model, **options: Any) -> Result:
    """Find a labelling and prove how good it is.

    Parameters
    ----------
    model : Model
    method : str
        "anneal" (default), or one of `softmap.METHODS`.
    lp_gap, gap : float
        Stop at a relative LP gap `primal - bound` of 1e-4, or a relative MAP gap
        `energy - bound` of 1e-6, whichever comes first.
    time_limit, max_work, updates
        Stop after so many seconds, half-edge messages, or updates of a randomised method.
    threads : int
        All available ones if left out.
    dtype : "float64" or "float32"
        Precision of the iterates; bounds and primals are always evaluated in float64.
    seed : int
        Of the randomised methods.
    warm_start : λ or an earlier `Result`, also of a model whose costs changed a little
    checkpoint : path
        Written at intervals, at the end and when interrupted; see `resume`.
    on_snapshot : callable
        Called with each `Snapshot`; return False to stop.
    eta : float
        Inverse temperature: fixed for the paper's methods, the first one for "anneal".

    Returns
    -------
    Result
        Whatever stopped the run, the best labelling, bound and primal point it had.

    Examples
    --------
    >>> import softmap
    >>> result = softmap.solve(softmap.generators.potts_grid(8, 8, 3, seed=1))
    >>> result.bound <= result.primal and result.bound <= result.energy
    True
    """
    return _exhaust(iterate(model, **options))


def resume(path: str | Path, model: Model, **options: Any) -> Result:
    """Go on from a checkpoint of this model, to the same result as if never stopped.

    Takes the limits, `threads`, `checkpoint` and `on_snapshot` of `solve`; method, η, precision and
    seed are those of the run that was stopped.
    """
    header, arrays = storage.load(Path(path), model)
    stored = header["settings"]
    team = Team(options.pop("threads", None))
    kept = {name: options.pop(name, stored[name]) for name in ("lp_gap", "gap", "updates")}
    if fixed := [name for name in ("method", "eta", "dtype", "seed") if name in options]:
        raise OptionError(f"resume goes on as the run began: {', '.join(fixed)} cannot change")
    algorithm = make(stored["method"], eta=stored["eta"], team=team, dtype=stored["dtype"])
    defaults = {"time_limit": None, "max_work": None, "on_snapshot": None, "checkpoint": None}
    if unknown := set(options) - set(defaults):
        raise OptionError(f"resume does not take {', '.join(sorted(unknown))}")
    chosen = {**defaults, **options, **kept, "warm_start": None}
    chosen |= {"seed": stored["seed"], "dtype": stored["dtype"]}
    chosen["checkpoint"] = Path(chosen["checkpoint"]) if chosen["checkpoint"] else None
    run = Run(model, algorithm, team, **chosen)
    storage.restore(run, header, arrays)
    return _exhaust(_loop(run, stored))


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


def _check_limits(
    limits: dict[str, Any], updates: int | None, seed: int, dtype: str, backend: str
) -> None:
    for name, value in {**limits, "updates": updates}.items():
        if value is not None and not value >= 0:
            raise OptionError(f"{name} must not be negative, found {value}")
    if dtype not in ("float64", "float32"):
        raise OptionError(f"dtype must be 'float64' or 'float32', not {dtype!r}")
    if backend != "numba":
        raise OptionError(f"backend must be 'numba', not {backend!r}")
    if seed < 0:
        raise OptionError(f"seed must not be negative, found {seed}")
