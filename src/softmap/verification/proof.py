"""The checker of proofs: what does a file prove about a model?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from softmap.errors import FormatError
from softmap.model import Model
from softmap.verification.integers import Flat, Scale, flat_model
from softmap.verification.records import Ints, Op, Records, Rejected, read_header
from softmap.verification.reduction import Reduction
from softmap.verification.tree import Tree

__all__ = ["Checked", "check_proof"]


@dataclass(frozen=True)
class Checked:
    """What a file proves.

    Attributes
    ----------
    bound : Fraction
        No labelling costs less.
    leaves, records : int
        Nodes of the search that were closed, and steps in all.
    """

    bound: Fraction
    leaves: int
    records: int


def check_proof(path: str | Path, model: Model) -> Checked:
    """Repeat every step of a proof, and say what it proves.

    Raises
    ------
    FormatError
        The file is no whole proof of this model, or a step does not follow; says where.
    """
    path = Path(path)
    header, begin = read_header(path)
    if header.get("model") != model.fingerprint():
        raise FormatError("this proof is about another model", path)
    exponent = header.get("exponent")
    if not isinstance(exponent, int) or abs(exponent) > 5000:
        raise FormatError("the scale of the costs is none", path)
    with path.open("rb") as file:
        records = Records(file, begin)
        checker = SearchChecker(flat_model(model), exponent)
        try:
            for op, arrays in records:
                checker.step(op, arrays)
            bound = checker.bound()
        except Rejected as error:
            said = f"record {records.count}, at byte {records.place}, is not accepted: {error}"
            raise FormatError(said, path) from error
    return Checked(bound, checker.leaves, records.count)


class SearchChecker:
    """The records of one search, step by step."""

    def __init__(self, flat: Flat, exponent: int) -> None:
        self._flat, self._exponent = flat, exponent
        self._scale: Scale | None = None
        self._reduction: Reduction | None = None
        self._tree: Tree | None = None
        self._part: tuple[list[int], list[int]] = [], []
        self._leaves = 0

    @property
    def leaves(self) -> int:
        """Nodes that were closed."""
        return self._leaves + (self._tree.leaves if self._tree is not None else 0)

    def bound(self) -> Fraction:
        """What has been proved, in the units of the model."""
        if self._reduction is None or self._scale is None:
            raise Rejected("there is no model")
        tree, scale = self._tree, self._scale
        units = self._reduction.bound(tree.bound() if tree is not None else 0)
        if scale.common > 1:  # so is every energy, but those that are forbidden
            rounded = -(-units // scale.common) * scale.common
            units = min(rounded, max(units, self._reduction.cut))
        return scale.unit * units + self._flat.constant

    def step(self, op: Op, arrays: list[Ints]) -> None:
        """One record."""
        if op is Op.LOAD:
            self._load(*arrays)
        elif self._reduction is None:
            raise Rejected("there is no model")
        elif self._tree is not None:
            self._in_tree(self._tree, op, arrays)
        else:
            self._before_tree(self._reduction, op, arrays)

    def _load(self, numbers: Ints, pairs: Ints, moved: Ints) -> None:
        if self._reduction is not None or len(numbers) != 3:
            raise Rejected("there is a model already, or its unit is none")
        granule, exponent, most = numbers.tolist()
        self._scale = Scale(granule, exponent - self._exponent, most)
        self._reduction = Reduction(self._flat, self._scale, pairs, moved)

    def _before_tree(self, reduction: Reduction, op: Op, arrays: list[Ints]) -> None:
        first = arrays[0]
        if op is Op.COMPONENT:
            self._begin(reduction, first.tolist(), arrays[1].tolist())
        elif op is Op.NORMALISE:
            reduction.normalise()
        elif op is Op.BAN:
            reduction.ban(first)
        elif op is Op.SHIFT:
            reduction.shift(*arrays)
        elif op is Op.SUBSTITUTE:
            reduction.substitute(*_numbers(first, 3), arrays[1])
        elif op is Op.DROP:
            reduction.drop(*_numbers(first, 1), arrays[1])
        elif op is Op.DOMINATED:
            reduction.dominated(*_numbers(first, 1), arrays[1])
        elif op is Op.SPLIT:
            reduction.split(*_numbers(first, 1))
        elif op is Op.ELIMINATE:
            reduction.eliminate(*_numbers(first, 1))
        elif op is Op.FIX:
            reduction.fix(*_numbers(first, 1))
        else:
            raise Rejected(f"{op.name} outside of a search")

    def _begin(self, reduction: Reduction, variables: list[int], factors: list[int]) -> None:
        place = {v: k for k, v in enumerate(variables)}
        if not variables or len(place) < len(variables) or len(set(factors)) < len(factors):
            raise Rejected("the variables or factors of a component are named twice")
        if not all(v in reduction.unary for v in variables):
            raise Rejected("a variable of a component is gone")
        if not all(f in reduction.scopes and set(reduction.scopes[f]) <= set(place) for f in factors):
            raise Rejected("a factor of a component is gone, or has other variables")
        self._part = variables, factors
        self._tree = Tree(
            [reduction.unary[v] for v in variables],
            [([place[v] for v in reduction.scopes[f]], reduction.tables[f]) for f in factors],
        )

    def _in_tree(self, tree: Tree, op: Op, arrays: list[Ints]) -> None:
        first = arrays[0]
        if op is Op.MOVE:
            tree.move(*arrays)
        elif op is Op.REMOVE:
            tree.remove(*arrays)
        elif op is Op.CLOSE:
            tree.close()
        elif op is Op.BRANCH:
            tree.branch(*_numbers(first, 3))
        elif op is Op.COMBINE:
            tree.combine(*_numbers(first, 1), arrays[1].tolist(), arrays[2].tolist())
        elif op is Op.DIVE:
            tree.dive(*_numbers(first, 1))
        elif op is Op.LEAVE:
            tree.leave(bool(_numbers(first, 1)[0]))
        elif op is Op.CUT:
            tree.set_cut(*_numbers(first, 1))
        elif op is Op.END:
            assert self._reduction is not None
            self._leaves += tree.leaves
            self._reduction.close(*self._part, tree.bound())
            self._tree = None
        else:
            raise Rejected(f"{op.name} within a search")


def _numbers(array: Ints, count: int) -> list[int]:
    if len(array) != count:
        raise Rejected(f"{count} numbers were expected, not {len(array)}")
    found: list[int] = array.tolist()
    return found
