"""A few threads that run one compiled loop together."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from softmap.errors import OptionError
from softmap.kernels.threads import new_barrier
from softmap.machine import usable_cores

__all__ = ["Paced", "Team"]

RETRY = 25  # every so many calls, the number of threads that was slower is tried again
FORGET = 1.1  # the least time seen counts this much more at every call: machines change
WORTHWHILE = 8192  # items under which handing some to another thread takes longer than doing them


class Team:
    """Runs `kernel(*args, (thread, threads, barrier))` on every thread and waits for all."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = usable_cores() if threads is None else threads
        if self.threads < 1:
            raise OptionError(f"threads must be at least 1, not {threads}")
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None

    def close(self) -> None:
        """End the threads; the team must not be used afterwards."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    def run(self, kernel: Callable[..., Any], *args: Any) -> None:
        """One call on every thread; the calling thread is the last of them."""
        barrier = new_barrier()
        last = self.threads - 1
        others = [
            self._pool.submit(kernel, *args, (t, self.threads, barrier))  # type: ignore[union-attr]
            for t in range(last)
        ]
        kernel(*args, (last, self.threads, barrier))
        for other in others:
            other.result()

    def split(self, kernel: Callable[..., Any], count: int, *args: Any) -> None:
        """`kernel(*args, first, last)` over `count` independent items, one part per thread."""
        if self._pool is None or count < WORTHWHILE:
            kernel(*args, 0, count)
            return
        cuts = [count * t // self.threads for t in range(self.threads + 1)]
        parts = list(pairwise(cuts))
        others = [self._pool.submit(kernel, *args, a, b) for a, b in parts[:-1]]
        kernel(*args, *parts[-1])
        for other in others:
            other.result()


class Paced:
    """Runs on all threads of a team or on one, whichever has been faster of late.

    Threads that meet at barriers lose when a level holds little work, and lose much when another
    program wants one of their cores; neither is known beforehand. To be used where the number of
    threads does not show in the result.
    """

    def __init__(self, team: Team) -> None:
        self._teams = (team, Team(1)) if team.threads > 1 else (team,)
        self._seconds = [0.0] * len(self._teams)  # per unit of work; 0 where not yet tried
        self._calls = 0

    def run(self, amount: int, kernel: Callable[..., Any], *args: Any) -> None:
        """`Team.run` of a kernel that does `amount` units of work."""
        which = self._choice()
        began = time.perf_counter()
        self._teams[which].run(kernel, *args)
        taken, known = (time.perf_counter() - began) / max(amount, 1), self._seconds[which]
        # the least time counts: a single slow moment of the machine says nothing
        self._seconds[which] = min(taken, FORGET * known) if known else taken
        self._calls += 1

    def _choice(self) -> int:
        best = min(range(len(self._seconds)), key=self._seconds.__getitem__)
        return (best + 1) % len(self._teams) if self._calls % RETRY == RETRY - 1 else best
