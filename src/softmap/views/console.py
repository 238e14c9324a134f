"""The consoles of the commands: results on standard output, all else on standard error."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing rich takes as long as solving a small model
    from rich.console import Console
    from rich.table import Table

from softmap.views.streams import Forgiving

__all__ = ["facts_table", "messages", "number", "ratio", "results"]


def results() -> Console:
    """Return the console on standard output, for results."""
    return _plain()


def messages() -> Console:
    """Return the console on standard error, for progress and messages."""
    file: Any = None if sys.stderr is None else Forgiving(sys.stderr)
    return _plain(file=file, stderr=True)


def _plain(**options: Any) -> Console:
    """Return a console that raises `BrokenPipeError`, so that the caller can handle it."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(highlight=False, markup=False, emoji=False, soft_wrap=True, **options)


def number(value: float) -> str:
    """Return a cost as text, with enough digits to compare bounds."""
    if not math.isfinite(value):
        return "none yet" if value != value else ("∞" if value > 0 else "-∞")
    if value == 0 or 1 <= abs(value) < 1e10:
        return f"{value:,.4f}"
    return f"{value:.10g}"


def ratio(value: float) -> str:
    """Return a relative gap as text."""
    return f"{value:.2g}" if math.isfinite(value) else number(value)


def facts_table(facts: dict[str, str], title: str | None = None) -> Table:
    """Return a table with two columns, name and value."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    return table
