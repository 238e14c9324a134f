"""What a λ proves: a lower bound, a point of the local polytope, a labelling, and their gaps.

The judge of every algorithm: it sees the model and λ, nothing else. All in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import polytope
from softmap.consistency import tighten
from softmap.model import Model
from softmap.objective import Floats, SmoothedDual, check_lam, edge_batches, reduced_unary
from softmap.rounding import best_labelling, decode, round_nodes
from softmap.transport import FEASIBLE, cheapest_coupling

__all__ = ["Certificate", "Gaps", "bound_rounding", "certificate", "dual_bound", "relative_gap"]


class Gaps:
    """What an energy, a bound and a primal value say together."""

    energy: float
    bound: float
    primal: float

    @property
    def gap(self) -> float:
        """`energy - bound`, at least 0; 0 proves the labelling optimal."""
        return max(0.0, self.energy - self.bound)

    @property
    def lp_gap(self) -> float:
        """`primal - bound`, at least 0; 0 proves the point optimal for the LP relaxation."""
        return max(0.0, self.primal - self.bound)

    def relative_gap(self, gap: float) -> float:
        """`gap / max(1, |bound|)`."""
        return relative_gap(gap, self.bound)


@dataclass(frozen=True, eq=False)
class Certificate(Gaps):
    """A labelling, a lower bound and a point of the local polytope, each with its value.

    Attributes
    ----------
    labels, energy
        The best labelling found; `energy == model.energy(labels)`, +inf if none obeys the hard
        constraints.
    bound
        Lower bound on the LP and MAP optimum: the unsmoothed dual at `lam`.
    rounding
        By how much float64 may have moved `bound`: `bound - rounding` is a bound in real numbers.
    primal, node_marginals
        Cost and node marginals of a point of the local polytope (see `edge_marginals`), so an upper
        bound on the LP optimum: the projection of μ^λ where `projected`, else `labels`.
    projected
        False where hard constraints leave the node marginals of μ^λ without edge marginals.
    """

    model: Model
    lam: Floats
    eta: float
    labels: NDArray[np.int64]
    energy: float
    bound: float
    rounding: float
    primal: float
    node_marginals: Floats
    projected: bool
    exact: bool

    @cached_property
    def edge_marginals(self) -> Floats:
        """Edge marginals of the point, flat over `model.edge_offset`; computed when asked for."""
        if not self.projected:
            return polytope.integral(self.model, self.labels)[1]
        if self.exact:
            return polytope.transport(self.model, self.node_marginals)
        pairs = SmoothedDual(self.model, self.eta).edge_marginals(self.lam)
        return polytope.proj(self.model, self.node_marginals, pairs)


def relative_gap(gap: float, bound: float) -> float:
    """`gap / max(1, |bound|)`: the gap in units of the bound, or of 1 where that is small."""
    return gap / max(1.0, abs(bound))


def certificate(
    model: Model,
    lam: ArrayLike,
    eta: float,
    *,
    node_marginals: ArrayLike | None = None,
    exact: bool = False,
) -> Certificate:
    """Everything that λ proves about a model.

    Parameters
    ----------
    lam : flat half-edge array; the bound holds for any
    eta : float
        Inverse temperature at which μ^λ is taken.
    node_marginals : optional
        Other node marginals than μ_i^λ to build the point of the polytope on (averages, say).
    exact : bool
        Take the cheapest edge marginals for the node marginals (exact transport) instead of `Proj`.
    """
    dual = SmoothedDual(model, eta)
    tight = dual.model
    flat = check_lam(tight, lam)
    nodes = dual.node_marginals(flat) if node_marginals is None else np.asarray(node_marginals)
    labels, energy = best_labelling(tight, [round_nodes(tight, nodes), decode(tight, flat)])
    lifted = polytope.lift(tight, nodes)
    primal = projected_cost(dual, flat, lifted, exact=exact)
    projected = math.isfinite(primal)
    return Certificate(
        model=tight,
        lam=flat,
        eta=dual.eta,
        labels=labels,
        energy=energy,
        bound=dual_bound(tight, flat),
        rounding=bound_rounding(tight, flat),
        primal=primal if projected else energy,
        node_marginals=lifted if projected else polytope.integral_nodes(tight, labels),
        projected=projected,
        exact=exact,
    )


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
