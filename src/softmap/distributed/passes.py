"""Passes over all parts: phase after phase, with what parts tell each other in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.algorithms.sweeps.messages import CLOCK
from softmap.distributed.engines import PartEngine
from softmap.distributed.halo import Halo
from softmap.distributed.parts import Part, Whole
from softmap.distributed.team import Team

__all__ = ["Maker", "Passes"]

Floats = NDArray[np.float64]
Maker = Callable[[Part], PartEngine]


class Passes:
    """The messages of this process's parts, and passes in which all processes take part.

    Attributes
    ----------
    chains : dict from the number of a part to what runs its passes
    clock : float64[3]
        Nesterov's t, restarts, and the last restart product; the same in every process.
    """

    def __init__(self, team: Team, whole: Whole, parts: list[Part], make: Maker) -> None:
        self.team, self.whole = team, whole
        self.chains = {part.number: make(part) for part in parts}
        self.halo = Halo(team, self.chains, whole.phases)
        self.clock = np.array(CLOCK)
        self._product: Callable[[], Floats] | None = None

    @property
    def messages(self) -> dict[int, Any]:
        """The messages by part."""
        return {number: chains.msg for number, chains in self.chains.items()}

    def run(self, count: int, eta: float) -> None:
        """`count` passes at η with momentum, forward and backward each."""
        for _ in range(count):
            self._extrapolate(eta)
            self._half(True, eta, True, self.messages)
            self._half(False, eta, True, self.messages)
            sums = [[chains.product()] for chains in self.chains.values()]
            self._product = self.team.begin(sums, 1)  # on its way until the next pass

    def settle(self) -> None:
        """Wait for the restart product of the last pass."""
        if self._product is not None:
            self.clock[2] = core.careful_sum(self._product()[:, 0].copy())
            self._product = None

    def _extrapolate(self, eta: float) -> None:
        self.settle()
        following = self.clock.copy()
        core.extrapolate(np.empty(0), np.empty(0), following, 1)
        for chains in self.chains.values():
            chains.extrapolate(self.clock, eta)
        self.clock = following

    def _half(self, forward: bool, eta: float, momentum: bool, arrays: dict[int, Any]) -> None:
        phases = range(self.whole.phases)
        for phase in phases if forward else reversed(phases):
            for number, chains in self.chains.items():
                chains.half_pass(phase, forward, eta, momentum, arrays[number])
            self.halo.messages(forward, phase, arrays)

    def polished(self, hard: int) -> dict[int, Any]:
        """Messages after `hard` hard passes and a half, from which a bound is read off."""
        arrays = {number: chains.spare(hard) for number, chains in self.chains.items()}
        for half in range(2 * hard + 1):
            self._half(half % 2 == 0, np.inf, False, arrays)
        return arrays

    def forget(self) -> None:
        """Let go of what a judgement needed."""
        for chains in self.chains.values():
            chains.forget()

    def sample(self, eta: float, weight: float, samples: int) -> None:
        """Let the node marginals enter their running average, the `samples`-th of them."""
        for chains in self.chains.values():
            chains.sample(eta, weight, samples)
