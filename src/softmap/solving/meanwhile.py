"""Passes while a check is under way: made where a core is idle, kept where the check lets them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from softmap.algorithms.base import Ahead

if TYPE_CHECKING:
    from softmap.solving.run import Run

__all__ = ["Meanwhile", "made_meanwhile", "meanwhile"]

CHUNK = 1e-3  # seconds between two looks at whether the check has ended
LONG = 2e-3  # seconds from which on a check is worth a thread, and a copy of the messages


class Meanwhile:
    """Passes in a thread of their own, from a copy of the state that a check looks at.

    They are those that the run would make next, unless the check changes its course or ends it: so
    a run is the same to the bit whether they are made, kept or dropped.
    """

    def __init__(self, ahead: Ahead, most: int, chunk: int) -> None:
        self._ahead, self._most, self._chunk = ahead, most, chunk
        self._over, self.made = threading.Event(), 0
        self._thread = threading.Thread(target=self._make, name="softmap-meanwhile")
        self._thread.start()

    def _make(self) -> None:
        made = 0
        try:
            while made < self._most and not self._over.is_set():
                count = min(self._chunk, self._most - made)
                self._ahead.step(count)
                made += count
        except MemoryError:  # the run makes these passes itself
            return
        self.made = made

    def end(self) -> None:
        """Make no more of them."""
        self._over.set()
        self._thread.join()

    def join(self, run: Run, most: int) -> int:
        """Put the run where these passes led; how many they are, 0 where they are not the next."""
        fitting = 0 < self.made <= most and self._ahead.join(run.state)
        return self.made if fitting else 0


@contextmanager
def meanwhile(run: Run, most: int) -> Iterator[None]:
    """Within, up to `most` passes are made beside what is done here, if a core would be idle."""
    worth = run.pace.expected("check") >= LONG and not run.limit()
    ahead = run.algorithm.ahead(run.state) if worth else None
    if ahead is None:
        yield
        return
    chunk = max(1, run.pace.fitting("step", CHUNK))
    run.meanwhile = begun = Meanwhile(ahead, min(most, run.affordable()), chunk)
    _use(run, run.threads - 1)
    try:
        yield
    finally:
        begun.end()
        _use(run, run.threads)


def _use(run: Run, threads: int) -> None:
    """Judge on so many threads from now on."""
    run.judge.threads = threads
    run.algorithm.use(threads)


def made_meanwhile(run: Run, most: int) -> int:
    """Take passes that were made beside the last check, up to `most`; 0 if they are not the next.

    Afterwards, the run stands behind them.
    """
    begun, run.meanwhile = run.meanwhile, None
    return begun.join(run, most) if begun is not None else 0
