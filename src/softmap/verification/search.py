"""The check of one search: steps before it, and the trees of its components."""

from __future__ import annotations

from fractions import Fraction

from softmap.verification.integers import Flat, Given, Scale
from softmap.verification.limit import Limits
from softmap.verification.records import Numbers, Rejected
from softmap.verification.reduction import Reduction
from softmap.verification.tree import Tree


class SearchLog:
    """Checks the records of one search: presolve steps, and trees of some components."""

    def __init__(self, flat: Flat, exponent: int, effort: Limits) -> None:
        self._flat, self._exponent, self._effort = flat, exponent, effort
        self._scale: Scale | None = None
        self._reduction: Reduction | None = None
        self._tree: Tree | None = None
        self._part: tuple[Numbers, Numbers] = (), ()

    def release(self) -> None:
        """Free the memory of the search, which has ended."""
        for part in (self._tree, self._reduction):
            if part is not None:
                part.release()

    def bound(self) -> Fraction:
        """The lower bound proved so far, in the units of the model's costs."""
        if self._reduction is None or self._scale is None:
            raise Rejected("there is no model")
        self._reduction.normalise()
        common = max(1, self._scale.common)  # it divides every energy below the cut
        units = self._reduction.bound(self._tree.bound() if self._tree is not None else 0)
        units = min(-(-units // common) * common, max(units, self._reduction.cut))
        return self._scale.unit * units + self._flat.constant

    def step(self, name: str, arrays: list[Numbers]) -> None:
        """Check one record by the method of its name."""
        if self._tree is not None and name in Tree.STEPS:
            getattr(self._tree, name)(*arrays)
        elif self._reduction is None:
            if name != "load":
                raise Rejected("there is no model")
            granule, exponent, most = arrays[0]
            self._scale = Scale(granule, exponent - self._exponent, most)
            self._reduction = Reduction(self._flat, self._scale, self._effort)
        elif self._tree is not None and name == "end":
            self._reduction.close(*self._part, self._tree.bound())
            self._tree.release()
            self._tree = None
        elif self._tree is None and name == "component":
            self._tree = Tree(*self._reduction.component(*arrays), self._effort)
            self._part = arrays[0], arrays[1]
        elif self._tree is None and name in Reduction.STEPS:
            getattr(self._reduction, name)(*arrays)
        else:
            raise Rejected(f"{name} out of its place")


class SearchProof(SearchLog):
    """Checks the records of a search of the whole model, or of its hard constraints.

    Parameters
    ----------
    given : Given
        The model.
    """

    def __init__(self, given: Given) -> None:
        super().__init__(given.flat(), given.exponent, given.effort)
