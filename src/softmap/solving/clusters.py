"""`Clusters`: the clusters of an earlier proof, for a run that starts from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from softmap.errors import ModelError, OptionError
from softmap.methods.base import Floats
from softmap.model import Model
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.dual import check_eta, check_lam
from softmap.relaxation.polytope import ClusterBeliefs, checked_marginals
from softmap.solving.proof import Proof, ProofKind

__all__ = ["Clusters"]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of variables, and λ and beliefs of the model tightened by them."""

    clusters: tuple[tuple[int, ...], ...]
    lam: Floats
    beliefs: ClusterBeliefs | None = None

    def proved(self, model: Model) -> tuple[float, Proof]:
        """Return the bound that the clusters prove for a model, recomputed from λ."""
        from softmap.proof.tightening.regions import build  # imported late: often unused

        try:
            tight = build(model, self.clusters)
            bound = dual_bound(tight.model, self.lam)
            beliefs = self._checked(tight.model)
        except (ModelError, OptionError, IndexError, ValueError) as error:
            raise OptionError(f"warm_start: this result is damaged ({error})") from error
        return bound, Proof(ProofKind.TIGHTENED, self.clusters, self.lam, beliefs=beliefs)

    def _checked(self, model: Model) -> ClusterBeliefs | None:
        """Return the beliefs as normalised marginals of the tightened model."""
        if self.beliefs is None:
            return None
        return replace(
            self.beliefs,
            nodes=checked_marginals(model, self.beliefs.nodes),
            coupling=check_lam(model, self.beliefs.coupling),
            eta=check_eta(self.beliefs.eta),
        )
