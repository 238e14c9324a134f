"""What one λ proves about the relaxation: a bound, its rounding error, the cost of a point."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from softmap.model import Model
from softmap.relaxation import polytope
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats, SmoothedDual, check_lam, edge_batches, reduced_unary
from softmap.relaxation.transport import FEASIBLE, cheapest_coupling

__all__ = ["bound_rounding", "dual_bound", "projected_cost"]


def dual_bound(model: Model, lam: ArrayLike) -> float:
    """Σ_i min (C_i - Σ λ_{e,i}) + Σ_e min (C_e + λ_{e,i} + λ_{e,j}) + constant.

    A lower bound on the LP optimum for any λ, up to `bound_rounding`: each minimum is a float64 sum
    of few terms, and their sum is rounded once (`math.fsum`).
    """
    tight = tighten(model)
    flat = check_lam(tight, lam)
    minima = [np.minimum.reduceat(reduced_unary(tight, flat), tight.node_offset[:-1])]
    minima += [batch.reduced(flat).min(axis=(1, 2)) for batch in edge_batches(tight)]
    return math.fsum([*np.concatenate(minima).tolist(), tight.constant])


def bound_rounding(model: Model, lam: ArrayLike) -> float:
    """A-priori limit on the rounding error of `dual_bound`: `bound - rounding` is certain.

    A sum of k terms in float64 is off by at most (k - 1) u Σ|terms| with u = 2⁻⁵³, and so is a
    minimum of such sums. A few u more pay for products in structured costs and second-order terms.
    """
    flat = np.abs(check_lam(model, lam))
    unary = np.where(np.isfinite(model.unary), np.abs(model.unary), 0.0)
    terms = reduced_unary(model.replace(unary=unary), -flat)
    worst = np.maximum.reduceat(terms, model.node_offset[:-1]) * (model.graph.degree + 4)
    total = float(worst.sum())
    for batch in edge_batches(model):
        finite = np.where(np.isfinite(batch.cost), np.abs(batch.cost), 0.0)
        size = finite + flat[batch.rows][:, :, None] + flat[batch.cols][:, None, :]
        total += 6 * float(size.max(axis=(1, 2)).sum())
    return (total + abs(model.constant)) * 2.0**-53


def projected_cost(dual: SmoothedDual, lam: Floats, nodes: Floats, *, exact: bool = False) -> float:
    """⟨C, Proj(μ^λ, 0)⟩ + constant for given node marginals; +inf if some edge has no coupling.

    Edge marginals are made and forgotten batch by batch.
    """
    model = dual.model
    parts = [polytope.node_cost(model, nodes), model.constant]
    for batch in edge_batches(model):
        p, q = polytope.batch_targets(batch, nodes, None)
        if exact:
            plan, stranded = cheapest_coupling(batch.cost, p, q)
            fits = stranded <= FEASIBLE
        else:
            mu = batch.marginals(lam, dual.eta)
            plan, fits = polytope.project_batch(batch, mu, p, q)
        if not fits.all():
            return math.inf
        parts.append(polytope.batch_cost(batch, plan))
    return math.fsum(parts)
