"""Newton steps towards the smoothed optimum, for whatever arrays λ is kept in."""

from __future__ import annotations

import math
from typing import Any, Protocol, Self, TypeVar

__all__ = ["Smoothed", "newton"]

STEPS = 12  # in one round
PRODUCTS = 400  # with the Hessian, for one step


class Smoothed(Protocol):
    """The smoothed dual at one λ: its value, its slack, and the same at another λ."""

    lam: Any
    value: float

    @property
    def slack(self) -> Any:
        """ν = S - μ_i on every half-edge, minus the gradient of L."""
        ...

    @property
    def worst(self) -> float:
        """The largest size of the slack."""
        ...

    def at(self, lam: Any) -> Self:
        """The same for another λ."""
        ...

    def solve(self, rhs: Any, tol: float, limit: int) -> Any:
        """The Hessian's inverse times `rhs`, as `x`, by so many products with it at most."""
        ...


P = TypeVar("P", bound=Smoothed)


def newton(point: P, tol: float, steps: int = STEPS) -> P:
    """Newton steps with backtracking, as long as they help."""
    for _ in range(steps):
        if point.worst <= tol:
            break
        step = point.solve(point.slack, min(0.1, math.sqrt(point.worst)), PRODUCTS).x
        better = _along(point, step)
        if better is None:
            break
        point = better
    return point


def _along(point: P, step: Any) -> P | None:
    """The first of the points at 1, 1/4, 1/16, ... of the step that is better."""
    slope, length = float((step * point.slack).sum()), 1.0
    while length > 1e-4:
        new = point.at(point.lam + length * step)
        falls = new.value <= point.value - 1e-4 * length * slope
        if new.worst < 0.5 * point.worst or (falls and new.value < point.value):
            return new
        length /= 4
    return None
