"""The machine: its cores and memory, and the fastest number of threads for a compiled loop."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trials:
    """How often the slower number of threads is timed again.

    Attributes
    ----------
    retry : int
        The slower number of threads is timed again after this many calls.
    forget : float
        Largest factor by which one timing may raise the stored time of a choice.
    """

    retry: int = 25
    forget: float = 1.1


TRIALS = Trials()


class Pace:
    """Runs a loop on all threads or on one, whichever was faster recently.

    Threads that synchronise at barriers lose time if levels are small, and much time if another
    program uses one of their cores. Neither is known in advance. The result of the loop must not
    depend on the number of threads.
    """

    def __init__(self, threads: int) -> None:
        self._choices = (threads, 1) if threads > 1 else (1,)
        self._seconds = [0.0] * len(self._choices)  # seconds per unit of work; 0: not timed yet
        self._calls = 0

    def run(self, amount: int, work: Callable[[int], object]) -> None:
        """Call `work(threads)`, which does `amount` units of work."""
        which = self._choice()
        began = time.perf_counter()
        work(self._choices[which])
        taken, known = (time.perf_counter() - began) / max(amount, 1), self._seconds[which]
        # Limit the effect of a single slow timing.
        self._seconds[which] = min(taken, TRIALS.forget * known) if known else taken
        self._calls += 1

    def _fastest(self) -> int:
        return min(range(len(self._seconds)), key=self._seconds.__getitem__)

    def _choice(self) -> int:
        best = self._fastest()
        return (
            (best + 1) % len(self._choices)
            if self._calls % TRIALS.retry == TRIALS.retry - 1
            else best
        )


MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")  # memory limits of a container


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """Return the memory in bytes that can be allocated without swapping; None if unknown."""
    found = [_available(), _left_in_group()]
    return min((bytes_ for bytes_ in found if bytes_ is not None), default=None)


def _available() -> int | None:
    try:
        lines = MEMINFO.read_text().splitlines()
    except OSError:
        return None
    sizes = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((1024 * int(size) for size in sizes), None)


def _left_in_group() -> int | None:
    try:
        most, used = ((GROUP / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return max(0, int(most) - int(used))
    except (OSError, ValueError):  # no such group, or the limit is "max" (none)
        return None
