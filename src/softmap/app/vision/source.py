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
        whole = type(given) is np.ndarray and given.dtype.kind in "iub"
        values = given if whole else numbers(given, name)  # integers need no copy as floats
        if values.ndim not in (2, 3) or not values.size or values.shape[2:] > (4,):
            raise ModelError(
                f"{name} must have shape (rows, columns) or (rows, columns, 3), not {values.shape}"
            )
        if not whole and not np.isfinite(values).all():
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
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        rows, columns = self.given.shape[:2]
        return rows, columns

    @property
    def channels(self) -> int:
        """The number of channels."""
        return 1 if self.given.ndim == 2 else self.given.shape[2]

    def rows(self, first: int, last: int) -> Image:
        """Return some rows in grey levels, as an array (rows, columns, channels).

        Parameters
        ----------
        first, last : int
            The first row, and the one after the last.
        """
        part = self.given[first:last].astype(np.float64) * (BYTE / self.white)
        return part.reshape(*part.shape[:2], self.channels)

    def planes(self, first: int, last: int) -> Image:
        """Return some rows in grey levels, as an array (channels, rows, columns).

        Parameters
        ----------
        first, last : int
            The first row, and the one after the last.
        """
        return np.ascontiguousarray(np.moveaxis(self.rows(first, last), 2, 0))

    def pixels(self, index: NDArray[np.int64]) -> Image:
        """Return some pixels in grey levels, as an array (pixels, channels).

        Parameters
        ----------
        index : int array
            Their numbers, row by row.
        """
        row, column = np.divmod(index, self.shape[1])
        chosen = self.given[row, column].astype(np.float64) * (BYTE / self.white)
        return chosen.reshape(-1, self.channels)

    def reduced(self, side: int) -> Source:
        """Return the image with one pixel for each block of pixels, its first one.

        Parameters
        ----------
        side : int
            The side of a block.
        """
        return self if side == 1 else Source(self.given[::side, ::side], self.white)

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
