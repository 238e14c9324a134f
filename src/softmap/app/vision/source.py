"""`Source`: an input image in grey levels, with the type and the range in which it was given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, ModelError, SoftmapError
from softmap.extend import numbers

Image = NDArray[np.float64]

BYTE = 255.0
BITS = (8, 10, 12, 14, 16, 24, 32)  # what cameras and scanners store in integers, in bits per value


@dataclass(frozen=True, eq=False)
class Source:
    """An input image, and the conversion between its values and grey levels of 0..255.

    Attributes
    ----------
    given : array (rows, columns) or (rows, columns, channels)
        The image as it was given, without an opaque alpha channel.
    white : float
        The value of `given` that is 255 grey levels.
    """

    given: NDArray[Any]
    white: float

    @classmethod
    def of(cls, given: Any, name: str = "image") -> Source:
        """Read an image file, or check an array.

        Parameters
        ----------
        given : array (rows, columns) or (rows, columns, 3), str or Path
            The image, or an image file. An alpha channel must be opaque.
        name : str
            The argument, for error messages.
        """
        if isinstance(given, str | Path):
            return cls(_file(given, name), BYTE)
        values = numbers(given, name)
        if values.ndim not in (2, 3) or not values.size or values.shape[2:] > (4,):
            raise ModelError(
                f"{name} must have shape (rows, columns) or (rows, columns, 3), not {values.shape}"
            )
        if not np.isfinite(values).all():
            raise ModelError(f"{name} must be finite numbers")
        dtype = getattr(given, "dtype", None)
        if not isinstance(dtype, np.dtype):
            dtype = np.dtype(float)
        white = _white(float(values.min()), float(values.max()), dtype, name)
        if values.ndim == 3 and values.shape[2] in (2, 4):
            if values[..., -1].min() < white:
                raise ModelError(f"{name} has transparent pixels: put them on a background")
            values = values[..., :-1]
        return cls(values.astype(dtype), white)

    @property
    def grey(self) -> Image:
        """The image in grey levels of 0..255."""
        return self.given.astype(np.float64) * (BYTE / self.white)

    @property
    def scale(self) -> float:
        """Factor from values of the image to grey levels."""
        return BYTE / self.white

    def restored(self, grey: Image) -> NDArray[Any]:
        """Convert grey levels to the type and the range of the image, rounded for integers.

        Parameters
        ----------
        grey : float64 array
            Grey levels; those outside 0..255 are clipped.
        """
        values = np.clip(grey, 0.0, BYTE) * (self.white / BYTE)
        if self.given.dtype.kind != "f":
            values = np.round(values)
        return values.astype(self.given.dtype)

    def beside(self, other: Source) -> tuple[Source, Source]:
        """Return this image and another one with one value for white, the larger one.

        Parameters
        ----------
        other : Source
            The other image of a stereo pair.
        """
        if self.given.dtype != other.given.dtype:
            return self, other
        white = max(self.white, other.white)
        return Source(self.given, white), Source(other.given, white)


def _white(low: float, high: float, dtype: np.dtype[Any], name: str) -> float:
    """Return the value that is white: 1, 255, or the largest one of the bits that are used.

    Floats are in 0..1 or in 0..255; either range may be exceeded by half of it, as noise does.
    Integers beyond 255 have 10, 12, 14 or more bits, as many as the largest value needs.
    """
    if dtype.kind == "b" or (dtype.kind == "f" and low >= -0.5 and high <= 1.5):
        return 1.0
    if dtype.kind == "f":
        if low >= -0.5 * BYTE and high <= 1.5 * BYTE:
            return BYTE
        ranges = "0..1 or 0..255"
    else:
        bits = int(high).bit_length()
        if low >= 0 and bits <= BITS[-1]:
            return float(2 ** next(most for most in BITS if most >= bits) - 1)
        ranges = "0..2^32 - 1"
    raise ModelError(f"{name} of type {dtype} must be in {ranges}, not in {low:g}..{high:g}")


def _file(path: str | Path, name: str) -> NDArray[np.uint8]:
    from softmap import plotting

    try:
        return plotting.load_image(path)
    except (FileNotFoundError, ValueError) as error:
        if isinstance(error, SoftmapError):
            raise
        raise FormatError(f"{name}: there is no such image file", path) from error
