"""Spins from unit vectors: random hyperplanes, then single flips."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["flipped", "rounded_spins"]

Floats = NDArray[np.float64]
PLANES = 32  # random hyperplanes, of which the best few are improved
IMPROVED = 4


def rounded_spins(matrix: Floats, vectors: Floats, random: np.random.Generator) -> Floats:
    """Return the best spins of some random hyperplanes, after single flips.

    Parameters
    ----------
    matrix : float64 array (N, N)
        The quadratic form, without a diagonal.
    vectors : float64 array (N, rank)
        Unit vectors that stand for the spins.
    random : Generator
        Draws the hyperplanes.
    """
    planes = random.standard_normal((vectors.shape[1], PLANES))
    spins = np.where(vectors @ planes >= 0, 1.0, -1.0)
    costs = np.einsum("ik,ik->k", spins, matrix @ spins)
    tries = [flipped(matrix, spins[:, k].copy()) for k in np.argsort(costs)[:IMPROVED]]
    return min(tries, key=lambda x: float(x @ matrix @ x))


def flipped(matrix: Floats, spins: Floats) -> Floats:
    """Flip the spin that gains most until no flip gains anything; `spins` is changed."""
    forces = matrix @ spins
    while True:
        gains = spins * forces
        i = int(np.argmax(gains))
        if not gains[i] > 1e-12 * np.abs(matrix[i]).sum():
            return spins
        forces -= 2 * spins[i] * matrix[i]
        spins[i] = -spins[i]
