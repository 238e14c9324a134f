"""Denoising of images: truncated linear smoothness, and the mean over pixels that look alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import Model, TruncatedLinear
from softmap.app.vision.blocks import row_blocks, rows_around
from softmap.app.vision.patches import Measured, measured, noise_of
from softmap.app.vision.picture import EFFORT, Picture, begun
from softmap.app.vision.preparing import Prepared, enlarged
from softmap.app.vision.source import Image, Source
from softmap.app.vision.sublevels import refined
from softmap.arguments import count, flag, not_negative, positive
from softmap.errors import ModelError
from softmap.extend import core, neighbours, plain


@dataclass(frozen=True)
class NoiseCosts:
    """Truncation of the costs, in grey levels of 0..255; measured in decision 0065."""

    spoilt: float = 80.0
    """Truncation of the data cost: a larger difference counts as an outlier."""
    edge: float = 100.0
    """Truncation of the smoothness cost: a larger difference counts as an edge."""


COSTS = NoiseCosts()
GATHERING = 0.5  # fraction of the time for the model in which measurements are gathered


def denoise(
    image: ArrayLike,
    *,
    levels: int = 32,
    smoothness: float = 0.4,
    noise: float | None = None,
    mask: ArrayLike | None = None,
    colour: bool | None = None,
    **options: Any,
) -> Picture:
    """Remove the noise of an image, and inpaint missing pixels.

    The data cost of a pixel is quadratic around the mean of its own value and of pixels nearby
    whose surroundings look alike. The smoothness cost is truncated linear. The labels are levels;
    `Picture.image` has the best value of each pixel within half a level of its label.

    Parameters
    ----------
    image : array (rows, columns) or (rows, columns, 3), str or Path
        The image, or an image file. The denoised image has its type and its range.
    levels : int
        Number of levels of each channel of the labelling.
    smoothness : float
        Cost of a difference between neighbours of one standard deviation of the noise.
    noise : float, optional
        Standard deviation of the noise, in grey levels of 0..255; estimated from the image by
        default.
    mask : bool array (rows, columns), optional
        True at missing pixels, which are inpainted.
    colour : bool, optional
        Whether the result is a colour image; by default it is if the input is. Each channel is
        denoised separately, which takes three times as long.
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
    >>> clean = np.repeat([[40.0, 200.0]], 12, axis=0).repeat(6, axis=1)
    >>> noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    >>> found = softmap.denoise(noisy)
    >>> bool(np.abs(found.image - clean).mean() < np.abs(noisy - clean).mean())
    True
    """
    options, limit = begun(denoise, options)
    source = Source.of(image)
    grey = np.linspace(0, 255, count("levels", levels, 2, 256))
    weight = not_negative("smoothness", smoothness)
    hidden = _mask(mask, source.shape)
    coloured = has_colours(source.given) if colour is None else flag("colour", colour)
    shown = source.grey if coloured and source.channels > 1 else grey_of(source.grey)
    deviation = noise_of(shown, hidden) if noise is None else positive("noise", noise)

    def build(side: int, deadline: core.Deadline) -> Prepared:
        small = shown[::side, ::side]
        lost = None if hidden is None else hidden[::side, ::side]
        part = deadline.within(GATHERING * deadline.left)
        restoration = Restoration(measured(small, deviation, lost, part), grey, weight)

        def paint(labels: NDArray[np.int64]) -> NDArray[Any]:
            values = restoration.values(labels)
            return source.restored(values if side == 1 else within(values, shown, hidden, side))

        model = restoration.model(deadline)
        return Prepared(model, paint, labels=restoration.start(), options=restoration.options)

    return Picture.of(build, source, options, limit)


def within(small: Image, whole: Image, hidden: NDArray[np.bool_] | None, side: int) -> Image:
    """Return an image with the values of a smaller one, and the edges of the given one.

    Each pixel has its own value, clipped to the values of its block and of the eight around it; a
    missing one has that of its block.

    Parameters
    ----------
    small : float64 array (rows, columns, ...)
        The values of blocks.
    whole : float64 array
        The given image.
    hidden : bool array, optional
        True at missing pixels.
    side : int
        Side of a block.
    """
    shape = whole.shape[:2]
    low, high = (_around(small, extreme) for extreme in (np.minimum, np.maximum))
    image: Image = np.clip(whole, *(enlarged(limits, side, shape) for limits in (low, high)))
    if hidden is not None:
        image[hidden] = enlarged(small, side, shape)[hidden]
    return image


def _around(values: Image, extreme: np.ufunc) -> Image:
    """Return the smallest or largest of each pixel and the eight around it."""
    for axis in (0, 1):
        lines = values.swapaxes(0, axis)
        lines = lines[rows_around(0, len(lines), 1, len(lines))]
        values = extreme(extreme(lines[:-2], lines[1:-1]), lines[2:]).swapaxes(0, axis)
    return values


@dataclass(frozen=True)
class Restoration:
    """The denoising model of an image: one grid per channel, not coupled; labels are levels.

    Attributes
    ----------
    data : Measured
        What the image says about each pixel.
    grey : float64 array (levels,)
        The levels, in grey levels of 0..255.
    smoothness : float
        Cost of a difference between neighbours of one standard deviation of the noise.
    """

    data: Measured
    grey: Image
    smoothness: float

    @property
    def channels(self) -> int:
        """The number of channels."""
        return int(self.data.mean.shape[2])

    def model(self, deadline: core.Deadline | None = None) -> Model:
        """Return the model; the variables of a channel follow those of the channel before.

        Raises `core.OutOfTime` if the deadline passes.
        """
        deadline = deadline or core.Deadline()
        rows, columns = self.data.count.shape
        one = neighbours((rows, columns), 4, deadline)
        unary = np.empty((self.channels, rows, columns, len(self.grey)))
        for channel, costs in enumerate(unary):
            for first, last in row_blocks((rows, columns), len(self.grey), deadline):
                self._write_costs(channel, slice(first, last), costs[first:last])
        weight = self.smoothness * self._step / self.data.noise
        smooth = TruncatedLinear(weight, COSTS.edge / self._step)
        edges = one
        if self.channels > 1:
            edges = np.concatenate([one + k * rows * columns for k in range(self.channels)])
        model = Model(unary.reshape(-1, len(self.grey)), edges, smooth)
        return model.with_shape((rows, columns)) if self.channels == 1 else model

    def start(self) -> NDArray[np.int64]:
        """Return the level nearest to the mean of each pixel, as labels to start with."""
        nearest = np.rint(self.data.mean / self._step).clip(0, len(self.grey) - 1)
        return nearest.transpose(2, 0, 1).reshape(-1).astype(np.int64)

    @property
    def options(self) -> dict[str, Any]:
        """Options of `solve` for this model: the run of a large image stops when the LP is solved.

        Searches for better labels would take the time of the passes, on which the bound depends.
        """
        large = self.data.mean.size * len(self.grey) >= EFFORT.large
        return {"goal": "lp"} if large else {}

    def values(self, found: NDArray[np.int64]) -> Image:
        """Return the best value of each pixel within half a level of its label."""
        levels = self.grey[found].reshape(self.data.mean.shape)
        precision = self.data.count / self.data.noise**2
        weight = self.smoothness / self.data.noise
        layers = [
            refined(levels[..., k], self._step, mean, precision, weight, COSTS.edge)
            for k, mean in enumerate(np.moveaxis(self.data.mean, 2, 0))
        ]
        return np.stack(layers, axis=-1).reshape(found.shape)

    @property
    def _step(self) -> float:
        return 255 / (len(self.grey) - 1)

    def _write_costs(self, channel: int, rows: slice, costs: Image) -> None:
        """Write the data costs of the levels in some rows: negative log-likelihoods, truncated."""
        np.subtract(self.data.mean[rows, :, channel, None], self.grey, out=costs)
        np.multiply(costs, costs, out=costs)
        np.minimum(costs, COSTS.spoilt**2, out=costs)
        costs *= self.data.count[rows, :, None] / (2 * self.data.noise**2)


def has_colours(picture: NDArray[Any]) -> bool:
    """Whether the three channels of an image differ."""
    return picture.ndim == 3 and bool((picture != picture[..., :1]).any())


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
