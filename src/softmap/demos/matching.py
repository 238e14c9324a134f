"""Which point is which after a rotation, noise and outliers: matching with hard constraints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap.demos.base import Demo, DemoOptions, accuracy
from softmap.model import Model
from softmap.plotting import save_matching

__all__ = ["build"]

Points = NDArray[np.float64]


def build(options: DemoOptions) -> Demo:
    """Match points so that distances are kept; no two points may have the same partner."""
    count, extra = options.size or 14, 3
    rng = np.random.default_rng(options.seed)
    left, right, truth = _clouds(rng, count, extra)
    i, j = np.triu_indices(count, 1)
    before = np.linalg.norm(left[i] - left[j], axis=1)
    after = np.linalg.norm(right[:, None] - right[None, :], axis=2)
    distortion = np.minimum(np.abs(before[:, None, None] - after), 0.5)
    distortion[:, np.arange(len(right)), np.arange(len(right))] = np.inf
    unary = rng.uniform(0, 0.05, (count, len(right)))
    model = Model(unary, np.stack([i, j], axis=1), distortion)
    return Demo(
        story=f"{count} points, moved and shuffled among {count + extra}: each has one partner.",
        model=model,
        draw_input=lambda path: save_matching(left, right, None, path, "two sets of points"),
        draw_labelling=lambda x, path: save_matching(left, right, x, path, "the matching found"),
        score=accuracy(truth, "partners"),
    )


def _clouds(
    rng: np.random.Generator, count: int, extra: int
) -> tuple[Points, Points, NDArray[np.int64]]:
    """Points; the same rotated, shaken and shuffled among others; and who became whom."""
    left = rng.uniform(0, 1, (count, 2))
    angle = rng.uniform(-0.6, 0.6)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = left @ turn.T + rng.normal(0, 0.02, left.shape)
    others = rng.uniform(moved.min(axis=0), moved.max(axis=0), (extra, 2))
    order = rng.permutation(count + extra)
    right = np.vstack([moved, others])[order]
    return left, right, np.argsort(order)[:count].astype(np.int64)
