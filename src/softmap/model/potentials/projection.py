"""`Projection`: the edge between an auxiliary node, whose states are joint states, and a member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, shown
from softmap.model.potentials.base import (
    Costs,
    Ints,
    KernelData,
    Potential,
    frozen,
    integers,
    places,
    scale_factor,
)

TILED_STATES = 1024  # up to this many joint states, several edges are updated together


class Projection(Potential):
    """A projection: cost 0 if the auxiliary node's state contains the member's label, else +inf.

    The first endpoint of each edge is the auxiliary node. A message takes one pass over the joint
    states; the (joint states × labels) table is never built. `Model.from_factors` makes these edges
    for factors of three or more variables.

    Parameters
    ----------
    maps : list of int arrays
        `maps[t][s]` is the member's label in joint state `s`.
    num_labels : int array
        Number of labels of the member, one entry per edge.
    index : int array, optional
        The map of each edge; by default edge `k` uses `maps[k]`.

    Examples
    --------
    Joint states (0, 0), (0, 1), (1, 0), (1, 1), projected to the first variable:

    >>> import softmap
    >>> softmap.Projection([[0, 0, 1, 1]], [2]).as_table(0, 4, 2).tolist()
    [[0.0, inf], [0.0, inf], [inf, 0.0], [inf, 0.0]]
    """

    family = "projection"

    def __init__(
        self,
        maps: Sequence[ArrayLike],
        num_labels: ArrayLike,
        index: ArrayLike | None = None,
    ) -> None:
        if isinstance(maps, str | bytes) or not np.iterable(maps):
            raise ModelError(f"Projection: maps must be a list of maps, not {shown(maps)}")
        given = [integers(m, f"Projection: map {t}") for t, m in enumerate(maps)]
        for t, m in enumerate(given):
            if m.ndim != 1 or not m.size or m.min() < 0:
                raise ModelError(f"Projection: map {t} must be a non-empty list of labels >= 0")
            if m.max() > np.iinfo(np.int32).max:
                raise ModelError(f"Projection: map {t} holds {m.max()}, too large for a label")
        self.maps = [frozen(m, np.int32) for m in given]
        self.num_labels: Ints = frozen(
            np.atleast_1d(integers(num_labels, "Projection: num_labels")), np.int64
        )
        used = np.arange(len(given)) if index is None else integers(index, "Projection: index")
        self.index: Ints = frozen(used, np.int64)
        if self.index.ndim != 1 or self.index.shape != self.num_labels.shape:
            raise ModelError(
                f"Projection: {self.num_labels.size} label counts for {self.index.size} edges"
            )
        if self.index.size and not (0 <= self.index.min() and self.index.max() < len(given)):
            raise ModelError(f"Projection: index must lie in 0..{len(given) - 1}")
        top = np.array([m.max() for m in given], dtype=np.int64)
        if (bad := top[self.index] >= self.num_labels).any():
            k = int(np.argmax(bad))
            raise ModelError(
                f"Projection: edge {k} maps to label {top[self.index[k]]}, "
                f"but its member has {self.num_labels[k]} labels"
            )
        self._sizes = frozen([len(m) for m in given], np.int64)
        self._flat = frozen(np.concatenate(self.maps) if self.maps else [], np.int32)
        self._offset = np.cumsum(self._sizes) - self._sizes

    def __len__(self) -> int:
        return len(self.index)

    def value(self, k: Any, x: Any, y: Any) -> Costs:
        member = self._flat[self._offset[self.index[k]] + x]
        return np.where(member == y, 0.0, np.inf)

    def take(self, index: ArrayLike) -> Projection:
        chosen = places(index, len(self))
        return Projection(self.maps, self.num_labels[chosen], self.index[chosen])

    def scaled(self, factor: float) -> Projection:
        scale_factor(factor)
        return self

    def arrays(self) -> dict[str, NDArray[Any]]:
        sizes, flat = self._sizes, self._flat
        return {"flat": flat, "sizes": sizes, "num_labels": self.num_labels, "index": self.index}

    def has_forbidden(self) -> bool:
        # A projection alone is no constraint; a label that no joint state maps to is forbidden.
        distinct = np.array([np.count_nonzero(np.bincount(m)) for m in self.maps], dtype=np.int64)
        return bool((distinct[self.index] < self.num_labels).any())

    def extremes(self, rows: Ints, cols: Ints) -> tuple[Costs, Costs]:
        return np.zeros(len(self)), np.zeros(len(self))

    def steps(self, rows: Ints, cols: Ints) -> Costs:
        return np.full(len(self), np.inf)

    def check(self, rows: Ints, cols: Ints) -> None:
        super().check(rows, cols)
        sizes = self._sizes[self.index]
        if (bad := (sizes != rows) | (self.num_labels != cols)).any():
            k = int(np.argmax(bad))
            raise ModelError(
                f"Projection: edge {k} maps {sizes[k]} states to {self.num_labels[k]} labels, "
                f"but its endpoints have {rows[k]} and {cols[k]}"
            )

    def kernel_data(self, rows: Ints, cols: Ints) -> KernelData:
        return KernelData("projection", offset=self._offset[self.index], maps=self._flat)

    def tile_key(self, rows: Ints, cols: Ints) -> Ints:
        # Edges updated together share one map. With many joint states one edge fills the cache.
        begin = self._offset[self.index]
        return np.where(rows <= TILED_STATES, begin, -1)
