"""The disjoint union of several models, without edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.model.network import Network
from softmap.model.potentials import (
    Potential,
    Potts,
    Tables,
    TruncatedLinear,
    TruncatedQuadratic,
)
from softmap.model.potentials.base import offsets

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Joined:
    """A union of models, and the start of each part in its arrays (with the end of the last).

    Attributes
    ----------
    model : Network
        The union.
    node, edge, state, half_state : int64[parts + 1]
        Start of each part among the nodes, edges, node states and half-edge states.
    """

    model: Network
    node: Ints
    edge: Ints
    state: Ints
    half_state: Ints

    @cached_property
    def extremes(self) -> tuple[Floats, Floats]:
        """The smallest and largest finite cost of every node, then of every edge."""
        return self.model.extremes()

    @property
    def largest(self) -> Floats:
        """The largest |finite cost| of each part; every part has an edge."""
        size, n = np.maximum(*map(np.abs, self.extremes)), int(self.node[-1])
        found: Floats = np.maximum(
            np.maximum.reduceat(size[:n], self.node[:-1]),
            np.maximum.reduceat(size[n:], self.edge[:-1]),
        )
        return found


def joined(models: Sequence[Network]) -> Joined:
    """Return the disjoint union of models without auxiliary nodes; constants are dropped.

    All groups become one if they have the same family and, for tables, the same shape.
    """
    node = offsets(np.array([model.n for model in models], dtype=np.int64))
    edge = offsets(np.array([model.m for model in models], dtype=np.int64))
    edges = np.concatenate([model.edges for model in models])
    edges += np.repeat(node[:-1], np.diff(edge))[:, None].astype(np.int32)
    potentials, sizes = _potentials(models)
    whole = Network.of_arrays(
        np.concatenate([model.unary for model in models]),
        np.concatenate([model.num_labels for model in models]),
        edges,
        tuple(potentials),
        offsets(np.array(sizes, dtype=np.int64)),
    )
    state = whole.node_offset[node]
    return Joined(whole, node, edge, state, whole.half_offset[2 * edge])


def _potentials(models: Sequence[Network]) -> tuple[list[Potential], list[int]]:
    groups = [p for model in models for p in model.potentials]
    sizes = [len(p) for p in groups]
    kinds = {type(p) for p in groups}
    if len(kinds) == 1:
        together = _together(kinds.pop(), groups)
        if together is not None:
            return [together], [sum(sizes)]
    return groups, sizes


def _together(kind: type[Any], groups: list[Potential]) -> Potential | None:
    arrays = [p.arrays() for p in groups]
    if kind is Potts:
        return Potts(np.concatenate([a["weights"] for a in arrays]))
    if kind in (TruncatedLinear, TruncatedQuadratic):
        both = (np.concatenate([a[name] for a in arrays]) for name in ("weights", "truncation"))
        potential: Potential = kind(*both)
        return potential
    if kind is Tables:
        shapes = {pair for a in arrays for pair in _shapes(a)}
        if len(shapes) == 1:
            flat = np.concatenate([a["flat"] for a in arrays])
            return Tables(flat.reshape(-1, *shapes.pop()))
    return None


def _shapes(arrays: dict[str, NDArray[Any]]) -> set[tuple[int, int]]:
    rows, cols = arrays["rows"], arrays["cols"]
    if len(rows) and (rows == rows[0]).all() and (cols == cols[0]).all():
        return {(int(rows[0]), int(cols[0]))}
    return set(zip(rows.tolist(), cols.tolist(), strict=True))
