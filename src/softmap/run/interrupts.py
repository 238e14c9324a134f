"""`Interrupts`: Ctrl-C, SIGTERM and SIGHUP end a run, which then returns the best it has."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, ClassVar

from softmap import core

__all__ = ["Interrupts"]


class Interrupts:
    """A context in which the first Ctrl-C only sets a flag; a second one raises KeyboardInterrupt.

    Two Ctrl-C within a second, also in two consecutive runs, abort the whole program: the run then
    ends with a KeyboardInterrupt. SIGTERM and SIGHUP have the effect of Ctrl-C. Contexts may be
    nested, also those of two objects: the inner one stops, and the outer one then knows why.
    Nothing happens outside the main thread, or if the program has its own signal handler.

    Attributes
    ----------
    noted : bool
        Whether Ctrl-C was pressed, or SIGTERM or SIGHUP received.
    twice : bool
        Whether this happened twice within a second.
    broken : bool
        Whether an exception left the innermost block, whose work may be incomplete.
    """

    last: ClassVar[float] = -math.inf  # time of the last Ctrl-C, in any run
    soon: ClassVar[float] = 1.0  # two Ctrl-C within this many seconds abort the whole program
    # Signals that are handled, with the handlers that are replaced. A worker process has none: its
    # parent ends it.
    replaced: ClassVar[dict[int, tuple[Any, ...]]] = {
        number: (signal.SIG_DFL, signal.default_int_handler)
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", None))
        if number is not None  # Windows has no SIGHUP
    } | {signal.SIGINT: (signal.default_int_handler,)}

    def __init__(self) -> None:
        self.noted = self.twice = self.broken = False
        self._before: dict[int, Any] = {}
        self._outer: Interrupts | None = None
        self._depth = self._patient = 0
        self._stop = core.Deadline()

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
        """A block that not even a second Ctrl-C interrupts: short, and it must complete."""
        self._patient += 1
        try:
            with self:
                yield
        finally:
            self._patient -= 1

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block that Ctrl-C interrupts at once, as in the user's own code."""
        for number in self._before:
            signal.signal(number, signal.default_int_handler)
        try:
            yield
        finally:
            for number in self._before:
                signal.signal(number, self._note)

    @property
    def stop(self) -> core.Deadline | None:
        """A deadline that Ctrl-C stops; None if Ctrl-C is handled elsewhere."""
        return self._stop if signal.SIGINT in self._before else None

    def within(self, seconds: float) -> core.Deadline:
        """Return a deadline so many seconds from now, which Ctrl-C stops."""
        return self._stop.within(seconds)

    def _install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number, usual in self.replaced.items():
            before = signal.getsignal(number)
            owner = getattr(before, "__self__", None)
            if isinstance(owner, Interrupts):
                self._outer = owner
            if before in usual or owner is self._outer is not None:
                self._before[number] = before
                signal.signal(number, self._note)
        if self._outer is not None and self._outer.noted:
            self._noted()

    def _remove(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())
        if self._outer is not None and self.noted:
            self._outer._noted()
        self._outer = None

    def _noted(self) -> None:
        self.noted = True
        self._stop.stop()

    def press(self) -> None:
        """Record a Ctrl-C."""
        now = time.monotonic()
        self.twice = self.twice or now - Interrupts.last < self.soon
        Interrupts.last = now

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.press()
        if (self.noted or self.twice) and not self._patient:
            raise KeyboardInterrupt
        self._noted()
