"""A picture without its noise: truncated quadratic smoothness keeps the edges."""

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

__all__ = ["colour_model", "denoise", "grey_model", "grey_of", "has_colours"]


@dataclass(frozen=True)
class NoiseCosts:
    """Where costs of grey levels stop to grow."""

    spoilt: float = 80.0
    """Grey levels from which a pixel counts as spoilt, however far off it is."""
    edge: float = 60.0
    """Grey levels from which neighbours count as two sides of an edge."""


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
    """Take the noise off a picture, and fill in what is missing.

    Parameters
    ----------
    image : (rows, columns) or (rows, columns, 3) array, or the name of a file
    levels : int, levels of each channel of the answer
    smoothness : float
        How much neighbours that differ cost, up to what counts as an edge.
    mask : (rows, columns) array of truth values, optional
        True where the picture is not known: those pixels are painted in.
    colour : bool, optional
        Whether the answer has colours; if left out, it has where the picture has. Each channel is
        then a picture by itself, which takes three times as long.
    options : those of `solve`; a gap of 0.1 % or 8 seconds end the run unless you say otherwise,
        and `Picture.improve` continues it

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
    """Whether a picture of three channels is more than a grey one."""
    return picture.ndim == 3 and bool((picture != picture[..., :1]).any())


def colour_model(
    picture: Image, grey: Image, smoothness: float, hidden: NDArray[np.bool_] | None = None
) -> Model:
    """One label per level of each channel; channels have no costs in common."""
    channels = [
        grey_model(picture[..., k], grey, smoothness, hidden) for k in range(picture.shape[2])
    ]
    first = channels[0]
    unary = np.concatenate([channel.unary for channel in channels]).reshape(-1, len(grey))
    edges = np.concatenate([first.edges + k * first.n for k in range(len(channels))])
    (potential,) = first.potentials
    return Model(unary, edges, potential.take(np.tile(np.arange(first.m), len(channels))))


def grey_of(picture: Image) -> Image:
    """A picture without its colours."""
    if picture.ndim == 2:
        return picture
    return picture @ np.array([0.299, 0.587, 0.114]) if picture.shape[2] == 3 else picture[..., 0]


def _mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
    if mask is None:
        return None
    try:
        hidden = np.asarray(plain(mask))
    except Exception as error:  # of any type: the value may bring its own conversion
        raise ModelError(f"mask must be an array of truth values: {error}") from error
    if hidden.dtype != bool or hidden.shape != shape:
        raise ModelError(f"mask must be truth values of the picture's shape {shape}")
    return hidden


def grey_model(
    picture: Image, grey: Image, smoothness: float, hidden: NDArray[np.bool_] | None = None
) -> Model:
    """One label per grey level."""
    step = positive("levels", 255 / (len(grey) - 1))
    unary = np.minimum((picture[..., None] - grey) ** 2, COSTS.spoilt**2) / 1000
    if hidden is not None:
        unary[hidden] = 0.0
    return Model.grid(
        unary, TruncatedQuadratic(smoothness * step**2 / 1000, (COSTS.edge / step) ** 2)
    )
