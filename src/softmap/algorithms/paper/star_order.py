"""Half-edges in star order, as the randomised kernels keep them; see `kernels.blocks.Stars`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.algorithms.base import Floats
from softmap.kernels.blocks import Stars
from softmap.model import Model

__all__ = ["StarOrder", "star_order"]


@dataclass(frozen=True)
class StarOrder:
    """The half-edges of each node one after the other.

    Attributes
    ----------
    stars : Stars
        What the kernels read.
    index : int64[Σ d]
        Place in λ, of which the half-edges are in the model's order, of every entry in star order.
    widest : int
        max |N_i| · d_i: room for the largest star.
    hard : bool
        Whether any state is forbidden.
    """

    stars: Stars
    index: NDArray[np.int64]
    widest: int
    hard: bool

    def from_model(self, lam: Floats) -> Floats:
        """λ in star order."""
        return lam[self.index]

    def to_model(self, lam: Floats) -> Floats:
        """λ in the model's order of half-edges."""
        out = np.empty_like(lam)
        out[self.index] = lam
        return out


def star_order(model: Model) -> StarOrder:
    """The star order of a model; built once."""
    cache: dict[str, StarOrder] = model.__dict__.setdefault("_star_order", {})
    if "order" not in cache:
        cache["order"] = _build(model)
    return cache["order"]


def _build(model: Model) -> StarOrder:
    graph = model.graph
    owner = graph.node[graph.half].astype(np.int64)
    labels = model.num_labels[owner]
    place = np.cumsum(labels) - labels
    where = np.empty_like(graph.half)
    where[graph.half] = np.arange(len(where))
    position = np.stack([graph.half, where[graph.half ^ 1], owner, place], axis=1)
    vertex = np.stack(
        [graph.start[:-1], graph.degree, model.node_offset[:-1], model.num_labels], axis=1
    )
    shift = np.repeat(model.half_offset[graph.half] - place, labels)
    return StarOrder(
        stars=Stars(position, vertex),
        index=shift + np.arange(len(shift)),
        widest=int((graph.degree * model.num_labels).max()),
        hard=bool(np.isposinf(model.unary).any()),
    )
