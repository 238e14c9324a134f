"""The machine: cores, memory, who watches, and the fastest number of threads for a loop."""

from __future__ import annotations

import os
import sys
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
        The slower number of threads is timed again after this many calls, times the square of how
        much slower it was.
    long : float
        A first call on all threads of at least this many seconds, which used most of the cores,
        makes the trial of one thread wait: one thread is assumed to take `threads` times as long.
    busy : float
        Smallest part of the cores, in processor time, that such a call uses.
    forget : float
        Largest factor by which one timing may raise the stored time of a choice.
    """

    retry: int = 25
    long: float = 0.008
    busy: float = 0.7
    forget: float = 1.1


TRIALS = Trials()


class ThreadChoice:
    """Runs a loop on all threads or on one, whichever was faster recently.

    Threads that synchronise at barriers lose time if levels are small, and much time if another
    program uses one of their cores. Neither is known in advance. The result of the loop must not
    depend on the number of threads.
    """

    def __init__(self, threads: int) -> None:
        self._choices = (threads, 1) if threads > 1 else (1,)
        self._seconds = [0.0] * len(self._choices)  # seconds per unit of work; 0: not timed yet
        self._calls = 0  # since the slower number of threads was timed

    def run(self, amount: int, work: Callable[[int], int]) -> int:
        """Call `work(threads)`, which is to do `amount` units of work; return how many it did."""
        if len(self._choices) == 1:
            return work(1)
        which = self._choice()
        began, used = time.perf_counter(), time.process_time()
        done = work(self._choices[which])
        whole, used = time.perf_counter() - began, time.process_time() - used
        if done < amount:  # it was stopped, perhaps at once
            return done
        taken, known = whole / max(amount, 1), self._seconds[which]
        # Limit the effect of a single slow timing.
        self._seconds[which] = min(taken, TRIALS.forget * known) if known else taken
        if not known and which == 0 and self._parallel(whole, used):
            self._seconds[1:] = [self._choices[0] * taken] * (len(self._choices) - 1)
        self._calls = 0 if which != self._fastest() else self._calls + 1
        return done

    @property
    def threads(self) -> int:
        """The faster number of threads as far as is known; all threads at first."""
        timed = [k for k, seconds in enumerate(self._seconds) if seconds] or [0]
        return self._choices[min(timed, key=self._seconds.__getitem__)]

    @property
    def trying(self) -> bool:
        """Whether the next call times a choice that may be slow, so that it should be short."""
        if len(self._choices) == 1:
            return False
        which = self._choice()
        return not self._seconds[which] or which != self._fastest()

    def _parallel(self, seconds: float, used: float) -> bool:
        """Whether a call on all threads was long and had most of the cores."""
        enough = TRIALS.busy * self._choices[0] * seconds
        return seconds >= TRIALS.long and used >= enough

    def _fastest(self) -> int:
        return min(range(len(self._seconds)), key=self._seconds.__getitem__)

    def _choice(self) -> int:
        best = self._fastest()
        ratio = max(self._seconds) / self._seconds[best] if self._seconds[best] else 1.0
        due = self._calls >= TRIALS.retry * ratio * ratio
        return (best + 1) % len(self._choices) if due else best


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


def interactive() -> bool:
    """Whether a person watches standard error: a terminal, or a notebook."""
    stream = sys.stderr
    if stream is None:
        return False
    return bool(getattr(stream, "isatty", bool)()) or "ipykernel" in type(stream).__module__
