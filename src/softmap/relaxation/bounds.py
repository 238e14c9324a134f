"""The lower bound that λ proves, and the cost of the primal point it projects to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from softmap import core
from softmap.model import Network
from softmap.model.layout import layout
from softmap.relaxation import polytope
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats, SmoothedDual, check_lam, edge_batches
from softmap.relaxation.transport import MASS, cheapest_coupling


def dual_bound(model: Network, lam: ArrayLike) -> float:
    """Return the lower bound on the LP optimum that λ proves, rounded down.

    It is Σ_i min (C_i - Σ λ_{e,i}) + Σ_e min (C_e + λ_{e,i} + λ_{e,j}) + constant, and valid for
    any λ in real arithmetic. Rounding down loses at most a few units in the last place of the
    terms at the minima (`src/core/proof/minima.hpp`).
    """
    tight = tighten(model)
    flat = np.ascontiguousarray(check_lam(tight, lam))
    return float(core.dual_bound(layout(tight), flat, tight.constant, 1))


def reduced_nodes(model: Network, lam: Floats, threads: int = 1) -> Floats:
    """Return C_i(x) - Σ_{e∈N_i} λ_{e,i}(x), flat over node states (compiled)."""
    out = np.empty(int(model.node_offset[-1]))
    core.reduced_unary(layout(model), np.ascontiguousarray(lam), out, threads)
    return out


def soft_nodes(model: Network, lam: Floats, eta: float, threads: int = 1) -> Floats:
    """Return μ_i(x) ∝ exp(-η C_i(x) + η Σ_{e∈N_i} λ_{e,i}(x)), flat over node states (compiled)."""
    theta = reduced_nodes(model, lam, threads)
    nodes = np.empty_like(theta)
    entropy, minima = np.empty((2, model.n))
    core.soft_nodes(layout(model), theta, eta, nodes, entropy, minima, threads)
    return nodes


def projected_cost(dual: SmoothedDual, lam: Floats, nodes: Floats, *, exact: bool = False) -> float:
    """Return ⟨C, Proj(μ^λ, 0)⟩ + constant for node marginals; +inf if an edge has no coupling.

    Edge marginals are computed batch by batch and not kept.
    """
    model = dual.model
    parts = [polytope.node_cost(model, nodes), model.constant]
    for batch in edge_batches(model):
        p, q = polytope.batch_targets(batch, nodes, None)
        if exact:
            plan, stranded = cheapest_coupling(batch.cost, p, q)
            fits = stranded <= MASS.missing
        else:
            mu = batch.marginals(lam, dual.eta)
            plan, fits = polytope.project_batch(batch, mu, p, q)
        if not fits.all():
            return math.inf
        parts.append(polytope.batch_cost(batch, plan))
    return math.fsum(parts)
