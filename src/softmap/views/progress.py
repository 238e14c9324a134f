"""Progress displays of the commands: a live display, plain lines, or nothing.

All three are context managers, and callbacks that are called with each snapshot.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from softmap.views.console import messages, number, ratio
from softmap.views.streams import Forgiving
from softmap.views.subject import STAGES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Display", "LiveDisplay", "PlainLines", "Silent", "columns", "display"]

Snapshot = Any  # a `softmap.Snapshot`, which is defined in a package above this one


class Silent:
    """A display that shows nothing; the base class of the others."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        self._timer = threading.Timer(first, self._line, (f"seconds {first:.1f}  setting up",))
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

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
        "stage": STAGES[int(snapshot.stage)],
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
