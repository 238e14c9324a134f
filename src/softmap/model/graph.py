"""The graph of a model as half-edges: `h = 2e + side`, so `h ^ 1` is the other end of edge `e`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core

__all__ = ["Graph", "spanning_forest"]


@dataclass(frozen=True)
class Graph:
    """Half-edge incidence in compressed rows.

    Attributes
    ----------
    node : int32[2m]
        Node of each half-edge.
    start : int64[n + 1]
        The half-edges of node `i` are `half[start[i]:start[i + 1]]`, ascending.
    half : int32[2m]
    remembered : dict
        What others have made from the graph and may need again, for a model with other costs.
    """

    node: NDArray[np.int32]
    start: NDArray[np.int64]
    half: NDArray[np.int32]
    remembered: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"remembered": {}}

    @classmethod
    def from_edges(cls, edges: NDArray[np.int32], n: int) -> Graph:
        """Build from an (m, 2) array of node numbers in `0..n-1`."""
        node = np.ascontiguousarray(edges).reshape(-1)
        start, half = np.empty(n + 1, dtype=np.int64), np.empty(len(node), dtype=np.int32)
        core.sort_halves(node, start, half)
        for array in (start, half):
            array.flags.writeable = False
        return cls(node, start, half)

    @property
    def degree(self) -> NDArray[np.int64]:
        """Number of half-edges |N_i| at each node."""
        return np.diff(self.start)

    def colouring(self) -> NDArray[np.int32]:
        """Colours by greedy first fit in node order: nodes of one colour share no edge."""
        colour = np.empty(len(self.start) - 1, dtype=np.int32)
        core.greedy_colouring(self.node, self.start, self.half, colour)
        return colour

    def levels(self, rank: NDArray[np.int64]) -> NDArray[np.int32]:
        """Depth of each node when edges point from lower to higher rank."""
        level = np.empty(len(self.start) - 1, dtype=np.int32)
        core.depth_levels(self.node, self.start, self.half, rank, level)
        return level

    def components(self) -> NDArray[np.int32]:
        """Connected component of each node, numbered by first appearance."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n, pairs = len(self.start) - 1, self.node.reshape(-1, 2)
        ones = np.ones(len(pairs), dtype=np.int8)
        adjacency = coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        labels: NDArray[np.int32] = connected_components(adjacency, directed=False)[1]
        return labels


def spanning_forest(n: int, pairs: NDArray[np.int64], weight: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of the pairs in a spanning forest of least weight, ascending.

    Of pairs of equal weight the earlier is taken, so that the forest is the same on every machine:
    scipy sorts by an unstable sort, whose order of ties depends on the processor.

    Parameters
    ----------
    n : int
        Number of nodes.
    pairs : int64[m, 2]
        Edges between nodes, each pair at most once.
    weight : array of m numbers
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    order = np.argsort(weight, kind="stable")
    place = np.empty(len(order))
    place[order] = np.arange(1, len(order) + 1)  # no two are equal; 0 would be no edge
    graph = coo_array((place, (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
    return np.sort(order[minimum_spanning_tree(graph).data.astype(np.int64) - 1])
