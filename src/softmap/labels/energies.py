"""Energies of labellings, computed on several threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.model import Network
from softmap.model.layout import cost_layout

__all__ = ["Labelled", "energy_of", "whole_labels"]

Labelled = tuple[NDArray[np.int64], float]  # labels and their energy


def energy_of(model: Network, labels: ArrayLike, threads: int = 1) -> float:
    """Return `model.energy(labels)` of one labelling: the exact sum of the costs, rounded once."""
    whole = whole_labels(model, labels)
    return float(core.energy(cost_layout(model), whole, model.constant, threads))


def whole_labels(model: Network, labels: ArrayLike) -> NDArray[np.int64]:
    """Return labels of all nodes; those that are complete are returned as they are, unchecked."""
    if isinstance(labels, np.ndarray) and labels.dtype == np.int64 and not model.has_factors:
        given: NDArray[np.int64] = labels
        if given.shape == (model.n,) and given.flags.c_contiguous:
            return given
    return np.ascontiguousarray(model.complete(labels))
