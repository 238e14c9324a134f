"""The way to the smoothed optimum: smaller η first, sweeps, Newton steps by conjugate gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from softmap.errors import ConvergenceWarning
from softmap.methods.marginals.curvature import SMOOTHING, Curvature, Frame

Sweep = Callable[[Curvature, int], Curvature]


def newton(point: Curvature, tol: float, steps: int = SMOOTHING.steps) -> Curvature:
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


def _along(point: Curvature, step: Any) -> Curvature | None:
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
    frame: Frame, sweep: Sweep, eta: float, tol: float, *, lam: Any = None, growth: int
) -> Curvature:
    """The smoothed optimum at η, or as near as sweeps and Newton steps lead.

    Parameters
    ----------
    frame : Frame
        The costs.
    sweep : function from a point and a number of sweeps to the point after these
    eta : float
        Inverse temperature η.
    tol : float
        Largest |ν|, as far as rounding allows it.
    lam : float64 array, optional
        Initial λ. By default, 0 for the smallest η of a continuation in η.
    growth : int
        Factor on the number of sweeps from one round to the next.
    """
    tol, halvings = frame.reachable(eta, tol), 0
    if lam is None:
        lam = frame.xp.zeros(frame.states.size)
        halvings = math.ceil(math.log2(max(1.0, eta * frame.scale / SMOOTHING.mild)))
    for k in range(halvings, 0, -1):
        point = _swept(sweep, Curvature(frame, lam, eta / 2**k), SMOOTHING.sweeps)
        lam = newton(point, SMOOTHING.coarse, steps=4).lam
    point = Curvature(frame, lam, eta)
    for round in range(SMOOTHING.rounds):
        if point.worst <= tol:
            break
        point = newton(_swept(sweep, point, SMOOTHING.sweeps * growth**round), tol)
    return point


def _swept(sweep: Sweep, point: Curvature, count: int) -> Curvature:
    """After `count` sweeps; where that is worse, as it was."""
    swept = sweep(point, count)
    return swept if swept.value <= point.value or swept.worst < point.worst else point


def warn_unless_consistent(point: Curvature, tol: float) -> None:
    """Issue a `ConvergenceWarning` if the marginals of a point differ by more than `tol`."""
    if not point.worst <= point.frame.reachable(point.eta, tol):
        warnings.warn(
            f"marginals at eta={point.eta:g} agree to {point.worst:.1g} only, not to {tol:.1g}; "
            "a smaller eta converges faster",
            ConvergenceWarning,
            stacklevel=3,
        )
