"""`Picture`, the result of the functions for images, and the conversion of their input."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import softmap
from softmap import Result, Status, solve
from softmap.app.vision.preparing import (
    LEAST,
    PART,
    Build,
    Prepared,
    enlarged,
    finest,
    smoothed_labels,
)
from softmap.app.vision.source import Source
from softmap.arguments import time_limit_of
from softmap.extend import call_began, core, machine
from softmap.hints import OF_IMAGES, unexpected


@dataclass(frozen=True)
class PictureEffort:
    """The default effort of the functions for images."""

    seconds: float = 8.0
    """Time limit, in seconds."""
    gap: float = 1e-3
    """Relative tolerance of the LP and of the labelling."""
    longer: float = 60.0
    """Time limit of `Picture.improve`, in seconds."""
    large: int = 1 << 20
    """Number of unary costs from which a run starts with labels of smoothed costs."""


EFFORT = PictureEffort()
LIMITS = ("time_limit", "max_work", "updates")


@dataclass(frozen=True, eq=False)
class Picture:
    """A labelled image, and the result of the run with its certificate.

    Attributes
    ----------
    labels : int64 array (rows, columns) or (rows, columns, channels)
        One label per pixel; one per pixel and channel of a denoised colour image.
    source : Source
        The input image, with its type and range.
    result : Result
        The result of the run: energy, bound, trace.
    build : function
        Makes the model.
    scale : float
        Factor from values of `image` to grey levels of 0..255, in which it is shown and saved.
    prepared : Prepared
        The model and how its labels are painted.
    side : int
        1; or, if the time limit left no time for the model of a large image, the side of square
        blocks of pixels: the model is that of an image with one pixel for each block, and all
        pixels of a block have its label.
    """

    labels: NDArray[np.int64]
    source: Source
    result: Result
    build: Build = field(repr=False)
    scale: float
    prepared: Prepared = field(repr=False)
    side: int = 1

    @classmethod
    def of(
        cls,
        build: Build,
        source: Source,
        options: Mapping[str, Any],
        limit: core.Deadline,
        scale: float | None = None,
    ) -> Picture:
        """Solve the model of an image with the options and the deadline of `begun`.

        Parameters
        ----------
        build : function
            Makes the model.
        source : Source
            The image.
        options : mapping
            The options of `solve`.
        limit : Deadline
            The end of the time limit.
        scale : float, optional
            Factor from values of the painted image to grey levels; by default that of `source`.
        """
        rows, columns = source.shape
        prepared, side = finest(build, rows * columns, limit)
        assert prepared is not None  # no resolution is left out
        factor = source.scale if scale is None else scale
        return cls._solved(prepared, side, source, build, factor, options, limit)

    @classmethod
    def _solved(
        cls,
        prepared: Prepared,
        side: int,
        source: Source,
        build: Build,
        scale: float,
        options: Mapping[str, Any],
        limit: core.Deadline,
    ) -> Picture:
        """Solve a model, and give every pixel the label of its block."""
        shape = source.reduced(side).shape
        started = {**prepared.options, **_with_start(prepared, shape, dict(options), limit)}
        if math.isfinite(limit.end):
            started["time_limit"] = limit.left
        result = solve(prepared.model, **started)
        found = shaped(result.labels, shape)
        labels = enlarged(
            found if prepared.unit == 1 else found * prepared.unit, side, source.shape
        )
        return cls(labels, source, result, build, scale, prepared, side)

    @cached_property
    def image(self) -> NDArray[Any]:
        """The output, computed when it is first asked for.

        Segments in their mean colours or the denoised image, with the type and the range of the
        input; or disparities.
        """
        small = shaped(self.result.labels, self.source.reduced(self.side).shape)
        return self.prepared.paint(small)

    @property
    def given(self) -> NDArray[Any]:
        """The input image."""
        return self.source.given

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
        """The gap relative to the bound; 0.01: no labelling has an energy 1 % lower."""
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

        If `side` is not 1, the picture has the highest resolution for which there is time.

        Parameters
        ----------
        time_limit : float
            Time limit in seconds.
        **options
            Options of `solve`.
        """
        known, limit = begun(Picture.improve, {"time_limit": time_limit, **options})
        rows, columns = self.source.shape
        prepared, side = finest(self.build, rows * columns, limit, self.side)
        if prepared is None:
            prepared, known = self.prepared, {"warm_start": self.result, **known}
        return Picture._solved(prepared, side, self.source, self.build, self.scale, known, limit)

    def save(self, path: str | Path) -> Path:
        """Write `image` to a file, and return its path.

        Parameters
        ----------
        path : str or Path
            The file. Without a suffix it is a PNG; other suffixes are those that Pillow knows.
        """
        from softmap import plotting

        return plotting.write_picture(self._shown(), path)

    @property
    def status(self) -> Status:
        """Why the run stopped."""
        return self.result.status

    def plot(self) -> Any:
        """Return a matplotlib figure of the input image and `image` side by side."""
        from softmap import plotting

        return plotting.pair_figure(self.source.grey, self._shown())

    def show(self) -> Any:
        """Return the figure of `plot`, which notebooks display."""
        return self.plot()

    def report(self, path: str | Path = "softmap-report.html", *, title: str | None = None) -> Path:
        """Write the report page of the run, with the images, and return its path.

        Parameters
        ----------
        path : str or Path
            The file. An existing file is replaced.
        title : str, optional
            What was solved. By default the size of the image.
        """
        shown = {"picture": self.source.grey, "answer": self._shown()}
        return self.result.report(path, title=title, **shown)

    def _shown(self) -> NDArray[Any]:
        return self.image * self.scale

    def _sentence(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        blocks = f"; one label for {self.side} x {self.side} pixels" if self.side > 1 else ""
        return f"{self.result.status}{blocks}{advice}"

    def _repr_html_(self) -> str:
        from softmap import plotting

        images = {"given": self.source.grey, "found": self._shown()}
        return plotting.picture_html(self.result, images, f"{self._sentence()}.")

    def __repr__(self) -> str:
        rows, columns = self.labels.shape[:2]
        gap = f"relative gap {self.relative_gap:.2g}"
        return f"Picture({rows} x {columns}, {gap}, {self._sentence()})"


def begun(
    function: Callable[..., Picture], options: Mapping[str, Any]
) -> tuple[dict[str, Any], core.Deadline]:
    """Return the options of `solve` with defaults, and the end of the time limit, counted from now.

    Parameters
    ----------
    function : function
        The function for images. A keyword that neither it nor `solve` has raises `TypeError`.
    options : mapping
        The keywords that were given.
    """
    began = call_began()
    names = {*inspect.signature(function).parameters, *inspect.signature(softmap.solve).parameters}
    for name in options:
        if name not in names:
            raise TypeError(unexpected(function.__name__, name, names, OF_IMAGES))
    known = _with_defaults(options)
    return known, core.Deadline().at(began + time_limit_of(known.get("time_limit")))


def shaped(labels: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """Reshape labels to rows and columns, with a last axis for channels if there are several."""
    rows, columns = shape
    flat = labels.reshape(-1)
    if flat.size == rows * columns:
        return flat.reshape(rows, columns)
    return flat.reshape(-1, rows, columns).transpose(1, 2, 0)


def _with_start(
    prepared: Prepared, shape: tuple[int, int], options: dict[str, Any], limit: core.Deadline
) -> dict[str, Any]:
    """Add initial labels to the options, unless there are some.

    Those of a large image, which has time for few passes only, minimise smoothed costs.
    """
    if any(options.get(name) is not None for name in ("initial", "warm_start")):
        return options
    labels, model = prepared.labels, prepared.model
    if labels is None and model.unary.size >= EFFORT.large:
        small = shape[0] * shape[1] <= LEAST
        deadline = core.Deadline() if small else limit.within(PART * limit.left)
        labels = smoothed_labels(model.unary.reshape(*shape, -1), deadline)
    return options if labels is None else options | {"initial": labels.reshape(-1)}


def _with_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Add the default limits and, on a terminal, a progress bar to the options of `solve`."""
    given: dict[str, Any] = {"lp_gap": EFFORT.gap, "gap": EFFORT.gap, **options}
    limited = any(given.get(name) is not None for name in LIMITS)
    # an explicit time_limit=None means no limit
    if not limited and "time_limit" not in options and options.get("goal") != "optimal":
        given["time_limit"] = EFFORT.seconds
    quiet = "verbose" in options or "on_snapshot" in options
    given.setdefault("progress", machine.interactive() and not quiet)
    return given
