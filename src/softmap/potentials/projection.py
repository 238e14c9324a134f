"""Ties an auxiliary variable, whose states are joint states, to one of its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError
from softmap.potentials.base import Costs, Ints, KernelData, Kind, Potential, frozen

__all__ = ["Projection"]


class Projection(Potential):
    """0 where the auxiliary's state projects to the member's label, +inf elsewhere.

    The first end of each edge is the auxiliary variable. A message costs one pass over the joint
    states; the (joint states × labels) table is never built.

    Parameters
    ----------
    maps : list of int arrays
        `maps[t][s]` is the member's label in joint state `s`.
    num_labels : int array
        Labels of the member, one entry per edge.
    index : int array, optional
        Which map each edge uses; edge k uses `maps[k]` if left out.
    """

    family = "projection"

    def __init__(
        self,
        maps: Sequence[ArrayLike],
        num_labels: ArrayLike,
        index: ArrayLike | None = None,
    ) -> None:
        self.maps = [frozen(m, np.int32) for m in maps]
        self.num_labels: Ints = frozen(np.atleast_1d(num_labels), np.int64)
        self.index: Ints = frozen(np.arange(len(self.maps)) if index is None else index, np.int64)
        if len(self.num_labels) != len(self.index):
            raise ModelError(
                f"Projection: {len(self.num_labels)} label counts for {len(self.index)} edges"
            )
        if self.index.size and not (0 <= self.index.min() and self.index.max() < len(self.maps)):
            raise ModelError(f"Projection: index must lie in 0..{len(self.maps) - 1}")
        self._sizes = np.array([len(m) for m in self.maps], dtype=np.int64)
        for t, m in enumerate(self.maps):
            if m.ndim != 1 or not m.size or m.min() < 0:
                raise ModelError(f"Projection: map {t} must be a non-empty list of labels >= 0")
        top = np.array([m.max() for m in self.maps], dtype=np.int64)
        if (bad := top[self.index] >= self.num_labels).any():
            k = int(np.argmax(bad))
            raise ModelError(
                f"Projection: edge {k} maps to label {top[self.index[k]]}, "
                f"but its member has {self.num_labels[k]} labels"
            )
        self._flat = frozen(np.concatenate(self.maps) if self.maps else [], np.int32)
        self._offset = np.concatenate([[0], np.cumsum(self._sizes)[:-1]]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.index)

    def value(self, k: Any, x: Any, y: Any) -> Costs:
        member = self._flat[self._offset[self.index[k]] + x]
        return np.where(member == y, 0.0, np.inf)

    def take(self, index: ArrayLike) -> Projection:
        chosen = np.asarray(index)
        return Projection(self.maps, self.num_labels[chosen], self.index[chosen])

    def scaled(self, factor: float) -> Projection:
        return self

    def arrays(self) -> dict[str, NDArray[Any]]:
        sizes, flat = self._sizes, self._flat
        return {"flat": flat, "sizes": sizes, "num_labels": self.num_labels, "index": self.index}

    def has_forbidden(self) -> bool:
        # the tie itself is structure, not a constraint of the user's
        return False

    def extremes(self, rows: Ints, cols: Ints) -> tuple[Costs, Costs]:
        return np.zeros(len(self)), np.zeros(len(self))

    def check(self, rows: Ints, cols: Ints) -> None:
        super().check(rows, cols)
        sizes = self._sizes[self.index]
        if (bad := (sizes != rows) | (self.num_labels != cols)).any():
            k = int(np.argmax(bad))
            raise ModelError(
                f"Projection: edge {k} maps {sizes[k]} states to {self.num_labels[k]} labels, "
                f"but its ends have {rows[k]} and {cols[k]}"
            )

    def kernel_data(self, rows: Ints, cols: Ints) -> KernelData:
        return KernelData(Kind.PROJECTION, offset=self._offset[self.index], maps=self._flat)
