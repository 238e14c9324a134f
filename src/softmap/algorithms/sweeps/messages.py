"""Messages of a run, and what is kept of them: one direction, of which λ or κ are made again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.algorithms.base import Floats
from softmap.algorithms.sweeps.schedule import aligned

if TYPE_CHECKING:
    from softmap.algorithms.sweeps.chains import Chains

__all__ = ["CLOCK", "HalfPass", "KeptBound", "KeptPoint", "Messages"]

CLOCK = (0.0, 0.0, -1.0)  # as `Messages.clock` begins


@dataclass
class Messages:
    """M = -λ along the chains, and the momentum over passes.

    `msg` is the result of the last pass, `prev` what momentum compares it with (empty: momentum
    begins anew); `clock` holds Nesterov's t, the number of restarts and the last product that
    decides on them, `shift` what the last half pass took off each edge. Messages sent forward, and
    what was taken off them, may have been `overwritten` by a bound.
    """

    msg: Floats
    prev: Floats
    clock: Floats
    shift: Floats
    overwritten: bool = False

    def copy(self) -> Messages:
        """The same in memory of its own."""
        msg, prev, clock, shift = map(_copy, (self.msg, self.prev, self.clock, self.shift))
        return Messages(msg, prev, clock, shift, self.overwritten)


def _copy(array: Floats) -> Floats:
    new = aligned(len(array), array.dtype)
    new[:] = array
    return new


@dataclass(frozen=True, eq=False)
class HalfPass:
    """The last half pass over some messages."""

    messages: Floats
    eta: float
    forward: bool


class KeptPoint:
    """What κ is made of: the messages in one direction, if the others are known to follow."""

    def __init__(self, chains: Chains, messages: Floats, last: HalfPass | None) -> None:
        self._chains, self._half = chains, last is not None and last.messages is messages
        self._eta, self._forward = (last.eta, last.forward) if last else (math.nan, False)
        kept = messages[chains.sending(self._forward)] if self._half else messages
        self._kept = kept.copy()

    def __call__(self) -> Floats:
        """κ; the messages of the run stay as they are."""
        chains, messages = self._chains, self._kept
        with chains.making:
            if self._half:
                messages = chains.completed(self._kept, self._eta, forward=self._forward)
            return chains.coupling(messages)


class KeptBound:
    """What λ of a chain bound is made of: messages into early ends, half of what λ takes."""

    def __init__(self, chains: Chains, state: Messages, back: Floats) -> None:
        self._chains, self._state, self._back = chains, state, back
        self.token = object()

    def swap(self) -> None:
        """Exchange what is remembered with what lies in the messages of the run."""
        core.exchange(self._state.msg[: len(self._back)], self._back)

    def __call__(self) -> Floats:
        """λ; the messages of the run stay as they are, unless a bound has overwritten them."""
        return self._with(self._chains.cut)

    def labels(self) -> NDArray[np.int64]:
        """Labels read off; likewise. Messages sent forward are enough for it."""
        if self._chains.has_sent(self.token):
            return self._chains.read(self._state.msg, self.token)
        labels: NDArray[np.int64] = self._with(self._chains.read)
        return labels

    def _with(self, work: Callable[[Floats, object], Any]) -> Any:
        with self._chains.making:
            forward = self._state.msg[len(self._back) :]
            needed = None if self._state.overwritten else forward.copy()
            self.swap()
            try:
                return work(self._state.msg, self.token)
            finally:
                self.swap()
                if needed is not None:
                    forward[:] = needed
                    self._chains.forget()
