"""Pictures in, a labelled picture out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, ModelError, SoftmapError
from softmap.model import Model
from softmap.model.potentials.base import numbers
from softmap.solving.result import Result
from softmap.solving.solve import solve

__all__ = ["Image", "Picture", "pixels", "solved"]

Image = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Picture:
    """A labelled picture, and the result that says how good the labelling is.

    Attributes
    ----------
    image
        What was asked for: segments in their mean colours, the clean picture, or disparities.
    labels
        One whole number per pixel.
    given
        The picture that was handed over.
    result
        The run: energy, bound, trace.
    """

    image: NDArray[Any]
    labels: NDArray[np.int64]
    given: NDArray[Any]
    result: Result

    @property
    def energy(self) -> float:
        """The cost of the labels."""
        return self.result.energy

    @property
    def bound(self) -> float:
        """What no labelling costs less than."""
        return self.result.bound

    @property
    def gap(self) -> float:
        """`energy - bound`, relative to the bound."""
        return self.result.relative_gap(self.result.gap)

    def report(self, path: str | Path = "softmap-report.html", *, title: str = "softmap") -> Path:
        """Write a page about the run, with the picture that was given beside the labels."""
        return self.result.report(path, title=title, picture=self.given)

    def __repr__(self) -> str:
        rows, columns = self.labels.shape
        return f"Picture({rows} x {columns}, gap={self.gap:.2g}, {self.result.status})"


def pixels(given: Any, name: str = "image") -> Image:
    """A grey (rows, columns) or colour (rows, columns, channels) picture, in 0..255.

    Floats between 0 and 1 are taken for parts of 255; a file's name is read. An alpha channel is
    left out.
    """
    if isinstance(given, str | Path):
        return _file(given, name)
    array = numbers(given, name)
    if array.ndim not in (2, 3) or not array.size or (array.ndim == 3 and array.shape[2] > 4):
        raise ModelError(
            f"{name} must have shape (rows, columns) or (rows, columns, 3), not {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ModelError(f"{name} must be finite numbers")
    if array.ndim == 3 and array.shape[2] in (2, 4):
        array = array[..., :-1]
    whole = getattr(given, "dtype", np.dtype(float)).kind in "iu" if _typed(given) else False
    return array * 255.0 if not whole and array.min() >= 0 and array.max() <= 1 else array


def _file(path: str | Path, name: str) -> Image:
    from softmap.views.plotting import load_image

    try:
        return load_image(path).astype(float)
    except (FileNotFoundError, ValueError) as error:
        if isinstance(error, SoftmapError):
            raise
        raise FormatError(f"{name}: there is no such picture", path) from error


def _typed(given: Any) -> bool:
    return isinstance(getattr(given, "dtype", None), np.dtype)


def solved(model: Model, options: Mapping[str, Any]) -> Result:
    """Solve with what a user asked for; by default gaps of 0.1 % are small enough."""
    given: dict[str, Any] = {"lp_gap": 1e-3, "gap": 1e-3, **options}
    return solve(model, **given)
