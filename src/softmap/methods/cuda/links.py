"""Messages stored by edge, for irregular graphs; see ``src/core/cuda/links.hpp``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.cuda.tiling import LANES, Tiling

__all__ = ["Links"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Links:
    """Edges sorted by the levels of both endpoints, then by the earlier endpoint.

    Message k goes to the later endpoint of edge k, message m + k to its earlier endpoint.

    Attributes
    ----------
    where : uint32[slots]
        The message into the node of each slot.
    receiver : uint32[2m]
        The position (tile · 32 + lane) of the node that receives each message.
    starts : int64[levels, levels + 1]
        `starts[a, b]` is the first edge from level a to level b; `starts[a, b + 1]` ends the range.
    """

    where: NDArray[np.uint32]
    receiver: NDArray[np.uint32]
    starts: Ints

    @classmethod
    def of(cls, tiling: Tiling, edges: NDArray[np.int32]) -> Links:
        """Return the links of a tiling."""
        levels, m = len(tiling.level_start) - 1, len(edges)
        of_tile = np.repeat(np.arange(levels), np.diff(tiling.level_start))
        place, slot = tiling.place[edges], tiling.slot.reshape(-1, 2).copy()
        level = of_tile[place // LANES]
        turned = level[:, 0] > level[:, 1]
        for pairs in (place, level, slot):
            pairs[turned] = pairs[turned][:, ::-1]
        pair = level[:, 0] * levels + level[:, 1]
        order = np.empty(m, dtype=np.int32)
        core.order_by(pair * (len(tiling.tiles) * LANES) + place[:, 0], order)
        starts = np.zeros(levels * levels + 1, dtype=np.int64)
        np.cumsum(np.bincount(pair, minlength=levels * levels), out=starts[1:])
        where = np.zeros(max(len(tiling.mate), 1), dtype=np.uint32)
        where[slot[order, 1]] = np.arange(m)
        where[slot[order, 0]] = np.arange(m, 2 * m)
        receiver = np.concatenate([place[order, 1], place[order, 0]]).astype(np.uint32)
        return cls(where, receiver, starts)

    def stretches(self, level: int, forward: bool) -> list[tuple[int, int]]:
        """Return the ranges of edges along which a level sends forward, or backward."""
        levels = int(np.sqrt(len(self.starts) - 1))
        if forward:
            row = self.starts[level * levels : (level + 1) * levels + 1]
            return [(int(row[0]), int(row[-1]))] if row[-1] > row[0] else []
        pairs = [level + earlier * levels for earlier in range(level)]
        both = ((int(self.starts[k]), int(self.starts[k + 1])) for k in pairs)
        return [(first, last) for first, last in both if last > first]

    def chunks(self, level: int, forward: bool, block: int) -> NDArray[np.int32]:
        """Split `stretches` into one range per block: first edge, last edge + 1."""
        found = []
        for first, last in self.stretches(level, forward):
            begin = np.arange(first, last, block)
            found.append(np.stack([begin, np.minimum(begin + block, last)], axis=1))
        return np.concatenate([np.zeros((0, 2), int), *found]).astype(np.int32)
