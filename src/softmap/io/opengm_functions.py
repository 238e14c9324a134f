"""OpenGM's functions of two labels with a family of their own, and the list of all types."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from softmap.io.assembly import Assembly, Costs, Ints
from softmap.io.opengm_tables import Constant, Explicit, Functions, PottsG, PottsN, Sparse
from softmap.model.potentials import Potts, TruncatedLinear, TruncatedQuadratic

__all__ = ["FUNCTION_TYPES"]


class Pairwise(Functions):
    """Types over two variables, `[s0, s1]` and a few parameters, with a family of their own."""

    def parse(self, indices: Ints) -> None:
        if len(indices) != 2 * self.count:
            raise self.error(f"expected {2 * self.count} shape numbers, found {len(indices)}")
        if len(self.values) != self.parameters * self.count:
            expected = self.parameters * self.count
            raise self.error(f"expected {expected} values, found {len(self.values)}")
        self.shapes = indices.reshape(-1, 2)
        self.table = self.values.reshape(-1, self.parameters)
        self.check_parameters()

    def check_parameters(self) -> None:
        """Raise on parameters that have no meaning."""
        if not np.isfinite(self.values).all():
            raise self.error("parameters must be finite")

    def check_shapes(self, functions: Ints, shapes: Ints) -> None:
        if shapes.shape[1] != 2 or (self.shapes[functions] != shapes).any():
            raise self.error("a factor uses a function of another shape")

    def entries(self, functions: Ints, shapes: Ints) -> int:
        return len(functions)


class Distance(Pairwise):
    """`weight * min(distance, truncation)`; the values are [truncation, weight] or [weight]."""

    potential: ClassVar[type[TruncatedLinear] | type[TruncatedQuadratic]]

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.parameters == 2 and self.count and self.table[:, 0].min() < 0:
            raise self.error(f"expected a truncation of at least 0, found {self.table[:, 0].min()}")

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        return self._of(np.array([function])).as_table(0, *shape)

    def _of(self, functions: Ints) -> TruncatedLinear | TruncatedQuadratic:
        cut = self.table[functions, 0] if self.parameters == 2 else np.full(len(functions), np.inf)
        return self.potential(self.table[functions, -1], cut)

    def add_to(self, assembly: Assembly, functions: Ints, scopes: Ints) -> None:
        assembly.add_potential(scopes, self._of(functions))


class AbsoluteDifference(Distance):
    """`w |a - b|`."""

    parameters, potential = 1, TruncatedLinear


class TruncatedAbsoluteDifference(Distance):
    """`w min(|a - b|, T)`."""

    parameters, potential = 2, TruncatedLinear


class SquaredDifference(Distance):
    """`w (a - b)²`."""

    parameters, potential = 1, TruncatedQuadratic


class TruncatedSquaredDifference(Distance):
    """`w min((a - b)², T)`."""

    parameters, potential = 2, TruncatedQuadratic


class PottsPair(Pairwise):
    """One value where the labels agree, another where they differ."""

    parameters = 2

    def check_parameters(self) -> None:
        """Values are costs: checked already."""

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        equal, other = self.table[function]
        return np.where(np.equal.outer(np.arange(shape[0]), np.arange(shape[1])), equal, other)

    def entries(self, functions: Ints, shapes: Ints) -> int:
        if np.isfinite(self.table[functions, 0]).all():
            return len(functions)
        return super(Pairwise, self).entries(functions, shapes)

    def add_to(self, assembly: Assembly, functions: Ints, scopes: Ints) -> None:
        equal, other = self.table[functions].T
        if not np.isfinite(equal).all():
            super().add_to(assembly, functions, scopes)
            return
        assembly.add_constant(float(equal.sum()))
        assembly.add_potential(scopes, Potts(other - equal))


FUNCTION_TYPES: dict[int, type[Functions]] = {
    0: Explicit,
    1: Sparse,
    2: AbsoluteDifference,
    3: TruncatedAbsoluteDifference,
    4: SquaredDifference,
    5: TruncatedSquaredDifference,
    6: PottsPair,
    7: PottsN,
    8: Constant,
    11: PottsG,
}
