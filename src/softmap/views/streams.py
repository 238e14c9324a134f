"""Standard output and standard error that may be closed, full, or without a reader."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["Forgiving", "discard_output", "interactive", "say"]


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


def interactive() -> bool:
    """Whether a person watches standard error: a terminal, or a notebook."""
    stream = sys.stderr
    if stream is None:
        return False
    return bool(getattr(stream, "isatty", bool)()) or "ipykernel" in type(stream).__module__


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
