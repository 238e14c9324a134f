"""The machine: its cores and memory, and how many threads a compiled loop runs fastest on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Pace", "available_memory", "usable_cores"]


@dataclass(frozen=True)
class Trials:
    """How often the slower number of threads is tried again.

    Attributes
    ----------
    retry : int
        Calls after which the slower way is tried again.
    forget : float
        Factor by which the least time seen grows with every call, as machines change.
    """

    retry: int = 25
    forget: float = 1.1


TRIALS = Trials()


class Pace:
    """Runs on all threads or on one, whichever has been faster of late.

    Threads that meet at barriers lose when a level holds little work, and lose much when another
    program wants one of their cores; neither is known beforehand. To be used where the number of
    threads does not show in the result.
    """

    def __init__(self, threads: int) -> None:
        self._choices = (threads, 1) if threads > 1 else (1,)
        self._seconds = [0.0] * len(self._choices)  # per unit of work; 0: not tried yet
        self._calls = 0

    def run(self, amount: int, work: Callable[[int], object]) -> None:
        """`work(threads)`, which does `amount` units of work."""
        which = self._choice()
        began = time.perf_counter()
        work(self._choices[which])
        taken, known = (time.perf_counter() - began) / max(amount, 1), self._seconds[which]
        # one slow moment of the machine is not held against a way of working
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
GROUP = Path("/sys/fs/cgroup")  # where a container says what it may use


def usable_cores() -> int:
    """Cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """Bytes that this process may still allocate without swapping; None where nothing says so."""
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
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
