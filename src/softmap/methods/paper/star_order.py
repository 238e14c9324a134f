"""Half-edges in star order, as the randomised methods keep them (`src/core/paper/blocks.hpp`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.base import Floats
from softmap.model import Model
from softmap.model.layout import layout

__all__ = ["StarOrder", "star_order"]


@dataclass(frozen=True)
class StarOrder:
    """The half-edges of each node one after the other: position k is half-edge `graph.half[k]`.

    Attributes
    ----------
    native : core.StarOrder
        What the compiled loops read.
    labels : int64[2m]
        Label count of every half-edge, by position.
    index : int64[Σ d]
        Place in λ, of which the half-edges are in the model's order, of every entry in star order.
    """

    native: core.StarOrder
    labels: NDArray[np.int64]
    index: NDArray[np.int64]

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
    labels = model.num_labels[graph.node[graph.half]]
    place = np.cumsum(labels) - labels
    shift = np.repeat(model.half_offset[graph.half] - place, labels)
    return StarOrder(core.StarOrder(layout(model)), labels, shift + np.arange(len(shift)))
