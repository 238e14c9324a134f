"""What a run over parts has found, put together again: for comparisons only."""

from __future__ import annotations

import numpy as np

import softmap
from softmap import Model
from softmap.model import checked_network


def labels_of(model: Model, pieces) -> np.ndarray:
    """The labelling, from the pieces of all processes."""
    labels = np.full(model.n, -1)
    for piece in pieces:
        for variables, own in piece.values():
            assert (labels[variables] == -1).all()
            labels[variables] = own
    assert (labels >= 0).all()
    return labels


def lam_of(model: Model, pieces) -> np.ndarray:
    """λ, from the pieces of all processes."""
    lam = np.full(int(checked_network(model).half_offset[-1]), np.nan)
    for piece in pieces:
        for halves, own in piece.values():
            counts = model.num_labels[model.edges.reshape(-1)[halves]]
            label = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            lam[np.repeat(checked_network(model).half_offset[halves], counts) + label] = own
    assert np.isfinite(lam).all()
    return lam


def numbers(result) -> tuple:
    """All that must not depend on the number of processes."""
    return result.bound, result.primal, result.energy, result.passes, result.status.name


def check(model: Model, result, tolerance: float = 1e-9) -> None:
    """Everything a result says, against the model itself."""
    labels, lam = labels_of(model, [result.labels]), lam_of(model, [result.lam])
    scale = 1 + abs(result.bound)
    if result.found:
        assert result.energy == model.energy(labels)
    proved = softmap.certificate(model, lam, 1.0).bound
    assert abs(result.bound - proved) <= tolerance * scale
    assert result.bound <= result.primal + tolerance * scale
