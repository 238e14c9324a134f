"""How long the parts of a run take, so that a time limit is kept before it is overrun."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Pace", "Timed"]


@dataclass
class Timed:
    """Seconds that a block took, known when it has ended."""

    seconds: float = 0.0


class Pace:
    """Seconds per repetition of each kind of work, from the last time it was done."""

    def __init__(self) -> None:
        self._each: dict[str, float] = {}

    def known(self, kind: str) -> bool:
        """Whether this kind of work was timed, or guessed, before."""
        return kind in self._each

    @contextmanager
    def timed(self, kind: str, count: int = 1) -> Iterator[Timed]:
        """Time a block that does `count` repetitions."""
        began, timed = time.perf_counter(), Timed()
        yield timed
        timed.seconds = time.perf_counter() - began
        self._each[kind] = timed.seconds / count

    def guess(self, **times: float) -> None:
        """Take kinds of work for so many times as long as a glance, until they are timed."""
        for kind, factor in times.items():
            self._each.setdefault(kind, factor * self._each["glance"])

    def expected(self, *kinds: str) -> float:
        """Seconds of one repetition of each kind; 0 for what is unknown."""
        return sum(self._each.get(kind, 0.0) for kind in kinds)

    def fitting(self, kind: str, seconds: float, *after: str) -> int:
        """Repetitions that fit into so many seconds and leave time for what comes after them."""
        each = self._each.get(kind, 0.0)
        return int(max(0.0, min((seconds - self.expected(*after)) / max(each, 1e-12), 1e15)))
