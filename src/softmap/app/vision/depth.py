"""Stereo: disparities with truncated linear smoothness."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import Model, TruncatedLinear
from softmap.app.vision.blocks import edge_values, row_blocks
from softmap.app.vision.picture import Picture, begun
from softmap.app.vision.preparing import Prepared, enlarged
from softmap.app.vision.source import Image, Source
from softmap.arguments import count, not_negative
from softmap.errors import ModelError
from softmap.extend import core, neighbours

CAP = 20.0  # matching cost of occluded pixels, in grey levels of 0..255
LOOKED = 1 << 18  # number of pixels that tell whether there are enough disparities


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
        `Picture.improve` continues it. The time limit holds for all of the work: if it is short for
        a large image, blocks of pixels share a label (`Picture.side`).

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
    if source.given.shape != beside.given.shape:
        shapes = f"{source.given.shape} and {beside.given.shape}"
        raise ModelError(f"the pictures differ in shape: {shapes}")
    labels = count("disparities", disparities, 2, 1 << 16)
    weight = not_negative("smoothness", smoothness)

    def build(side: int, deadline: core.Deadline) -> Prepared:
        pair, fewer = (source.reduced(side), beside.reduced(side)), max(2, -(-labels // side))
        model = stereo_model(*pair, fewer, weight, deadline)

        def paint(found: NDArray[np.int64]) -> NDArray[np.int64]:
            return enlarged(np.minimum(found * side, labels - 1), side, source.shape)

        return Prepared(model, paint, side)

    found = Picture.of(build, source, options, limit, 255 / (labels - 1))
    if (remark := at_the_end(source, beside, found.labels, labels)) is not None:
        warnings.warn(f"{remark}: give more disparities", stacklevel=2)
    return found


SATURATED = 0.02
"""Fraction of pixels with the largest disparity from which a warning is given."""
BETTER = 0.7
"""Ratio of matching costs below which larger disparities fit these pixels better."""


def at_the_end(left: Source, right: Source, found: NDArray[np.int64], labels: int) -> str | None:
    """Return a warning if many pixels have the largest disparity and larger ones fit better.

    Of a large image, some rows tell.
    """
    rows, columns = left.shape
    chosen = slice(None, None, max(1, rows * columns // LOOKED))
    last = found.reshape(rows, columns)[chosen] == labels - 1
    if last.mean() < SATURATED:
        return None
    pair = (Source(one.given[chosen], one.white) for one in (left, right))
    first, second = (one.planes(0, len(last)) for one in pair)
    cost = _costs_of(last, first, second, range(labels - 1, 2 * labels))
    here, further = cost[:, 0].mean(), cost[:, 1:].min(axis=1).mean()
    if further >= BETTER * here:
        return None
    return f"{100 * last.mean():.0f} % of the pixels have the largest disparity, {labels - 1}"


def stereo_model(
    left: Source,
    right: Source,
    labels: int,
    weight: float = 6.0,
    deadline: core.Deadline | None = None,
) -> Model:
    """Return the stereo model; labels are the disparities of the left image.

    Raises `core.OutOfTime` if the deadline passes.
    """
    deadline = deadline or core.Deadline()
    edges = neighbours(left.shape, 4, deadline)
    contrast = edge_values(left, 4, _mean_difference, deadline)
    unary = matching_cost(left, right, labels, deadline).reshape(-1, labels)
    # halved where the colour changes, as depth often does there
    smooth = TruncatedLinear(np.where(contrast < 8.0, weight, weight / 2), 2.0)
    return Model(unary, edges, smooth).with_shape(left.shape)


def matching_cost(left: Source, right: Source, labels: int, deadline: core.Deadline) -> Image:
    """Return the matching cost of each left pixel and disparity `d` (right pixel at column - d).

    It is the measure of Birchfield and Tomasi (the distance to the interval between the right
    pixel's half-way neighbours), averaged over colours and truncated at `CAP`, because occluded
    pixels match nothing. Raises `core.OutOfTime` if the deadline passes.
    """
    columns = left.shape[1]
    cost = np.empty((*left.shape, labels))
    for first, last in row_blocks(left.shape, left.channels, deadline):
        here, (low, high) = left.planes(first, last), _intervals(right.planes(first, last))
        cost[first:last] = CAP
        for d in range(min(labels, columns)):
            end = columns - d
            cost[first:last, d:, d] = _distance(here[..., d:], low[..., :end], high[..., :end])
    return cost


def _costs_of(chosen: NDArray[np.bool_], left: Image, right: Image, disparities: range) -> Image:
    """Return the matching costs of some pixels and disparities, as `matching_cost`."""
    left, (low, high) = left[:, chosen], _intervals(right)
    row, column = np.nonzero(chosen)
    cost = np.full((len(row), len(disparities)), CAP)
    for k, d in enumerate(disparities):
        inside = column >= d
        there = slice(None), row[inside], column[inside] - d
        cost[inside, k] = _distance(left[:, inside], low[there], high[there])
    return cost


def _intervals(right: Image) -> tuple[Image, Image]:
    """Return the ends of the interval of each right pixel and its half-way neighbours."""
    before = (right + np.roll(right, 1, axis=-1)) / 2
    after = (right + np.roll(right, -1, axis=-1)) / 2
    before[..., 0], after[..., -1] = right[..., 0], right[..., -1]
    low = np.minimum(np.minimum(before, after), right)
    return low, np.maximum(np.maximum(before, after), right)


def _distance(here: Image, low: Image, high: Image) -> Image:
    """Return the distance to an interval, averaged over colours and truncated."""
    outside = np.maximum(np.maximum(here - high, low - here), 0.0)
    return np.minimum(outside.mean(axis=0), CAP)


def _mean_difference(first: Image, second: Image) -> Image:
    mean: Image = np.abs(first - second).mean(axis=0)
    return mean
