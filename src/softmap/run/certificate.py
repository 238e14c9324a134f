"""`certificate`: the lower bound, primal point, labelling and gaps that follow from λ alone.

It is the plain numpy version, in float64, of what `softmap.run.judge` computes with compiled
loops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.arguments import flag
from softmap.labels import best_labelling, decode, round_nodes
from softmap.model import Model, raised
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
    model : Model
        The arc-consistent model: states excluded by hard constraints have cost +inf.
    lam : float64 array
        λ, flat over half-edges.
    eta : float
        Inverse temperature η.
    labels : int64 array
        The best labelling found.
    energy : float
        `model.energy(labels)`; +inf if no labelling satisfies the hard constraints.
    bound : float
        Lower bound on the LP and MAP optimum: the unsmoothed dual at `lam`, rounded down.
    primal : float
        Cost of the point of the local polytope, an upper bound on the LP optimum.
    node_marginals : float64 array
        Node marginals of the point; see also `edge_marginals`.
    projected : bool
        Whether the point is the projection of μ^λ. It is `labels` if hard constraints leave the
        node marginals without feasible edge marginals.
    exact : bool
        Whether edges have their optimal transport plans.
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
        """The edge marginals of the point, flat over `model.edge_offset`; lazily computed."""
        if not self.projected:
            return polytope.integral(self.model.network, self.labels)[1]
        if self.exact:
            return polytope.transport(self.model.network, self.node_marginals)
        pairs = SmoothedDual(self.model.network, self.eta).edge_marginals(self.lam)
        return polytope.proj(self.model.network, self.node_marginals, pairs)


def certificate(
    model: Model,
    lam: ArrayLike,
    eta: float,
    *,
    node_marginals: ArrayLike | None = None,
    exact: bool = False,
) -> Certificate:
    """Return the bound, primal point and labelling that follow from λ.

    Parameters
    ----------
    model : Model
    lam : float array
        λ, flat over half-edges. The bound is valid for any λ.
    eta : float
        Inverse temperature η of the marginals μ^λ.
    node_marginals : float array, optional
        Node marginals of the primal point (averaged ones, for example); μ_i^λ by default.
    exact : bool, default False
        Use the optimal transport plan of each edge instead of `Proj`.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np, softmap
    >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
    >>> proof = softmap.certificate(model, np.zeros(model.network.half_size), eta=100.0)
    >>> proof.bound <= proof.primal <= proof.energy
    True
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
    primal = max(projected_cost(dual, flat, lifted, exact=exact), bound)  # smaller only by rounding
    projected = math.isfinite(primal)
    return Certificate(
        model=raised(tight),
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
