"""Trials: one run of one method on one graph.

Trials run in threads (kernels release the GIL); each result is stored at once.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softmap.app.experiments.code import code_digest
from softmap.app.experiments.entries import Method
from softmap.app.experiments.evaluation import Evaluator
from softmap.app.experiments.problems import Graph
from softmap.io.atomic import write_text
from softmap.labels import LabelSearch
from softmap.machine import usable_cores
from softmap.methods.base import Algorithm, Floats
from softmap.paper.methods import StandardState
from softmap.relaxation.bounds import dual_bound, soft_nodes
from softmap.run.judge import Judge


class Point(NamedTuple):
    """The evaluation of a run after some updates (or passes).

    Attributes
    ----------
    updates : int
        Number of updates, or passes.
    work : int
        Number of messages.
    seconds : float
        Time of the method on one core.
    primal : float
        ⟨C, Proj(μ^λ, 0)⟩ at the current iterate λ; for sweep methods the better one of the current
        and the averaged node marginals.
    returned : float
        The cost of the point that the method would return: that of least slack (Algorithm 1), the
        best so far with exchanges of mass (sweep methods), or NaN if it is that of `primal`.
    bound : float
        The bound that the current iterate proves.
    exchanged : float
        `primal` after exchanges of mass in the tables; NaN but at the last check.
    """

    updates: int
    work: int
    seconds: float
    primal: float
    returned: float
    bound: float
    exchanged: float


@dataclass(frozen=True)
class Unit:
    """A trial: its figure, graph, method, and the updates at which it is evaluated."""

    figure: str
    graph: Graph
    method: Method
    eta: float
    trial: int
    checks: tuple[int, ...]

    @property
    def last(self) -> int:
        """The number of updates of the run."""
        return self.checks[-1]

    @property
    def cost(self) -> float:
        """The estimated time in seconds, for progress bars, from measured times per update."""
        if self.method.sweeping:
            return self.last * 2.5e-4 + len(self.checks) * 2e-3
        return self.last * (2e-6 if self.method.stars else 5e-7) + len(self.checks) * 1.5e-3

    def key(self, code: str) -> str:
        """Return a digest of all that the result depends on, as its file name."""
        facts = json.dumps({**asdict(self), "code": code}, sort_keys=True)
        return hashlib.sha256(facts.encode()).hexdigest()[:24]


def trial_seed(seed: int, trial: int) -> int:
    """Return the seed of a trial; all methods share it, so that trials can be compared in pairs."""
    return int(np.random.SeedSequence([seed, trial]).generate_state(1)[0])


def star_size(degree: Any) -> float:
    """Return the mean number of messages per star update if vertices are drawn by degree."""
    return float((degree**2).sum() / degree.sum())


def passes_until(last: int) -> tuple[int, ...]:
    """Return the passes at which sweep methods are evaluated; η changes only every tenth pass."""
    regular = [*range(10, 101, 10), *range(120, last + 1, 20)]
    return (*(k for k in [1, 2, 3, 5, *regular] if k < last), last)


def follow(unit: Unit, until: int | None = None) -> list[Point]:
    """Run a trial; evaluations are not timed, unless the method uses them to anneal.

    Parameters
    ----------
    unit : Unit
        The trial.
    until : int, optional
        Run only up to the last check of at most this many updates.
    """
    model = unit.graph.model().network
    algorithm = unit.method.make(unit.eta, unit.last)
    watcher = _Sweeps(unit, algorithm) if unit.method.sweeping else _Updates(unit, algorithm)
    state = algorithm.init(model, None, trial_seed(unit.graph.seed, unit.trial))
    done, seconds, points = 0, 0.0, []
    for check in unit.checks:
        if until is not None and check > until:
            break
        began = time.thread_time()
        algorithm.step(state, check - done)
        done = check
        seconds += time.thread_time() - began
        looked, used = watcher.look(state, check)
        points.append(Point(done, state.work, seconds := seconds + used, *looked))
    return points


def current(algorithm: Algorithm, state: Any) -> Floats:
    """Return λ^(k); the proposal of Algorithm 1 is another iterate, that of least slack."""
    if hasattr(state, "current"):
        return np.asarray(state.current())
    return np.asarray(algorithm.propose(state).lam)


Looked = tuple[float, float, float, float]


class _Updates:
    """Evaluates a method that updates blocks."""

    def __init__(self, unit: Unit, algorithm: Algorithm) -> None:
        self.unit, self.algorithm = unit, algorithm
        self.evaluator = Evaluator(unit.graph.model().network)

    def look(self, state: Any, check: int) -> tuple[Looked, float]:
        """Return the last four values of a `Point`, and the seconds that count for the method."""
        eta, evaluator = self.unit.eta, self.evaluator
        lam = current(self.algorithm, state)
        primal, returned, exchanged = evaluator.projected(lam, eta), math.nan, math.nan
        if isinstance(state, StandardState):
            returned = evaluator.projected(self.algorithm.propose(state).lam, eta)
        if check == self.unit.last:
            exchanged = evaluator.exchanged(lam, eta).cost
        finite = bool(np.isfinite(lam).all())
        bound = dual_bound(evaluator.model, lam) if finite else -math.inf
        return (primal, returned, bound, exchanged), 0.0


class _Sweeps:
    """Evaluates a method that passes over the whole graph, as a run of softmap does."""

    def __init__(self, unit: Unit, algorithm: Algorithm) -> None:
        self.unit, self.algorithm = unit, algorithm
        model = unit.graph.model().network
        self.evaluator, self.judge = Evaluator(model), Judge.of(model)
        self.search = LabelSearch(model, algorithm.decode_order(model))

    def look(self, state: Any, check: int) -> tuple[Looked, float]:
        """Return the last four values of a `Point`, and the seconds that count for the method."""
        began = time.thread_time()
        proposal = self.algorithm.propose(state)
        lam, eta, coupling = proposal.lam, proposal.eta, proposal.coupling
        coupling = lam if coupling is None else coupling
        verdict = self.judge.look(proposal)
        if self.unit.method.steered and check % 10 == 0:
            self.algorithm.observe(state, verdict)
        best = self.judge.best
        known = best.labels, best.energy
        labels = self.search.look(known, lam, verdict.nodes[0], best.lp_bound, best.point_cost, 0)
        best.offer_labels(*labels)
        seconds = time.thread_time() - began if self.unit.method.steered else 0.0
        nodes = proposal.nodes or (soft_nodes(self.evaluator.model, lam, eta),)
        primal = min(self.evaluator.projected_over(p, coupling, eta) for p in nodes)
        exchanged = min(verdict.primals) if check == self.unit.last else math.nan
        return (primal, best.point_cost, verdict.bound, exchanged), seconds


class Store:
    """A folder with one small file per finished trial."""

    def __init__(self, folder: Path, code: str | None = None) -> None:
        self.folder = folder
        self.code = code_digest() if code is None else code
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, unit: Unit) -> Path:
        """Return the path of the result of a trial."""
        return self.folder / f"{unit.key(self.code)}.json"

    def load(self, unit: Unit) -> list[Point] | None:
        """Return the stored result, or None if it is missing or unreadable."""
        try:
            rows = json.loads(self.path(unit).read_text(encoding="utf-8"))
            points = [Point(*row) for row in rows]
        except (OSError, ValueError, TypeError):
            return None
        return points if [p.updates for p in points] == list(unit.checks) else None

    def save(self, unit: Unit, points: list[Point]) -> None:
        """Store a result atomically."""
        write_text(self.path(unit), [json.dumps(points)])


Results = dict[Unit, list[Point]]
OnDone = Callable[[Unit], None]


def run_units(
    units: Iterable[Unit],
    store: Store,
    *,
    workers: int | None = None,
    on_done: OnDone = lambda unit: None,
) -> Results:
    """Return the results of all trials; stored ones are not run again.

    Parameters
    ----------
    units : iterable of Unit
        The trials.
    store : Store
        Stored results.
    workers : int, optional
        Number of threads; all cores by default. Results do not depend on it.
    on_done : callable
        Callback, called with each finished trial in the calling thread.
    """
    results: Results = {}
    missing = []
    for unit in units:
        stored = store.load(unit)
        if stored is None:
            missing.append(unit)
        else:
            results[unit] = stored
            on_done(unit)
    missing.sort(key=lambda unit: -unit.cost)  # longest first, so that threads end together
    pool = ThreadPoolExecutor(workers or usable_cores())
    try:
        _collect(pool, missing, store, results, on_done)
    finally:
        # After an interrupt, running trials finish (a second or two); the others are dropped.
        pool.shutdown(cancel_futures=True)
    return results


def _collect(
    pool: ThreadPoolExecutor,
    missing: list[Unit],
    store: Store,
    results: Results,
    on_done: OnDone,
) -> None:
    def run(unit: Unit) -> list[Point]:
        points = follow(unit)
        store.save(unit, points)
        return points

    waiting: dict[Future[list[Point]], Unit] = {pool.submit(run, unit): unit for unit in missing}
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            unit = waiting.pop(future)
            results[unit] = future.result()
            on_done(unit)
