"""The consoles of the commands: results on standard output, all else on standard error.

Either may be closed, full, or without a reader.
"""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing rich takes as long as solving a small model
    from rich.console import Console
    from rich.table import Table


class Forgiving:
    """Standard error that drops text it cannot write, so that the run continues."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text if possible."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            _discard(self._stream)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


# set by the launchers of Open MPI, MPICH (and Intel MPI) and Slurm in every process of a job
LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


def say(sentence: str) -> None:
    """Print a sentence on standard error, prefixed with "softmap: "."""
    if sys.stderr is not None:
        Forgiving(sys.stderr).write(f"softmap: {sentence}\n")


def discard_output() -> None:
    """Drop the buffer of standard output, so that Python raises no second error at exit."""
    _discard(sys.stdout)


def _discard(stream: Any) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def results() -> Console:
    """Return the console on standard output, for results."""
    return _plain()


def messages() -> Console:
    """Return the console on standard error, for progress and messages."""
    file: Any = None if sys.stderr is None else Forgiving(sys.stderr)
    return _plain(file=file, stderr=True)


def _plain(**options: Any) -> Console:
    """Return a console that raises `BrokenPipeError`, so that the caller can handle it.

    Under mpiexec it has no colours: what it forwards looks like a terminal, but ends in files.
    """
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if any(name in os.environ for name in LAUNCHED):
        options |= {"force_terminal": False, "no_color": True}
    return Plain(highlight=False, markup=False, emoji=False, soft_wrap=True, **options)


def number(value: float) -> str:
    """Return a cost as text, with enough digits to compare bounds."""
    if not math.isfinite(value):
        return "none yet" if value != value else ("∞" if value > 0 else "-∞")
    if value == 0 or 1 <= abs(value) < 1e10:
        return f"{value:,.4f}"
    return f"{value:.10g}"


def amount(value: float, digits: int = 2) -> str:
    """Return a finite number with some significant digits; large ones are whole, not powers."""
    if 10.0**digits - 0.5 <= abs(value) < 1e10:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def ratio(value: float) -> str:
    """Return a gap, or a relative gap, as text."""
    return amount(value) if math.isfinite(value) else number(value)


def facts_table(facts: dict[str, str], title: str | None = None) -> Table:
    """Return a table with two columns, name and value."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    return table
