"""Spins from unit vectors: random hyperplanes, then single flips."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from softmap import core
from softmap.subsolvers.spins.spin_numbers import SpinSteps

__all__ = ["flip", "rounded_spins"]

Floats = NDArray[np.float64]


def rounded_spins(
    matrix: Floats,
    vectors: Floats,
    random: np.random.Generator,
    deadline: core.Deadline,
    numbers: SpinSteps,
) -> Floats:
    """Return the best spins of some random hyperplanes, after single flips.

    Parameters
    ----------
    matrix : float64 array (N, N)
        The quadratic form, without a diagonal.
    vectors : float64 array (N, rank)
        Unit vectors that stand for the spins.
    random : Generator
        Draws the hyperplanes.
    deadline : Deadline
        When to stop: `core.OutOfTime` is raised.
    numbers : SpinSteps
        The numbers of the run.
    """
    planes = random.standard_normal((vectors.shape[1], numbers.tries))
    rows, tries = csr_array(matrix), []  # a sparse product has no threads
    for spins in np.where(np.einsum("ik,kl->li", vectors, planes) >= 0, 1.0, -1.0):
        deadline.require()
        forces = rows @ spins
        tries.append((float(spins @ forces), spins, forces))
    tries.sort(key=lambda one: one[0])
    best = tries[: numbers.flipped]
    for _, spins, forces in best:
        deadline.require()
        flip(matrix, spins, forces)
    return min(best, key=lambda one: float(one[1] @ one[2]))[1]


def flip(matrix: Floats, spins: Floats, forces: Floats) -> None:
    """Flip the spin that gains most until no flip gains anything.

    Parameters
    ----------
    matrix : float64 array (N, N)
        The quadratic form, without a diagonal.
    spins, forces : float64 arrays (N,)
        The spins, and `matrix @ spins`; both are changed.
    """
    least = 1e-12 * np.abs(matrix).sum(axis=1)
    while (gains := spins * forces - least).max() > 0:
        i = int(np.argmax(gains))
        forces -= 2 * spins[i] * matrix[i]
        spins[i] = -spins[i]
