"""The checker of proof files: the lower bound that a file proves for a model."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError
from softmap.model import Network
from softmap.verification.assignment import assignment_bound
from softmap.verification.conclusion import Conclusion, What, exact_energy
from softmap.verification.cores import CoreProof
from softmap.verification.dual import exact_bound, outer_terms
from softmap.verification.exact import exact_sum
from softmap.verification.integers import (
    Flat,
    flat_model,
    flat_piece,
    hard_constraints,
    lower_tables,
)
from softmap.verification.limit import CALL, ITEM, Limits
from softmap.verification.permutations import PermutationTree
from softmap.verification.ranks import Bound, Rank, RankedProof
from softmap.verification.records import (
    Ints,
    Records,
    Rejected,
    mapped,
    read_header,
    unpacked,
)
from softmap.verification.regions import tightened
from softmap.verification.search import SearchLog
from softmap.verification.spins import SpinLeaves
from softmap.verification.squares import squares_bound

# records that are not of a search
APART = {
    "dual", "piece", "spins", "squares", "assignment", "except", "part", "ranks", *CoreProof.STEPS,
}  # fmt: skip


class Checked(NamedTuple):
    """The bound that a proof file proves; every step of the file holds.

    Attributes
    ----------
    bound : Fraction
        A lower bound on the energy of all labellings; of the hard constraints alone, if the
        conclusion is that there is no labelling.
    leaves : int
        Number of search nodes that were closed.
    records : int
        Number of records in the file.
    conclusion : Conclusion or None
        What the file concludes; it holds.
    ranks : tuple of Rank
        The best labellings in their order, of an m-best proof.
    others : Fraction or infinite
        No labelling but these costs less; +inf if there is none. None without ranks.
    """

    bound: Fraction
    leaves: int
    records: int
    conclusion: Conclusion | None = None
    ranks: tuple[Rank, ...] = ()
    others: Bound | None = None

    def proves(self, bound: float) -> bool:
        """Whether the proof implies that no labelling costs less than `bound`."""
        if self.conclusion is not None and self.conclusion.what is What.INFEASIBLE:
            return True
        return bound == -math.inf or (math.isfinite(bound) and self.bound >= bound)


def check_proof(path: str | Path, model: Network, effort: float = 1.0) -> Checked:
    """Repeat every step of a proof file, and return the bound that it proves.

    Parameters
    ----------
    path : str or Path
        The proof file.
    model : Network
        The model that the proof refers to.
    effort : float, default 1
        Multiplies the limits of the check: on tables, work and memory (docs/proofs.md).

    Raises
    ------
    Refused
        The check would exceed its effort.
    FormatError
        The file is damaged, belongs to another model, or contains an invalid step. The message
        names the record.
    """
    path = Path(path)
    with mapped(path) as data:
        header, begin = read_header(data, path)
        if header.get("model") != model.fingerprint():
            raise FormatError("this proof is about another model", path)
        limits = Limits(effort, len(data), model.unary.size + int(model.edge_offset[-1]))
        data, begin = unpacked(data, begin, header, path, limits)
        exponent = header.get("exponent")
        if not isinstance(exponent, int) or abs(exponent) > 5000:
            raise FormatError("the exponent of the costs is outside -5000..5000", path)
        checker = Checker(model, exponent, limits)
        records, leaves = Records(data, begin, limits), 0
        try:
            for name, arrays in records:
                checker.step(name, arrays)
                leaves += name in ("close", "spins")
            proved = checker.result()
        except (Rejected, ArithmeticError, LookupError, TypeError, ValueError) as error:
            said = f"record {records.count}, at byte {records.place}, is not accepted: {error}"
            raise FormatError(said, path) from error
    bound, conclusion = proved
    return Checked(bound, leaves, records.count, conclusion, *checker.ranked())


class Checker:
    """Checks a whole proof: a search, λ alone or with searches of components, or multipliers.

    Parameters
    ----------
    model : Network
        The model that the proof refers to.
    exponent : int
        The solver multiplied all costs by 2**exponent.
    effort : Limits
        Limits the sizes of tables.
    """

    def __init__(self, model: Network, exponent: int, effort: Limits) -> None:
        self._model, self._exponent, self._effort = model, exponent, effort
        self._search: SearchLog | None = None
        self._dual: Dual | None = None
        self._spins: SpinLeaves | None = None
        self._direct: Fraction | None = None  # the bound of a record that is alone
        self._cores: CoreProof | None = None
        self._tree: PermutationTree | None = None
        self._hard = False
        self._energy: Fraction | None = None
        self._conclusion: Conclusion | None = None
        self._ranked: RankedProof | None = None

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check one record."""
        if self._ranked is not None:
            self._ranked.step(name, arrays)
            return
        if self._conclusion is not None or (self._energy is not None and name != "conclude"):
            raise Rejected(f"{name} after the conclusion")
        if name == "hard" and not self._began and not self._hard:
            self._hard = True
        elif name == "except" and not self._began and not self._hard:
            self._ranked = RankedProof(self._model, self._exponent, self._effort, *arrays)
        elif name == "labels":
            self._energy = exact_energy(self._model, arrays[0])
        elif name == "conclude":
            self._conclusion = Conclusion.of((arrays[0], arrays[1]), self._energy, self._hard)
        elif name == "hard" or (name in ("dual", "assignment") and self._hard):
            raise Rejected(f"{name} out of its place")
        else:
            self._proof_step(name, arrays)

    @property
    def _began(self) -> bool:
        parts = self._dual, self._search, self._spins, self._direct, self._cores
        return any(part is not None for part in (*parts, self._tree))

    def _proof_step(self, name: str, arrays: list[Any]) -> None:
        if name == "dual" and not self._began:
            self._dual = Dual(self._model, self._effort, *arrays)
        elif name == "assignment" and (self._tree or not self._began):
            self._assign(*arrays)
        elif name in CoreProof.STEPS and (self._cores or not self._began):
            self._cores = self._cores or self._new_cores(name)
            getattr(self._cores, name)(*arrays)
        elif name == "spins" and not self._hard and (self._spins or not self._began):
            self._spins = self._spins or SpinLeaves(flat_model(self._model), self._effort)
            self._spins.add(*arrays)
        elif name == "squares" and not self._hard and not self._began:
            self._direct = squares_bound(flat_model(self._model), self._effort, *arrays)
        elif name == "piece" and self._dual is not None:
            self._finish(self._dual)
            self._search = self._begin(self._dual.piece(*arrays))
        elif name in APART or (self._search is None and self._began):
            raise Rejected(f"{name} out of its place")
        else:
            if self._search is None:
                self._search = self._begin(self._flat())
            self._search.step(name, arrays)

    def _assign(self, shape: Ints, *multipliers: Ints) -> None:
        """Check multipliers of the model, or of a node of a tree."""
        if self._tree is None and len(shape) <= 3:
            self._direct = assignment_bound(self._model, shape, *multipliers)
        elif self._tree is None:
            self._tree = PermutationTree(self._model, self._effort, shape)
            self._tree.add(shape[:0], *multipliers)
        else:
            self._tree.add(shape[3:], *multipliers)

    def _flat(self) -> Flat:
        flat = flat_model(self._model)
        return hard_constraints(flat) if self._hard else flat

    def _new_cores(self, name: str) -> CoreProof:
        if name != "booleans":
            raise Rejected(f"{name} out of its place")
        return CoreProof(self._model, self._flat(), self._exponent, self._effort)

    def _begin(self, flat: Flat) -> SearchLog:
        return SearchLog(flat, self._exponent, self._effort)

    def _finish(self, dual: Dual) -> None:
        """Add the bound of the last piece, if there is one."""
        if self._search is not None:
            dual.pieces += self._search.bound()

    def result(self) -> tuple[Fraction, Conclusion | None]:
        """The lower bound proved by all records, and the conclusion, which must hold."""
        if self._ranked is not None:
            return self._ranked.bound, None
        found, last = self._bound(), self._conclusion
        if last is None:
            if self._hard:  # the bound of another model
                raise Rejected("the file has hard constraints only, and no conclusion from them")
            return found, None
        if not last.holds(found):
            raise Rejected(f"the conclusion does not follow: {last}")
        return found, last

    def ranked(self) -> tuple[tuple[Rank, ...], Bound | None]:
        """The ranks of an m-best proof, and the bound on all other labellings."""
        return ((), None) if self._ranked is None else self._ranked.ranks

    def _bound(self) -> Fraction:
        if self._dual is not None:
            self._finish(self._dual)
            self._search = None
            return self._dual.bound()
        if self._spins is not None:
            return self._spins.bound()
        if self._direct is not None:
            return self._direct
        if self._tree is not None:
            return self._tree.bound()
        if self._cores is not None:
            return Fraction(1) if self._hard and self._cores.infeasible else self._cores.bound()
        if self._search is None:
            raise Rejected("there are no records")
        return self._search.bound()


class Dual:
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
