"""A landscape that looks like a photograph, computed from a seed: the image of the first demo."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap.app.vision.source import Image

SKY = np.array([[58.0, 84, 140], [150, 160, 185], [250, 205, 150]])  # top, middle, horizon
FAR, NEAR = np.array([158.0, 150, 170]), np.array([28.0, 38, 46])  # colours of ridges
SUN = np.array([255.0, 238, 200])


def landscape(rows: int, columns: int, seed: int = 0) -> Image:
    """Return mountains above a lake at sunset, (rows, columns, 3) in 0..255."""
    rng = np.random.default_rng(seed)
    shore = int(0.62 * rows)
    image = _sky(rows, columns)
    for k in range(4):
        depth = k / 3
        height = shore - rows * (0.30 - 0.20 * depth)
        line = height - rows * 0.16 * (1 - 0.5 * depth) * _ridge(rng, columns)
        _paint(image, line, FAR + (NEAR - FAR) * depth**0.8, shore)
    _forest(image, rng, shore)
    _mirror(image, shore)
    return np.clip(image, 0, 255)


def damaged(image: Image, seed: int = 0, noise: float = 20.0) -> tuple[Image, NDArray[np.bool_]]:
    """Return an image with noise and white scratches, and where the scratches are."""
    rng = np.random.default_rng(seed)
    rows, columns = image.shape[:2]
    y, x = np.mgrid[:rows, :columns]
    scratched = np.zeros((rows, columns), dtype=bool)
    for k in range(4):
        begin, end = rng.uniform(0, rows, 2)
        line = begin + (end - begin) * x / columns + rows / 30 * np.sin(9 * x / columns + k)
        scratched |= np.abs(y - line) < 1.2
    noisy = np.clip(image + rng.normal(0, noise, image.shape), 0, 255)
    noisy[scratched] = 255.0
    return noisy, scratched


def _sky(rows: int, columns: int) -> Image:
    """Return a gradient with the light of the sun around it."""
    part = np.linspace(0, 1, rows) ** 0.8
    colours = np.stack([np.interp(part, [0, 0.35, 0.62], SKY[:, c]) for c in range(3)], axis=1)
    image = np.repeat(colours[:, None], columns, axis=1)
    y, x = np.mgrid[:rows, :columns]
    away = np.hypot(y - 0.27 * rows, x - 0.68 * columns) / rows
    glow = np.exp(-((away / 0.16) ** 2))[..., None] * 0.6
    disc = np.clip((0.055 - away) * rows, 0, 1)[..., None]
    lit = image + glow * (SUN - image)
    return np.asarray(lit + disc * (SUN - lit))


def _ridge(rng: np.random.Generator, columns: int) -> NDArray[np.float64]:
    """Return a rugged profile in about -1..1: interpolated noise at doubling frequencies."""
    at = np.linspace(0, 1, columns)
    profile = np.zeros(columns)
    for octave in range(6):
        knots = 3 * 2**octave
        profile += np.interp(at, np.linspace(0, 1, knots + 1), rng.normal(0, 1, knots + 1)) / (
            1.9**octave
        )
    return profile / 1.8


def _paint(image: Image, line: NDArray[np.float64], colour: Image, shore: int) -> None:
    """Fill the image below a ridge, with a soft edge; slopes are lighter further up."""
    y = np.arange(len(image))[:, None]
    cover = np.clip(y - line + 0.5, 0, 1)[..., None]
    haze = 0.1 * (shore - y)[..., None]
    image += cover * (colour + haze - image)


def _forest(image: Image, rng: np.random.Generator, shore: int) -> None:
    """Draw dark firs along the shore."""
    rows, columns = image.shape[:2]
    y, x = np.mgrid[:rows, :columns]
    for centre in np.sort(rng.uniform(-0.02, 1.02, 46)) * columns:
        height = rows * rng.uniform(0.05, 0.13) * (1.2 - np.sin(np.pi * centre / columns))
        down = (y - (shore - height)) / height
        inside = (np.abs(x - centre) < 0.32 * height * down * (0.75 + 0.25 * (8 * down % 1))) & (
            (down > 0) & (y < shore)
        )
        image[inside] = NEAR * rng.uniform(0.4, 0.8)


def _mirror(image: Image, shore: int) -> None:
    """Fill the lake with the darker, rippled mirror image of what is above the shore."""
    rows, columns = image.shape[:2]
    y, x = np.mgrid[shore:rows, :columns]
    depth = (y - shore) / max(1, rows - shore)
    ripple = np.sin(0.9 * (y - shore) / (0.3 + depth) + x / 40) * (0.4 + 2.2 * depth)
    source = np.clip(2 * shore - y - 1 + np.round(ripple), 0, shore - 1).astype(int)
    along = np.clip(x + np.round(ripple * 1.2), 0, columns - 1).astype(int)
    shade = (0.86 - 0.3 * depth)[..., None]
    image[shore:] = image[source, along] * shade + np.array([6.0, 12, 22])
