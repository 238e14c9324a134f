"""A rule, an order and a scheme as a method, for `softmap.solve` and the figures of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from softmap import core
from softmap.arguments import seeded
from softmap.methods.base import Algorithm, Floats, Proposal
from softmap.model import Network
from softmap.paper.algorithms import STANDARD, Point, Rule, Scheme
from softmap.paper.blocks import Order, edges, sample
from softmap.paper.methods import RandomisedState
from softmap.paper.runs import gains, points
from softmap.relaxation.dual import SmoothedDual, check_eta, check_lam


@dataclass(kw_only=True)
class WrittenState(RandomisedState):
    """The point of a run, and the iterate of least slack that Algorithm 1 returns.

    Attributes
    ----------
    lam, v : float64 arrays
        λ^(k) and v^(k), in the model's order.
    theta : float
        θ_{k-1}.
    kept : float64 array
        The iterate of least Σ ‖ν‖₁² so far, if the scheme is Algorithm 1.
    least : float
        Σ ‖ν‖₁² of `kept`.
    """

    lam: Floats
    v: Floats
    theta: float = 1.0
    kept: Floats
    least: float = math.inf

    def current(self) -> Floats:
        """Return λ^(k)."""
        return self.lam.copy()


@dataclass(frozen=True)
class Parts:
    """What a method is made of: the arguments of `as_method`."""

    rule: Rule
    order: Order
    scheme: Scheme
    P: ArrayLike | None


class Written(Algorithm):
    """A method from a rule, an order and a scheme in Python; `as_method` makes the classes.

    Parameters
    ----------
    eta : float
        Inverse temperature η, in units of 1 / cost.
    """

    fixed_eta = True
    parts: ClassVar[Parts]

    def __init__(self, eta: float) -> None:
        self.eta = check_eta(eta)

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> WrittenState:
        """Return the initial state λ^(0) = v^(0) = λ (0 if None)."""
        parts = self.parts
        self._dual = SmoothedDual(model, self.eta)
        self._blocks = parts.order(model)
        if model.m:
            self._gain = gains(model, parts.order, self._blocks, parts.scheme, self.eta, parts.P)
        first = np.zeros(model.half_size) if lam is None else check_lam(model, lam).copy()
        state = WrittenState(model=model, rng=seeded(seed), lam=first, v=first, kept=first)
        self._keep(state)
        return state

    def step(self, state: WrittenState, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` updates (none if the model has no edges), or fewer until a deadline."""
        if not state.model.m:
            return
        parts, start = self.parts, Point(state.lam, state.v, state.theta)
        draws = self._counted(state, sample(self._blocks, state.rng, parts.P))
        path = points(
            state.model, parts.rule, parts.scheme, self.eta, self._blocks, draws, self._gain, start
        )
        for _ in range(count):
            if deadline is not None and deadline.passed:
                return
            state.lam, state.v, state.theta = next(path)
            state.updates += 1
            self._keep(state)

    def _counted(self, state: WrittenState, draws: Iterator[int]) -> Iterator[int]:
        for b in draws:
            state.work += len(self._blocks[b])
            yield b

    def _keep(self, state: WrittenState) -> None:
        """Keep λ^(k) if its slack is the least so far and the scheme is Algorithm 1."""
        if self.parts.scheme.gain is not None:
            return
        norms = np.abs(self._dual.slack(state.lam))
        starts = state.model.half_offset[:-1]
        total = float((np.add.reduceat(norms, starts) ** 2).sum()) if len(norms) else 0.0
        if total < state.least:
            state.kept, state.least = state.lam, total

    def propose(self, state: WrittenState) -> Proposal:
        """Propose the iterate of least slack in Algorithm 1, else λ^(k)."""
        lam = state.kept if self.parts.scheme.gain is None else state.lam
        return Proposal(lam.copy(), self.eta)


def as_method(
    rule: Rule,
    order: Order = edges,
    scheme: Scheme = STANDARD,
    *,
    name: str = "own",
    P: ArrayLike | None = None,
) -> type[Algorithm]:
    """Return a method that makes the updates of `iterate`, one update per step.

    The class can be listed in `softmap.METHODS`, and named in `softmap reproduce --with`.

    Parameters
    ----------
    rule : function
        The update: `rule(model, lam, eta, block)` returns the new λ_b as a flat array.
    order : function, default `edges`
        The blocks: `order(model)` returns lists of half-edges.
    scheme : Scheme, default `STANDARD`
        `STANDARD` proposes the iterate of least slack, as Algorithm 1; the others the last one.
    name : str, default "own"
        The name of the method, in results and legends.
    P : array, optional
        Probability of each block; by default in proportion to its size.

    Examples
    --------
    >>> import softmap
    >>> from softmap import paper
    >>> softmap.METHODS["mine"] = paper.as_method(paper.smp, paper.stars, name="mine")
    >>> model = softmap.generators.potts_grid(4, 4, 2, seed=0)
    >>> softmap.paper.solve(model, method="mine", eta=50.0, updates=100).method
    'mine'
    >>> del softmap.METHODS["mine"]
    """
    doc = f"{name}: updates written in Python, see `softmap.paper.as_method`."
    parts = Parts(rule, order, scheme, P)
    return type("Written", (Written,), {"name": name, "parts": parts, "__doc__": doc})
