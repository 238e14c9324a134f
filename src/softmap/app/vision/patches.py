"""What a noisy image says about each pixel: the noise, and the mean over pixels that look alike."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.app.vision.blocks import row_blocks, rows_around, window_sums
from softmap.app.vision.source import Image
from softmap.extend import core

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
ESTIMATED = 1 << 20  # number of values from which the noise is estimated
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
    median ignores what remains of the image. Of a large image, some rows suffice.
    """
    layers = np.atleast_3d(image)
    if min(layers.shape[:2]) < 2:
        return RULE.least
    above = np.arange(0, len(layers) - 1, max(1, layers.size // ESTIMATED))
    upper, lower = layers[above], layers[above + 1]
    cross = (upper[:, :-1] - upper[:, 1:] - lower[:, :-1] + lower[:, 1:]) / 2
    if hidden is not None:
        lost = hidden[above] | hidden[above + 1]
        cross = cross[~(lost[:, :-1] | lost[:, 1:])]
    found = float(np.median(np.abs(cross))) / NORMAL if cross.size else 0.0
    return max(found, RULE.least)


def measured(
    image: Image, noise: float, hidden: Mask | None = None, deadline: core.Deadline | None = None
) -> Measured:
    """Gather the measurements of each pixel from pixels around it whose patches look alike.

    The nearest pixels come first. Once the deadline has passed, no more are gathered.
    """
    planes = np.ascontiguousarray(np.moveaxis(np.atleast_3d(image), 2, 0))
    seen: Image = np.ones(planes.shape[1:])
    if hidden is not None:
        seen[hidden] = 0.0
    total, count = planes * seen, seen.copy()
    with suppress(core.OutOfTime):
        for here, there in _shifts(*seen.shape):
            _add_alike((total, count), planes, seen, (here, there), noise, deadline)
    known = count > 0
    overall = np.zeros(len(planes))
    if seen.any():
        overall = np.array([plane[seen > 0].mean() for plane in planes])
    np.divide(total, count, out=total, where=known)
    for plane, mean in zip(total, overall, strict=True):
        plane[~known] = mean
    return Measured(np.moveaxis(total, 0, 2), count, noise)


def _add_alike(
    sums: tuple[Image, Image],
    planes: Image,
    seen: Image,
    windows: tuple[Window, Window],
    noise: float,
    deadline: core.Deadline | None,
) -> None:
    """Add the measurements of pixels and their partners to each other's, in blocks of rows."""
    total, count = sums
    rows, columns = (part.stop - part.start for part in windows[0])
    for first, last in row_blocks((rows, columns), len(planes), deadline or core.Deadline()):
        around = rows_around(first, last, RULE.side // 2, rows)
        pair = tuple((around + down.start, right) for down, right in windows)
        weight = _alike(planes, seen, pair, noise)
        parts = [(slice(down.start + first, down.start + last), right) for down, right in windows]
        for to, source in (parts, parts[::-1]):
            share = weight * seen[source]
            total[:, *to] += share * planes[:, *source]
            count[to] += share


def _shifts(rows: int, columns: int) -> list[tuple[Window, Window]]:
    """Return the windows of pixels and of their partners, for half of all shifts."""
    across = min(RULE.reach, columns - 1)
    shifts = [
        (down, right)
        for down in range(min(RULE.reach, rows - 1) + 1)
        for right in range(-across, across + 1)
        if (down, right) > (0, 0)
    ]
    windows = []
    for down, right in sorted(shifts, key=lambda shift: shift[0] ** 2 + shift[1] ** 2):
        before, after = max(0, -right), max(0, right)
        here = slice(0, rows - down), slice(before, columns - after)
        windows.append((here, (slice(down, rows), slice(after, columns - before))))
    return windows


def _alike(planes: Image, seen: Image, pair: Any, noise: float) -> Image:
    """Return weights in 0..1: how much patches differ beyond the noise of both."""
    here, there = pair
    both = seen[here] * seen[there]
    squares = np.zeros_like(both)
    for plane in planes:
        difference = plane[here] - plane[there]
        squares += difference * difference
    squares *= both / len(planes)
    common = window_sums(both, RULE.side)
    mean = window_sums(squares, RULE.side) / np.maximum(common, 1e-9)
    excess = np.maximum(mean - 2 * noise**2, 0.0) / (RULE.spread * noise) ** 2
    return np.where(common > 0.5, np.exp(-excess), 0.0)
