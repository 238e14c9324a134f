"""Curves against time: who is ahead, by how much, and how many passes a bound took."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.relaxation.gaps import gap_unit

Trace = dict[str, list[float]]
Floats = NDArray[np.float64]


def best_so_far(trace: Trace, column: str) -> Floats:
    """The column with every value replaced by the best up to then."""
    values = np.asarray(trace[column], dtype=np.float64)
    extreme = np.fmax if column == "bound" else np.fmin
    return np.asarray(extreme.accumulate(values)) if len(values) else values


def passes_to_bound(trace: Trace, edges: int, optimum: float, gap: float) -> float:
    """Passes (two messages per edge) until the bound is within `gap` of the LP optimum."""
    bound = best_so_far(trace, "bound")
    near = np.flatnonzero(bound >= optimum - gap * gap_unit(optimum))
    return trace["work"][near[0]] / (2 * edges) if len(near) else math.inf


def worst_lag(ours: Trace, theirs: Trace, edges: int, passes: int = 5) -> float:
    """The largest factor of time by which our bound comes later than theirs to the same value.

    Looked at wherever they have a check after their first passes; a difference of 1e-9 of the value
    is no difference.
    """
    bound, rival = best_so_far(ours, "bound"), best_so_far(theirs, "bound")
    worst = 0.0
    for work, seconds, value in zip(theirs["work"], theirs["seconds"], rival, strict=True):
        if work < 2 * edges * passes or not math.isfinite(value):
            continue
        level = np.flatnonzero(bound >= value - 1e-9 * gap_unit(value))
        worst = max(worst, ours["seconds"][level[0]] / seconds if len(level) else math.inf)
    return worst


def energies_at(ours: Trace, theirs: Trace) -> tuple[float, float]:
    """Best energies of both after the time at which the shorter of the two ended."""
    if not ours["seconds"] or not theirs["seconds"]:
        return math.inf, math.inf
    end = min(ours["seconds"][-1], theirs["seconds"][-1])
    return _energy_at(ours, end), _energy_at(theirs, end)


def _energy_at(trace: Trace, seconds: float) -> float:
    seen = np.asarray(trace["seconds"]) <= seconds
    energies = best_so_far(trace, "energy")[seen]
    return float(energies[-1]) if len(energies) else math.inf


def race_of(rows: list[dict[str, Any]], instance: str, method: str) -> dict[str, Any] | None:
    """The race row of a method, if it ran."""
    found = [
        r
        for r in rows
        if (r["instance"], r["method"], r["gap"]) == (instance, method, 0.0) and r.get("trace")
    ]
    return found[0] if found else None
