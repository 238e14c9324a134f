"""Forests that cover a graph, and sums over all labellings of one of them, level by level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model
from softmap.model.graph import spanning_forest
from softmap.relaxation.dual import Floats

__all__ = ["Forest", "Padded", "cover", "log_sum"]

Ints = NDArray[np.int64]


class Padded:
    """A model in rectangular arrays: labels that a variable does not have are forbidden.

    Attributes
    ----------
    unary : (n, d), tables : (p, d, d), pairs : (p, 2)
        Parallel edges are added up: each pair occurs once, the smaller node first.
    """

    def __init__(self, model: Model) -> None:
        n, d = model.n, int(model.num_labels.max())
        self.unary: Floats = np.full((n, d), np.inf)
        self.unary[np.arange(d) < model.num_labels[:, None]] = model.unary
        ends = np.sort(model.edges.astype(np.int64), axis=1)
        pairs, which = np.unique(ends, axis=0, return_inverse=True)
        self.pairs: Ints = pairs.reshape(-1, 2)
        self.tables: Floats = np.zeros((len(self.pairs), d, d))
        for e, (i, j) in enumerate(model.edges.tolist()):
            table = model.table(e) if i < j else model.table(e).T
            rows, cols = table.shape
            self.tables[which.reshape(-1)[e], :rows, :cols] += table


@dataclass(frozen=True)
class Level:
    """Nodes of one depth, their parents, the pairs between them, and which end the child is."""

    child: Ints
    parent: Ints
    pair: Ints
    second: NDArray[np.bool_]

    def tables(self, tables: Floats) -> Floats:
        """Tables with the parent's label first."""
        chosen = tables[self.pair]
        return np.where(self.second[:, None, None], chosen, chosen.transpose(0, 2, 1))


@dataclass(frozen=True)
class Forest:
    """Roots, and levels below them; `pair` lists its edges."""

    roots: Ints
    levels: tuple[Level, ...]
    pair: Ints

    def sums(self, nodes: Floats, tables: Floats) -> tuple[float, Floats]:
        """log Z and node marginals of log-potentials `nodes` (n, d) and `tables` (p, d, d)."""
        belief, messages = nodes.copy(), []
        for level in reversed(self.levels):
            table = level.tables(tables)
            message = log_sum(table + belief[level.child][:, None, :], 2)
            np.add.at(belief, level.parent, message)
            messages.append((table, message))
        total = float(log_sum(belief[self.roots], 1).sum())
        for level, (table, message) in zip(self.levels, reversed(messages), strict=True):
            with np.errstate(invalid="ignore"):
                known = np.where(np.isneginf(message), -np.inf, belief[level.parent] - message)
            belief[level.child] += log_sum(table + known[:, :, None], 1)
        top = belief.max(axis=1, keepdims=True)
        weight = np.exp(belief - top)
        return total, weight / weight.sum(axis=1, keepdims=True)


def log_sum(table: Floats, axis: int) -> Floats:
    """Logarithm of the sum of exponentials along one axis; -inf where all are."""
    top = table.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(table - top).sum(axis=axis)) + np.squeeze(top, axis=axis)
    result: Floats = sums
    return result


def cover(n: int, pairs: Ints) -> list[Forest]:
    """Spanning forests that together have all pairs; each takes as many new ones as it can."""
    used = np.zeros(len(pairs), dtype=np.int64)
    forests: list[Forest] = []
    while not forests or (used == 0).any():
        chosen = spanning_forest(n, pairs, used)
        used[chosen] += 1
        forests.append(_rooted(n, pairs, chosen))
    return forests


def _rooted(n: int, pairs: Ints, chosen: Ints) -> Forest:
    near: list[list[tuple[int, int, bool]]] = [[] for _ in range(n)]
    for k in chosen.tolist():
        i, j = pairs[k].tolist()
        near[i].append((j, k, True))
        near[j].append((i, k, False))
    seen, roots, depths = [False] * n, [], [[]]  # type: list[bool], list[int], list[list[tuple[int, int, int, bool]]]
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        roots.append(root)
        front, depth = [root], 0
        while front:
            found = [(j, i, k, side) for i in front for j, k, side in near[i] if not seen[j]]
            for j, *_ in found:
                seen[j] = True
            if found:
                if depth == len(depths):
                    depths.append([])
                depths[depth] += found
            front, depth = [j for j, *_ in found], depth + 1
    levels = tuple(
        Level(*(np.array(column) for column in zip(*rows, strict=True))) for rows in depths if rows
    )
    return Forest(np.array(roots), levels, chosen)
