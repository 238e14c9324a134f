"""Denoising of images with truncated quadratic smoothness, which preserves edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.app.vision.picture import Image, Picture, pixels
from softmap.arguments import count, flag, not_negative, positive
from softmap.errors import ModelError
from softmap.model import Model
from softmap.model.potentials import TruncatedQuadratic
from softmap.model.potentials.base import plain


@dataclass(frozen=True)
class NoiseCosts:
    """Truncation of the costs, in grey levels of 0..255."""

    spoilt: float = 80.0
    """Truncation of the data cost: a larger difference counts as an outlier."""
    edge: float = 60.0
    """Truncation of the smoothness cost: a larger difference counts as an edge."""


COSTS = NoiseCosts()


def denoise(
    image: ArrayLike,
    *,
    levels: int = 32,
    smoothness: float = 2.0,
    mask: ArrayLike | None = None,
    colour: bool | None = None,
    **options: Any,
) -> Picture:
    """Remove the noise of an image, and inpaint missing pixels.

    Parameters
    ----------
    image : array (rows, columns) or (rows, columns, 3), str or Path
        The image, or an image file.
    levels : int
        Number of levels of each channel of the result.
    smoothness : float
        Weight of the truncated quadratic cost of differences between neighbours.
    mask : bool array (rows, columns), optional
        True at missing pixels, which are inpainted.
    colour : bool, optional
        Whether the result is a colour image; by default it is if the input is. Each channel is
        denoised separately, which takes three times as long.
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
    >>> clean = np.repeat([[40.0, 200.0]], 12, axis=0).repeat(6, axis=1)
    >>> noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    >>> found = softmap.denoise(noisy)
    >>> bool(np.abs(found.image - clean).mean() < np.abs(noisy - clean).mean())
    True
    """
    given = pixels(image)
    grey = np.linspace(0, 255, count("levels", levels, 2, 256))
    weight = not_negative("smoothness", smoothness)
    hidden = _mask(mask, given.shape[:2])
    coloured = has_colours(given) if colour is None else flag("colour", colour)
    model = colour_model if coloured and given.ndim == 3 else grey_model
    shown = given if model is colour_model else grey_of(given)

    def paint(found: NDArray[np.int64]) -> NDArray[Any]:
        return np.round(grey[found]).astype(np.uint8)

    return Picture.of(model(shown, grey, weight, hidden), given, paint, options)


def has_colours(picture: Image) -> bool:
    """Whether the three channels of an image differ."""
    return picture.ndim == 3 and bool((picture != picture[..., :1]).any())


def colour_model(
    picture: Image, grey: Image, smoothness: float, hidden: NDArray[np.bool_] | None = None
) -> Model:
    """Return the denoising model of a colour image: one grid per channel, not coupled."""
    channels = [
        grey_model(picture[..., k], grey, smoothness, hidden) for k in range(picture.shape[2])
    ]
    first = channels[0]
    unary = np.concatenate([channel.unary for channel in channels]).reshape(-1, len(grey))
    edges = np.concatenate([first.edges + k * first.n for k in range(len(channels))])
    (potential,) = first.potentials
    return Model(unary, edges, potential.take(np.tile(np.arange(first.m), len(channels))))


def grey_of(picture: Image) -> Image:
    """Return an image converted to grey."""
    if picture.ndim == 2:
        return picture
    return picture @ np.array([0.299, 0.587, 0.114]) if picture.shape[2] == 3 else picture[..., 0]


def _mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
    if mask is None:
        return None
    try:
        hidden = np.asarray(plain(mask))
    except Exception as error:  # the conversion methods of a value may raise errors of any type
        raise ModelError(f"mask must be an array of truth values: {error}") from error
    if hidden.dtype != bool or hidden.shape != shape:
        raise ModelError(f"mask must be truth values of the picture's shape {shape}")
    return hidden


def grey_model(
    picture: Image, grey: Image, smoothness: float, hidden: NDArray[np.bool_] | None = None
) -> Model:
    """Return the denoising model; labels are the grey levels `grey`."""
    step = positive("levels", 255 / (len(grey) - 1))
    unary = np.minimum((picture[..., None] - grey) ** 2, COSTS.spoilt**2) / 1000
    if hidden is not None:
        unary[hidden] = 0.0
    return Model.grid(
        unary, TruncatedQuadratic(smoothness * step**2 / 1000, (COSTS.edge / step) ** 2)
    )
