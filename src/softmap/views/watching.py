"""The output of `solve(verbose=True)` (lines) and `solve(progress=True)` (a bar), as plain text."""

from __future__ import annotations

import math
import sys
import threading
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
    """Width of the bar, in characters."""
    every: float = 0.1
    """Smallest time between two redraws, in seconds."""
    tick: float = 0.5
    """Seconds between two redraws of the bar without a new check."""


BAR = Bar()


class Watching:
    """Prints one line per check, or draws a progress bar; prints the result at the end.

    Lines are printed to standard output and the bar to standard error; notebooks show both. The bar
    is drawn from the start of the run, and its seconds are updated between checks.
    """

    def __init__(self, *, verbose: bool, progress: bool, limits: dict[str, Any]) -> None:
        self.verbose, self.progress, self.limits = verbose, progress, limits
        self._drawn, self._length, self._first = 0.0, 0, math.nan
        self._began, self._seen = time.monotonic(), None
        self._lock, self._ended = threading.Lock(), threading.Event()
        if progress:
            self._draw()
            threading.Thread(target=self._go_on, name="softmap-progress", daemon=True).start()

    def __call__(self, snapshot: Any) -> None:
        """Show one check."""
        self._seen = snapshot
        if self.verbose:
            shown = columns(snapshot, None)
            with self._lock:
                self._clear()
                print("  ".join(f"{name} {value}" for name, value in shown.items()), flush=True)
        if self.progress:
            now = time.monotonic()
            if now - self._drawn >= BAR.every:
                self._drawn = now
                self._draw()

    def close(self) -> None:
        """Stop drawing after the run has ended or failed."""
        with self._lock:
            if self.progress and not self._ended.is_set():
                self._ended.set()
                if self._length:
                    print(file=sys.stderr, flush=True)
                self._length = 0

    def end(self, result: Any) -> None:
        """Show the result."""
        if self.progress:
            sentence = f"{time.monotonic() - self._began:.1f} s: {result.status}"
            with self._lock:
                self._write(f"[{BAR.width * '='}] {sentence}")
        self.close()
        if self.verbose:
            for name, value in result_facts(result).items():
                print(f"{name:8} {value}")
            print(" ".join(certificate_sentences(result)), flush=True)

    def _go_on(self) -> None:
        """Redraw the bar at intervals until the next check."""
        while not self._ended.wait(BAR.tick):
            self._draw()

    def _draw(self) -> None:
        snapshot, seconds = self._seen, time.monotonic() - self._began
        if snapshot is None:
            part, words = self._spent(seconds), "setting up"
        else:
            part = max(self._part(snapshot), self._spent(seconds))
            gap = ratio(snapshot.relative_gap(snapshot.gap))
            words = f"{STAGES[int(snapshot.stage)]}  energy {number(snapshot.energy)}  gap {gap}"
        full = int(BAR.width * part)
        bar = "=" * full + (">" if full < BAR.width else "") + " " * (BAR.width - full - 1)
        with self._lock:
            if not self._ended.is_set():
                self._write(f"[{bar}] {seconds:.1f} s  {words}")

    def _spent(self, seconds: float) -> float:
        """The fraction of the time limit that has passed."""
        limit = self.limits.get("time_limit")
        return min(1.0, seconds / limit) if limit else 0.0

    def _part(self, snapshot: Any) -> float:
        """The progress from the first gap to the tolerance, between 0 and 1."""
        wanted = max(self.limits.get("gap") or 0.0, 1e-12)
        gap = snapshot.relative_gap(snapshot.gap)
        way = 0.0
        if 0 < gap < math.inf:
            if math.isnan(self._first):
                self._first = gap
            whole = math.log(self._first / wanted)
            way = math.log(self._first / gap) / whole if whole > 0 else 1.0
        return min(1.0, max(0.0, way))

    def _clear(self) -> None:
        if self._length:
            self._write("")
            print("\r", end="", file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        padding = " " * max(0, self._length - len(text))
        print(f"\r{text}{padding}", end="", file=sys.stderr, flush=True)
        self._length = len(text)
