"""α-expansion by `gco-wrapper`, where a model is one it can take."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

import softmap

__all__ = ["expansion"]

LARGEST = 1e6  # its costs are whole numbers: ours are scaled so that the largest is this


def expansion(model: softmap.Model) -> tuple[NDArray[np.int64], float] | None:
    """Labels and seconds; None for models with uneven labels or other than Potts and linear,
    and without the package."""
    weights, shape = _weights(model)
    if weights is None:
        return None
    try:
        import gco
    except ModuleNotFoundError:
        return None

    unary = model.unary.reshape(model.n, -1)
    scale = LARGEST / max(np.abs(unary).max(), weights.max() * max(1.0, shape.max()), 1e-300)
    began = time.perf_counter()
    labels = gco.cut_general_graph(
        model.edges.astype(np.int32), weights * scale, unary * scale, shape, n_iter=-1,
        algorithm="expansion",
    )  # fmt: skip
    return np.asarray(labels, dtype=np.int64), time.perf_counter() - began


def _weights(model: softmap.Model):  # type: ignore[no-untyped-def]
    """A weight per edge and the matrix that all edges share, or None for both."""
    none = None, None
    sizes = set(model.num_labels.tolist())
    if len(sizes) != 1 or len(model.network.auxiliaries) or not model.m:
        return none
    shape = np.asarray(model.network.table(0), float)
    size = np.abs(shape).max()
    if not np.isfinite(size) or not np.isfinite(model.unary).all():
        return none
    if not size or not np.array_equal(shape, shape.T) or shape.diagonal().any():
        return none
    weights = np.empty(model.m)
    for e in range(model.m):
        table = np.asarray(model.network.table(e), float)
        weights[e] = np.abs(table).max() / size
        if (table < 0).any() or not np.allclose(table, weights[e] * shape, rtol=1e-9, atol=0):
            return none
    metric = (shape[:, :, None] + shape[None] + 1e-9 * size >= shape[:, None, :]).all()
    return (weights, shape) if metric else none
