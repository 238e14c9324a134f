"""Progress displays: callbacks that are called with each snapshot.

The commands use a live display, plain lines, or nothing; all three are context managers. `Watching`
is the output of `solve(verbose=True)` (lines) and `solve(progress=True)` (a bar), as plain text.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TextIO

from softmap.views.console import Forgiving, messages, number, ratio
from softmap.views.words import certificate_sentences, result_facts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


Snapshot = Any  # a `softmap.Snapshot`, which is defined in a package above this one


class Silent:
    """A display that shows nothing; the base class of the others."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def __call__(self, snapshot: Snapshot) -> None:
        """Show one snapshot."""


Display = Silent


class PlainLines(Silent):
    """Prints lines at intervals, for files and pipes; the first one within a second."""

    def __init__(self, stream: TextIO | Forgiving, every: float = 2.0, first: float = 0.8) -> None:
        self._stream = stream
        self._every = every
        self._next = 0.0
        self._timer = threading.Timer(first, self._line, ("setting up",))
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._timer.cancel()

    def __call__(self, snapshot: Snapshot) -> None:
        """Print a line, unless the last one was printed less than `every` seconds ago."""
        self._timer.cancel()
        if snapshot.seconds < self._next:
            return
        self._next = snapshot.seconds + self._every
        shown = columns(snapshot, None)
        self._line("  ".join(f"{name} {value}" for name, value in shown.items()))

    def _line(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


class LiveDisplay(Silent):
    """A status line for terminals, updated in place; its seconds advance between checks."""

    def __init__(self, console: Console, time_limit: float | None) -> None:
        from rich.live import Live

        self._time_limit = time_limit
        self._began = time.monotonic()
        self._columns: dict[str, str] = {"seconds": "0.0", "stage": "setting up"}
        self._live = Live(
            console=console, refresh_per_second=8, transient=True, get_renderable=self._shown
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.__exit__(*error)

    def __call__(self, snapshot: Snapshot) -> None:
        """Replace the numbers."""
        self._columns = columns(snapshot, self._time_limit)

    def _shown(self) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        seconds = time.monotonic() - self._began
        shown = self._columns | {"seconds": f"{seconds:.1f}"}
        if self._time_limit is not None:
            shown["remaining"] = f"{max(0.0, self._time_limit - seconds):.0f} s"
        for name in shown:
            table.add_column(name, justify="right", header_style="dim", min_width=len(name))
        table.add_row(*shown.values())
        return table


def columns(snapshot: Snapshot, time_limit: float | None) -> dict[str, str]:
    """Return the numbers of a check as text, by name."""
    shown = {
        "seconds": f"{snapshot.seconds:.1f}",
        "stage": snapshot.stage,
        "bound": number(snapshot.bound),
        "primal": number(snapshot.primal),
        "energy": number(snapshot.energy),
        "lp gap": ratio(snapshot.relative_gap(snapshot.lp_gap)),
        "gap": ratio(snapshot.relative_gap(snapshot.gap)),
        "eta": f"{snapshot.eta:.3g}",
    }
    if time_limit is not None:
        shown["remaining"] = f"{max(0.0, time_limit - snapshot.seconds):.0f} s"
    return shown


def display(enabled: bool, time_limit: float | None = None) -> Display:
    """Return the display for standard error: live on a terminal, else lines."""
    if not enabled or sys.stderr is None:
        return Silent()
    if sys.stderr.isatty():
        return LiveDisplay(messages(), time_limit)
    return PlainLines(Forgiving(sys.stderr))


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


class TextBar:
    """A bar of characters on standard error, redrawn in its line."""

    def __init__(self) -> None:
        self._length = 0

    def show(self, part: float, words: str) -> None:
        """Draw the bar at a fraction of its width, with words after it."""
        full = int(BAR.width * part)
        bar = "=" * full + (">" if full < BAR.width else "") + " " * (BAR.width - full - 1)
        self._write(f"[{bar}] {words}")

    def clear(self) -> None:
        """Remove the bar, so that a line can be printed."""
        if self._length:
            self._write("")
            print("\r", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._length:
            print(file=sys.stderr, flush=True)
        self._length = 0

    def _write(self, text: str) -> None:
        padding = " " * max(0, self._length - len(text))
        print(f"\r{text}{padding}", end="", file=sys.stderr, flush=True)
        self._length = len(text)


class WidgetBar(TextBar):
    """A bar of ipywidgets, for notebooks."""

    def __init__(self, widgets: Any, display: Callable[[Any], Any]) -> None:
        super().__init__()
        self._bar, self._words = widgets.FloatProgress(min=0.0, max=1.0), widgets.Label()
        display(widgets.HBox([self._bar, self._words]))

    def show(self, part: float, words: str) -> None:
        """Set the bar and the words after it."""
        self._bar.value, self._words.value = part, words


def progress_bar() -> TextBar:
    """Return a bar of ipywidgets in a notebook if they are installed, else one of characters."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if ipython is None or type(shell).__name__ != "ZMQInteractiveShell":
        return TextBar()
    try:
        return WidgetBar(import_module("ipywidgets"), ipython.display.display)
    except ImportError:
        return TextBar()


class Watching:
    """Prints one line per check, or draws a progress bar; prints the result at the end.

    Lines are printed to standard output and the bar to standard error; notebooks show both, the bar
    as a widget if ipywidgets are installed. The bar is drawn from the start of the run, and its
    seconds are updated between checks.
    """

    def __init__(self, *, verbose: bool, progress: bool, limits: dict[str, Any]) -> None:
        self.verbose, self.progress, self.limits = verbose, progress, limits
        self._drawn, self._first = 0.0, math.nan
        self._began, self._seen = time.monotonic(), None
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._bar = progress_bar() if progress else TextBar()
        if progress:
            self._draw()
            threading.Thread(target=self._tick, name="softmap-progress", daemon=True).start()

    def __call__(self, snapshot: Any) -> None:
        """Show one check."""
        self._seen = snapshot
        if self.verbose:
            shown = columns(snapshot, None)
            with self._lock:
                self._bar.clear()
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
                self._bar.close()

    def end(self, result: Any) -> None:
        """Show the result."""
        if self.progress:
            with self._lock:
                self._bar.show(1.0, f"{time.monotonic() - self._began:.1f} s: {result.status}")
        self.close()
        if self.verbose:
            for name, value in result_facts(result).items():
                print(f"{name:8} {value}")
            print(" ".join(certificate_sentences(result)), flush=True)

    def _tick(self) -> None:
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
            words = f"{snapshot.stage}  energy {number(snapshot.energy)}  gap {gap}"
        with self._lock:
            if not self._ended.is_set():
                self._bar.show(part, f"{seconds:.1f} s  {words}")

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
