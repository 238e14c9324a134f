"""What `solve(verbose=True)` prints and `solve(progress=True)` draws: plain text on any screen."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Any

from softmap.views.console import number, ratio
from softmap.views.facts import result_facts
from softmap.views.progress import columns
from softmap.views.subject import STAGES
from softmap.views.words import certificate_sentences

__all__ = ["Watching"]


@dataclass(frozen=True)
class Bar:
    """The bar of `progress=True`."""

    width: int = 24
    """Characters."""
    every: float = 0.1
    """Seconds between two drawings."""


BAR = Bar()


class Watching:
    """Prints a line per check, or draws a bar that stays in its line; then what was found.

    Lines go to standard output, the bar to standard error, so that both show in notebooks.
    """

    def __init__(self, *, verbose: bool, progress: bool, limits: dict[str, Any]) -> None:
        self.verbose, self.progress, self.limits = verbose, progress, limits
        self._drawn, self._length, self._first = 0.0, 0, math.nan

    def __call__(self, snapshot: Any) -> None:
        """Show one check."""
        if self.verbose:
            shown = columns(snapshot, None)
            self._clear()
            print("  ".join(f"{name} {value}" for name, value in shown.items()), flush=True)
        if self.progress:
            now = time.monotonic()
            if now - self._drawn >= BAR.every:
                self._drawn = now
                self._draw(snapshot, self._part(snapshot))

    def end(self, result: Any) -> None:
        """Show the result."""
        if self.progress:
            sentence = f"{result.seconds:.1f} s: {result.status}"
            self._write(f"[{BAR.width * '='}] {sentence}")
            print(file=sys.stderr, flush=True)
            self._length = 0
        if self.verbose:
            for name, value in result_facts(result).items():
                print(f"{name:8} {value}")
            print(" ".join(certificate_sentences(result)), flush=True)

    def _draw(self, snapshot: Any, part: float) -> None:
        full = int(BAR.width * part)
        bar = "=" * full + (">" if full < BAR.width else "") + " " * (BAR.width - full - 1)
        gap = ratio(snapshot.relative_gap(snapshot.gap))
        self._write(
            f"[{bar}] {snapshot.seconds:.1f} s  {STAGES[int(snapshot.stage)]}  "
            f"energy {number(snapshot.energy)}  gap {gap}"
        )

    def _part(self, snapshot: Any) -> float:
        """How much is done: of the time, or of the way from the first gap to the one asked for."""
        limit, wanted = self.limits.get("time_limit"), max(self.limits.get("gap") or 0.0, 1e-12)
        gap = snapshot.relative_gap(snapshot.gap)
        way = 0.0
        if 0 < gap < math.inf:
            if math.isnan(self._first):
                self._first = gap
            whole = math.log(self._first / wanted)
            way = math.log(self._first / gap) / whole if whole > 0 else 1.0
        spent = snapshot.seconds / limit if limit else 0.0
        return min(1.0, max(0.0, way, spent))

    def _clear(self) -> None:
        if self._length:
            self._write("")
            print("\r", end="", file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        padding = " " * max(0, self._length - len(text))
        print(f"\r{text}{padding}", end="", file=sys.stderr, flush=True)
        self._length = len(text)
