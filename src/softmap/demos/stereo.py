"""Depth from two views: truncated linear smoothness over disparities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softmap.demos.base import Demo, DemoOptions
from softmap.demos.scenes import stereo_pair
from softmap.errors import OptionError
from softmap.plotting import load_image, save_image, save_labelling
from softmap.vision.depth import stereo_model

__all__ = ["build"]

Image = NDArray[np.float64]


def build(options: DemoOptions) -> Demo:
    """Where in the right picture is each pixel of the left one? Near things move more."""
    left, right, truth = _pair(options)
    labels = options.labels or 16
    rows, columns = left.shape[:2]
    model = stereo_model(left, right, labels)
    return Demo(
        story=f"Each of {rows} × {columns} pixels has one of {labels} disparities.",
        model=model,
        draw_input=lambda path: save_image(np.clip(left, 0, 255).astype(np.uint8), path),
        draw_labelling=lambda x, path: save_labelling(
            x.reshape(rows, columns), labels, path, "disparity (near is bright)"
        ),
        picture=left,
        score=None if truth is None else _bad_pixels(truth),
    )


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
