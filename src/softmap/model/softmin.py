"""The soft minimum `-(1/η) log Σ exp(-η cost)`, in plain numpy and without overflow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["softmin", "softmin_by_block"]

Floats = NDArray[np.float64]


def softmin(cost: Floats, eta: float) -> Floats:
    """Soft minimum over the last axis; +inf where all costs are."""
    least = cost.min(axis=-1)
    shift = np.where(np.isfinite(least), least, 0.0)
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(-eta * (cost - shift[..., None])).sum(axis=-1))
    return np.asarray(shift - sums / eta)


def softmin_by_block(cost: Floats, starts: NDArray[np.int64], eta: float) -> Floats:
    """Soft minimum of each block of a flat array; every block has a finite cost."""
    least = np.minimum.reduceat(cost, starts)
    counts = np.diff(np.append(starts, len(cost)))
    mass = np.add.reduceat(np.exp(-eta * (cost - np.repeat(least, counts))), starts)
    return np.asarray(least - np.log(mass) / eta)
