"""What a noisy image says about each pixel: the noise, and the mean over pixels that look alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.app.vision.source import Image

Mask = NDArray[np.bool_]
Window = tuple[slice, slice]


@dataclass(frozen=True)
class PatchRule:
    """Which pixels count as further measurements of a pixel; measured in decision 0065."""

    reach: int = 4
    """Largest distance of such a pixel, in rows and columns."""
    side: int = 5
    """Side of the square patches that are compared, in pixels."""
    spread: float = 0.8
    """Difference of patches, in standard deviations of the noise, at which the weight is 1/e."""
    least: float = 1.0
    """Smallest standard deviation of the noise, in grey levels."""


RULE = PatchRule()
NORMAL = 0.6745  # median of the absolute value of a standard normal variable


@dataclass(frozen=True)
class Measured:
    """The measurements of each pixel, by itself and by pixels that look alike.

    Attributes
    ----------
    mean : float64 array (rows, columns, channels)
        Weighted mean of the measurements; of the whole image if there is none.
    count : float64 array (rows, columns)
        Sum of the weights of the measurements; 0 at a hidden pixel that resembles no other.
    noise : float
        Standard deviation of one measurement, in grey levels.
    """

    mean: Image
    count: Image
    noise: float


def noise_of(image: Image, hidden: Mask | None = None) -> float:
    """Estimate the standard deviation of the noise from differences within 2 × 2 pixels.

    The difference of the diagonals vanishes on edges along rows or columns and on slopes, and the
    median ignores what remains of the image.
    """
    layers = np.atleast_3d(image)
    if min(layers.shape[:2]) < 2:
        return RULE.least
    cross = (layers[:-1, :-1] - layers[:-1, 1:] - layers[1:, :-1] + layers[1:, 1:]) / 2
    if hidden is not None:
        cross = cross[~(hidden[:-1, :-1] | hidden[:-1, 1:] | hidden[1:, :-1] | hidden[1:, 1:])]
    found = float(np.median(np.abs(cross))) / NORMAL if cross.size else 0.0
    return max(found, RULE.least)


def measured(image: Image, noise: float, hidden: Mask | None = None) -> Measured:
    """Gather the measurements of each pixel from pixels around it whose patches look alike."""
    layers = np.atleast_3d(image)
    seen: Image = np.ones(layers.shape[:2])
    if hidden is not None:
        seen[hidden] = 0.0
    total, count = layers * seen[..., None], seen.copy()
    for here, there in _shifts(*seen.shape):
        weight = _alike(layers, seen, here, there, noise)
        for to, source in ((here, there), (there, here)):
            total[to] += (weight * seen[source])[..., None] * layers[source]
            count[to] += weight * seen[source]
    known = count > 0
    overall = layers[seen > 0].mean(axis=0) if seen.any() else np.zeros(layers.shape[2])
    mean = np.where(known[..., None], total / np.where(known, count, 1.0)[..., None], overall)
    return Measured(mean, count, noise)


def _shifts(rows: int, columns: int) -> Iterator[tuple[Window, Window]]:
    """Return the windows of pixels and of their partners, for half of all shifts."""
    for down in range(min(RULE.reach, rows - 1) + 1):
        across = min(RULE.reach, columns - 1)
        for right in range(-across, across + 1):
            if (down, right) > (0, 0):
                before, after = max(0, -right), max(0, right)
                here = slice(0, rows - down), slice(before, columns - after)
                yield here, (slice(down, rows), slice(after, columns - before))


def _alike(layers: Image, seen: Image, here: Window, there: Window, noise: float) -> Image:
    """Return weights in 0..1: how much patches differ beyond the noise of both."""
    from scipy.ndimage import uniform_filter

    both = seen[here] * seen[there]
    squares = ((layers[here] - layers[there]) ** 2).mean(axis=2) * both
    common = uniform_filter(both, RULE.side, mode="nearest")
    mean = uniform_filter(squares, RULE.side, mode="nearest") / np.maximum(common, 1e-9)
    excess = np.maximum(mean - 2 * noise**2, 0.0) / (RULE.spread * noise) ** 2
    return np.where(common > 1e-9, np.exp(-excess), 0.0)
