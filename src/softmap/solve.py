"""solve(), iterate(), resume(): the only loops over an algorithm, with stopping and checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softmap import checkpoint as storage
from softmap.algorithms.base import Algorithm, Floats
from softmap.algorithms.registry import PASSES, make
from softmap.algorithms.team import Team
from softmap.certificate import relative_gap
from softmap.consistency import tighten
from softmap.errors import OptionError
from softmap.judge import Judge
from softmap.model import Model
from softmap.objective import check_lam
from softmap.potentials import Potts
from softmap.result import Result, Row, Snapshot, Status, Trace

__all__ = ["Result", "Snapshot", "Status", "iterate", "resume", "solve"]

CHECKPOINT_SECONDS = 30.0
PATIENCE = 400  # passes without progress of either gap (and half of all passes) before giving up


class Run:
    """One run: the algorithm's state, the judge, the clock."""

    def __init__(self, model: Model, algorithm: Algorithm, team: Team, **options: Any) -> None:
        started = time.perf_counter()
        warm_up(algorithm.name, str(options["dtype"]))
        self.given, self.model = model, tighten(model)
        self.algorithm, self.team, self.options = algorithm, team, options
        warm = _warm_start(self.model, options.get("warm_start"))
        self.state = algorithm.init(self.model, warm, options["seed"])
        self.judge = Judge(self.model, team)
        self.trace = Trace()
        self.done, self.next_check, self.earlier = 0, 0, 0.0
        self.best_gaps: tuple[float, float] = (math.inf, math.inf)
        self.improved_at, self.decoded_at = 0, 0
        self.sweeping = algorithm.name in PASSES
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
        """Steps until the next check: growing, so that judging stays a small part of the run."""
        if self.sweeping:
            return 5 if self.done < 10 else 10 if self.done < 100 else max(20, self.done // 20)
        total = self.options.get("updates")
        return max(1, total // 40) if total else max(2 * self.model.m, self.done // 5)

    def advance(self) -> Status | None:
        """Go on to the next check, or to the first limit on the way."""
        self.next_check = (
            self.next_check if self.next_check > self.done else (self.done + self.interval())
        )
        pace = 1 if self.sweeping else max(1, self.model.n // 10)
        while self.done < self.next_check:
            if status := self.limit():
                return status
            goal = min(self.next_check, self.options.get("updates") or self.next_check)
            count = min(pace, goal - self.done)
            began = time.perf_counter()
            self.algorithm.step(self.state, count)
            self.done += count
            if time.perf_counter() - began < 0.05:
                pace *= 2
        return self.limit()

    def limit(self) -> Status | None:
        """The limit that has been reached, if any."""
        options = self.options
        if options.get("updates") is not None and self.done >= options["updates"]:
            return Status.UPDATES
        if options["max_work"] is not None and self.state.work >= options["max_work"]:
            return Status.WORK_LIMIT
        if options["time_limit"] is not None and self.seconds >= options["time_limit"]:
            return Status.TIME_LIMIT
        return None

    def check(self, *, last: bool = False) -> Snapshot:
        """Judge where the algorithm stands; it may heed the verdict.

        Labels are decoded at growing intervals, at the last check, and where the LP gap is closed.
        """
        proposal = self.algorithm.propose(self.state)
        due = last or self.done >= 3 * self.decoded_at
        verdict = self.judge.look(proposal, labels=due)
        if not due and self.closed():
            self.judge.decode(proposal)
        elif due:
            self.decoded_at = self.done
        judge = self.judge
        smoothed = math.nan if proposal.smoothed is None else proposal.smoothed
        row = Row(
            self.state.work, self.sweeps, self.seconds, proposal.eta, judge.bound, smoothed,
            judge.primal, judge.energy, verdict.slack,
        )  # fmt: skip
        self.trace.rows.append(row)
        if hasattr(self.algorithm, "heed"):
            self.algorithm.heed(self.state, verdict)
        return Snapshot(row, judge.labels)

    def gaps(self) -> tuple[float, float]:
        """Relative LP gap and relative MAP gap."""
        judge = self.judge
        lp, label = (max(0.0, upper - judge.bound) for upper in (judge.primal, judge.energy))
        return relative_gap(lp, judge.bound), relative_gap(label, judge.bound)

    def closed(self) -> Status | None:
        """Whether a gap is small enough."""
        lp_gap, gap = self.gaps()
        if gap <= self.options["gap"]:
            return Status.GAP
        return Status.LP_GAP if lp_gap <= self.options["lp_gap"] else None

    def stalled(self) -> Status | None:
        """Whether neither gap has moved for long."""
        gaps = self.gaps()
        if any(new < 0.99 * old for new, old in zip(gaps, self.best_gaps, strict=True)):
            self.best_gaps, self.improved_at = gaps, self.done
        patience = max(PATIENCE, self.done // 2)
        waiting = self.sweeping and self.done - self.improved_at > patience
        return Status.STALLED if waiting else None

    def restart_point(self) -> Floats:
        """λ from which a warm-started run goes on best."""
        if hasattr(self.algorithm, "restart_point"):
            point: Floats = self.algorithm.restart_point(self.state)
            return point
        return self.algorithm.propose(self.state).lam

    def result(self, status: Status) -> Result:
        """The best of the run."""
        judge = self.judge
        return Result(
            model=self.given, method=self.algorithm.name, status=status, labels=judge.labels,
            energy=judge.energy, bound=judge.bound, primal=judge.primal, lam=judge.lam,
            eta=self.trace[-1].eta, trace=self.trace, work=self.state.work, sweeps=self.sweeps,
            seconds=self.seconds, setup_seconds=self.setup_seconds, threads=self.team.threads,
            messages=self.restart_point(), _judge=judge,
        )  # fmt: skip


@cache
def warm_up(method: str, dtype: str) -> None:
    """Compile (or load) the kernels of a method, so that no clock of a user's runs meanwhile."""
    model, team = Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], Potts([0.5])), Team(1)
    algorithm = make(method, eta=1.0, team=team, dtype=dtype)
    state = algorithm.init(model, None, 0)
    algorithm.step(state, 1)
    Judge(model, team).look(algorithm.propose(state))


def _warm_start(model: Model, given: Any) -> Floats | None:
    if given is None:
        return None
    lam = given.messages if isinstance(given, Result) else given
    flat = check_lam(model, lam).copy()
    if not np.isfinite(flat).all():
        raise OptionError("warm_start holds values that are not finite")
    return flat


def _loop(run: Run, settings: dict[str, Any]) -> Generator[Snapshot, None, Result]:
    path, on_snapshot = run.options["checkpoint"], run.options["on_snapshot"]
    saved, status = time.perf_counter(), None
    try:
        while status is None:
            status = run.advance()
            snapshot = run.check(last=status is not None)
            status = run.closed() or status or run.stalled()
            yield snapshot
            if on_snapshot is not None and on_snapshot(snapshot) is False and status is None:
                status = Status.CALLBACK
            if path and (status or time.perf_counter() - saved > CHECKPOINT_SECONDS):
                storage.save(path, run.given, settings, run)
                saved = time.perf_counter()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        run.check(last=True)
        if path:
            storage.save(path, run.given, settings, run)
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
            next(run)
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
