"""Rates that go beyond the paper: a sharper Theorem 1, greedy methods, and accelerated sweeps.

Statements and proofs are in `docs/theory/rates.md`; units are those of `softmap.paper.theory`.
c is a bound on the spread (largest minus smallest entry) of a table of costs, 2 ‖C‖_∞.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.paper.theory import Blocks, Sizes, over_stars, positive_number

Floats = NDArray[np.float64]


def spread(s: Sizes) -> float:
    """c = 2 ‖C‖_∞."""
    return 2.0 * s.cost


def eta_for(s: Sizes, epsilon: float) -> float:
    """η = 2 (n + 2m) log d / ε: the entropy costs at most ε / 2."""
    return 2 * (s.n + 2 * s.m) * s.log_d / positive_number("epsilon", epsilon)


def cost_error(s: Sizes, eta: float, slack_norms: ArrayLike, lam_spreads: ArrayLike) -> float:
    """Bound on ⟨C, Proj(μ^λ, 0) - μ*⟩: Σ_h (c + ½ spread λ_h) ‖ν_h‖₁ + (n + 2m) log d / η.

    Parameters
    ----------
    s : Sizes
        Sizes of the model.
    eta : float
        Inverse temperature.
    slack_norms, lam_spreads : float arrays
        ‖ν_h‖₁, and the largest minus the smallest entry of λ_h, of each half-edge.
    """
    spreads = np.asarray(lam_spreads, dtype=np.float64)
    slack = float(((spread(s) + spreads / 2) * np.asarray(slack_norms, dtype=np.float64)).sum())
    return slack + (s.n + 2 * s.m) * s.log_d / positive_number("eta", eta)


def star_spread(s: Sizes) -> float:
    """Spread of λ_h after a star update, at most 2 c |N_i| / (|N_i| + 1), whatever λ was before."""
    return 2 * spread(s) * s.max_degree / (s.max_degree + 1)


def total_spread(s: Sizes, eta: float) -> float:
    """Bound on Σ_h spread λ_h where L(λ) ≤ L(0): d ((n + m) c + (n + 2m) log d / η)."""
    entropy = (s.n + 2 * s.m) * s.log_d / positive_number("eta", eta)
    return s.d * ((s.n + s.m) * spread(s) + entropy)


def conditioning(s: Sizes, eta: float, blocks: Blocks = "edges") -> float:
    """Q with (L(λ) - L*)² ≤ Q Σ ‖ν_h‖₁²: `total_spread ** 2` (edges), 8 m c² (stars)."""
    return 8 * s.m * spread(s) ** 2 if over_stars(blocks) else total_spread(s, eta) ** 2


def block_share(s: Sizes, blocks: Blocks = "edges") -> float:
    """κ = |B| / (|B| + 1) of the smallest block: a random update lowers L by κ Σ ‖ν‖₁² / (4mη)."""
    size = s.min_degree if over_stars(blocks) else 1
    return size / (size + 1)


def random_rate(k: ArrayLike, s: Sizes, eta: float, blocks: Blocks = "edges") -> Floats:
    """Bound on E L(λ_k) - L* of EMP and SMP from λ = 0: 4 m η Q / (κ k)."""
    scale = 4 * s.m * eta * conditioning(s, eta, blocks) / block_share(s, blocks)
    return np.asarray(scale / np.asarray(k, dtype=np.float64))


def slack_rate(k: ArrayLike, s: Sizes, eta: float, blocks: Blocks = "edges") -> Floats:
    """Bound on the least E Σ ‖ν_h‖₁² among the first k (even) iterates: 64 m² η² Q / (κ k)²."""
    steps = np.asarray(k, dtype=np.float64) * block_share(s, blocks)
    return np.asarray((8 * s.m * eta / steps) ** 2 * conditioning(s, eta, blocks))


def standard_iterations(s: Sizes, epsilon: float, blocks: Blocks = "edges") -> float:
    """K of the sharper Theorem 1: 32 m (n + 2m) Q log d / (κ ε²), with η = `eta_for`.

    For stars it is at most 512 m² (n + 2m) c² log d / ε².
    """
    eta = eta_for(s, epsilon)
    share = block_share(s, blocks)
    return 16 * s.m * eta * conditioning(s, eta, blocks) / (share * epsilon)


def greedy_rate(k: ArrayLike, s: Sizes, eta: float, blocks: Blocks = "edges") -> Floats:
    """Bound on L(λ_k) - L* of greedy EMP, 4 η T² / k, and greedy SMP, 8 η c² (2m + n/2)² / k.

    T is `total_spread`. For edges that is 2m times less than `random_rate`.
    """
    if over_stars(blocks):
        scale = 8 * eta * (spread(s) * (2 * s.m + s.n / 2)) ** 2
    else:
        scale = 4 * eta * total_spread(s, eta) ** 2
    return np.asarray(scale / np.asarray(k, dtype=np.float64))


def sweep_rate(k: ArrayLike, colours: int, distance: float) -> Floats:
    """Bound on L(x_k) - L* after k safeguard steps of `accel-sweeps`: 2 B R² / (k + 1)².

    Parameters
    ----------
    k : int array
        Number of safeguard steps.
    colours : int
        B, the number of colours of a sweep.
    distance : float
        R² = Σ W (λ* - λ⁰)², with W of `sweep_curvature`; `sweep_distance` bounds it.
    """
    steps = np.asarray(k, dtype=np.float64)
    return np.asarray(2 * colours * distance / (steps + 1) ** 2)


def sweep_distance(s: Sizes, eta: float) -> float:
    """Bound on R² from λ⁰ = 0 for some minimiser: η d c² m (Δ + 2), Δ the largest degree."""
    return eta * s.d * spread(s) ** 2 * s.m * (s.max_degree + 2)


def sweep_iterations(s: Sizes, colours: int, epsilon: float) -> float:
    """Safeguard steps until the mean marginals are ε-optimal: 4 c √(B d Z (n + 2m) log d) / ε.

    Z = 2m (Δ + 2), and η = `eta_for`.
    """
    weights = 2 * s.m * (s.max_degree + 2)
    entropy = (s.n + 2 * s.m) * s.log_d
    root = math.sqrt(colours * s.d * weights * entropy)
    return 4 * spread(s) * root / positive_number("epsilon", epsilon)
