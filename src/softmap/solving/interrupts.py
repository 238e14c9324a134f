"""Ctrl-C, noted now and acted on between two steps, so that a run always stops in a whole state."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """While entered, the first Ctrl-C is only noted; a second one interrupts as usual.

    Does nothing outside the main thread, or where the program handles the signal itself.

    Attributes
    ----------
    noted : bool
        Ctrl-C was pressed.
    broken : bool
        An exception left the block: what it did may be half done.
    """

    def __init__(self) -> None:
        self.noted = self.broken = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if usual and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.broken = kind is not None
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True
