"""A grey picture without its noise: truncated quadratic smoothness keeps the edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softmap.demos.base import Demo, DemoOptions
from softmap.demos.scenes import regions
from softmap.plotting import load_image, save_image
from softmap.vision.noise import grey_model, grey_of

__all__ = ["build"]

Grey = NDArray[np.float64]


def build(options: DemoOptions) -> Demo:
    """A picture of grey levels; differences are smoothed, steps are kept."""
    levels = options.labels or 32
    clean, noisy = _picture(options)
    rows, columns = noisy.shape
    grey = np.linspace(0, 255, levels)
    model = grey_model(noisy, grey, 2.0)
    return Demo(
        story=f"Each of {rows} × {columns} pixels has one of {levels} grey levels.",
        model=model,
        draw_input=lambda path: save_image(_bytes(noisy), path),
        draw_labelling=lambda x, path: save_image(_bytes(grey[x].reshape(noisy.shape)), path),
        picture=noisy,
        score=None if clean is None else _error(clean, noisy, grey),
    )


def _picture(options: DemoOptions) -> tuple[Grey | None, Grey]:
    """The clean picture where it is known, and the noisy one."""
    if options.image is not None:
        colour = load_image(options.image, options.size or 256)
        return None, grey_of(colour.astype(float))
    size = options.size or 96
    rng = np.random.default_rng(options.seed)
    shade = np.linspace(0, 60, size)[:, None] + np.linspace(0, 40, size)[None, :]
    clean = rng.permutation(np.linspace(20, 150, 9))[regions(rng, size, 9, 9)] + shade
    return clean, np.clip(clean + rng.normal(0, 25, clean.shape), 0, 255)


def _error(clean: Grey, noisy: Grey, grey: Grey) -> Callable[[NDArray[np.int64]], str]:
    def score(labels: NDArray[np.int64]) -> str:
        before, after = _rms(noisy - clean), _rms(grey[labels] - clean.ravel())
        return f"distance to the clean picture: {after:.1f} grey levels, {before:.1f} before"

    return score


def _rms(difference: Grey) -> float:
    return float(np.sqrt((difference**2).mean()))


def _bytes(picture: Grey) -> NDArray[np.uint8]:
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)
