"""Rates that go beyond the paper: sharper theorems, lower bounds, greedy methods, sweeps.

Statements and proofs are in `docs/theory/rates.md`; units are those of `softmap.paper.theory`.
c is a bound on the spread (largest minus smallest entry) of a table of costs, 2 ‖C‖_∞.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import OptionError
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


def initial_error(s: Sizes) -> float:
    """Bound on L(0) - L*, at every η: (n + m) c."""
    return (s.n + s.m) * spread(s)


def block_distance(s: Sizes, eta: float, blocks: Blocks = "edges") -> float:
    """Bound on R² = Σ_b G_b ‖λ*_b‖² for some minimiser λ*, with G_b = L_b / p_b².

    8 m³ η d c² (edges), 2 m² n η d c² (stars).
    """
    factor = s.n if over_stars(blocks) else 4 * s.m
    return 2 * s.m**2 * factor * positive_number("eta", eta) * s.d * spread(s) ** 2


def block_weights(s: Sizes, eta: float, blocks: Blocks = "edges") -> float:
    """Bound on P² = d c² Σ_h G_h, at least R²: 8 m³ η d c² (edges), 4 m² n η d c² (stars)."""
    return (2 if over_stars(blocks) else 1) * block_distance(s, eta, blocks)


def accelerated_rate(k: ArrayLike, s: Sizes, eta: float, blocks: Blocks = "edges") -> Floats:
    """Bound on E L(λ_k) - L* of Accel-EMP and Accel-SMP as proved: 4 ((n + m) c + R²/2) / (k + 2)².

    R² is `block_distance`.
    """
    steps = np.asarray(k, dtype=np.float64)
    start = initial_error(s) + block_distance(s, eta, blocks) / 2
    return np.asarray(4 * start / (steps + 2) ** 2)


def settled_slack(
    fast: float, plain: float, s: Sizes, eta: float, blocks: Blocks = "edges"
) -> float:
    """Bound on the least E Σ ‖ν_h‖₁² of the plain updates that follow accelerated ones.

    4 m η / κ · E e / plain, with E e from `accelerated_rate`.

    Parameters
    ----------
    fast, plain : float
        Number of accelerated updates, and of the plain updates after them.
    s : Sizes
        Sizes of the model.
    eta : float
        Inverse temperature.
    blocks : {"edges", "stars"}, default "edges"
        The blocks of both kinds of updates.
    """
    error = float(accelerated_rate(fast, s, eta, blocks))
    return 4 * s.m * eta / block_share(s, blocks) * error / plain


def settled_iterations(
    s: Sizes, epsilon: float, blocks: Blocks = "edges", settling: float = 0.5
) -> float:
    """K of the sharper Theorem 2: (64 m η Q A / (κ ε² f (1 - f)²))^(1/3), with η = `eta_for`.

    A = (n + m) c + R²/2, and a part f of the updates is plain. For stars, n updates are added: one
    sweep between the two parts. K is O(ε^(-4/3)).

    Parameters
    ----------
    s : Sizes
        Sizes of the model.
    epsilon : float
        Expected excess cost of the projected point.
    blocks : {"edges", "stars"}, default "edges"
        The blocks of both kinds of updates.
    settling : float, default 0.5
        The part f of the updates that is plain; 1/3 gives the least K.
    """
    if not 0 < settling < 1:
        raise OptionError(f"settling must lie between 0 and 1, not {settling}")
    eta = eta_for(s, epsilon)
    start = initial_error(s) + block_distance(s, eta, blocks) / 2
    work = 64 * s.m * eta * conditioning(s, eta, blocks) * start / block_share(s, blocks)
    cube = work / (epsilon**2 * settling * (1 - settling) ** 2)
    return float(np.cbrt(cube)) + (s.n if over_stars(blocks) else 0)


def regularisation(s: Sizes, epsilon: float, blocks: Blocks = "edges") -> float:
    """δ of the regularised dual L + (δ/2) ‖λ‖_G²: ε / (4 P R), and at most 1 / N²."""
    eta = eta_for(s, epsilon)
    product = math.sqrt(block_weights(s, eta, blocks) * block_distance(s, eta, blocks))
    return min(epsilon / (4 * product), 1 / s.half_edges**2)


def stage_length(delta: float) -> int:
    """Updates after which the expected error of the regularised dual is an eighth: √(32 + 64/δ)."""
    return math.ceil(math.sqrt(32 * (1 + 2 / positive_number("delta", delta))))


def stage_count(s: Sizes, epsilon: float, blocks: Blocks = "edges") -> int:
    """Stages until the error of the regularised dual is δ² R² / 18 in expectation."""
    delta = regularisation(s, epsilon, blocks)
    target = delta**2 * block_distance(s, eta_for(s, epsilon), blocks) / 18
    return max(math.ceil(math.log(initial_error(s) / target, 8)), 0)


def regularised_iterations(s: Sizes, epsilon: float, blocks: Blocks = "edges") -> int:
    """Updates of `softmap.paper.regularised` to an expected ε-optimal last point: O(log(1/ε)/ε)."""
    delta = regularisation(s, epsilon, blocks)
    return stage_count(s, epsilon, blocks) * stage_length(delta)


def chain_decay(n: int, blocks: Blocks = "stars") -> float:
    """κ of the lower bound on a chain: a random update keeps 1 - κ of the slowest mode.

    4 π² / (3 (n - 1) (2n - 1)²) (stars), π² / (4 (n - 1) (2n - 1)²) (edges).
    """
    if n < 3:
        raise OptionError(f"the bound needs a chain of at least three nodes, not {n}")
    square = (math.pi / (2 * n - 1)) ** 2
    return square * (4 / 3 if over_stars(blocks) else 1 / 4) / (n - 1)


def chain_gap(k: ArrayLike, n: int, eta: float, tie: float, blocks: Blocks = "stars") -> Floats:
    """Lower bound on the expected least LP gap of the first k iterates of EMP or SMP on a chain.

    The chain has n nodes with two labels, Potts edges of weight 1, and costs (t, 0) and (0, t) at
    its ends. The bound is (1 - t) (1 - κ)^k sin(π (n - 1) / (2n - 1)) tanh(η t / (2n - 2)).

    Parameters
    ----------
    k : int array
        Number of updates from λ = 0.
    n : int
        Number of nodes.
    eta : float
        Inverse temperature.
    tie : float
        t, the cost at the two ends, between 0 and 1.
    blocks : {"edges", "stars"}, default "stars"
        EMP or SMP.
    """
    if not 0 < tie < 1:
        raise OptionError(f"the cost at the ends must lie between 0 and 1, not {tie}")
    middle = math.sin(math.pi * (n - 1) / (2 * n - 1))
    slope = math.tanh(positive_number("eta", eta) * tie / (2 * n - 2))
    kept = (1 - chain_decay(n, blocks)) ** np.asarray(k, dtype=np.float64)
    return np.asarray((1 - tie) * middle * slope * kept)


def pass_distance(s: Sizes, eta: float, lengths: ArrayLike) -> float:
    """Bound on R² of passes over chains with so many nodes: 2 η d c² Σ ℓ²."""
    square = float((np.asarray(lengths, dtype=np.float64) ** 2).sum())
    return 2 * positive_number("eta", eta) * s.d * spread(s) ** 2 * square


def pass_iterations(s: Sizes, epsilon: float, lengths: ArrayLike, levels: int) -> float:
    """Steps until the bound of guarded passes is within ε of the LP: 4 √(2 B r² S) / ε, r² = R²/η.

    The last η is 2 S / ε, with S = log d Σ ℓ; the count is that of all stages, without rounding.

    Parameters
    ----------
    s : Sizes
        Sizes of the model.
    epsilon : float
        Distance of the bound to the LP optimum.
    lengths : int array
        ℓ, the number of nodes of each chain.
    levels : int
        B, the number of levels of a pass.
    """
    entropy = s.log_d * float(np.asarray(lengths, dtype=np.float64).sum())
    distance = pass_distance(s, 1.0, lengths)
    return 4 * math.sqrt(2 * levels * distance * entropy) / positive_number("epsilon", epsilon)


def stage_weight(s: Sizes, eta: float, lengths: ArrayLike) -> float:
    """A_k from which on L_T(x_k) - L_T* ≤ S / η in a stage of `anneal-safe`: 4 R² η / (2 S).

    R² is `pass_distance`, S = log d Σ ℓ; a stage starts anywhere after a half pass, so that its
    distance is at most 2 R.
    """
    entropy = s.log_d * float(np.asarray(lengths, dtype=np.float64).sum())
    return 2 * pass_distance(s, eta, lengths) * eta / entropy


def stage_steps(s: Sizes, eta: float, lengths: ArrayLike, levels: int) -> int:
    """Most safeguard steps of a stage of `anneal-safe`: ⌈√(4 B A)⌉, with A of `stage_weight`."""
    return math.ceil(math.sqrt(4 * levels * stage_weight(s, eta, lengths)))


def safe_iterations(
    s: Sizes, epsilon: float, lengths: ArrayLike, levels: int, growth: float
) -> float:
    """Safeguard steps of `anneal-safe` after which its bound is within ε of the LP: O(1/ε).

    10 g² / (4g - 5) √(8 B r² S) / ε, without rounding (one step per stage), with r² = R² / η of
    `pass_distance` and S = log d Σ ℓ, for ε of at most 2 S / η at the first η. A stage ends at a
    check, at most a quarter of all passes late.

    Parameters
    ----------
    s : Sizes
        Sizes of the model.
    epsilon : float
        Distance of the best bound to the LP optimum.
    lengths : int array
        ℓ, the number of nodes of each chain.
    levels : int
        B, the number of levels of a pass.
    growth : float
        g > 5/4, the factor by which η rises.
    """
    entropy = s.log_d * float(np.asarray(lengths, dtype=np.float64).sum())
    root = math.sqrt(8 * levels * pass_distance(s, 1.0, lengths) * entropy)
    return 10 * growth**2 / (4 * growth - 5) * root / positive_number("epsilon", epsilon)
