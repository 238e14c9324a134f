"""`ClusterEvidence`: λ of a relaxation tightened by clusters, which proves a bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.errors import ModelError, OptionError
from softmap.io.store import Arrays
from softmap.methods.base import Floats
from softmap.model import Network
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.dual import check_eta, check_lam
from softmap.relaxation.polytope import ClusterBeliefs, checked_marginals
from softmap.run.evidence import Evidence, Scope
from softmap.run.problem import Problem
from softmap.run.records import dual_record
from softmap.subsolvers.clusters.cluster_numbers import ClusterSizes
from softmap.tuning import Tuning

if TYPE_CHECKING:
    from softmap.subsolvers.clusters.tightened_point import TightenedPoint

__all__ = ["ClusterEvidence"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClusterEvidence(Evidence):
    """Clusters of variables, and λ of the model tightened by them.

    Attributes
    ----------
    clusters : tuple of tuples of int
        The variables of each cluster.
    lam : float64 array or None
        λ of the model `softmap.subsolvers.clusters.regions.build(model, clusters)`.
    beliefs : ClusterBeliefs or None
        Marginals from which a point of the tightened relaxation is made.
    """

    kind = "tightened"
    text = "the dual of the relaxation tightened by clusters"
    clusters: tuple[Scope, ...] = ()
    lam: Floats | None = None
    beliefs: ClusterBeliefs | None = None

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return self.clusters

    @property
    def size(self) -> str:
        return f"{len(self.clusters):,} of them" if self.clusters else ""

    @property
    def facts(self) -> dict[str, str]:
        return {"clusters": f"{len(self.clusters):,}"} if self.clusters else {}

    def back(self, problem: Problem) -> Evidence | None:
        if not problem.survives_scaling(self.lam):
            return None
        return replace(
            self,
            value=problem.bound_back(self.value),
            lam=problem.lam_back(self.lam),
            beliefs=problem.beliefs_back(self.beliefs),
        )

    def records(self, lam: Any) -> Iterator[bytes]:
        return dual_record(self.clusters, lam if self.lam is None else self.lam)

    def renewed(self, problem: Problem, tuning: Tuning) -> ClusterEvidence | None:
        if self.lam is None or not self.clusters:
            return None
        labels = problem.given.num_labels
        if any(not 0 <= i < len(labels) for scope in self.clusters for i in scope):
            raise OptionError("warm_start: this result is damaged (a cluster is out of range)")
        states = sum(math.prod(labels[list(scope)].tolist()) for scope in self.clusters)
        if states > tuning.of(ClusterSizes).states:
            return None
        from softmap.subsolvers.clusters.regions import build  # imported late: often unused

        lam = problem.lam_as_is(self.lam)
        try:
            tight = build(problem.model, self.clusters)
            bound = dual_bound(tight.model, lam)
            beliefs = self._beliefs(problem, tight.model)
        except (ModelError, OptionError, IndexError, ValueError) as error:
            raise OptionError(f"warm_start: this result is damaged ({error})") from error
        return replace(self, value=bound, lam=lam, beliefs=beliefs)

    def _beliefs(self, problem: Problem, model: Network) -> ClusterBeliefs | None:
        """Return the beliefs in the units of a problem, as marginals of the tightened model."""
        if self.beliefs is None:
            return None
        eta = problem.eta(self.beliefs.eta)
        assert eta is not None
        return replace(
            self.beliefs,
            nodes=checked_marginals(model, self.beliefs.nodes),
            coupling=check_lam(model, problem.lam_as_is(self.beliefs.coupling)),
            eta=check_eta(eta),
        )

    def point(self, model: Network, labels: Any) -> TightenedPoint | None:
        if self.beliefs is None:
            return None
        from softmap.subsolvers.clusters.tightened_point import TightenedPoint, tightened_point

        primal, nodes = tightened_point(model, self.clusters, self.beliefs, labels)
        return TightenedPoint(self.clusters, self.value, primal, nodes)

    def arrays(self) -> Arrays:
        sizes = [len(scope) for scope in self.clusters]
        members = [i for scope in self.clusters for i in scope]
        arrays: Arrays = {
            "sizes": np.array(sizes, dtype=np.int64),
            "members": np.array(members, dtype=np.int64),
        }
        if self.lam is not None:
            arrays["lam"] = self.lam
        if (beliefs := self.beliefs) is not None:
            arrays |= {"beliefs": beliefs.nodes, "coupling": beliefs.coupling}
            arrays["eta"] = np.array(beliefs.eta)
        return arrays

    @classmethod
    def of_arrays(cls, arrays: Arrays, value: float) -> ClusterEvidence:
        sizes, members = arrays["sizes"], arrays["members"]
        if sizes.sum() != len(members) or (sizes < 0).any():
            raise ValueError("the cluster sizes of the proof do not match its members")
        parts = np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else []
        return cls(
            value=value,
            clusters=tuple(tuple(part.tolist()) for part in parts),
            lam=arrays.get("lam"),
            beliefs=_beliefs(arrays) if "beliefs" in arrays else None,
        )


def _beliefs(arrays: Arrays) -> ClusterBeliefs:
    nodes, coupling, eta = arrays["beliefs"], arrays["coupling"], float(arrays["eta"])
    if nodes.ndim != 1 or coupling.ndim != 1 or not (nodes >= 0).all() or not eta > 0:
        raise ValueError("the proof has no valid beliefs")
    return ClusterBeliefs(nodes, coupling, eta)
