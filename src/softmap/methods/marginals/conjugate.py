"""Conjugate gradients on a semidefinite system that falls apart into independent parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Solved", "conjugate_gradients"]

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
