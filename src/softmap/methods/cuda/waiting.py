"""Waiting with a deadline: for work in a background thread, and for kernels that are compiled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from softmap import core

T = TypeVar("T")

LOOK = 0.02  # seconds between two looks at a deadline, which Ctrl-C may stop
UNSEEN = 0.005  # seconds of passes between two looks at a deadline


def waited(future: Future[T], deadline: core.Deadline | None = None) -> T:
    """Return the result of a future, or raise its exception.

    Raises `core.OutOfTime` if the deadline passes first.

    Parameters
    ----------
    future : Future
        The result of other threads.
    deadline : core.Deadline, optional
        Until when to wait; by default until the future is done.
    """
    while deadline is not None and not future.done():
        try:
            return future.result(min(LOOK, deadline.left))
        except TimeoutError:  # of the wait, or of the work itself
            if not future.done():
                deadline.require()
    return future.result()


class Aside:
    """A thread for work on a device, so that its caller can stop waiting at a deadline.

    The import of a package, the start of a device and the compilation of kernels cannot be
    interrupted. Work that nobody waits for any more goes on until it ends, or looks at its
    deadline; its result and its exceptions are dropped.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "softmap-device")

    def __call__(self, work: Callable[[], T], deadline: core.Deadline | None = None) -> T:
        """Return what `work` returns; raise `core.OutOfTime` if the deadline passes first.

        Parameters
        ----------
        work : function
            The work; it has no arguments.
        deadline : core.Deadline, optional
            Until when to wait. By default the work is done in the thread of the caller.
        """
        if deadline is None:
            return work()
        return waited(self._pool.submit(work), deadline)
