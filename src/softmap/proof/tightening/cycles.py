"""Short chordless cycles of a graph, all of them where that is affordable, by joining paths."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from softmap.model.potentials.base import Ints

__all__ = ["Adjacency", "short_cycles"]

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Adjacency:
    """An undirected simple graph: sorted codes of its pairs, and neighbours by row."""

    n: int
    code: Ints  # ascending i * n + j with i < j
    start: Ints
    neighbour: Ints

    @classmethod
    def of(cls, pairs: Ints, n: int) -> Adjacency:
        """From distinct pairs (i, j) with i < j."""
        code = np.sort(pairs[:, 0] * np.int64(n) + pairs[:, 1])
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        start = np.searchsorted(ends[order, 0], np.arange(n + 1))
        return cls(n, code, start, ends[order, 1])

    def find(self, i: Ints, j: Ints) -> Ints:
        """The place of each pair in `code`; -1 where there is none."""
        code = np.minimum(i, j) * np.int64(self.n) + np.maximum(i, j)
        if not len(self.code):
            return np.full(code.shape, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.code, code), len(self.code) - 1)
        return np.where(self.code[at] == code, at, -1)

    def adjacent(self, i: Ints, j: Ints) -> Bools:
        """Whether each pair is in the graph."""
        return np.asarray(self.find(i, j) >= 0)


def short_cycles(graph: Adjacency, longest: int = 6, limit: int = 2_000_000) -> list[Ints]:
    """Chordless cycles of 3 to `longest` (at most 6) variables: one (count, length) array each.

    Vertices in the order of the cycle. Lengths whose paths or joins number more than `limit` are
    cut: of their joins, only the first `limit` are looked at.
    """
    two = _paths_of_two(graph, limit)
    found = [_triangles(graph, two)]
    open_two = two[~graph.adjacent(two[:, 0], two[:, 2])]
    if longest >= 4:
        found.append(_squares(graph, open_two, limit))
    if longest >= 5:
        three = _extend(graph, open_two, limit)
        found.append(_joined(graph, open_two, three, limit))
        if longest >= 6:
            found.append(_joined(graph, three, three, limit))
    return found


def _spread(counts: Ints) -> tuple[Ints, Ints]:
    """For items with so many continuations each: the item and the number of each continuation."""
    item = np.repeat(np.arange(len(counts)), counts)
    return item, np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)


def _affordable(counts: Ints, limit: int) -> Ints:
    """The counts, with 0 for all that come after the limit is reached."""
    return np.where(np.cumsum(counts) <= limit, counts, 0)


def _paths_of_two(graph: Adjacency, limit: int) -> Ints:
    """(u, a, v) with u < v, both neighbours of a."""
    degree = np.diff(graph.start)
    middle, place = _spread(_affordable(degree * degree, 2 * limit))
    u = graph.neighbour[graph.start[middle] + place // degree[middle]]
    v = graph.neighbour[graph.start[middle] + place % degree[middle]]
    return np.stack([u, middle, v], axis=1)[u < v]


def _triangles(graph: Adjacency, two: Ints) -> Ints:
    low = two[two[:, 1] < two[:, 0]]
    return low[graph.adjacent(low[:, 0], low[:, 2])]


def _keyed(paths: Ints, n: int) -> tuple[Ints, Ints]:
    """Paths sorted by their two ends, and the keys."""
    key = paths[:, 0] * np.int64(n) + paths[:, -1]
    order = np.argsort(key, kind="stable")
    return paths[order], key[order]


def _squares(graph: Adjacency, two: Ints, limit: int) -> Ints:
    """Two paths between the same ends; the least vertex is an end."""
    paths, key = _keyed(two, graph.n)
    last = np.searchsorted(key, key, side="right")
    left, place = _spread(_affordable(last - np.arange(len(key)) - 1, limit))
    right = left + 1 + place
    cycle = np.column_stack([paths[left], paths[right, 1]])
    fine = (cycle[:, 0] < np.minimum(cycle[:, 1], cycle[:, 3])) & (cycle[:, 0] < cycle[:, 2])
    cycle = cycle[fine]
    return cycle[~graph.adjacent(cycle[:, 1], cycle[:, 3])]


def _extend(graph: Adjacency, two: Ints, limit: int) -> Ints:
    """Chordless paths of three edges (u, a, b, v) with u < v."""
    both = np.concatenate([two, two[:, ::-1]])
    degree = np.diff(graph.start)
    item, place = _spread(_affordable(degree[both[:, 2]], limit))
    new = graph.neighbour[graph.start[both[item, 2]] + place]
    paths = np.column_stack([both[item], new])
    paths = paths[(new != paths[:, 1]) & (paths[:, 0] < new)]
    chord = graph.adjacent(paths[:, 0], paths[:, 3]) | graph.adjacent(paths[:, 1], paths[:, 3])
    return paths[~chord]


def _joined(graph: Adjacency, left: Ints, right: Ints, limit: int) -> Ints:
    """Chordless cycles made of two paths with the same ends, each once."""
    a, key_a = _keyed(left, graph.n)
    b, key_b = _keyed(right, graph.n)
    first, last = np.searchsorted(key_b, key_a), np.searchsorted(key_b, key_a, side="right")
    item, place = _spread(_affordable(last - first, limit))
    back = b[first[item] + place]
    cycle = np.column_stack([a[item], back[:, -2:0:-1]])
    length = cycle.shape[1]
    fine = np.ones(len(cycle), dtype=bool)
    for s, t in combinations(range(length), 2):
        if t - s not in (1, length - 1):
            i, j = cycle[fine, s], cycle[fine, t]
            fine[fine] = (i != j) & ~graph.adjacent(i, j)
    cycle = cycle[fine]
    # a chordless cycle is known by its vertices
    once = np.unique(np.sort(cycle, axis=1), axis=0, return_index=True)[1]
    return np.asarray(cycle[np.sort(once)])
