"""A primal heuristic in a thread of its own, whose outcome is asked for later."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Background"]

Found = TypeVar("Found")


class Background(Generic[Found]):
    """A computation that runs in a thread, or at once where there is only one thread.

    What it finds must not depend on when it runs: then runs with any number of threads are the same
    to the bit, because all of them ask for the outcome after the same pass.

    Parameters
    ----------
    work : function without arguments
    threaded : bool
        Whether to run in a thread.

    Attributes
    ----------
    seconds : float
        How long it took; 0 while it runs.
    """

    def __init__(self, work: Callable[[], Found], *, threaded: bool) -> None:
        self._work = work
        self._found: Found | None = None
        self._error: BaseException | None = None
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="softmap-labels")
        self._process = os.getpid()
        if threaded:
            self._thread.start()
        else:
            self._run()

    def _run(self) -> None:
        began = time.perf_counter()
        try:
            self._found = self._work()
        except BaseException as error:  # raised where somebody waits for it
            self._error = error
        self.seconds = time.perf_counter() - began

    def found(self, timeout: float | None = None) -> Found | None:
        """The outcome, waiting for it up to `timeout` seconds; None if that is not enough."""
        if self._process != os.getpid():  # a fork has no threads of its parent
            return self._work()
        if self._thread.ident is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return None
        if self._error is not None:
            raise self._error
        return self._found
