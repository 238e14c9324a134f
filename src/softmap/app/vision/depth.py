"""Stereo: disparities with truncated linear smoothness."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import Model, TruncatedLinear, generators
from softmap.app.vision.picture import Picture, begun
from softmap.app.vision.source import Image, Source
from softmap.arguments import count, not_negative
from softmap.errors import ModelError

CAP = 20.0  # matching cost of occluded pixels, in grey levels of 0..255
ROWS = 32  # rows whose matching costs stay in the cache


def stereo(
    left: ArrayLike,
    right: ArrayLike,
    disparities: int = 16,
    *,
    smoothness: float = 6.0,
    **options: Any,
) -> Picture:
    """Estimate the disparity of each pixel of the left image of a rectified stereo pair.

    A warning is given if many pixels have the largest disparity: the range may be too small.

    Parameters
    ----------
    left, right : array, str or Path
        Images of equal shape, or image files. Corresponding pixels must be in the same row. The
        image of the result has disparities in pixels (int64), whatever the type of the pair.
    disparities : int
        Number of disparities: 0 .. disparities - 1 pixels.
    smoothness : float
        Cost of a difference of one between neighbouring disparities; halved across visible edges.
    **options
        Options of `solve`. By default, the run ends at a gap of 0.1 % or after 8 seconds;
        `Picture.improve` continues it.

    Returns
    -------
    Picture
        The labelled image and the result of the run.

    Examples
    --------
    >>> import numpy as np, softmap
    >>> right = np.random.default_rng(0).uniform(0, 255, (12, 24))
    >>> found = softmap.stereo(np.roll(right, 3, axis=1), right, 6)
    >>> bool((found.image[:, 6:] == 3).all())
    True
    """
    options, limit = begun(stereo, options)
    source, beside = Source.of(left, "left").beside(Source.of(right, "right"))
    first, second = source.grey, beside.grey
    if first.shape != second.shape:
        raise ModelError(f"the pictures differ in shape: {first.shape} and {second.shape}")
    labels = count("disparities", disparities, 2, 1 << 16)
    weight = not_negative("smoothness", smoothness)
    model = stereo_model(first, second, labels, weight)
    found = Picture.of(model, source, lambda found: found, options, limit, 255 / (labels - 1))
    if (remark := at_the_end(first, second, found.labels, labels)) is not None:
        warnings.warn(f"{remark}: give more disparities", stacklevel=2)
    return found


SATURATED = 0.02
"""Fraction of pixels with the largest disparity from which a warning is given."""
BETTER = 0.7
"""Ratio of matching costs below which larger disparities fit these pixels better."""


def at_the_end(left: Image, right: Image, found: NDArray[np.int64], labels: int) -> str | None:
    """Return a warning if many pixels have the largest disparity and larger ones fit better."""
    last = found.reshape(left.shape[:2]) == labels - 1
    if last.mean() < SATURATED:
        return None
    cost = _costs_of(last, left, right, range(labels - 1, 2 * labels))
    here, further = cost[:, 0].mean(), cost[:, 1:].min(axis=1).mean()
    if further >= BETTER * here:
        return None
    return f"{100 * last.mean():.0f} % of the pixels have the largest disparity, {labels - 1}"


def stereo_model(left: Image, right: Image, labels: int, weight: float = 6.0) -> Model:
    """Return the stereo model; labels are the disparities of the left image."""
    shape = left.shape[:2]
    edges = generators.grid_edges(shape[0], shape[1])
    unary = matching_cost(left, right, labels).reshape(-1, labels)
    smooth = TruncatedLinear(_smoothness(left, edges, weight), 2.0)
    return Model(unary, edges, smooth).with_shape(shape)


def matching_cost(left: Image, right: Image, labels: int) -> Image:
    """Return the matching cost of each left pixel and disparity `d` (right pixel at column - d).

    It is the measure of Birchfield and Tomasi (the distance to the interval between the right
    pixel's half-way neighbours), averaged over colours and truncated at `CAP`, because occluded
    pixels match nothing.
    """
    left, (low, high) = np.atleast_3d(left), _intervals(right)
    cost = np.full((*left.shape[:2], labels), CAP)
    for top in range(0, len(left), ROWS):
        own = slice(top, top + ROWS)
        for d in range(min(labels, left.shape[1])):
            there = own, slice(0, left.shape[1] - d)
            cost[own, d:, d] = _distance(left[own, d:], low[there], high[there])
    return cost


def _costs_of(chosen: NDArray[np.bool_], left: Image, right: Image, disparities: range) -> Image:
    """Return the matching costs of some pixels and disparities, as `matching_cost`."""
    left, (low, high) = np.atleast_3d(left)[chosen], _intervals(right)
    row, column = np.nonzero(chosen)
    cost = np.full((len(row), len(disparities)), CAP)
    for k, d in enumerate(disparities):
        inside = column >= d
        there = row[inside], column[inside] - d
        cost[inside, k] = _distance(left[inside], low[there], high[there])
    return cost


def _intervals(right: Image) -> tuple[Image, Image]:
    """Return the ends of the interval of each right pixel and its half-way neighbours."""
    right = np.atleast_3d(right)
    before = (right + np.roll(right, 1, axis=1)) / 2
    after = (right + np.roll(right, -1, axis=1)) / 2
    before[:, 0], after[:, -1] = right[:, 0], right[:, -1]
    low = np.minimum(np.minimum(before, after), right)
    return low, np.maximum(np.maximum(before, after), right)


def _distance(here: Image, low: Image, high: Image) -> Image:
    """Return the distance to an interval, averaged over colours and truncated."""
    outside = np.maximum(np.maximum(here - high, low - here), 0.0)
    return np.minimum(outside.mean(axis=-1), CAP)


def _smoothness(left: Image, edges: NDArray[np.int64], weight: float) -> Image:
    """Return the weights of edges: halved where the colour changes, as depth often does there."""
    flat = left.reshape(left.shape[0] * left.shape[1], -1)
    contrast = np.abs(flat[edges[:, 0]] - flat[edges[:, 1]]).mean(axis=1)
    return np.where(contrast < 8.0, weight, weight / 2)
