"""Accelerated coordinate descent on the regularised dual: small slack after O(log(1/ε)/ε) updates.

The method minimises L(λ) + (δ/2) ‖λ‖_G² by stages; theorem and proof are in `docs/theory/rates.md`,
its counts in `softmap.paper.rates`. It is written for reading and for small models, in numpy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from softmap.model import Network
from softmap.paper import rates, theory
from softmap.paper.theory import Blocks, over_stars, positive_number

Floats = NDArray[np.float64]


def distribution(costs: Floats) -> Floats:
    """Return the probabilities proportional to e^(-costs)."""
    weights = np.exp(costs.min() - costs)
    return np.asarray(weights / weights.sum())


class RegularisedDual:
    """L(λ) + (δ/2) ‖λ‖_G² of a model with finite costs, block by block.

    The weight of a half-edge h of a block b is G_h = L_b / p_b², where L_b = η (|b| + 1) / 2 is the
    curvature of L on the block and p_b = |b| / 2m the probability of its draw.

    Parameters
    ----------
    model : Network
        A model with edges and finite costs.
    eta : float
        Inverse temperature, in units of 1 / cost.
    delta : float
        Weight of the regulariser; none if zero.
    blocks : {"edges", "stars"}, default "edges"
        Single half-edges, or all half-edges of a node.
    """

    def __init__(self, model: Network, eta: float, delta: float, blocks: Blocks = "edges") -> None:
        self.model = model
        self.eta = positive_number("eta", eta)
        self.delta = delta
        halves = range(2 * model.m)
        self.node = model.edges.reshape(-1)
        self.slices = [model.half_slice(h) for h in halves]
        self.at_node = [np.flatnonzero(self.node == i) for i in range(model.n)]
        self.tables = [model.table(e) for e in range(model.m)]
        self.blocks = [self.at_node[i] if over_stars(blocks) else np.array([h])
                       for h, i in enumerate(self.node)]  # fmt: skip
        size = np.array([len(block) for block in self.blocks])
        self.probability = size / (2 * model.m)
        self.curvature = self.eta * (size + 1) / 2
        labels = [part.stop - part.start for part in self.slices]
        self.weight = np.repeat(self.curvature / self.probability**2, labels)

    def slack(self, lam: Floats, half: int) -> Floats:
        """Return ν_h = S_h - μ_i at a half-edge h of node i."""
        node = self.node[half]
        cost = self.model.unary_of(node) - sum(lam[self.slices[h]] for h in self.at_node[node])
        edge, side = divmod(half, 2)
        first, last = lam[self.slices[2 * edge]], lam[self.slices[2 * edge + 1]]
        pairs = self.tables[edge] + first[:, None] + last
        sums = distribution(self.eta * pairs).sum(axis=1 - side)
        return np.asarray(sums - distribution(self.eta * cost))

    def gradient(self, lam: Floats, half: int) -> Floats:
        """Return the gradient of the regularised dual at a half-edge: δ G_h λ_h - ν_h."""
        part = self.slices[half]
        return self.delta * self.weight[part] * lam[part] - self.slack(lam, half)

    def value(self, lam: Floats) -> float:
        """Return L(λ) + (δ/2) ‖λ‖_G²."""
        total = -self.model.constant
        for node, halves in enumerate(self.at_node):
            cost = self.model.unary_of(node) - sum(lam[self.slices[h]] for h in halves)
            total += logsumexp(-self.eta * cost) / self.eta
        for edge, table in enumerate(self.tables):
            first, last = lam[self.slices[2 * edge]], lam[self.slices[2 * edge + 1]]
            total += logsumexp(-self.eta * (table + first[:, None] + last)) / self.eta
        return float(total + self.delta / 2 * (self.weight * lam**2).sum())


def stage(
    dual: RegularisedDual, lam: Floats, length: int, rng: np.random.Generator
) -> Floats:  # fmt: skip
    """Return λ after `length` updates of accelerated coordinate descent from λ.

    Each update draws a half-edge uniformly and moves its block by one gradient step. It costs a
    block's slack and three operations on whole arrays.
    """
    v = lam.copy()
    theta = 1.0
    for half in rng.integers(2 * dual.model.m, size=length):
        theta = 2 * theta / (theta + np.sqrt(theta**2 + 4))
        lam = theta * v + (1 - theta) * lam
        chance, curvature = dual.probability[half], dual.curvature[half]
        # the curvature of the regularised dual is at most twice that of L
        step = 1 / (curvature * (1 + dual.delta / chance**2))
        moves = [dual.gradient(lam, h) for h in dual.blocks[half]]
        for h, move in zip(dual.blocks[half], moves, strict=True):
            lam[dual.slices[h]] -= step * move
            v[dual.slices[h]] -= chance / (2 * curvature * theta) * move
    return lam


def iterates(
    model: Network, epsilon: float, blocks: Blocks = "edges", seed: int = 0
) -> Iterator[Floats]:
    """Yield λ after every stage; that of the last stage is ε-optimal in expectation.

    Parameters
    ----------
    model : Network
        A model with edges and finite costs.
    epsilon : float
        Expected excess cost of the projected marginals at the last λ, which are those at
        η = `rates.eta_for`.
    blocks : {"edges", "stars"}, default "edges"
        The blocks.
    seed : int, default 0
        Seed of the draws.
    """
    sizes = theory.sizes(model)
    delta = rates.regularisation(sizes, epsilon, blocks)
    dual = RegularisedDual(model, rates.eta_for(sizes, epsilon), delta, blocks)
    rng = np.random.default_rng(seed)
    lam = np.zeros(model.half_size)
    for _ in range(rates.stage_count(sizes, epsilon, blocks)):
        lam = stage(dual, lam, rates.stage_length(delta), rng)
        yield lam
