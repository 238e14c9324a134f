"""Work beside the passes: begun now, asked for later."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Beside"]

Found = TypeVar("Found")


class Beside(Generic[Found]):
    """Something to be found in a thread of its own, or (not `apart`) at once.

    What is found must not depend on when that happens: then runs with any number of threads are the
    same to the bit, because all of them ask at the same pass.

    Attributes
    ----------
    seconds : float
        How long it took; 0 while it is under way.
    """

    def __init__(self, work: Callable[[], Found], *, apart: bool) -> None:
        self._work = work
        self._found: Found | None = None
        self._error: BaseException | None = None
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._do, name="softmap-beside")
        self._process = os.getpid()
        if apart:
            self._thread.start()
        else:
            self._do()

    def _do(self) -> None:
        began = time.perf_counter()
        try:
            self._found = self._work()
        except BaseException as error:  # raised where somebody waits for it
            self._error = error
        self.seconds = time.perf_counter() - began

    def found(self, timeout: float | None = None) -> Found | None:
        """What was found, waiting for it up to `timeout` seconds; None if that is not enough."""
        if self._process != os.getpid():  # a fork leaves threads behind
            return self._work()
        if self._thread.ident is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return None
        if self._error is not None:
            raise self._error
        return self._found
