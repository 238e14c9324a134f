"""Passes of a run made in advance, on a copy of its state, while others look at that state."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softmap.algorithms.sweeps.anneal import Annealed, AnnealState
    from softmap.algorithms.sweeps.chains import Chains

__all__ = ["PassesAhead"]


class PassesAhead:
    """Passes from a copy of a state, on one thread: those to come, unless η changes first."""

    def __init__(self, method: Annealed, engine: Chains, state: AnnealState) -> None:
        self._engine, self._twin = engine, copy(method)
        self._twin.engine = engine.twin()
        self._from, self._state = _course(state), replace(state, messages=state.messages.copy())

    def step(self, count: int) -> None:
        """Make passes."""
        self._twin.step(self._state, count)

    def join(self, state: AnnealState) -> bool:
        """Put the state of the run where these passes have led, if nothing has changed η."""
        if _course(state) != self._from:
            return False
        there = self._state
        self._engine.overtake(state.messages, there.messages, state.eta)
        state.passes, state.samples = there.passes, there.samples
        state.mean, state.work = there.mean, there.work
        return True


def _course(state: AnnealState) -> tuple[int, float, float]:
    """What the next passes depend on, apart from messages."""
    return state.passes, state.eta, state.memory
