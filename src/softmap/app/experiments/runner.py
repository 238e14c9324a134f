"""The runner of trials: in threads (kernels release the GIL); each result is stored at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import softmap
from softmap.app.experiments.trials import Method, Point, Problem, Unit, follow
from softmap.io.atomic import write_text
from softmap.machine import usable_cores

__all__ = ["OnDone", "Results", "Store", "code_digest", "run_units"]


def code_digest() -> str:
    """Return a digest of the sources that affect numbers; results of other code are not reused."""
    root = Path(softmap.__file__).parent
    skipped = {"app", "interop", "io", "views"}
    digest = hashlib.sha256()
    for source in sorted(root.rglob("*.py")):
        place = source.relative_to(root)
        if place.parts[0] not in skipped or source.name == "trials.py":
            digest.update(place.as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()


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
    problems: Mapping[int, Problem],
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
    problems : mapping from int to Problem
        The problem of each number of variables.
    store : Store
        Stored results.
    workers : int, optional
        Number of threads; all cores by default. Results do not depend on it.
    on_done : callable
        Callback, called with each finished trial in the calling thread.
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
    missing.sort(key=lambda unit: -unit.cost)  # longest first, so that threads end together
    pool = ThreadPoolExecutor(workers or usable_cores())
    try:
        _collect(pool, missing, problems, store, found, on_done)
    finally:
        # After an interrupt, running trials finish (a second or two); the others are dropped.
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
    """Do one update of each method, so that timings exclude compilation."""
    n = min(problems)
    for method in sorted(methods, key=lambda method: method.label):
        follow(Unit("", n, 0, 0, method, 100.0, 0, (5,)), problems[n])
