"""Worker processes for the small models of a batch.

Compiled loops run in parallel threads, but Python code does not (GIL). In a run over a model of a
hundred variables Python takes half of the time.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from softmap.drive.solve import solve
from softmap.model import Model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.gaps import scaled
from softmap.run.interrupts import Interrupts
from softmap.run.result import Result

__all__ = ["WorkerRules", "Workers", "attached", "detached"]


@dataclass(frozen=True)
class WorkerRules:
    """When worker processes pay off.

    Attributes
    ----------
    small : int
        Largest number of entries of λ of a model that is sent to a worker.
    worthwhile : float
        Smallest remaining work per thread, in seconds, for starting workers.
    most : int
        Largest number of workers; this process pickles and unpickles for all of them.
    """

    small: int = 1 << 15
    worthwhile: float = 1.0
    most: int = 15


def detached(result: Result) -> Result:
    """Return a result without its model, to be sent to a process that has the model."""
    point = replace(result.point, model=None)  # type: ignore[arg-type]
    return replace(result, model=None, point=point)  # type: ignore[arg-type]


def attached(result: Result, model: Model) -> Result:
    """Return a result with its model attached."""
    point = replace(result.point, model=tighten(scaled(model.network).model))
    return replace(result, model=model, point=point)


class Workers:
    """A pool of worker processes, one for each thread of a batch except the first.

    The first thread solves models itself. Workers are started once the time of some models is
    known, and used once they run; until then all threads solve models themselves.

    Parameters
    ----------
    models : sequence of Model
    each : sequence of dict
        The options of each model.
    threads : int
        Number of threads of the batch.
    allowed : bool
        Whether workers may be started.
    """

    rules = WorkerRules()

    def __init__(
        self,
        models: Sequence[Model],
        each: Sequence[Mapping[str, Any]],
        threads: int,
        allowed: bool,
    ) -> None:
        shown = any(options.get("verbose") or options.get("progress") for options in each)
        listened = logging.getLogger("softmap").isEnabledFor(logging.INFO)
        possible = allowed and os.name == "posix" and bool(sys.executable)
        small = sum(model.network.half_size <= self.rules.small for model in models)
        self._left = small if possible and not shown and not listened else 0
        self._threads, self._done, self._seconds = threads, 0, 0.0
        self._lock, self._own = threading.Lock(), threading.local()
        self._home: int | None = None
        self._context = _Context()
        self._pool: ProcessPoolExecutor | None = None
        self._running: Any = None  # a semaphore that counts workers without a thread
        self._ended = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def solve(self, model: Model, options: Mapping[str, Any]) -> Result | None:
        """Return the result of a worker, or None if there is no worker or it failed or warned.

        The caller then solves the model itself, so that errors and warnings surface here.
        """
        if model.network.half_size > self.rules.small or not self._left or not self._has_worker():
            return None
        try:
            packed = pickle.dumps((model, dict(options)))
        except Exception:  # potentials of users may not be picklable
            return None
        try:
            assert self._pool is not None
            found = self._pool.submit(_solved, packed).result()
        except (BrokenProcessPool, RuntimeError):  # a worker was killed, or the batch is ending
            self._ended = True
            return None
        return None if found is None else attached(found, model)

    def note(self, model: Model, began: float) -> None:
        """Record that a model was solved; `began` is the start time in its thread."""
        if model.network.half_size <= self.rules.small:
            with self._lock:
                self._left, self._done = max(0, self._left - 1), self._done + 1
                self._seconds += time.perf_counter() - began

    def kill(self) -> None:
        """Terminate all workers."""
        with self._lock:
            self._ended = True
            for process in self._context.started:
                with suppress(ValueError, AttributeError):  # it has ended, or has not started
                    process.kill()

    def _has_worker(self) -> bool:
        """Whether this thread has a running worker; does not block."""
        with self._lock:
            if self._home is None:
                self._home = threading.get_ident()
            if self._ended or self._home == threading.get_ident():
                return False
            if self._pool is None and self._worthwhile():
                self._start(min(self._threads - 1, self.rules.most))
        if self._pool is None:
            return False
        if not getattr(self._own, "worker", False):
            self._own.worker = self._running.acquire(block=False)
        return bool(self._own.worker)

    def _worthwhile(self) -> bool:
        if not self._done:
            return False
        return self._left * self._seconds / self._done > self.rules.worthwhile * self._threads

    def _start(self, count: int) -> None:
        try:
            self._running = self._context.Semaphore(0)
            self._pool = ProcessPoolExecutor(count, self._context, _begin, (self._running,))
            for _ in range(count):
                self._pool.submit(os.getpid)  # each call starts a worker
        except (OSError, ImportError):  # no processes, no interpreter, or no semaphores available
            self._ended = True


class _Process(SpawnProcess):
    """A process that does not import the user's `__main__`, which hence needs no guard."""

    def start(self) -> None:
        with _without_main(), _without_interrupts():
            super().start()


class _Context(SpawnContext):
    """A context of spawned processes, which are safe in a program with threads."""

    def __init__(self) -> None:
        self.started: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **named: Any) -> SpawnProcess:  # type: ignore[override]
        """Return a process of this context."""
        process = _Process(*arguments, **named)
        self.started.append(process)
        return process


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the user's `__main__`, which a spawned process would import."""
    known = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = known


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT, so that workers inherit the block: this process ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(running: Any) -> None:
    """Signal that this worker runs; signals end it at once, as its parent expects."""
    Interrupts.replaced = {}
    running.release()


def _solved(packed: bytes) -> Result | None:
    """Return the result without its model; None after an exception or a warning."""
    with warnings.catch_warnings(record=True) as seen, suppress(Exception):
        warnings.simplefilter("always")
        model, options = pickle.loads(packed)
        result = solve(model, threads=1, **options)
        return None if seen else detached(result)
    return None
