"""Accelerated methods that settle: momentum first, and plain updates to the end of a run.

Momentum improves the dual, but leaves slack, for which the projection to the local polytope pays.
Plain updates remove the slack (`docs/reproduction/template.md` has the measurements).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softmap import core
from softmap.errors import OptionError
from softmap.methods.base import Algorithm, Floats, Proposal, State
from softmap.model import Network
from softmap.paper.methods import BCD, EMP, SMP, Accelerated, Standard, UpdateRule

__all__ = ["Settled", "SettledState", "plain_method"]


def plain_method(method: Accelerated) -> Standard:
    """Return the method without momentum: the same rule, the same blocks, the same η."""
    if method.rule is UpdateRule.GRADIENT:
        return BCD(method.eta)
    return SMP(method.eta) if method.blocks is SMP.blocks else EMP(method.eta)


@dataclass(kw_only=True)
class SettledState(State):
    """The state of the method in use.

    Attributes
    ----------
    inner : AcceleratedState or StandardState
        The state with momentum, then that of the plain updates.
    updates : int
        Number of updates so far.
    plain : bool
        Whether the updates are plain.
    """

    inner: Any
    updates: int = 0
    plain: bool = False


class Settled(Algorithm):
    """An accelerated method that makes plain updates after some number of updates.

    Both parts draw blocks from one sequence of random numbers.

    Parameters
    ----------
    accelerated : Accelerated
        The method with momentum.
    updates : int
        Number of updates of the whole run.
    share : float, default 0.1
        Share of the updates that are plain, the last ones of the run.

    Examples
    --------
    >>> import softmap
    >>> from softmap.paper import AccelSMP, Settled
    >>> model = softmap.generators.erdos_renyi(9, seed=0)
    >>> method = Settled(AccelSMP(eta=100.0), updates=2000)
    >>> state = method.init(model.network, None, seed=1)
    >>> method.step(state, 2000)
    >>> state.updates, state.plain
    (2000, True)
    """

    name = "settled"
    fixed_eta = True

    def __init__(self, accelerated: Accelerated, updates: int, share: float = 0.1) -> None:
        if updates < 1:
            raise OptionError(f"updates must be at least 1, not {updates}")
        if not 0.0 <= share <= 1.0:
            raise OptionError(f"share must be between 0 and 1, not {share}")
        self.accelerated, self.eta = accelerated, accelerated.eta
        self.plain = plain_method(accelerated)
        self.first = updates - round(share * updates)

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> SettledState:
        """Return the initial state at λ (0 if None)."""
        return SettledState(inner=self.accelerated.init(model, lam, seed, deadline))

    def step(self, state: SettledState, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` updates, fewer if the deadline passes first."""
        fast = min(count, self.first - state.updates)
        if fast > 0:
            self._advance(self.accelerated, state, fast, deadline)
        slow = count - max(fast, 0)
        if slow > 0 and state.updates >= self.first:
            self._settle(state)
            self._advance(self.plain, state, slow, deadline)

    def _advance(
        self, method: Algorithm, state: SettledState, count: int, deadline: core.Deadline | None
    ) -> None:
        inner = state.inner
        before = inner.updates, inner.work
        method.step(inner, count, deadline)
        state.updates += inner.updates - before[0]
        state.work += inner.work - before[1]

    def _settle(self, state: SettledState) -> None:
        """Continue the current λ with plain updates."""
        if state.plain:
            return
        fast = state.inner
        lam = self.accelerated.propose(fast).lam
        state.inner = self.plain.init(fast.model, lam, 0)
        state.inner.rng = fast.rng
        state.plain = True

    def propose(self, state: SettledState) -> Proposal:
        """Propose the current λ."""
        if state.plain:
            return Proposal(state.inner.current(), self.eta)
        return self.accelerated.propose(state.inner)
