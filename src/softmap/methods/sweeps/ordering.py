"""The order in which passes go through the nodes: theirs, or one that makes levels wide.

Nodes of one level share no edge, so a vector holds several of them. Levels follow the numbers of
the nodes, and where these run along a long thin graph, there is hardly more than one to a level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model.graph import Graph

__all__ = ["decoding_order", "pass_order"]

Ints = NDArray[np.int64]
NARROW = core.LANES  # nodes per level under which vectors stay empty
WIDTH = 2 * core.LANES  # nodes per level that an order of our own aims at
SHORTEST = 64  # levels that must remain: in fewer, what one pass learns does not get far
CYCLES = 1.1  # edges per node: one pass in the natural order nearly solves a graph of fewer


def pass_order(graph: Graph) -> tuple[Ints, Ints]:
    """Rank and level of each node.

    The natural order, unless its levels are narrow. Then those levels count modulo K: K stretches
    of the graph are gone through side by side, and a chain is as long as a stretch.
    """
    n = len(graph.start) - 1
    rank = np.arange(n)
    level = graph.levels(rank).astype(np.int64)
    levels, cycle = int(level.max(initial=-1)) + 1, n // WIDTH
    if NARROW * levels <= n or cycle < SHORTEST or len(graph.node) < 2 * CYCLES * n:
        return rank, level
    rank[np.argsort(level % cycle, kind="stable")] = np.arange(n)
    return rank, graph.levels(rank).astype(np.int64)


def decoding_order(graph: Graph, variables: int) -> Ints:
    """The first `variables` nodes, last of a pass first: λ stands as a forward pass has left it."""
    rank = pass_order(graph)[0][:variables]
    return np.argsort(rank)[::-1]
