"""Tables of the structured families as functions of their weights, for PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap import Potts, SharedTables, Tables, TruncatedLinear, TruncatedQuadratic
from softmap.errors import ModelError
from softmap.extend import Differentiable, Potential


@dataclass(frozen=True)
class Tensors:
    """The operations of a framework that the tables below need.

    Attributes
    ----------
    array : function
        Converts numbers, NumPy arrays and lists of tensors; keeps the gradient of tensors.
    where, minimum : function
        As in NumPy.
    """

    array: Callable[[Any], Any]
    where: Callable[[Any, Any, Any], Any]
    minimum: Callable[[Any, Any], Any]

    def wide(self, values: Any, name: str) -> Any:
        """Return one number, or one per edge, with two axes for labels."""
        array = self.array(values)
        if array.ndim > 1:
            shape = tuple(array.shape)
            raise ModelError(f"{name} must be one number per edge, not an array of {shape}")
        return array[..., None, None]

    def potts(self, d: int, weights: Any) -> Any:
        """Return the tables of `Potts`."""
        same = self.array(np.eye(d)) > 0
        return self.where(same, self.array(0.0), self.wide(weights, "weights"))

    def linear(self, d: int, weights: Any, truncation: Any = np.inf) -> Any:
        """Return the tables of `TruncatedLinear`."""
        return self._truncated(np.abs(np.subtract.outer(range(d), range(d))), weights, truncation)

    def quadratic(self, d: int, weights: Any, truncation: Any = np.inf) -> Any:
        """Return the tables of `TruncatedQuadratic`."""
        return self._truncated(np.subtract.outer(range(d), range(d)) ** 2, weights, truncation)

    def _truncated(self, distance: Any, weights: Any, truncation: Any) -> Any:
        cut = self.minimum(self.array(distance), self.wide(truncation, "truncation"))
        return self.wide(weights, "weights") * cut

    def tables(self, d: int, tables: Any) -> Any:
        """Return the tables of `Tables`."""
        return self.array(tables)

    def shared(self, d: int, tables: Any, index: Any, weights: Any = None) -> Any:
        """Return the tables of `SharedTables`."""
        chosen = self.array(tables)[np.asarray(index)]
        return chosen if weights is None else self.wide(weights, "weights") * chosen


MAKERS: dict[type[Potential], Callable[..., Any]] = {
    Potts: Tensors.potts,
    TruncatedLinear: Tensors.linear,
    TruncatedQuadratic: Tensors.quadratic,
    Tables: Tensors.tables,
    SharedTables: Tensors.shared,
}


def differentiable_tables(
    potential: Differentiable, labels: int, edges: int, tensors: Tensors
) -> Any:
    """Return costs (edges, d, d), or (d, d) for all edges, as a function of the weights."""
    make = MAKERS.get(potential.of)
    if make is None:
        raise ModelError(f"soft_map has no gradient by a {potential.of.__name__}: give tables")
    made = make(tensors, labels, **potential.given)
    if made.ndim == 3 and made.shape[0] != edges:
        raise ModelError(f"{edges} edges were given for {potential!r} for {made.shape[0]} edges")
    return made
