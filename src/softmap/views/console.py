"""Where commands write: results to standard output, everything else to standard error."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # rich takes as long to load as a small model takes to solve
    from rich.console import Console
    from rich.table import Table

from softmap.views.streams import Forgiving

__all__ = ["facts_table", "messages", "number", "ratio", "results"]


def results() -> Console:
    """Standard output, for what was asked for."""
    return _plain()


def messages() -> Console:
    """Standard error, for progress and remarks."""
    file: Any = None if sys.stderr is None else Forgiving(sys.stderr)
    return _plain(file=file, stderr=True)


def _plain(**options: Any) -> Console:
    """A console that leaves it to the caller what a closed pipe means."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(highlight=False, markup=False, emoji=False, soft_wrap=True, **options)


def number(value: float) -> str:
    """A cost, with the digits that matter when bounds are compared."""
    if not math.isfinite(value):
        return "none yet" if value != value else ("∞" if value > 0 else "-∞")
    if value == 0 or 1 <= abs(value) < 1e10:
        return f"{value:,.4f}"
    return f"{value:.10g}"


def ratio(value: float) -> str:
    """A gap."""
    return f"{value:.2g}" if math.isfinite(value) else number(value)


def facts_table(facts: dict[str, str], title: str | None = None) -> Table:
    """Two columns, name and value."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    return table
