"""Ctrl-C, noted now and acted on between two steps, so that a run always stops in a whole state."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, ClassVar

__all__ = ["Interrupts"]

SOON = 1.0  # seconds between two presses that mean: leave, not only this run


class Interrupts:
    """While entered, the first Ctrl-C is only noted; a second one interrupts as usual.

    Two presses within a second, also of two runs one after the other, mean that the whole program
    is to be left: the run then ends with a KeyboardInterrupt. May be entered several times, one
    inside another. Does nothing outside the main thread, or where the program handles the signal
    itself.

    Attributes
    ----------
    noted : bool
        Ctrl-C was pressed.
    twice : bool
        And again within a second.
    broken : bool
        An exception left the innermost block: what it did may be half done.
    """

    last: ClassVar[float] = -math.inf  # when Ctrl-C was pressed, in whichever run

    def __init__(self) -> None:
        self.noted = self.twice = self.broken = False
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

    def press(self) -> None:
        """Take note of a press."""
        now = time.monotonic()
        self.twice = self.twice or now - Interrupts.last < SOON
        Interrupts.last = now

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.press()
        if (self.noted or self.twice) and not self._patient:
            raise KeyboardInterrupt
        self.noted = True
