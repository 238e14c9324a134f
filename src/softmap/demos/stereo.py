"""Depth from two views: truncated linear smoothness over disparities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softmap.demos.base import Demo, DemoOptions
from softmap.demos.scenes import stereo_pair
from softmap.errors import OptionError
from softmap.generators import grid_edges
from softmap.model import Model
from softmap.model.potentials import TruncatedLinear
from softmap.plotting import load_image, save_image, save_labelling

__all__ = ["build", "matching_cost"]

Image = NDArray[np.float64]


def build(options: DemoOptions) -> Demo:
    """Where in the right picture is each pixel of the left one? Near things move more."""
    left, right, truth = _pair(options)
    labels = options.labels or 16
    rows, columns = left.shape[:2]
    edges = grid_edges(rows, columns)
    model = Model(
        matching_cost(left, right, labels).reshape(-1, labels),
        edges,
        TruncatedLinear(_smoothness(left, edges), 2.0),
    ).with_shape((rows, columns))
    return Demo(
        story=f"Each of {rows} × {columns} pixels has one of {labels} disparities.",
        model=model,
        draw_input=lambda path: save_image(np.clip(left, 0, 255).astype(np.uint8), path),
        draw_labelling=lambda x, path: save_labelling(
            x.reshape(rows, columns), labels, path, "disparity (near is bright)"
        ),
        score=None if truth is None else _bad_pixels(truth),
    )


def matching_cost(left: Image, right: Image, labels: int, cap: float = 20.0) -> Image:
    """How ill each left pixel fits the right pixel `d` columns further left, for each `d`.

    The difference to the nearest value between the right pixel's half-way neighbours (Birchfield
    and Tomasi's measure), averaged over colours and capped: pixels that only one eye sees fit
    nothing.
    """
    left, right = np.atleast_3d(left), np.atleast_3d(right)
    before = (right + np.roll(right, 1, axis=1)) / 2
    after = (right + np.roll(right, -1, axis=1)) / 2
    before[:, 0], after[:, -1] = right[:, 0], right[:, -1]
    low = np.minimum(np.minimum(before, after), right)
    high = np.maximum(np.maximum(before, after), right)
    cost = np.full((*left.shape[:2], labels), cap)
    for d in range(min(labels, left.shape[1])):
        here, there = left[:, d:], slice(0, left.shape[1] - d)
        outside = np.maximum(np.maximum(here - high[:, there], low[:, there] - here), 0.0)
        cost[:, d:, d] = np.minimum(outside.mean(axis=2), cap)
    return cost


def _smoothness(left: Image, edges: NDArray[np.int64], weight: float = 6.0) -> Image:
    """Depth changes where colours do: half weight across a visible edge."""
    pixels = left.reshape(left.shape[0] * left.shape[1], -1)
    contrast = np.abs(pixels[edges[:, 0]] - pixels[edges[:, 1]]).mean(axis=1)
    return np.where(contrast < 8.0, weight, weight / 2)


def _pair(options: DemoOptions) -> tuple[Image, Image, Image | None]:
    if options.left is None and options.right is None:
        rng = np.random.default_rng(options.seed)
        left, right, disparity = stereo_pair(rng, options.size or 96, options.labels or 16)
        return left, right, disparity.astype(float)
    if options.left is None or options.right is None:
        raise OptionError("stereo needs both pictures: --left and --right")
    left, right = load_image(options.left).astype(float), load_image(options.right).astype(float)
    if left.shape != right.shape:
        raise OptionError(f"the pictures differ in size: {left.shape[:2]} and {right.shape[:2]}")
    return left, right, _truth(options, left.shape[:2])


def _truth(options: DemoOptions, shape: tuple[int, ...]) -> Image | None:
    """Disparities of the left picture, from a grey picture that holds them times a scale.

    Middlebury's folders name the truth of im2.png disp2.png: used when it lies there.
    """
    assert options.left is not None
    usual = options.left.with_name(options.left.name.replace("im", "disp"))
    path = options.truth or (usual if usual != options.left and usual.is_file() else None)
    if path is None:
        return None
    grey = load_image(path)[..., 0]
    if grey.shape != shape:
        raise OptionError(f"{path} has size {grey.shape}, the pictures have {shape}")
    scale = options.truth_scale or float(np.gcd.reduce(np.unique(grey).astype(np.int64)))
    if scale <= 1 and options.truth_scale is None:
        return None
    return np.asarray(grey / scale)


def _bad_pixels(truth: Image) -> Callable[[NDArray[np.int64]], str]:
    """The usual score: pixels off by more than one disparity, where the truth is known (> 0)."""
    known = truth.ravel() > 0

    def score(labels: NDArray[np.int64]) -> str:
        off = np.abs(labels - truth.ravel())[known] > 1.0
        return f"{100 * float(off.mean()):.1f} % of the pixels are off by more than one disparity"

    return score
