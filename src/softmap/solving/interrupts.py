"""Ctrl-C, noted now and acted on between two steps, so that a run always stops in a whole state."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """While entered, the first Ctrl-C is only noted; a second one interrupts as usual.

    May be entered several times, one inside another. Does nothing outside the main thread, or where
    the program handles the signal itself.

    Attributes
    ----------
    noted : bool
        Ctrl-C was pressed.
    broken : bool
        An exception left the innermost block: what it did may be half done.
    """

    def __init__(self) -> None:
        self.noted = self.broken = False
        self._before: Any = None
        self._depth = self._patient = 0

    def __enter__(self) -> Interrupts:
        self._depth += 1
        if self._depth == 1:
            self._install()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.broken = kind is not None
        self._depth -= 1
        if self._depth == 0:
            self._remove()

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """In this block not even a second Ctrl-C interrupts: what is short and must be whole."""
        self._patient += 1
        try:
            with self:
                yield
        finally:
            self._patient -= 1

    @contextmanager
    def paused(self) -> Iterator[None]:
        """In this block Ctrl-C interrupts at once, as it does in the user's own code."""
        installed = self._before is not None
        self._remove()
        try:
            yield
        finally:
            if installed:
                self._install()

    def _install(self) -> None:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if usual and threading.current_thread() is threading.main_thread():
            self._before = signal.default_int_handler
            signal.signal(signal.SIGINT, self._note)

    def _remove(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted and not self._patient:
            raise KeyboardInterrupt
        self.noted = True
