"""The cost of the primal point that an iterate projects to, with the same bits on every machine."""

from __future__ import annotations

import math

import numpy as np

from softmap import core
from softmap.methods.base import Floats
from softmap.model import Network
from softmap.relaxation import polytope
from softmap.relaxation.bounds import soft_nodes
from softmap.relaxation.dual import edge_batches
from softmap.relaxation.polytope import Coupled, couple


class Evaluator:
    """⟨C, Proj(μ^λ, 0)⟩ of iterates of one model.

    It is `softmap.relaxation.bounds.projected_cost` with the exponentials of the compiled core in
    place of numpy's, whose last bits depend on the processor.

    Parameters
    ----------
    model : Network
        A model without forbidden states or pairs.
    """

    def __init__(self, model: Network) -> None:
        self.model = model
        self._batches = tuple(edge_batches(model))

    def projected(self, lam: Floats, eta: float) -> float:
        """Return ⟨C, Proj(μ^λ, 0)⟩; +inf if λ is not finite."""
        if not np.isfinite(lam).all():
            return math.inf
        return self.projected_over(soft_nodes(self.model, lam, eta), lam, eta)

    def projected_over(self, nodes: Floats, coupling: Floats, eta: float) -> float:
        """Return ⟨C, Proj(μ, 0)⟩ for node marginals and edge marginals exp(-η (C_e + κ_i + κ_j)).

        Parameters
        ----------
        nodes : float64 array
            Node marginals, flat over `model.node_offset`.
        coupling : float64 array
            κ, flat over half-edges.
        eta : float
            Inverse temperature η.
        """
        parts = [polytope.node_cost(self.model, nodes), self.model.constant]
        for batch in self._batches:
            cost = batch.reduced(coupling)
            weight = _exp(-eta * (cost - cost.min(axis=(1, 2), keepdims=True)))
            mu = weight / weight.sum(axis=(1, 2), keepdims=True)
            plan, fits = polytope.project_batch(
                batch, mu, *polytope.batch_targets(batch, nodes, None)
            )
            if not fits.all():
                return math.inf
            parts.append(polytope.batch_cost(batch, plan))
        return math.fsum(parts)

    def exchanged(self, lam: Floats, eta: float) -> Coupled:
        """Return the point that a run of softmap offers: Proj, then exchanges of mass in tables.

        Its cost is +inf if λ is not finite.
        """
        if not np.isfinite(lam).all():
            return Coupled(math.inf, math.nan, math.inf, None)
        return couple(self.model, soft_nodes(self.model, lam, eta), lam, eta)


def _exp(values: Floats) -> Floats:
    """Return exp of numbers of at most 0; numbers below about -690 count as that."""
    flat = np.ascontiguousarray(values).ravel()
    out = np.empty_like(flat)
    core.exponentials(flat, out)
    return out.reshape(values.shape)
