"""`solve_many`: the loop that submits batches to a cluster and yields results as they finish."""

from __future__ import annotations

import math
import os
import queue
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

from softmap import Model, Result
from softmap.arguments import MOST_THREADS, count, flag
from softmap.errors import OptionError, SoftmapError
from softmap.extend import attached, checked_options
from softmap.scale.many.cluster import Connection, distributed_module
from softmap.scale.many.items import Item, batches, listed
from softmap.scale.many.work import ModelOutcome, Settings, checkpoint_of, work


@dataclass(frozen=True)
class Flow:
    """Tuning numbers of the submission of batches to a cluster.

    Attributes
    ----------
    ahead : int
        Number of batches per thread that are submitted before results arrive.
    tick : float
        Longest wait for a result, in seconds, before the connection is tested; workers are counted
        again after five times as long.
    alone : float
        Seconds for which small models are solved by threads of this process, before a cluster of
        processes is started for the remaining models. Starting a cluster takes about as long.
    """

    ahead: int = 3
    tick: float = 0.2
    alone: float = 2.0


def solve_many(
    models_or_paths: Any,
    client: Any = None,
    *,
    checkpoints: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    threads: int | None = None,
    evidence: bool = False,
    **options: Any,
) -> Iterator[tuple[str, Result | Exception]]:
    """Solve many models on a Dask cluster; yield the results as they finish.

    A model that fails yields its exception and does not affect the others. The models of a lost
    worker are solved by another worker. Small models are sent in batches.

    Parameters
    ----------
    models_or_paths : list of Model or path, or a mapping from names to them
        Workers read the paths. By default a file is named by its file name without suffixes, a
        model by its index in the list.
    client : dask.distributed.Client or str, optional
        A client or the address of a scheduler. By default, small models are solved by threads of
        this process, and models that remain after two seconds by a cluster of processes on this
        machine (scripts then need `if __name__ == "__main__":`).
    checkpoints : str or Path, optional
        A folder that all workers can access. Models of a lost worker are resumed from their
        checkpoints in it.
    workers : int, optional
        Number of processes of a cluster on this machine; one per core by default.
    threads : int, optional
        Number of threads for each model that is solved alone; by default the worker's idle threads.
    evidence : bool
        Whether a model X.uai is read with the evidence X.uai.evid if that file exists.
    **options
        Options of `solve` that apply to each model; limits apply to each model separately.

    Yields
    ------
    name : str
        The name of a model.
    outcome : Result or Exception
        Its result, or the error.
    """
    items = listed(models_or_paths, evidence=flag("evidence", evidence))
    checked_options("solve_many", options)
    if workers is not None:
        workers = count("workers", workers, 1, MOST_THREADS)
    if threads is not None:
        options = options | {"threads": count("threads", threads, 1, MOST_THREADS)}
    folder = shared_folder(checkpoints)
    connection = Connection(client, workers)
    return _results(items, Settings(options, checkpoints=folder), connection)


def shared_folder(checkpoints: Any) -> str | None:
    """Return the absolute path of the checkpoint folder."""
    if checkpoints is None:
        return None
    if not isinstance(checkpoints, str | os.PathLike) or not os.path.isdir(checkpoints):
        raise OptionError("checkpoints: expected a folder that exists")
    return os.path.abspath(checkpoints)


def _results(
    items: list[Item], settings: Settings, connection: Connection
) -> Iterator[tuple[str, Result | Exception]]:
    """Yield the results; models that were sent are put back into them."""
    given = {item.name: item.source for item in items}
    for outcome in outcomes(items, settings, connection):
        source, result = given[outcome.name], outcome.value
        if outcome.error is not None:
            yield outcome.name, outcome.error
        else:
            yield outcome.name, attached(result, source) if isinstance(source, Model) else result


def outcomes(
    items: list[Item], settings: Settings, connection: Connection
) -> Iterator[ModelOutcome]:
    """Yield the outcome of each item, exactly once, in the order in which workers finish.

    If no cluster was given, threads of this process start first.
    """
    left = items
    if connection.threads and settings.checkpoints is None:
        alone = _Threads(items, settings, connection.threads)
        yield from alone
        left = alone.left
    if not left:
        return
    with connection:
        stream = _Stream(left, settings, connection)
        try:
            yield from stream
        finally:
            stream.cancel()


class _Threads:
    """Small items, solved by threads of this process for a short while.

    Attributes
    ----------
    left : list of Item
        Items not started: large ones, and small ones that remained when the time was over.
    """

    def __init__(self, items: list[Item], settings: Settings, threads: int) -> None:
        self._items = [item for item in items if item.small]
        self.left = [item for item in items if not item.small]
        self._threads = max(1, min(threads, len(self._items)))
        self._stopped = False
        options = {"threads": 1 if len(self._items) > 1 else None} | settings.options
        options |= {"on_snapshot": lambda snapshot: not self._stopped}
        self._settings = replace(settings, options=options)

    def __iter__(self) -> Iterator[ModelOutcome]:
        if not self._items:
            return
        end = time.monotonic() + Flow.alone
        waiting = self._items[::-1]
        running: set[Future[list[ModelOutcome]]] = set()
        pool = ThreadPoolExecutor(self._threads)
        try:
            while running or (waiting and time.monotonic() < end):
                while waiting and len(running) < self._threads and time.monotonic() < end:
                    running.add(pool.submit(work, [waiting.pop()], self._settings))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from future.result()
        finally:
            self._stopped = True  # running models stop at their next check
            pool.shutdown(wait=False)
        self.left += waiting[::-1]


class _Stream:
    """The waiting batches, the submitted batches, and the outcomes."""

    flow = Flow()

    def __init__(self, items: list[Item], settings: Settings, connection: Connection) -> None:
        self._dask, self._connection = distributed_module(), connection
        threads = connection.workers()
        self._waiting = batches(items, sum(threads.values()) or 1)[::-1]
        crowd = -(-len(self._waiting) // max(1, len(threads)))
        self._settings = replace(settings, crowd=crowd)
        self._pending: dict[str, tuple[Any, list[Item]]] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._serial = 0
        self._most, self._counted = self.flow.ahead, -math.inf

    def __iter__(self) -> Iterator[ModelOutcome]:
        while self._waiting or self._pending:
            self._hand_over()
            try:
                future = self._done.get(timeout=self.flow.tick)
            except queue.Empty:
                continue
            if future.key in self._pending:  # otherwise it was submitted again in the meantime
                yield from self._arrived(*self._pending.pop(future.key))

    def _hand_over(self) -> None:
        """Submit enough batches to keep every worker busy; the others wait here."""
        if not self._connection.ready:
            self._connection.restored()
            self._recall()
        try:
            while self._waiting and len(self._pending) < self._room():
                self._submit(self._waiting.pop())
        except (OSError, TimeoutError):
            return  # the connection broke; the next iteration restores it

    def _room(self) -> int:
        """The number of batches to submit at the same time; workers are counted periodically."""
        if time.monotonic() > self._counted + 5 * self.flow.tick:
            self._most = self.flow.ahead * (sum(self._connection.workers().values()) or 1)
            self._counted = time.monotonic()
        return self._most

    def _submit(self, batch: list[Item]) -> None:
        self._serial += 1
        key = f"softmap-{id(self):x}-{self._serial}"
        try:
            future = self._connection.client.submit(
                work, batch, self._settings, key=key, pure=False
            )
        except BaseException:
            self._waiting.append(batch)
            raise
        self._pending[key] = future, batch
        future.add_done_callback(self._done.put)

    def _recall(self) -> None:
        """Put all submitted batches back after the scheduler was lost."""
        self._waiting += [batch for _, batch in self._pending.values()]
        self._pending.clear()

    def _arrived(self, future: Any, batch: list[Item]) -> Iterator[ModelOutcome]:
        """Yield the outcomes of a batch; a lost batch is submitted again."""
        if future.status == "finished":
            try:
                found = future.result()
            except Exception:  # its worker, or the scheduler, was lost before the result arrived
                self._waiting.append(batch)
                return
            self._forget_checkpoints(found)
            yield from found
        elif future.status == "error":
            yield from self._failed(future, batch)
        else:
            self._waiting.append(batch)

    def _forget_checkpoints(self, found: list[ModelOutcome]) -> None:
        """Delete the checkpoints of solved models."""
        if self._settings.checkpoints is not None:
            for outcome in found:
                checkpoint_of(self._settings.checkpoints, outcome.name).unlink(missing_ok=True)

    def _failed(self, future: Any, batch: list[Item]) -> Iterator[ModelOutcome]:
        """Split a batch whose workers died into single items, to find the one at fault."""
        if len(batch) > 1:
            self._waiting[:0] = [[item] for item in batch]  # after all other batches
            return
        try:
            error = future.exception()
        except Exception:  # the connection broke
            self._waiting.append(batch)
            return
        if isinstance(error, self._dask.KilledWorker):
            error = SoftmapError(
                f"{batch[0].name}: every worker that tried it was lost, "
                "most likely for lack of memory"
            )
        yield ModelOutcome(batch[0].name, error=error)

    def cancel(self) -> None:
        """Cancel all submitted batches."""
        futures = [future for future, _ in self._pending.values()]
        if futures and self._connection.ready:
            self._connection.client.cancel(futures, force=True)
