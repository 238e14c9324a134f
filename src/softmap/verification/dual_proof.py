"""The check of λ, alone or with searches of components of what it leaves open."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.verification.dual import exact_bound, outer_terms
from softmap.verification.exact import exact_sum
from softmap.verification.integers import Flat, Given, flat_piece, lower_tables
from softmap.verification.limit import CALL, ITEM, Limits
from softmap.verification.records import Ints, Rejected
from softmap.verification.regions import tightened
from softmap.verification.search import SearchLog

CLUSTER = 1 << 12  # bytes of a cluster, its pairs of variables and their edges


class DualProof:
    """Checks the records of λ, and of the searches of its components.

    Parameters
    ----------
    given : Given
        The model.
    """

    def __init__(self, given: Given) -> None:
        self._given = given
        self._dual: _Dual | None = None
        self._search: SearchLog | None = None

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check one record."""
        if name == "dual" and self._dual is None:
            given = self._given.about_costs(name)
            self._dual = _Dual(given.model, given.effort, *arrays)
        elif name == "piece" and self._dual is not None:
            self._finish(self._dual)
            given = self._given
            self._search = SearchLog(self._dual.piece(*arrays), given.exponent, given.effort)
        elif self._search is None or name == "dual":
            raise Rejected(f"{name} out of its place")
        else:
            self._search.step(name, arrays)

    def _finish(self, dual: _Dual) -> None:
        """Add the bound of the last piece, if there is one."""
        if self._search is not None:
            dual.pieces += self._search.bound()
            self._search.release()
        self._search = None

    def bound(self) -> Fraction:
        """The lower bound proved by λ and all searches."""
        assert self._dual is not None
        self._finish(self._dual)
        return self._dual.bound()


class _Dual:
    """The bound of λ, improved by searches of connected components of the loose part.

    Attributes
    ----------
    pieces : Fraction
        The sum of the bounds of all components searched.
    """

    def __init__(
        self, model: Network, effort: Limits, sizes: Ints, members: Ints, bits: Ints
    ) -> None:
        self._lam, self._plain = bits.view(np.float64), not len(sizes)
        if (sizes < 1).any() or sizes.sum() != len(members):
            raise Rejected("the sizes of the clusters do not match their members")
        effort.work(16 * CALL * len(sizes) + 8 * ITEM * int((sizes * sizes).sum()))
        effort.keep(CLUSTER * len(sizes) + 64 * len(members))
        parts = np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else []
        self._model = tightened(model, [tuple(part.tolist()) for part in parts], len(self._lam))
        if len(self._lam) != self._model.half_offset[-1] or not np.isfinite(self._lam).all():
            raise Rejected("λ does not have one finite number for each label of each half-edge")
        self._nodes: list[int] = []
        self._edges: list[int] = []
        self._unary: list[NDArray[np.float64]] = []
        self._tables: dict[int, NDArray[np.float64]] | None = None
        self.pieces = Fraction(0)

    def piece(self, nodes: Ints, edges: Ints, bits: Ints) -> Flat:
        """Register a component (nodes, edges, node costs as bits); return its costs."""
        model, inside, chosen = self._model, set(nodes.tolist()), set(edges.tolist())
        if not self._plain or model.has_factors:
            raise Rejected("components need a model without clusters and larger factors")
        if len(inside) < len(nodes) or inside & set(self._nodes) or not inside <= {*range(model.n)}:
            raise Rejected("a component names a node twice, or one that does not exist")
        if len(chosen) < len(edges) or not chosen <= {*range(model.m)}:
            raise Rejected("a component names an edge twice, or one that does not exist")
        if not inside.issuperset(model.edges[edges].ravel().tolist()):
            raise Rejected("an edge of a component has an endpoint outside of it")
        unary, sizes = bits.view(np.float64), model.num_labels[nodes]
        if len(unary) != sizes.sum() or np.isnan(unary).any() or np.isneginf(unary).any():
            raise Rejected("a component does not have one cost for each label")
        self._nodes += nodes.tolist()
        self._edges += edges.tolist()
        self._unary.append(unary)
        if self._tables is None:
            self._tables = lower_tables(model)
        return flat_piece(model, nodes, edges, np.split(unary, np.cumsum(sizes)[:-1]), self._tables)

    def bound(self) -> Fraction:
        """The lower bound proved by λ and all searches."""
        model, lam = self._model, self._lam
        if not self._nodes:
            return exact_bound(model, lam)
        nodes, edges = np.array(self._nodes), np.array(self._edges, dtype=np.int64)
        terms = outer_terms(model, lam, nodes, edges, np.concatenate(self._unary))
        if terms is None or not all(map(math.isfinite, terms)):
            raise Rejected("the costs of a component exceed those of the model")
        return self.pieces + exact_sum(terms)
