"""Depth from two views: truncated linear smoothness over disparities."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.app.vision.picture import Image, Picture, pixels
from softmap.arguments import count, not_negative
from softmap.errors import ModelError
from softmap.model import Model
from softmap.model.graph import neighbours
from softmap.model.potentials import TruncatedLinear

__all__ = ["at_the_end", "matching_cost", "stereo", "stereo_model"]


def stereo(
    left: ArrayLike,
    right: ArrayLike,
    disparities: int = 16,
    *,
    smoothness: float = 6.0,
    **options: Any,
) -> Picture:
    """How far each pixel of the left picture is shifted in the right one: near things more.

    A warning says where many pixels have the largest disparity, and so may need more of them.

    Parameters
    ----------
    left, right : arrays of one shape, or names of files; rows must belong to each other
    disparities : int, shifts 0 .. disparities - 1 are tried
    smoothness : float
        What a change of disparity by one costs; halved across visible edges.
    options : those of `solve`; a gap of 0.1 % or 8 seconds end the run unless you say otherwise,
        and `Picture.improve` continues it

    Examples
    --------
    >>> import numpy as np, softmap
    >>> right = np.random.default_rng(0).uniform(0, 255, (12, 24))
    >>> found = softmap.stereo(np.roll(right, 3, axis=1), right, 6)
    >>> bool((found.image[:, 6:] == 3).all())
    True
    """
    first, second = pixels(left, "left"), pixels(right, "right")
    if first.shape != second.shape:
        raise ModelError(f"the pictures differ in shape: {first.shape} and {second.shape}")
    labels = count("disparities", disparities, 2, 1 << 16)
    weight = not_negative("smoothness", smoothness)
    model = stereo_model(first, second, labels, weight)
    found = Picture.of(model, first, lambda found: found, options, 255 / (labels - 1))
    if (remark := at_the_end(first, second, found.labels, labels)) is not None:
        warnings.warn(f"{remark}: give more disparities", stacklevel=2)
    return found


@dataclass(frozen=True)
class Saturation:
    """When disparities at the end of the range count as cut off."""

    share: float = 0.02
    """Part of the pixels that has the largest disparity."""
    better: float = 0.7
    """Larger disparities fit these pixels at less than this part of the cost."""


def at_the_end(
    left: Image, right: Image, found: NDArray[np.int64], labels: int, rule: Saturation | None = None
) -> str | None:
    """A remark where many pixels have the largest disparity, and larger ones would fit better."""
    rule = rule or Saturation()
    last = found.reshape(left.shape[:2]) == labels - 1
    if last.mean() < rule.share:
        return None
    cost = matching_cost(left, right, 2 * labels)[last]
    here, further = cost[:, labels - 1].mean(), cost[:, labels:].min(axis=1).mean()
    if further >= rule.better * here:
        return None
    return f"{100 * last.mean():.0f} % of the pixels have the largest disparity, {labels - 1}"


def stereo_model(left: Image, right: Image, labels: int, weight: float = 6.0) -> Model:
    """One label per disparity of the left picture."""
    shape = left.shape[:2]
    edges = neighbours(shape)
    unary = matching_cost(left, right, labels).reshape(-1, labels)
    smooth = TruncatedLinear(_smoothness(left, edges, weight), 2.0)
    return Model(unary, edges, smooth).with_shape(shape)


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


def _smoothness(left: Image, edges: NDArray[np.int64], weight: float) -> Image:
    """Depth changes where colours do: half weight across a visible edge."""
    flat = left.reshape(left.shape[0] * left.shape[1], -1)
    contrast = np.abs(flat[edges[:, 0]] - flat[edges[:, 1]]).mean(axis=1)
    return np.where(contrast < 8.0, weight, weight / 2)
