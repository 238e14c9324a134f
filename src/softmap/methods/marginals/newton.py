"""The way to the smoothed optimum: smaller η first, sweeps, Newton steps by conjugate gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ConvergenceWarning


@dataclass(frozen=True)
class SmoothLimits:
    """Tolerances and limits of the computation of the smoothed optimum.

    Attributes
    ----------
    tol : float
        Largest |ν| of marginals that count as consistent.
    mild : float
        Smallest η for continuation in η, in units of 1 / scale of the costs.
    coarse : float
        Tolerance of |ν| at intermediate values of η.
    local : float
        |ν| below which Newton's method starts without sweeps.
    sweeps : int
        Number of sweeps before the first Newton step; it grows from round to round.
    rounds : int
        Largest number of rounds of sweeps and Newton steps.
    steps : int
        Number of Newton steps in one round.
    step_products : int
        Largest number of products with the Hessian for one Newton step.
    products : int
        Largest number of products with the Hessian for a gradient.
    adjoint : float
        Relative accuracy of the adjoint solve, in the norm of its preconditioner.
    nothing : float
        Right-hand sides below this value, relative to the absolute values of their terms, are 0.
    """

    tol: float = 1e-10
    mild: float = 8.0
    coarse: float = 1e-3
    local: float = 0.1
    sweeps: int = 24
    rounds: int = 3
    steps: int = 12
    step_products: int = 400
    products: int = 4000
    adjoint: float = 1e-11
    nothing: float = 1e-14


SMOOTHING = SmoothLimits()


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Solved:
    """A solution, the number of products used, and whether every part reached its tolerance."""

    x: Any
    products: int
    done: bool


class JacobianParts(Protocol):
    """Arrays of which parts take steps of their own; `xp` is the module that they belong to."""

    xp: Any

    def dot(self, a: Any, b: Any) -> Any:
        """The product of two arrays, one number per part."""
        ...

    def each(self, values: Any) -> Any:
        """One number per part, for every entry of the part."""
        ...


def conjugate_gradients(
    matrix: Callable[[Any], Any],
    precondition: Callable[[Any], Any],
    rhs: Any,
    parts: JacobianParts,
    *,
    tol: float,
    limit: int,
) -> Solved:
    """Solve `matrix(x) = rhs` for a right-hand side in the range of a semidefinite matrix.

    The matrix is block-diagonal. Each part (block) has its own step lengths, and stops when
    √(rᵀ P r) has fallen by the factor `tol`; one product is shared by all parts. The component of x
    in the kernel of the matrix is arbitrary.
    """
    xp = parts.xp
    x, r = xp.zeros_like(rhs), rhs.copy()
    z = precondition(r)
    direction, rho = z.copy(), parts.dot(r, z)
    goal = tol**2 * rho
    for products in range(limit):
        active = rho > goal
        if not bool(active.any()):
            return Solved(x, products, True)
        image = matrix(direction)
        curve = parts.dot(direction, image)
        moving = active & (curve > 0)
        if not bool(moving.any()):  # only rounding is left
            return Solved(x, products + 1, bool((rho <= 1e4 * goal).all()))
        step = parts.each(xp.where(moving, rho / xp.where(moving, curve, 1.0), 0.0))
        x += step * direction
        r -= step * image
        z = precondition(r)
        new = parts.dot(r, z)
        keep = parts.each(xp.where(moving, new / xp.where(moving, rho, 1.0), 0.0))
        direction = z + keep * direction
        rho = xp.where(moving, new, xp.minimum(rho, goal))
    return Solved(x, limit, bool((rho <= goal).all()))


class Smoothed(Protocol):
    """The smoothed dual at one λ, as Newton's method uses it."""

    lam: Any
    value: float

    @property
    def slack(self) -> Any:
        """The slack ν = S - μ_i on every half-edge, the negative gradient of L."""
        ...

    @property
    def worst(self) -> float:
        """The largest |ν|."""
        ...

    def at(self, lam: Any) -> Self:
        """Return the same object at another λ."""
        ...

    def solve(self, rhs: Any, tol: float, limit: int) -> Any:
        """Solve ∇²L(λ) x = `rhs` with at most `limit` products; the result has attribute `x`."""
        ...


P = TypeVar("P", bound=Smoothed)


def newton(point: P, tol: float, steps: int = SMOOTHING.steps) -> P:
    """Do Newton steps with backtracking until |ν| ≤ `tol` or a step does not help."""
    for _ in range(steps):
        if point.worst <= tol:
            break
        step = point.solve(point.slack, min(0.1, math.sqrt(point.worst)), SMOOTHING.step_products).x
        better = _along(point, step)
        if better is None:
            break
        point = better
    return point


def _along(point: P, step: Any) -> P | None:
    """Return the first point at 1, 1/4, 1/16, … of the step that is better, or None."""
    slope, length = float((step * point.slack).sum()), 1.0
    while length > 1e-4:
        new = point.at(point.lam + length * step)
        falls = new.value <= point.value - 1e-4 * length * slope
        if new.worst < 0.5 * point.worst or (falls and new.value < point.value):
            return new
        length /= 4
    return None


def approach(
    at: Callable[[Any, float], P],
    sweep: Callable[[P, int], P],
    lam: Any,
    eta: float,
    tol: float,
    *,
    halvings: int,
    growth: int,
) -> P:
    """The smoothed optimum at η, or as near as sweeps and Newton steps lead.

    Parameters
    ----------
    at : function from λ and η to a point
    sweep : function from a point and a number of sweeps to the point after these
    lam : λ to begin with
    halvings : int
        How often η is halved for the first point; the way leads over all of them.
    growth : int
        Factor on the number of sweeps from one round to the next.
    """
    for k in range(halvings, 0, -1):
        point = _swept(sweep, at(lam, eta / 2**k), SMOOTHING.sweeps)
        lam = newton(point, SMOOTHING.coarse, steps=4).lam
    point = at(lam, eta)
    if point.worst <= SMOOTHING.local:
        point = newton(point, tol)
    for round in range(SMOOTHING.rounds):
        if point.worst <= tol:
            break
        point = newton(_swept(sweep, point, SMOOTHING.sweeps * growth**round), tol)
    return point


def _swept(sweep: Callable[[P, int], P], point: P, count: int) -> P:
    """After `count` sweeps; where that is worse, as it was."""
    swept = sweep(point, count)
    return swept if swept.value <= point.value or swept.worst < point.worst else point


def reach(eta: float, largest: float) -> float:
    """Return the smallest |ν| that can be reached, given rounding errors of η times the costs."""
    return 16 * float(np.finfo(np.float64).eps) * (1.0 + eta * largest)


def warn_unless_consistent(point: Any, tol: float) -> None:
    """Issue a `ConvergenceWarning` if the marginals of a point differ by more than `tol`."""
    if not point.worst <= tol:
        warnings.warn(
            f"marginals at eta={point.eta:g} agree to {point.worst:.1g} only, not to {tol:.1g}; "
            "a smaller eta converges faster",
            ConvergenceWarning,
            stacklevel=3,
        )
