"""What the randomised methods are put together from: a rule, a choice of blocks, and the step of v.

A *block* is a set of half-edges at one vertex. `Blocks` says which blocks there are and how likely
each is drawn; `Rule` says what an update does to the one that was drawn.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from softmap.errors import OptionError
from softmap.methods.base import Floats
from softmap.model import Model

__all__ = ["Blocks", "Rule", "block_curvature", "block_probability", "lemma_gain", "printed_gain"]


class Rule(Enum):
    """What one update does to its block."""

    MINIMISE = "minimise L over the block (Propositions 'emp-update' and 'smp-update')"
    GRADIENT = "one gradient step on the block, of one over its curvature"


class Blocks(Enum):
    """Which blocks there are, and the distribution they are drawn from."""

    EDGES = "one half-edge (e, i), uniformly"
    STARS = "all half-edges of a vertex i, with probability |N_i| / N"


def block_size(model: Model, blocks: Blocks) -> Floats:
    """|B| of the block at each vertex (at least 1, so that isolated vertices need no care)."""
    if blocks is Blocks.EDGES:
        return np.ones(model.n)
    return np.maximum(model.graph.degree, 1).astype(np.float64)


def block_probability(model: Model, blocks: Blocks) -> Floats:
    """p_b of the block (or of each of the blocks) at every vertex; N = 2m."""
    return block_size(model, blocks) / max(2 * model.m, 1)


def block_curvature(model: Model, blocks: Blocks, eta: float) -> Floats:
    """L_b = η (|B| + 1) / 2, the largest curvature of L on the block at every vertex.

    For an edge block that is η, hence the step 1/η of block-coordinate descent.
    """
    return eta * (block_size(model, blocks) + 1.0) / 2.0


def proved_gain(model: Model, blocks: Blocks, eta: float) -> Floats:
    """p_b / L_b: the step of v, times θ_k, of the estimate sequence in the block norm.

    The sharpest one that the proof carries: Σ_b (L_b / p_b²) ‖λ_b - λ⁰_b‖² / 2 is the quadratic of
    φ_0. Edges: 1 / (2mη), as printed in Algorithm 2. Stars: 2 |N_i| / ((|N_i| + 1) N η).
    """
    return block_probability(model, blocks) / block_curvature(model, blocks, eta)


def lemma_gain(model: Model, blocks: Blocks, eta: float) -> Floats:
    """The step of v, times θ_k, that Lemmas "est-seq" and "est-seq-smp" give with their γ_0.

    Edges: qθ/γ = 1 / (2qη) with q = 2m. Stars: θ/(p_i γ) = min_j |N_j| / (4 p_i η N²).
    """
    halves = max(2 * model.m, 1)
    if blocks is Blocks.EDGES:
        return np.full(model.n, 1.0 / (2.0 * halves * eta))
    p = block_probability(model, blocks)
    return _least_degree(model) / (4.0 * p * eta * halves**2)


def printed_gain(model: Model, blocks: Blocks, eta: float) -> Floats:
    """The step of v, times θ_k, as Algorithms 2 and 3 print it.

    Edges: 1 / (2mη). Stars: min_j |N_j| / (2 p_i η N), a factor of order N above what is proved.
    """
    halves = max(2 * model.m, 1)
    if blocks is Blocks.EDGES:
        return np.full(model.n, 1.0 / (halves * eta))
    return _least_degree(model) / (2.0 * block_probability(model, blocks) * eta * halves)


GAINS = {"sharp": proved_gain, "lemma": lemma_gain, "printed": printed_gain}


def gain(name: str, model: Model, blocks: Blocks, eta: float) -> Floats:
    """One of the above by name: sharp, lemma, printed."""
    if name not in GAINS:
        raise OptionError(f"constants must be one of {', '.join(GAINS)}, not {name!r}")
    return GAINS[name](model, blocks, eta)


def _least_degree(model: Model) -> float:
    """min_j |N_j| over the vertices that have an edge."""
    degree = model.graph.degree
    return float(degree[degree > 0].min(initial=np.iinfo(np.int64).max)) if model.m else 1.0
