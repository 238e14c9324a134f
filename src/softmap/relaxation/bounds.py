"""The lower bound that λ proves, and the cost of the primal point it projects to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from softmap import core
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials.base import Costs, Ints, Potential
from softmap.relaxation import polytope
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats, SmoothedDual, check_lam, edge_batches
from softmap.relaxation.transport import MASS, cheapest_coupling

LEAST = float(np.finfo(np.float64).tiny)  # smallest normal float64
SPLIT = 2.0**27 + 1.0  # Dekker's constant: splits the mantissa of a float64 in halves


def lower_tables(model: Model, edges: Ints) -> Costs:
    """Return the concatenated row-major tables of some edges, rounded down.

    An entry that is a product (weight times distance, or weight times shared table) is rounded down
    if it is inexact. A lower bound for these costs is then one for the costs that were given.
    """
    sizes = np.diff(model.edge_offset)[edges]
    start = np.cumsum(sizes) - sizes
    labels = model.num_labels[model.edges[edges]]
    out = np.empty(int(sizes.sum()))
    for first, last, potential in model.groups():
        inside = np.flatnonzero((edges >= first) & (edges < last))
        shape = labels[inside, 0].astype(np.int64) << 32 | labels[inside, 1]
        alike = (shape == shape[:1]).all()
        for one in set(shape[:1] if alike else shape.tolist()):  # np.unique imports masked arrays
            some, (rows, cols) = inside[shape == one], divmod(int(one), 1 << 32)
            tables = lower_stack(potential, edges[some] - first, rows, cols)
            begin, end = int(start[some[0]]), int(start[some[-1]]) + rows * cols
            if end - begin == tables.size:  # one after the other: no index of every entry
                out[begin:end] = tables.reshape(-1)
            else:
                out[start[some][:, None] + np.arange(rows * cols)] = tables.reshape(len(some), -1)
    return out


def lower_stack(potential: Potential, k: Ints, rows: int, cols: int) -> Costs:
    """Return the tables of edges `k` of one potential, (len(k), rows, cols), rounded down."""
    weights, stack = potential.factors(k, rows, cols)
    return stack if (weights == 1).all() else _lower_product(weights[:, None, None], stack)


def _lower_product(a: Costs, b: Costs) -> Costs:
    """Return a · b rounded down; the result is equivariant to scaling by powers of two."""
    product, (m, _), (n, _) = np.asarray(a * b), np.frexp(a), np.frexp(b)
    with np.errstate(invalid="ignore"):
        (m_high, m_low), (n_high, n_low) = _halves(m), _halves(n)
        error = m_low * n_low - (((m * n - m_high * n_high) - m_low * n_high) - m_high * n_low)
    # A subnormal product has fewer digits, so that its error cannot be computed.
    known = (np.abs(product) >= LEAST) | (a == 0) | (b == 0)
    kept = (known & (error >= 0)) | ~np.isfinite(product)
    return np.where(kept, product, np.nextafter(product, -np.inf))


def _halves(a: Costs) -> tuple[Costs, Costs]:
    """Split a float into a sum of two with half of the digits each (Dekker)."""
    shifted = SPLIT * a
    high = shifted - (shifted - a)
    return high, a - high


def dual_bound(model: Model, lam: ArrayLike) -> float:
    """Return the lower bound on the LP optimum that λ proves, rounded down.

    It is Σ_i min (C_i - Σ λ_{e,i}) + Σ_e min (C_e + λ_{e,i} + λ_{e,j}) + constant, and valid for
    any λ in real arithmetic. Rounding down loses at most a few units in the last place of the
    terms at the minima (`src/core/proof/minima.hpp`).
    """
    tight = tighten(model)
    flat = np.ascontiguousarray(check_lam(tight, lam))
    return float(core.dual_bound(layout(tight), flat, tight.constant, 1))


def reduced_nodes(model: Model, lam: Floats, threads: int = 1) -> Floats:
    """Return C_i(x) - Σ_{e∈N_i} λ_{e,i}(x), flat over node states (compiled)."""
    out = np.empty(int(model.node_offset[-1]))
    core.reduced_unary(layout(model), np.ascontiguousarray(lam), out, threads)
    return out


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
