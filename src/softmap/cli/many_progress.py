"""What is shown while many models are solved: how many are done, the worst gaps, what is left."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from softmap.display.console import messages, ratio

__all__ = ["ManyDisplay", "many_display", "remaining"]

WORST = 5  # models shown
LINES_EVERY = 10.0  # seconds between two lines where there is no terminal
PICTURES_EVERY = 0.2  # and between two pictures where there is one


def remaining(done: int, total: int, seconds: float) -> float:
    """Seconds that the rest will take if it is like what is done."""
    return seconds / done * (total - done) if done else float("inf")


class ManyDisplay(AbstractContextManager["ManyDisplay"]):
    """Called after each model; prints totals when left.

    Parameters
    ----------
    rows
        What is known of each model that is done, by name; it grows meanwhile.
    """

    def __init__(
        self, console: Console, total: int, rows: dict[str, dict[str, Any]], enabled: bool
    ) -> None:
        self._console, self._total, self._rows = console, total, rows
        self._enabled, self._began = enabled, time.monotonic()
        self._next = 0.0
        self._live = (
            Live(console=console, refresh_per_second=4, transient=True)
            if enabled and console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)
        if self._enabled:
            self._console.print(self.totals())

    def __call__(self) -> None:
        """Show where things stand, unless it was shown a moment ago."""
        now = time.monotonic()
        if not self._enabled or now < self._next:
            return
        self._next = now + (PICTURES_EVERY if self._live else LINES_EVERY)
        if self._live is not None:
            self._live.update(self._table())
        else:
            self._console.print(self._line())

    def totals(self) -> str:
        """One sentence over all models."""
        states = Counter(row["state"] for row in self._rows.values())
        proved = sum(row.get("status") in ("optimal", "gap") for row in self._rows.values())
        return (
            f"{len(self._rows)} of {self._total} models: {states['solved']} solved, "
            f"{states['unchanged']} unchanged, {states['failed']} failed; {proved} proved optimal; "
            f"{time.monotonic() - self._began:.1f} s"
        )

    def _line(self) -> str:
        done = len(self._rows)
        # what was there already took no time, and says nothing about the rest
        fresh = sum(row["state"] != "unchanged" for row in self._rows.values())
        left = remaining(fresh, fresh + self._total - done, time.monotonic() - self._began)
        failed = sum(row["state"] == "failed" for row in self._rows.values())
        rest = f"about {left:.0f} s left" if left < float("inf") else "no estimate yet"
        return f"{done} of {self._total} done, {failed} failed, {rest}"

    def _table(self) -> Table:
        table = Table(title=self._line(), title_justify="left", box=None, pad_edge=False)
        for name in ("worst gaps", "gap", "status"):
            table.add_column(name, header_style="dim")
        gaps = [(row.get("relative_gap"), name) for name, row in self._rows.items()]
        worst = sorted(((gap, name) for gap, name in gaps if gap is not None), reverse=True)
        for gap, name in worst[:WORST]:
            table.add_row(name, ratio(gap), str(self._rows[name].get("status", "")))
        return table


def many_display(enabled: bool, total: int, rows: dict[str, dict[str, Any]]) -> ManyDisplay:
    """The display that suits standard error."""
    return ManyDisplay(messages(), total, rows, enabled)
