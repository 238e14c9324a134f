"""The model of an image at the highest resolution for which there is time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap import Model
from softmap.app.vision.blocks import row_blocks, rows_around, window_sums
from softmap.extend import core

LEAST = 1 << 16
"""Number of pixels of an image whose model is made whether or not there is time."""
PART = 0.5
"""Fraction of the time left in which the model of one resolution has to be made."""
WINDOW = 5
"""Side of the square window over which costs are smoothed for initial labels, in pixels."""


@dataclass(frozen=True)
class Prepared:
    """The model of an image, perhaps at a lower resolution.

    Attributes
    ----------
    model : Model
        The model.
    paint : function
        Maps labels in the shape of that image to the whole image.
    unit : int
        Factor from labels of the model to those of the image.
    labels : int64 array, optional
        Labels to start with.
    options : dict
        Options of `solve` that hold unless others are given.
    """

    model: Model
    paint: Callable[[NDArray[np.int64]], NDArray[Any]]
    unit: int = 1
    labels: NDArray[np.int64] | None = None
    options: dict[str, Any] = field(default_factory=dict)


class Build(Protocol):
    """Makes the model of an image."""

    def __call__(self, side: int, deadline: core.Deadline) -> Prepared:
        """Return the model of the image with one pixel for each block of `side` × `side` pixels.

        Raises `core.OutOfTime` if the deadline passes.
        """


def finest(
    build: Build, pixels: int, limit: core.Deadline, coarsest: int | None = None
) -> tuple[Prepared | None, int]:
    """Return the model at the highest resolution for which there is time, and the side of blocks.

    Each resolution has half of the time that is left; the next one has a quarter of the pixels.
    The last one, of few pixels, is computed in any case.

    Parameters
    ----------
    build : function
        Makes the model.
    pixels : int
        Number of pixels of the image.
    limit : Deadline
        The end of the time limit.
    coarsest : int, optional
        Side of blocks at which the answer is None: that model exists.
    """
    side = 1
    while side != coarsest:
        last = pixels <= LEAST * side * side
        try:
            return build(side, core.Deadline() if last else limit.within(PART * limit.left)), side
        except core.OutOfTime:
            side *= 2
    return None, side


def smoothed_labels(
    costs: NDArray[np.float64], deadline: core.Deadline
) -> NDArray[np.int64] | None:
    """Return the labels that minimise the mean cost over a window around each pixel.

    None if the deadline passes.

    Parameters
    ----------
    costs : float64 array (rows, columns, labels)
        The unary costs. A forbidden label counts in other windows as the largest cost around.
    deadline : Deadline
        When to stop.
    """
    rows, columns, count = costs.shape
    labels = np.empty((rows, columns), dtype=np.int64)
    try:
        for first, last in row_blocks((rows, columns), count, deadline):
            around = costs[rows_around(first, last, WINDOW // 2, rows)]
            hard = around.max() == np.inf
            if hard:
                allowed = np.isfinite(around)
                around = np.where(allowed, around, around[allowed].max(initial=0.0))
            sums = window_sums(around, WINDOW)
            if hard:
                sums[np.isposinf(costs[first:last])] = np.inf
            labels[first:last] = sums.argmin(axis=-1)
    except core.OutOfTime:
        return None
    return labels


def enlarged(values: NDArray[Any], side: int, shape: tuple[int, int]) -> NDArray[Any]:
    """Return an image in which each pixel is a block, cut to a shape.

    Parameters
    ----------
    values : array (rows, columns, ...)
        The pixels.
    side : int
        Side of a block; for 1, `values` is returned.
    shape : (int, int)
        The number of rows and columns of the result.
    """
    if side == 1:
        return values
    rows, columns = (np.arange(length) // side for length in shape)
    whole: NDArray[Any] = values[rows][:, columns]
    return whole
