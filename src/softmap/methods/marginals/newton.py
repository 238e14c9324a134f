"""Newton steps towards the smoothed optimum, by conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Smoothed", "Solved", "conjugate_gradients", "newton"]


@dataclass(frozen=True)
class NewtonLimits:
    """How long Newton's method goes on.

    Attributes
    ----------
    steps : int
        Steps in one round.
    products : int
        Products with the Hessian at most, for one step.
    """

    steps: int = 12
    products: int = 400


NEWTON = NewtonLimits()


Floats = NDArray[np.float64]
Product = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Solved:
    """A solution, the products it took, and whether every part reached its tolerance."""

    x: Floats
    products: int
    done: bool


def conjugate_gradients(
    matrix: Product,
    precondition: Product,
    rhs: Floats,
    part: NDArray[np.int32],
    parts: int,
    *,
    tol: float,
    limit: int,
) -> Solved:
    """Solve `matrix(x) = rhs` for a right-hand side in the range of a semidefinite matrix.

    Each part takes its own steps and rests when √(rᵀ P r) has fallen by the factor `tol`: one
    product serves all, and no part waits for the slowest one's step. What the matrix maps to 0 may
    be anything in x.
    """

    def dot(a: Floats, b: Floats) -> Floats:
        return np.asarray(np.bincount(part, a * b, parts), dtype=np.float64)

    x, r = np.zeros_like(rhs), rhs.copy()
    z = precondition(r)
    direction, rho = z.copy(), dot(r, z)
    goal = tol**2 * rho
    for products in range(limit):
        active = rho > goal
        if not active.any():
            return Solved(x, products, True)
        image = matrix(direction)
        curve = dot(direction, image)
        moving = active & (curve > 0)
        if not moving.any():  # only rounding is left
            return Solved(x, products + 1, bool((rho <= 1e4 * goal).all()))
        step = np.divide(rho, curve, out=np.zeros(parts), where=moving)[part]
        x += step * direction
        r -= step * image
        z = precondition(r)
        new = dot(r, z)
        keep = np.divide(new, rho, out=np.zeros(parts), where=moving)[part]
        direction = z + keep * direction
        rho = np.where(moving, new, np.minimum(rho, goal))
    return Solved(x, limit, bool((rho <= goal).all()))


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


def newton(point: P, tol: float, steps: int = NEWTON.steps) -> P:
    """Newton steps with backtracking, as long as they help."""
    for _ in range(steps):
        if point.worst <= tol:
            break
        step = point.solve(point.slack, min(0.1, math.sqrt(point.worst)), NEWTON.products).x
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
