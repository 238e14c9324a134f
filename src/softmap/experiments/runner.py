"""Run trials on a few threads (the kernels release the GIL), each stored as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from softmap.experiments.methods import Method
from softmap.experiments.store import Store
from softmap.experiments.truth import Problem
from softmap.experiments.unit import Point, Unit, follow
from softmap.machine import usable_cores

__all__ = ["OnDone", "Results", "run_units"]

Results = dict[Unit, list[Point]]
OnDone = Callable[[Unit], None]


def run_units(
    units: Iterable[Unit],
    problems: Mapping[int, Problem],
    store: Store,
    *,
    workers: int | None = None,
    on_done: OnDone = lambda unit: None,
) -> Results:
    """Results of all trials; those in the store are not run again.

    Parameters
    ----------
    problems : by number of variables
    workers : int, optional
        Threads; as many as there are cores if left out. Results do not depend on it.
    on_done : callable
        Told of each trial, from the calling thread.
    """
    found: Results = {}
    missing = []
    for unit in units:
        stored = store.load(unit)
        if stored is None:
            missing.append(unit)
        else:
            found[unit] = stored
            on_done(unit)
    _compile({unit.method for unit in missing}, problems)
    missing.sort(key=lambda unit: -unit.cost)  # long ones first, so that all threads end together
    pool = ThreadPoolExecutor(workers or usable_cores())
    try:
        _collect(pool, missing, problems, store, found, on_done)
    finally:
        # an interrupt waits for the trials under way, a second or two, and drops the others
        pool.shutdown(cancel_futures=True)
    return found


def _collect(
    pool: ThreadPoolExecutor,
    missing: list[Unit],
    problems: Mapping[int, Problem],
    store: Store,
    found: Results,
    on_done: OnDone,
) -> None:
    def run(unit: Unit) -> list[Point]:
        points = follow(unit, problems[unit.n])
        store.save(unit, points)
        return points

    waiting: dict[Future[list[Point]], Unit] = {pool.submit(run, unit): unit for unit in missing}
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            unit = waiting.pop(future)
            found[unit] = future.result()
            on_done(unit)


def _compile(methods: set[Method], problems: Mapping[int, Problem]) -> None:
    """A first update of each method, so that no clock counts compilation."""
    n = min(problems)
    for method in sorted(methods, key=lambda method: method.label):
        follow(Unit("", n, 0, 0, method, 100.0, 0, (5,)), problems[n])
