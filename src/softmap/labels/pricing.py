"""Energies of labellings, computed on several threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.model import Model
from softmap.model.layout import layout

__all__ = ["Priced", "energy_of"]

Priced = tuple[NDArray[np.int64], float]  # labels and their energy


def energy_of(model: Model, labels: ArrayLike, threads: int = 1) -> float:
    """Return `model.energy(labels)` of one labelling: the exact sum of the costs, rounded once."""
    complete = np.ascontiguousarray(model.complete(labels))
    return float(core.energy(layout(model), complete, model.constant, threads))
