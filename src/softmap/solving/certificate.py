"""What a λ proves: a lower bound, a point of the local polytope, a labelling, and their gaps.

The plain account of what `softmap.solving.judge` computes by compiled loops: it sees the model and
λ, nothing else. All in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.arguments import flag
from softmap.labels import best_labelling, decode, round_nodes
from softmap.model import Model
from softmap.relaxation import polytope
from softmap.relaxation.bounds import dual_bound, projected_cost
from softmap.relaxation.dual import Floats, SmoothedDual, check_lam
from softmap.relaxation.gaps import Gaps

__all__ = ["Certificate", "certificate"]


@dataclass(frozen=True, eq=False)
class Certificate(Gaps):
    """A labelling, a lower bound and a point of the local polytope, each with its value.

    Attributes
    ----------
    model, lam, eta
        What was looked at; the model without states that hard constraints rule out.
    labels, energy
        The best labelling found; `energy == model.energy(labels)`, +inf if none obeys the hard
        constraints.
    bound
        Lower bound on the LP and MAP optimum: the unsmoothed dual at `lam`, rounded down.
    primal, node_marginals
        Cost and node marginals of a point of the local polytope (see `edge_marginals`), so an upper
        bound on the LP optimum: the projection of μ^λ where `projected`, else `labels`.
    projected, exact
        False where hard constraints leave the node marginals of μ^λ without edge marginals; whether
        edges have their cheapest transport.
    """

    model: Model
    lam: Floats
    eta: float
    labels: NDArray[np.int64]
    energy: float
    bound: float
    primal: float
    node_marginals: Floats
    projected: bool
    exact: bool

    @property
    def lp_gap(self) -> float:
        """`primal - bound`, at least 0; 0 proves the point optimal for the LP relaxation."""
        return max(0.0, self.primal - self.bound)

    @cached_property
    def edge_marginals(self) -> Floats:
        """Edge marginals of the point, flat over `model.edge_offset`; computed when asked for."""
        if not self.projected:
            return polytope.integral(self.model, self.labels)[1]
        if self.exact:
            return polytope.transport(self.model, self.node_marginals)
        pairs = SmoothedDual(self.model, self.eta).edge_marginals(self.lam)
        return polytope.proj(self.model, self.node_marginals, pairs)


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
    exact = flag("exact", exact)
    dual = SmoothedDual(model, eta)
    tight = dual.model
    flat = check_lam(tight, lam)
    nodes = dual.node_marginals(flat)
    if node_marginals is not None:
        nodes = polytope.checked_marginals(tight, node_marginals)
    labels, energy = best_labelling(tight, [round_nodes(tight, nodes), decode(tight, flat)])
    lifted = polytope.lift(tight, nodes)
    bound = dual_bound(tight, flat)
    primal = max(projected_cost(dual, flat, lifted, exact=exact), bound)  # but for rounding
    projected = math.isfinite(primal)
    return Certificate(
        model=tight,
        lam=flat,
        eta=dual.eta,
        labels=labels,
        energy=energy,
        bound=bound,
        primal=primal if projected else energy,
        node_marginals=lifted if projected else polytope.integral_nodes(tight, labels),
        projected=projected,
        exact=exact,
    )
