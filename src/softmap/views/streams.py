"""Standard output and error where they cannot be written: closed, full, or without a reader."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["Forgiving", "discard_output", "interactive", "say"]


class Forgiving:
    """Standard error; where it cannot be written, what is said is dropped and the run goes on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, if that is possible."""
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
    """Say something on standard error, under our name."""
    if sys.stderr is not None:
        Forgiving(sys.stderr).write(f"softmap: {sentence}\n")


def discard_output() -> None:
    """Drop what standard output still holds, so that nobody complains again at exit."""
    _discard(sys.stdout)


def _discard(stream: Any) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
