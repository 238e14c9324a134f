"""The quantities of the paper's theorems: η, iteration counts K, and their constants.

Costs, λ, ε and the gap Δ are in units of cost; η is in units of 1 / cost; K counts block updates.
Where the paper writes O(·), the constant of its proof is used. If the proof gives none, the
constant is 1, and the docstring says so. All counts need finite costs: ‖C‖_∞ is infinite for a
model with hard constraints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, OptionError
from softmap.model import Model, Network, checked_network
from softmap.relaxation.dual import edge_batches

Blocks = Literal["edges", "stars"]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model that the theorems use.

    Attributes
    ----------
    n, m : int
        Number of nodes and edges, auxiliary ones included.
    d : int
        Largest number of labels.
    cost : float
        ‖C‖_∞, the largest absolute cost.
    min_degree, max_degree : int
        Smallest and largest degree of a variable that has an edge (the paper assumes that all do).
    """

    n: int
    m: int
    d: int
    cost: float
    min_degree: int
    max_degree: int

    @property
    def half_edges(self) -> int:
        """N = Σ_j |N_j| = 2m, also the number q of edge blocks."""
        return 2 * self.m

    @property
    def log_d(self) -> float:
        """The natural logarithm of d."""
        return math.log(self.d)


def sizes(model: Model | Network) -> Sizes:
    """Return the sizes of a model with finite costs."""
    network = checked_network(model)
    cost = float(np.abs(network.unary).max(initial=0.0))
    for batch in edge_batches(network):
        cost = max(cost, float(np.abs(batch.cost).max()))
    if not math.isfinite(cost):
        raise ModelError(
            "the theorems need finite costs, but this model forbids states or pairs (+inf); "
            "factors of three or more variables do so, too: their projections are hard constraints"
        )
    degree = network.graph.degree
    degree = degree[degree > 0]
    low, high = (int(degree.min()), int(degree.max())) if degree.size else (0, 0)
    return Sizes(network.n, network.m, int(network.num_labels.max()), cost, low, high)


def eta_for(s: Sizes, epsilon: float) -> float:
    """η = 4 (m + n) log d / ε: regularisation for an ε-optimal point (Theorems 1 and 2)."""
    return 4 * (s.m + s.n) * s.log_d / positive_number("epsilon", epsilon)


def dual_gap_bound(s: Sizes, eta: float) -> float:
    """L(0) - L(λ*) ≤ 2 (m + n) ‖C‖_∞ + (2/η) (m + n) log d (Lemma "function-value")."""
    return 2 * (s.m + s.n) * (s.cost + s.log_d / positive_number("eta", eta))


def dual_norm_bound(s: Sizes, eta: float) -> float:
    """‖λ*‖₁ ≤ 4 d (m + n) (‖C‖_∞ + log d / η) for some λ* (Lemma "dual-norm", second line).

    The first line of the lemma prints 2 d (m + n) ‖C‖_∞, half of what its proof gives; the second
    line is the one that later proofs use.
    """
    return 4 * s.d * (s.m + s.n) * (s.cost + s.log_d / positive_number("eta", eta))


def growth(
    s: Sizes, eta: float, blocks: Blocks = "edges", form: Literal["lemma", "appendix"] = "lemma"
) -> float:
    """G(η); (G(η) / (k + 2))² bounds the dual error (Lemma "acc-dual-conv", edges and stars).

    Edges: 24 m d (m + n) (√η ‖C‖_∞ + log d / √η). Stars: the lemma has 24 N in place of 24 m, the
    end of its proof 40 m (`form="appendix"`), which is smaller, as N = 2m.
    """
    root = math.sqrt(positive_number("eta", eta))
    if over_stars(blocks):
        factor = 24 * s.half_edges if form == "lemma" else 40 * s.m
    else:
        factor = 24 * s.m
    return factor * s.d * (s.m + s.n) * (root * s.cost + s.log_d / root)


def gamma_0(
    s: Sizes, eta: float, blocks: Blocks = "edges", form: Literal["printed", "zero-sum"] = "printed"
) -> float:
    """Curvature γ_0 of the function φ_0 of the estimate sequence.

    Printed: 2 q² η with q = 2m (edges), 4 N² η / min_j |N_j| (stars). ν sums to zero over the
    labels, so ‖ν‖₁² ≥ 2 ‖ν‖₂² and half of either suffices (`form="zero-sum"`).
    """
    half = 0.5 if form == "zero-sum" else 1.0
    square = s.half_edges**2 * positive_number("eta", eta)
    if over_stars(blocks):
        return half * 4 * square / max(s.min_degree, 1)
    return half * 2 * square


def dual_rate(k: ArrayLike, dual_gap: float, lam_norm: float, gamma: float) -> NDArray[np.float64]:
    """Bound on E L(λ_k) - L* of the accelerated schemes "as proved", before G(η) replaces it.

    (4 (L(0) - L*) + 2 γ_0 ‖λ*‖₂²) / (k + 2)²; with γ_0 = 2 q² η the numerator is the printed
    4 L(0) - 4 L* + 16 m² η ‖λ*‖₂².

    Parameters
    ----------
    k : int array
        Number of iterations.
    dual_gap : float
        L(0) - L*.
    lam_norm : float
        ‖λ*‖₂ of any minimiser λ*.
    gamma : float
        `gamma_0` of the scheme.
    """
    steps = np.asarray(k, dtype=np.float64)
    bound: NDArray[np.float64] = (4 * dual_gap + 2 * gamma * lam_norm**2) / (steps + 2) ** 2
    return bound


def thetas(count: int) -> NDArray[np.float64]:
    """θ_0, …, θ_{count-1} of Algorithms 2 and 3: θ_k² = (1 - θ_k) θ_{k-1}² from θ_{-1} = 1."""
    theta = np.empty(count)
    previous = 1.0
    for k in range(count):
        # equals the printed (-t² + √(t⁴ + 4t²)) / 2, without its cancellation
        previous = theta[k] = 2 * previous / (previous + math.sqrt(previous**2 + 4))
    return theta


def deltas(count: int) -> NDArray[np.float64]:
    """δ_0, …, δ_{count-1} with δ_0 = 1, δ_{k+1} = (1 - θ_k) δ_k; δ_k = θ_{k-1}² ≤ 4 / (k + 2)²."""
    return np.concatenate([[1.0], np.cumprod(1 - thetas(count))])[:count]


def approximation_error(s: Sizes, eta: float, slack_norms: ArrayLike) -> float:
    """Right-hand side of Proposition "approx-bound" for ⟨C, Proj(μ^λ, 0) - μ*⟩.

    16 (m + n) d ‖C‖_∞ δ + 4 ‖C‖_∞ Σ ‖ν_{e,i}‖₁ + (n + 2m) log d / η, with δ the largest norm.

    Parameters
    ----------
    slack_norms : float array
        ‖ν_{e,i}‖₁ of each half-edge.
    """
    norms = np.asarray(slack_norms, dtype=np.float64)
    worst, total = float(norms.max(initial=0.0)), float(norms.sum())
    slack = s.cost * (16 * (s.m + s.n) * s.d * worst + 4 * total)
    return slack + (s.n + 2 * s.m) * s.log_d / positive_number("eta", eta)


def slack_target(s: Sizes, epsilon: float, *, accelerated: bool = False) -> float:
    """ε′, the slack norm at which the proofs of Theorems 1 and 2 have an ε-optimal point.

    ε / (48 (m + n) d ‖C‖_∞); the accelerated proofs divide by √(2m) = √N as well. Dimensionless.
    """
    target = positive_number("epsilon", epsilon) / (48 * (s.m + s.n) * s.d * s.cost)
    return target / math.sqrt(s.half_edges) if accelerated else target


def standard_iterations(s: Sizes, epsilon: float, blocks: Blocks = "edges") -> float:
    """K of Theorem 1: 16 m (m + n) (η ‖C‖_∞ + log d) / ε′²; for stars N replaces m.

    The theorem's O(m d² (m+n)⁴ ‖C‖³ ε⁻³ log d) with the constants of its proof.
    """
    factor = s.half_edges if over_stars(blocks) else s.m
    eta = eta_for(s, epsilon)
    work = 16 * factor * (s.m + s.n) * (eta * s.cost + s.log_d)
    return work / slack_target(s, epsilon) ** 2


def accelerated_iterations(s: Sizes, epsilon: float, blocks: Blocks = "edges") -> float:
    """K of Theorem 2: √(4η) G(η) / ε′ (edges), √(8η) G_SMP(η) / ε′ (stars).

    The theorem's O(m^{3/2} d² (m+n)³ ‖C‖² ε⁻² log d) with the constants of its proof.
    """
    eta = eta_for(s, epsilon)
    factor = 8 if over_stars(blocks) else 4
    target = slack_target(s, epsilon, accelerated=True)
    return math.sqrt(factor * eta) * growth(s, eta, blocks) / target


def rounding_eta(s: Sizes, gap: float) -> float:
    """η = 16 (m + n) (log(m + n) + log d) / Δ of the rounding theorem."""
    return 16 * (s.m + s.n) * (math.log(s.m + s.n) + s.log_d) / positive_number("gap", gap)


def rounding_threshold(s: Sizes, gap: float) -> float:
    """Smallest η that the proof requires: (2 R₁ log(64 R₁) + 2 R₁ + 2 R_H) / Δ.

    R₁ = m + n is the 1-norm of every point of the polytope, R_H ≤ (n + 2m) log d the range of the
    entropy. For any larger η the regularised optimum rounds to the MAP labelling, if that is unique
    and the relaxation is tight.
    """
    radius, entropy = s.m + s.n, (s.n + 2 * s.m) * s.log_d
    return 2 * (radius * (math.log(64 * radius) + 1) + entropy) / positive_number("gap", gap)


def rounding_iterations(
    s: Sizes,
    gap: float,
    failure: float,
    *,
    accelerated: bool = True,
    form: Literal["printed", "dimensionless"] = "dimensionless",
) -> float:
    """Order of K after which edge updates round to the MAP labelling with probability 1 - δ.

    Accelerated: d³ m⁷ deg² ‖C‖² log²(dm) / (δ Δ²); standard: d⁴ m¹¹ deg⁴ ‖C‖³ log³(dm) / (δ² Δ³).
    The paper gives no constant for O(·); it is taken as 1. The paper prints Δ to the first power in
    both (`form="printed"`). That is not dimensionless and does not follow from the proof's last
    steps.
    """
    if not 0 < failure < 1:
        raise OptionError(f"failure must lie between 0 and 1, not {failure}")
    log = math.log(s.d * s.m)
    power = 2 if accelerated else 3
    order = (s.cost * log) ** power / positive_number("gap", gap) ** (
        1 if form == "printed" else power
    )
    if accelerated:
        return float(s.d**3 * s.m**7 * s.max_degree**2 * order / failure)
    return float(s.d**4 * s.m**11 * s.max_degree**4 * order / failure**2)


def over_stars(blocks: Blocks) -> bool:
    """Return whether the blocks are stars; raise `OptionError` if they are neither."""
    if blocks not in ("edges", "stars"):
        raise OptionError(f"blocks must be 'edges' or 'stars', not {blocks!r}")
    return blocks == "stars"


def positive_number(name: str, value: float) -> float:
    """Return the value if it is positive and finite; raise `OptionError` otherwise."""
    if not (math.isfinite(value) and value > 0):
        raise OptionError(f"{name} must be a positive number, not {value}")
    return float(value)
