"""The proof of a bound: a relaxation of one kind or another, or an exact search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from softmap.relaxation.polytope import ClusterBeliefs
from softmap.solving.archive import Arrays

__all__ = [
    "Multipliers", "Penalty", "Proof", "ProofKind", "proof_arrays", "proof_from_arrays",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Scope = tuple[int, ...]


class ProofKind(Enum):
    """The kinds of proof; the value is the text that users see."""

    RELAXATION = "the dual of the LP relaxation"
    TIGHTENED = "the dual of the relaxation tightened by clusters"
    SEARCH = "an exact search"
    SEMIDEFINITE = "a semidefinite relaxation"
    ASSIGNMENT = "the dual of the relaxation by assignment problems"
    CORES = "a core-guided search"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Penalty:
    """Costs that stand for hard constraints, because they exceed all other costs together.

    Attributes
    ----------
    cost : float
        The least of these costs, counted from the least entry of its table.
    verdict : str
        "avoided": the labels pay none of them. "needed": every labelling pays one, by a proof.
        "open": neither is known.
    """

    cost: float
    verdict: str


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers of assignment problems, which prove a bound for permutations (docs/proofs.md).

    Attributes
    ----------
    exponent : int
        The unit of all multipliers is `2**exponent`.
    rows : int64[n, d, n]
        Multipliers of variable j if variable i has label p.
    columns : int64[n, d, d]
        Multipliers of label q if variable i has label p.
    labels : int64[d]
        Multipliers of the labels.
    bound : float
        The lower bound that they prove.
    """

    exponent: int
    rows: Ints
    columns: Ints
    labels: Ints
    bound: float

    def scaled(self, power: int, bound: float) -> Multipliers:
        """The same for costs times `2**power`, with the bound for these costs."""
        return replace(self, exponent=self.exponent + power, bound=bound)


@dataclass(frozen=True, eq=False)
class Proof:
    """The data needed to check a bound without solving again.

    Attributes
    ----------
    kind : ProofKind
        The kind of proof.
    clusters : tuple of tuples of int
        Clusters of a tightened relaxation.
    lam : float64 array or None
        λ of the model `softmap.proof.tightening.regions.build(model, clusters)`.
    nodes : int
        Number of nodes of the search tree, or of cores.
    beliefs : ClusterBeliefs or None
        Marginals from which a point of the tightened relaxation is made.
    multipliers : Multipliers or None
        Multipliers of assignment problems; of a search, those that it started from.
    """

    kind: ProofKind = ProofKind.RELAXATION
    clusters: tuple[Scope, ...] = ()
    lam: Floats | None = None
    nodes: int = 0
    beliefs: ClusterBeliefs | None = None
    multipliers: Multipliers | None = None

    def __repr__(self) -> str:
        """One line: arrays and clusters of a large proof would fill many pages."""
        parts = [self.kind.name]
        parts += [f"{len(self.clusters):,} clusters"] if self.clusters else []
        parts += [f"{self.nodes:,} nodes"] if self.nodes else []
        return f"Proof({', '.join(parts)}: {self.kind})"

    @property
    def stated(self) -> bool:
        """Whether the bound is only stated: `softmap.verify` checks it from a proof file only."""
        return self.kind in (ProofKind.SEARCH, ProofKind.SEMIDEFINITE, ProofKind.CORES)


def proof_arrays(proof: Proof) -> Arrays:
    """Return the proof as arrays by name."""
    sizes = [len(scope) for scope in proof.clusters]
    arrays: Arrays = {
        "kind": np.array(list(ProofKind).index(proof.kind)),
        "nodes": np.array(proof.nodes),
        "sizes": np.array(sizes, dtype=np.int64),
        "members": np.array([i for scope in proof.clusters for i in scope], dtype=np.int64),
    }
    if proof.lam is not None:
        arrays["lam"] = proof.lam
    if (beliefs := proof.beliefs) is not None:
        arrays |= {"beliefs": beliefs.nodes, "coupling": beliefs.coupling}
        arrays |= {"eta": np.array(beliefs.eta)}
    if (given := proof.multipliers) is not None:
        arrays |= {"rows": given.rows, "columns": given.columns, "labels": given.labels}
        arrays |= {"exponent": np.array(given.exponent), "proved": np.array(given.bound)}
    return arrays


def proof_from_arrays(arrays: Arrays) -> Proof:
    """Return the proof of the arrays of `proof_arrays`."""
    if arrays["sizes"].sum() != len(arrays["members"]) or (arrays["sizes"] < 0).any():
        raise ValueError("the cluster sizes of the proof do not match its members")
    if not 0 <= int(arrays["kind"]) < len(ProofKind):
        raise ValueError("the kind of the proof is unknown")
    cuts = np.cumsum(arrays["sizes"])[:-1]
    parts = np.split(arrays["members"], cuts) if len(arrays["sizes"]) else []
    return Proof(
        kind=list(ProofKind)[int(arrays["kind"])],
        clusters=tuple(tuple(part.tolist()) for part in parts),
        lam=arrays.get("lam"),
        nodes=int(arrays["nodes"]),
        beliefs=_beliefs(arrays) if "beliefs" in arrays else None,  # older files have none
        multipliers=_multipliers(arrays) if "rows" in arrays else None,
    )


def _multipliers(arrays: Arrays) -> Multipliers:
    parts = [arrays[name] for name in ("rows", "columns", "labels")]
    if any(part.dtype != np.int64 for part in parts) or [p.ndim for p in parts] != [3, 3, 1]:
        raise ValueError("the proof has no valid multipliers")
    rows, columns, labels = parts
    return Multipliers(int(arrays["exponent"]), rows, columns, labels, float(arrays["proved"]))


def _beliefs(arrays: Arrays) -> ClusterBeliefs:
    nodes, coupling, eta = arrays["beliefs"], arrays["coupling"], float(arrays["eta"])
    if nodes.ndim != 1 or coupling.ndim != 1 or not (nodes >= 0).all() or not eta > 0:
        raise ValueError("the proof has no valid beliefs")
    return ClusterBeliefs(nodes, coupling, eta)
