"""Greedy choice of blocks for the paper's methods: largest slack, best of a sample, semi-greedy.

What is proved about them, and what is not, is in `docs/theory/greedy.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap import core
from softmap.methods.base import Floats
from softmap.model import Network
from softmap.paper.methods import (
    AcceleratedState,
    AccelSMP,
    Blocks,
    Standard,
    StandardState,
    UpdateRule,
)
from softmap.relaxation.dual import SmoothedDual

SAMPLE = 8  # blocks that a sampled method compares per update
PERIOD = 16  # restart tests of the semi-greedy method: every PERIOD * n updates
SEMI_GREEDY = 3  # the same of the semi-greedy method, which computes the slack of each


@dataclass(kw_only=True)
class GreedyState(StandardState):
    """The state of Algorithm 1, and a tournament over the ranks of the nodes.

    Attributes
    ----------
    tree : float64 array
        A binary tree of maxima over the ranks; see `src/core/paper/greedy.hpp`.
    """

    tree: Floats


class Greedy(Standard):
    """Algorithm 1 where each update takes the block of largest guaranteed decrease of L.

    Parameters
    ----------
    eta : float
        Inverse temperature η, in units of 1 / cost.
    """

    rule = UpdateRule.MINIMISE

    def __init__(self, eta: float) -> None:
        super().__init__(eta)

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> GreedyState:
        first = super().init(model, lam, seed, deadline)
        tree = np.zeros(2 << max(model.n - 1, 0).bit_length())
        state = GreedyState(**vars(first), tree=tree)
        state.native().plant(self.eta, self._stars, tree)
        return state

    def _update(self, state: Any, run: Any, count: int) -> int:
        return int(run.run_greedy(self.eta, self._stars, count, state.tree))


class GreedyEMP(Greedy):
    """Edge updates at the half-edge of largest slack ‖ν‖₁."""

    name = "greedy-emp"
    blocks = Blocks.EDGES


class GreedySMP(Greedy):
    """Star updates at the node of largest Σ ‖ν‖₁² / (|N_i| + 1)."""

    name = "greedy-smp"
    blocks = Blocks.STARS


class Sampled(Standard):
    """Algorithm 1 where each update takes the best of a few random blocks.

    Parameters
    ----------
    eta : float
        Inverse temperature η, in units of 1 / cost.
    sample : int, default 8
        Number of blocks drawn per update.
    """

    rule = UpdateRule.MINIMISE

    def __init__(self, eta: float, sample: int = SAMPLE) -> None:
        super().__init__(eta)
        self.sample = sample

    def _update(self, state: Any, run: Any, count: int) -> int:
        return int(run.run_sampled(self.eta, self._stars, count, self.sample, state.rng))


class SampledEMP(Sampled):
    """Edge updates at the best of a few random half-edges."""

    name = "sampled-emp"
    blocks = Blocks.EDGES


class SampledSMP(Sampled):
    """Star updates at the best of a few random nodes."""

    name = "sampled-smp"
    blocks = Blocks.STARS


@dataclass(kw_only=True)
class SemiGreedyState(AcceleratedState):
    """The state of Algorithm 3 as proved, and that of the restart test.

    Attributes
    ----------
    value : float
        L(λ) at the last test.
    restarts : int
        Number of restarts.
    """

    value: float = math.inf
    restarts: int = 0


class AccelGreedySMP(AccelSMP):
    """Algorithm 3 as proved, semi-greedy: λ takes the best star of a few, v the first of them.

    After every 16 n updates the momentum restarts if L(λ) has risen.

    Parameters
    ----------
    eta : float
        Inverse temperature η, in units of 1 / cost.
    sample : int, default 3
        Number of stars whose slack is computed per update; 1 is `accel-smp`.
    restart : bool, default True
        Whether to restart; the rate of the proof holds between restarts.
    """

    name = "accel-greedy-smp"
    compared = SEMI_GREEDY

    def __init__(self, eta: float, sample: int = SEMI_GREEDY, *, restart: bool = True) -> None:
        super().__init__(eta)
        self.compared, self.restart = sample, restart

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> SemiGreedyState:
        return SemiGreedyState(**vars(super().init(model, lam, seed, deadline)))

    def _at_once(self, state: Any, most: int) -> int:
        """Return the updates left until the next restart test."""
        period = PERIOD * state.model.n
        return int(period - state.updates % period)

    def _update(self, state: Any, run: Any, count: int) -> int:
        given = self.eta, count, self.compared, state.theta, state.rng
        state.theta, work = run.run_semi_greedy(*given)
        if self.restart and (state.updates + count) % (PERIOD * state.model.n) == 0:
            self._test(state)
        return int(work)

    def _test(self, state: SemiGreedyState) -> None:
        """Restart from λ if L(λ) has risen since the last test."""
        before, state.value = state.value, self._value(state)
        state.work += state.model.m
        if state.value > before:
            state.v += state.theta**2 * state.w
            state.w[:] = 0.0
            state.theta = 1.0
            state.restarts += 1

    def _value(self, state: SemiGreedyState) -> float:
        return SmoothedDual(state.model, self.eta).value(self.propose(state).lam)
