"""A few threads that run one compiled loop together."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from softmap.errors import OptionError
from softmap.kernels.threads import new_barrier

__all__ = ["Team"]


class Team:
    """Runs `kernel(*args, (thread, threads, barrier))` on every thread and waits for all."""

    def __init__(self, threads: int | None = None) -> None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        self.threads = (available or os.cpu_count() or 1) if threads is None else threads
        if self.threads < 1:
            raise OptionError(f"threads must be at least 1, not {threads}")
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None

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
        if self._pool is None or count < 256:
            kernel(*args, 0, count)
            return
        cuts = [count * t // self.threads for t in range(self.threads + 1)]
        parts = list(pairwise(cuts))
        others = [self._pool.submit(kernel, *args, a, b) for a, b in parts[:-1]]
        kernel(*args, *parts[-1])
        for other in others:
            other.result()
