"""Synthetic images with known ground truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["regions", "stereo_pair", "textured"]

Image = NDArray[np.float64]


def regions(rng: np.random.Generator, size: int, count: int, labels: int) -> NDArray[np.int64]:
    """Return a random Voronoi map: each pixel has the label of the nearest of `count` points."""
    points = rng.uniform(0, size, (count, 2))
    rows, columns = np.mgrid[0:size, 0:size]
    distance = (rows[..., None] - points[:, 0]) ** 2 + (columns[..., None] - points[:, 1]) ** 2
    nearest: NDArray[np.int64] = np.argmin(distance, axis=-1)
    return nearest % labels


def textured(rng: np.random.Generator, rows: int, columns: int) -> Image:
    """Return a random texture with detail at two scales, in 0..255."""
    fine = rng.uniform(0, 255, (rows, columns))
    coarse = rng.uniform(0, 255, (rows // 4 + 1, columns // 4 + 1))
    coarse = coarse.repeat(4, axis=0).repeat(4, axis=1)[:rows, :columns]
    return 0.5 * fine + 0.5 * coarse


def stereo_pair(
    rng: np.random.Generator, size: int, labels: int
) -> tuple[Image, Image, NDArray[np.int64]]:
    """Return two views of textured rectangles before a slanted wall, and the left disparities."""
    rows, columns = size, size + size // 3
    slant = np.round(np.linspace(1, labels / 3, rows)).astype(np.int64)
    disparity = np.repeat(slant[:, None], columns, axis=1)
    for depth in np.sort(rng.integers(labels // 2, labels, 5)):
        top, side = rng.integers(0, rows // 2), rng.integers(0, columns // 2)
        height, width = rng.integers(rows // 5, rows // 2), rng.integers(columns // 6, columns // 3)
        disparity[top : top + height, side : side + width] = depth
    right = textured(rng, rows, columns)
    seen_at = np.arange(columns)[None, :] - disparity
    left = np.take_along_axis(right, np.maximum(seen_at, 0), axis=1)
    outside = seen_at < 0
    left[outside] = rng.uniform(0, 255, int(outside.sum()))
    return left + rng.normal(0, 8, left.shape), right + rng.normal(0, 8, right.shape), disparity
