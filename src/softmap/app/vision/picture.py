"""`Picture`, the result of the functions for images, and the conversion of their input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, ModelError, SoftmapError
from softmap.io.atomic import write_bytes
from softmap.model import Model
from softmap.model.drawing.images import as_bytes, image_uri, png, reduced
from softmap.model.drawn import figure, html_table
from softmap.model.potentials.base import numbers
from softmap.solving.archive import checked_path
from softmap.solving.result import Result
from softmap.solving.solve import solve
from softmap.solving.trace import Status
from softmap.views.console import number, ratio
from softmap.views.streams import interactive
from softmap.views.words import headline

__all__ = ["EFFORT", "Image", "Picture", "pixels"]

Image = NDArray[np.float64]


@dataclass(frozen=True)
class Effort:
    """How long a picture is worked on unless the user says otherwise."""

    seconds: float = 8.0
    """Time limit: as long as a person waits."""
    gap: float = 1e-3
    """Relative gap, of the LP and of the labelling, that is small enough."""
    longer: float = 60.0
    """Time limit of `Picture.improve`."""
    large: int = 1 << 20
    """Costs of pixels from which on a run begins with labels of smoothed costs."""
    window: int = 5
    """Side of the square over which costs are smoothed for these."""


EFFORT = Effort()
LIMITS = ("time_limit", "max_work", "updates")


@dataclass(frozen=True, eq=False)
class Picture:
    """A labelled picture, and the result that says how good the labelling is.

    Attributes
    ----------
    image
        What was asked for: segments in their mean colours, the clean picture, or disparities.
    labels
        One whole number per pixel; of a colour picture without its noise, one per channel.
    given
        The picture that was handed over.
    result
        The run: energy, bound, trace.
    paint
        The function that makes `image` from labels.
    scale
        What `image` is multiplied by where it is shown or saved: disparities are small numbers.
    """

    image: NDArray[Any]
    labels: NDArray[np.int64]
    given: NDArray[Any]
    result: Result
    paint: Callable[[NDArray[np.int64]], NDArray[Any]] = field(repr=False)
    scale: float = 1.0

    @classmethod
    def of(
        cls,
        model: Model,
        given: NDArray[Any],
        paint: Callable[[NDArray[np.int64]], NDArray[Any]],
        options: Mapping[str, Any],
        scale: float = 1.0,
    ) -> Picture:
        """Solve a model and paint its labels; by default as `EFFORT` says."""
        result = solve(model, **_with_start(model, given, _with_defaults(options)))
        labels = _shaped(result.labels, given)
        return cls(paint(labels), labels, given, result, paint, scale)

    @property
    def energy(self) -> float:
        """The energy of the labels."""
        return self.result.energy

    @property
    def bound(self) -> float:
        """A lower bound on the energy of any labelling."""
        return self.result.bound

    @property
    def gap(self) -> float:
        """`energy - bound`, as `Result.gap`."""
        return self.result.gap

    @property
    def relative_gap(self) -> float:
        """The gap relative to the bound: 0.01 says that no labelling is 1 % cheaper."""
        return self.result.relative_gap(self.result.gap)

    @property
    def advice(self) -> str:
        """How to continue if a limit has stopped the run; empty if nothing is left to do."""
        if self.result.status not in (Status.TIME_LIMIT, Status.WORK_LIMIT, Status.INTERRUPTED):
            return ""
        longer = f"{EFFORT.longer:.0f}"
        return f"improve({longer}) continues for up to {longer} s"

    def improve(self, time_limit: float = EFFORT.longer, **options: Any) -> Picture:
        """Continue for this many seconds, or until the gap is 0.1 %; return a new picture.

        Parameters
        ----------
        time_limit : float
            Seconds.
        **options
            Those of `solve`.
        """
        known = {"time_limit": time_limit, "warm_start": self.result, **options}
        return Picture.of(self.result.model, self.given, self.paint, known, self.scale)

    def save(self, path: str | Path) -> Path:
        """Write `image` as a PNG, or in the format of another suffix that Pillow knows."""
        target = checked_path(path)
        if target.suffix.lower() in ("", ".png"):
            write_bytes(target, [png(as_bytes(self._shown()))])
            return target
        from softmap.views.plotting import write_picture

        write_picture(self._shown(), target)
        return target

    def show(self) -> Any:
        """The picture that was given and `image` side by side: a matplotlib figure."""
        from softmap.views.plotting import pair_figure

        return pair_figure(self.given, self._shown())

    def report(self, path: str | Path = "softmap-report.html", *, title: str | None = None) -> Path:
        """Write the report page of the run, with the input image; return its path."""
        return self.result.report(path, title=title, picture=self.given)

    def _shown(self) -> NDArray[Any]:
        return self.image * self.scale

    def _sentence(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.result.status}{advice}"

    def _repr_html_(self) -> str:
        images = "".join(
            figure(image_uri(reduced(as_bytes(picture), 320)), name)
            for name, picture in (("given", self.given), ("found", self._shown()))
        )
        facts = {
            "energy": number(self.energy),
            "bound": number(self.bound),
            "gap": f"{ratio(self.gap)} ({ratio(self.relative_gap)} relative)",
        }
        return (
            f"<div><b>softmap.Picture: {headline(self.result)}</b><div>{images}</div>"
            f"<p>{self._sentence()}.</p>{html_table(facts)}</div>"
        )

    def __repr__(self) -> str:
        rows, columns = self.labels.shape[:2]
        gap = f"relative gap {self.relative_gap:.2g}"
        return f"Picture({rows} x {columns}, {gap}, {self._sentence()})"


def _shaped(labels: NDArray[np.int64], given: NDArray[Any]) -> NDArray[np.int64]:
    """Labels in the shape of the picture; of several channels where there are more of them."""
    rows, columns = given.shape[:2]
    flat = labels.reshape(-1)
    if flat.size == rows * columns:
        return flat.reshape(rows, columns)
    return flat.reshape(-1, rows, columns).transpose(1, 2, 0)


def _with_start(model: Model, given: NDArray[Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options, with labels to begin with where a large picture may have time for few passes.

    A pixel's label is the cheapest one by the mean cost around it: a common rule of thumb.
    """
    begun = any(options.get(name) is not None for name in ("labels", "warm_start"))
    if begun or model.unary.size < EFFORT.large:
        return options
    from scipy.ndimage import uniform_filter

    rows, columns = given.shape[:2]
    costs = model.unary.reshape(-1, rows, columns, int(model.num_labels[0]))
    allowed = np.isfinite(costs)
    top = float(costs[allowed].max(initial=0.0))
    size = (1, EFFORT.window, EFFORT.window, 1)
    smooth = uniform_filter(np.where(allowed, costs, top), size, mode="nearest")
    labels = np.where(allowed, smooth, np.inf).argmin(axis=-1)
    return options | {"labels": labels.reshape(-1)}


def _with_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `solve`, with a limit where the user has set none, and a bar for who watches."""
    given: dict[str, Any] = {"lp_gap": EFFORT.gap, "gap": EFFORT.gap, **options}
    limited = any(given.get(name) is not None for name in LIMITS)
    # time_limit=None asks for no limit
    if not limited and "time_limit" not in options and options.get("goal") != "optimal":
        given["time_limit"] = EFFORT.seconds
    quiet = "verbose" in options or "on_snapshot" in options
    given.setdefault("progress", interactive() and not quiet)
    return given


def pixels(given: Any, name: str = "image") -> Image:
    """Return a grey (rows, columns) or colour (rows, columns, 3) image, in 0..255.

    Floats between 0 and 1 are multiplied by 255. A path is read as an image file. An alpha channel
    is dropped.
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
        raise FormatError(f"{name}: there is no such image file", path) from error


def _typed(given: Any) -> bool:
    return isinstance(getattr(given, "dtype", None), np.dtype)
