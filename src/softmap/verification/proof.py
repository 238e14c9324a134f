"""The checker of proof files: the lower bound that a file proves for a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, ModelError
from softmap.model import Model
from softmap.proof.tightening.regions import build
from softmap.verification.dual import dual_proves, outer_terms
from softmap.verification.exact import exact_sum
from softmap.verification.integers import Flat, Scale, flat_model, flat_piece
from softmap.verification.records import (
    Ints,
    Numbers,
    Op,
    Records,
    Rejected,
    array_of,
    list_of,
    read_header,
)
from softmap.verification.reduction import Reduction
from softmap.verification.tree import Tree

__all__ = ["Checked", "check_proof"]


@dataclass(frozen=True)
class Checked:
    """The bound that a proof file proves; every step of the file holds.

    Attributes
    ----------
    bound : Fraction
        A lower bound on the energy of all labellings.
    leaves : int
        Number of search nodes that were closed.
    records : int
        Number of records in the file.
    """

    bound: Fraction
    leaves: int
    records: int

    def proves(self, bound: float) -> bool:
        """Whether the proof implies that no labelling costs less than `bound`."""
        return bound == -math.inf or (math.isfinite(bound) and self.bound >= bound)

    @property
    def rounded(self) -> float:
        """The bound, rounded down."""
        near = float(self.bound)
        return near if near <= self.bound else math.nextafter(near, -math.inf)

    @property
    def words(self) -> str:
        """A sentence about the number of records and leaves checked."""
        return f"all {self.records} records hold, {self.leaves} leaves of searches among them"


def check_proof(path: str | Path, model: Model, claimed: float = -math.inf) -> Checked:
    """Repeat every step of a proof file, and return the bound that it proves.

    Parameters
    ----------
    path : str or Path
        The proof file.
    model : Model
        The model that the proof refers to.
    claimed : float
        The bound stated by the solver. If λ alone is to prove it and float64 does not decide, it is
        checked in exact arithmetic.

    Raises
    ------
    FormatError
        The file is damaged, belongs to another model, or contains an invalid step. The message
        names the record.
    """
    path = Path(path)
    header, begin = read_header(path)
    if header.get("model") != model.fingerprint():
        raise FormatError("this proof is about another model", path)
    exponent = header.get("exponent")
    if not isinstance(exponent, int) or abs(exponent) > 5000:
        raise FormatError("the exponent of the costs is not a valid one", path)
    with path.open("rb") as file:
        records = Records(file, begin)
        checker = Checker(model, exponent, claimed)
        try:
            for op, arrays in records:
                checker.step(op, arrays)
            bound = checker.bound()
        except (Rejected, ArithmeticError, LookupError, TypeError, ValueError) as error:
            said = f"record {records.count}, at byte {records.place}, is not accepted: {error}"
            raise FormatError(said, path) from error
    return Checked(bound, checker.leaves, records.count)


class Checker:
    """Checks a whole proof: one search, λ alone, or λ and searches of some components.

    Parameters
    ----------
    model : Model
        The model that the proof refers to.
    exponent : int
        The solver multiplied all costs by 2**exponent.
    claimed : float
        The bound stated by the solver.
    """

    def __init__(self, model: Model, exponent: int, claimed: float) -> None:
        self._model, self._exponent, self._claimed = model, exponent, claimed
        self._search: SearchChecker | None = None
        self._dual: Dual | None = None
        self._in_piece = False
        self.leaves = 0

    def step(self, op: Op, arrays: list[Numbers]) -> None:
        """Check one record."""
        if op is Op.DUAL:
            if self._dual is not None or self._search is not None:
                raise Rejected("λ is not the first record")
            self._dual = Dual(self._model, *map(array_of, arrays))
        elif op is Op.PIECE:
            if self._dual is None or self._in_piece:
                raise Rejected("a piece without λ, or within another one")
            flat = self._dual.piece(*map(array_of, arrays))
            self._search, self._in_piece = SearchChecker(flat, self._exponent), True
        elif op is Op.DONE:
            if self._search is None or self._dual is None or not self._in_piece:
                raise Rejected("there is no piece to end")
            self._dual.add(self._search.bound())
            self.leaves += self._search.leaves
            self._search, self._in_piece = None, False
        else:
            if self._search is None:
                if self._dual is not None:
                    raise Rejected(f"{op.name} outside of a piece")
                self._search = SearchChecker(flat_model(self._model), self._exponent)
            self._search.step(op, arrays)

    def bound(self) -> Fraction:
        """The lower bound proved by all records."""
        if self._in_piece:
            raise Rejected("the last piece has no end")
        if self._dual is not None:
            return self._dual.bound(self._claimed)
        if self._search is None:
            raise Rejected("there are no records")
        self.leaves = self._search.leaves
        return self._search.bound()


class Dual:
    """The bound of λ, improved by searches of connected components of the loose part."""

    def __init__(self, model: Model, sizes: Ints, members: Ints, bits: Ints) -> None:
        lam = bits.view(np.float64)
        self._model = _tightened(model, sizes, members, len(lam))
        if lam.shape != (int(self._model.half_offset[-1]),) or not np.isfinite(lam).all():
            raise Rejected("λ is not a finite number for every half-edge")
        self._lam, self._plain = lam, not len(sizes)
        self._nodes: list[Ints] = []
        self._edges: list[Ints] = []
        self._unary: list[NDArray[np.float64]] = []
        self._pieces = Fraction(0)

    def piece(self, nodes: Ints, edges: Ints, bits: Ints) -> Flat:
        """Register a component (nodes, edges, node costs as bits); return its costs."""
        model, inside = self._model, set(nodes.tolist())
        if not self._plain or len(model.auxiliaries):
            raise Rejected("pieces are of models without clusters and larger factors only")
        before = {int(i) for part in self._nodes for i in part}
        if len(inside) < len(nodes) or inside & before or not inside <= set(range(model.n)):
            raise Rejected("a node is named twice, or there is none such")
        chosen = set(edges.tolist())
        if len(chosen) < len(edges) or not chosen <= set(range(model.m)):
            raise Rejected("an edge is named twice, or there is none such")
        if not set(model.edges[edges].ravel().tolist()) <= inside:
            raise Rejected("an edge leaves the piece")
        unary, sizes = bits.view(np.float64), model.num_labels[nodes]
        if len(unary) != sizes.sum() or np.isnan(unary).any() or np.isneginf(unary).any():
            raise Rejected("there is not one cost for each label")
        self._nodes.append(nodes)
        self._edges.append(edges)
        self._unary.append(unary)
        return flat_piece(model, nodes, edges, np.split(unary, np.cumsum(sizes)[:-1]))

    def add(self, bound: Fraction) -> None:
        """Add the bound that a search has proved for the last component."""
        self._pieces += bound

    def bound(self, claimed: float) -> Fraction:
        """The lower bound proved by λ and all searches; `claimed` if λ alone proves it."""
        model, lam = self._model, self._lam
        if not self._nodes:
            claimed = claimed if math.isfinite(claimed) else 0.0
            dual = dual_proves(model, lam, claimed)
            if dual.proved:
                return Fraction(claimed)
            if not math.isfinite(dual.found):
                raise Rejected("the bound of λ is not finite")
            return Fraction(dual.found) - Fraction(dual.size) / 2**40
        nodes, edges = np.concatenate(self._nodes), np.concatenate(self._edges)
        terms = outer_terms(model, lam, nodes, edges, np.concatenate(self._unary))
        if terms is None or not all(map(math.isfinite, terms)):
            raise Rejected("the costs of a piece are above those of the model")
        return self._pieces + exact_sum(terms)


def _tightened(model: Model, sizes: Ints, members: Ints, held: int) -> Model:
    """Return the model with the clusters of a proof added; reject them if λ is too short."""
    if (sizes < 1).any() or sizes.sum() != len(members):
        raise Rejected("clusters have other sizes than members")
    if not len(sizes):
        return model
    if not ((members >= 0) & (members < model.num_variables)).all():
        raise Rejected("a cluster has variables that the model does not have")
    parts = np.split(members, np.cumsum(sizes)[:-1])
    labels = model.num_labels.tolist()
    states = sum(math.prod(labels[i] for i in part.tolist()) for part in parts)
    if states > held:
        raise Rejected(f"clusters have {states:.6g} joint states, λ has {held} numbers")
    try:
        return build(model, [tuple(part.tolist()) for part in parts]).model
    except (ModelError, ValueError) as error:
        raise Rejected(f"the clusters are not valid ({error})") from error


class SearchChecker:
    """Checks the records of one search, step by step."""

    def __init__(self, flat: Flat, exponent: int) -> None:
        self._flat, self._exponent = flat, exponent
        self._scale: Scale | None = None
        self._reduction: Reduction | None = None
        self._tree: Tree | None = None
        self._part: tuple[list[int], list[int]] = [], []
        self._steps: dict[Op, Callable[..., None]] = {}
        self._leaves = 0

    @property
    def leaves(self) -> int:
        """Number of search nodes that were closed."""
        return self._leaves + (self._tree.leaves if self._tree is not None else 0)

    def bound(self) -> Fraction:
        """The lower bound proved so far, in the units of the model's costs."""
        if self._reduction is None or self._scale is None:
            raise Rejected("there is no model")
        tree, scale = self._tree, self._scale
        units = self._reduction.bound(tree.bound() if tree is not None else 0)
        if scale.common > 1:  # it divides every energy below the cut
            rounded = -(-units // scale.common) * scale.common
            units = min(rounded, max(units, self._reduction.cut))
        return scale.unit * units + self._flat.constant

    def step(self, op: Op, arrays: list[Numbers]) -> None:
        """Check one record by the method that `Reduction.steps` or `Tree.steps` names."""
        if op is Op.LOAD:
            self._load(*map(array_of, arrays))
            return
        if self._reduction is None:
            raise Rejected("there is no model")
        if op is Op.COMPONENT:
            self._begin(self._reduction, *map(list_of, arrays))
            return
        if op in (Op.END, Op.ABANDON):
            self._end(self._reduction, op)
            return
        step = self._steps.get(op)
        if step is None:
            raise Rejected(f"{op.name} out of its place")
        step(*arrays)

    def _load(self, numbers: Ints, pairs: Ints, moved: Ints) -> None:
        if self._reduction is not None:
            raise Rejected("there is a model already")
        granule, exponent, most = numbers.tolist()
        self._scale = Scale(granule, exponent - self._exponent, most)
        self._reduction = Reduction(self._flat, self._scale, pairs, moved)
        self._steps = self._reduction.steps

    def _begin(self, reduction: Reduction, variables: list[int], factors: list[int]) -> None:
        if self._tree is not None:
            raise Rejected("a search within a search")
        place = {v: k for k, v in enumerate(variables)}
        if not variables or len(place) < len(variables) or len(set(factors)) < len(factors):
            raise Rejected("the variables or factors of a component are named twice")
        if not all(v in reduction.unary for v in variables):
            raise Rejected("a variable of a component is gone")
        if not all(
            f in reduction.scopes and set(reduction.scopes[f]) <= set(place) for f in factors
        ):
            raise Rejected("a factor of a component is gone, or has other variables")
        self._part = variables, factors
        self._tree = Tree(
            [reduction.unary[v].tolist() for v in variables],
            [([place[v] for v in reduction.scopes[f]], reduction.tables[f]) for f in factors],
        )
        self._steps = self._tree.steps

    def _end(self, reduction: Reduction, op: Op) -> None:
        """End the search of a component; ABANDON discards the bound that it has proved."""
        if self._tree is None:
            raise Rejected("there is no search to end")
        if op is Op.END:
            reduction.close(*self._part, self._tree.bound())
        self._leaves += self._tree.leaves
        self._tree, self._steps = None, reduction.steps
