"""The weights of an estimate sequence with exact block minimisation, as `docs/theory/rates.md` has.

A_k is the sum of the weights a of k safeguard steps: L(x_k) - L* is at most R² / (2 A_k).
"""

from __future__ import annotations

import math

NOISE = 2.0**-44  # relative rounding error of a value of L, taken off before it is divided


def least_step(total: float, blocks: int) -> float:
    """Return â with â² = (A + â) / B, which every step allows.

    Parameters
    ----------
    total : float
        A.
    blocks : int
        B, the number of blocks that a sweep minimises over, one after the other.
    """
    return (1.0 + math.sqrt(1.0 + 4.0 * blocks * total)) / (2.0 * blocks)


def largest_step(square: float, gain: float, held: float) -> float:
    """Return the largest a with held + a gain - a² square / 2 ≥ 0 (0 if there is none)."""
    if square <= 0.0:
        return 0.0
    return max(0.0, (gain + math.sqrt(max(0.0, gain**2 + 2.0 * square * held))) / square)
