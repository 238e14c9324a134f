"""Tasks on several processes, each of which may die or hang: what it worked at is then named."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

__all__ = ["Lost", "interruptible", "spread"]


@dataclass(frozen=True)
class Lost:
    """A task without an answer.

    Attributes
    ----------
    task : object
        The task.
    how : str
        How its process ended.
    """

    task: Any
    how: str


class _Worker:
    """A process that takes one task after the other."""

    def __init__(
        self, context: Any, action: Callable[[Any], Any], begin: Callable[[], None] | None
    ) -> None:
        self.link, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, action, begin))
        self.process.start()
        theirs.close()
        self.task: Any = None
        self.since = math.inf

    def take(self, task: Any) -> None:
        """Start a task."""
        self.task, self.since = task, time.monotonic()
        self.link.send((task,))

    def answer(self, limit: float) -> tuple[Any] | None:
        """The answer, `Lost` if the process is dead or late; None while it works."""
        with contextlib.suppress(EOFError, OSError):
            if self.link.poll():
                return (self.link.recv(),)
        if not self.process.is_alive():
            self.process.join()
            return (Lost(self.task, f"the process ended with {self.process.exitcode}"),)
        if time.monotonic() - self.since > limit:
            self.end()
            return (Lost(self.task, f"no answer after {limit:.0f} s"),)
        return None

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.link.close()


def _work(link: Connection, action: Callable[[Any], Any], begin: Callable[[], None] | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent decides when to end
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    if begin is not None:
        begin()
    with contextlib.suppress(EOFError):
        while True:
            (task,) = link.recv()
            link.send(action(task))


def spread(
    tasks: Iterable[Any],
    workers: int,
    action: Callable[[Any], Any],
    *,
    method: str = "fork",
    begin: Callable[[], None] | None = None,
    limit: float = math.inf,
) -> Iterator[Any]:
    """Yield `action(task)` for all tasks, in the order in which they end, or `Lost`.

    Parameters
    ----------
    tasks : iterable
        The tasks; one is taken when a process is free.
    workers : int
        Number of processes.
    action : callable
        Called in one of the processes.
    method : str
        How processes are started: what this process has imported is there in a fork.
    begin : callable, optional
        Called once in each process.
    limit : float
        Seconds after which a process is killed that has not answered.
    """
    context = multiprocessing.get_context(method)
    waiting, busy, idle = iter(tasks), list[_Worker](), list[_Worker]()
    try:
        while True:
            while len(busy) < workers:
                try:
                    task = next(waiting)
                except StopIteration:
                    break
                busy.append(idle.pop() if idle else _Worker(context, action, begin))
                busy[-1].take(task)
            if not busy:
                return
            wait([one for worker in busy for one in (worker.link, worker.process.sentinel)], 1.0)
            for worker in list(busy):
                if (found := worker.answer(limit)) is not None:
                    busy.remove(worker)
                    if not isinstance(found[0], Lost):
                        idle.append(worker)
                    yield found[0]
    finally:
        for worker in [*busy, *idle]:
            worker.end()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and Ctrl-C end what runs within; what follows, such as a count, is printed."""

    def stop(number: int, frame: object) -> None:
        for one in stopped:  # what follows is not interrupted again
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    stopped = (signal.SIGTERM, signal.SIGINT)
    for one in stopped:
        signal.signal(one, stop)
    with contextlib.suppress(KeyboardInterrupt):
        yield
        for one in stopped:
            signal.signal(one, signal.SIG_DFL)
