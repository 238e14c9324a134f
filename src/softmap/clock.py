"""When a call began: a call that imports what it calls has begun before it is called."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["call_began", "importing"]

AT_ONCE = 5e-3
"""CPU time between an import and a call that has caused it, in seconds at most."""


class _Imports:
    """The last import of a function by its name in `softmap`, until a call has counted it.

    Attributes
    ----------
    began : float
        When it began, in seconds of `time.perf_counter`; +inf if there is none.
    ended : float
        When it ended, in CPU seconds of the thread.
    """

    began, ended = float("inf"), 0.0


@contextmanager
def importing() -> Iterator[None]:
    """Note how long the block takes."""
    began = time.perf_counter()
    yield
    _Imports.began, _Imports.ended = began, time.thread_time()


def call_began() -> float:
    """Return when the call of this moment began, in seconds of `time.perf_counter`.

    `softmap.solve(model, time_limit=0.1)` imports `solve` if it is the first call of a process.
    This counts, as do other imports that come before the work.
    """
    began, _Imports.began = _Imports.began, float("inf")
    at_once = time.thread_time() - _Imports.ended < AT_ONCE
    return min(began, time.perf_counter()) if at_once else time.perf_counter()
