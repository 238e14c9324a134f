"""Progress displays: callbacks that are called with each snapshot.

The commands use a `Display`, or nothing; both are context managers. `Watching`
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
from typing import TYPE_CHECKING, Any, Self

from softmap.views.console import Forgiving, messages, number, ratio
from softmap.views.words import certificate_sentences, result_facts

if TYPE_CHECKING:
    from rich.live import Live
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


class Display(Silent):
    """Shows how far some work is: in place on a terminal, else in lines at intervals.

    A subclass says what is shown (`line`, `table`), and calls `show` when there is something new.

    Parameters
    ----------
    target : rich.console.Console or binary stream
        A console that is a terminal is updated in place; on others, lines are printed.
    every : float
        Seconds between two lines.
    refresh : float
        Updates in place, per second.
    """

    def __init__(self, target: Any, every: float = 2.0, refresh: float = 8.0) -> None:
        self._target, self._every, self._next = target, every, 0.0
        self._refresh, self._began = refresh, time.monotonic()
        self._in_place = bool(getattr(target, "is_terminal", False))
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._in_place:
            from rich.live import Live

            self._live = Live(
                console=self._target, refresh_per_second=self._refresh, transient=True,
                get_renderable=self.table,
            )  # fmt: skip
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    @property
    def seconds(self) -> float:
        """Seconds since the display was made."""
        return time.monotonic() - self._began

    def line(self) -> str:
        """Return the current state in one line."""
        raise NotImplementedError

    def table(self) -> Table:
        """Return the current state for a terminal."""
        raise NotImplementedError

    def show(self, now: float | None = None) -> None:
        """Print a line if no line was printed a moment ago; a terminal is updated by itself.

        Parameters
        ----------
        now : float, optional
            Seconds of the work; those of the clock by default.
        """
        now = self.seconds if now is None else now
        if not self._in_place and now >= self._next:
            self._next = now + self._every
            self.print(self.line())

    def print(self, text: str) -> None:
        """Print a line at once."""
        if hasattr(self._target, "print"):
            self._target.print(text, markup=False)
        else:
            self._target.write(f"{text}\n")
            self._target.flush()


class RunDisplay(Display):
    """Shows the checks of a run; before the first one, that it is set up.

    Parameters
    ----------
    target : rich.console.Console or stream
        See `Display`.
    time_limit : float, optional
        Time limit of the run in seconds; what remains of it is shown on a terminal.
    every : float
        Seconds between two lines.
    first : float
        Seconds after which a line says that the run is set up.
    """

    def __init__(
        self, target: Any, time_limit: float | None = None, every: float = 2.0, first: float = 0.8
    ) -> None:
        super().__init__(target, every)
        self._time_limit = time_limit
        self._columns: dict[str, str] = {"seconds": "0.0", "stage": "setting up"}
        self._timer = threading.Timer(first, self.print, ("setting up",))
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if not self._in_place:
            self._timer.start()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self._timer.cancel()
        super().__exit__(*error)

    def __call__(self, snapshot: Snapshot) -> None:
        """Replace the numbers; print a line if it is time for one."""
        self._timer.cancel()
        self._columns = columns(snapshot)
        self.show(snapshot.seconds)

    def line(self) -> str:
        """Return the names and numbers of the last check."""
        return "  ".join(f"{name} {value}" for name, value in self._columns.items())

    def table(self) -> Table:
        """Return the numbers of the last check; the seconds advance between checks."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        shown = self._columns | {"seconds": f"{self.seconds:.1f}"}
        if self._time_limit is not None:
            shown["remaining"] = f"{max(0.0, self._time_limit - self.seconds):.0f} s"
        for name in shown:
            table.add_column(name, justify="right", header_style="dim", min_width=len(name))
        table.add_row(*shown.values())
        return table


class ShareDisplay(Display):
    """Shows which part of some work is done, the time left, and what was done last.

    Parameters
    ----------
    target : rich.console.Console
        See `Display`.
    total : float
        All of the work, in any unit.
    """

    def __init__(self, target: Any, total: float) -> None:
        super().__init__(target, every=10.0)
        self._total, self._done, self._words = total, 0.0, ""

    def advance(self, amount: float, words: str) -> None:
        """Say that an amount of the work was done, and what it was."""
        self._done, self._words = self._done + amount, words
        self.show()

    def line(self) -> str:
        """Return the part in percent, a bar, the time left, and the last words."""
        part = min(1.0, self._done / self._total) if self._total > 0 else 1.0
        left = f"{self.seconds / part * (1 - part):.0f} s left" if part > 0 else "no estimate yet"
        return f"{100 * part:3.0f} % {bar(part)} {self.seconds:.0f} s, {left}  {self._words}"

    def table(self) -> Table:
        """Return the line."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid()
        table.add_row(Text(self.line()))
        return table


def bar(part: float) -> str:
    """Return a bar of characters, filled to a part between 0 and 1."""
    full = int(BAR.width * part)
    tip = ">" if full < BAR.width else ""
    return f"[{'=' * full}{tip}{' ' * (BAR.width - full - 1)}]"


def columns(snapshot: Snapshot) -> dict[str, str]:
    """Return the numbers of a check as text, by name."""
    return {
        "seconds": f"{snapshot.seconds:.1f}",
        "stage": snapshot.stage,
        "bound": number(snapshot.bound),
        "primal": number(snapshot.primal),
        "energy": number(snapshot.energy),
        "lp gap": ratio(snapshot.relative_gap(snapshot.lp_gap)),
        "gap": ratio(snapshot.relative_gap(snapshot.gap)),
        "eta": f"{snapshot.eta:.3g}",
    }


def display(enabled: bool, time_limit: float | None = None) -> Silent:
    """Return the display for standard error: live on a terminal, else lines."""
    if not enabled or sys.stderr is None:
        return Silent()
    return RunDisplay(messages() if sys.stderr.isatty() else Forgiving(sys.stderr), time_limit)


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
        self._write(f"{bar(part)} {words}")

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
            shown = columns(snapshot)
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
