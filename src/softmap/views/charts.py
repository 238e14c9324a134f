"""Charts of runs as images, drawn with Pillow: for notebooks, and what the commands write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from softmap.views.curves import Axis, cost_range, relative_gaps

Pixels = NDArray[np.uint8]
Points = NDArray[np.float64]


@dataclass(frozen=True)
class PanelSizes:
    """Sizes of a panel, in pixels of the final image."""

    width: int = 520
    height: int = 360
    left: int = 92
    right: int = 16
    top: int = 34
    bottom: int = 48
    text: int = 13
    """Height of the letters."""
    fine: int = 3
    """Factor by which the drawing is larger before it is reduced, which smooths lines."""


SIZES = PanelSizes()
INK, FAINT = "#333333", "#dddddd"
# Curves differ in dash as well as in colour.
RUN = {"energy": ("#b2182b", 0), "primal": ("#8c6d1f", 9), "bound": ("#2166ac", 4)}
METHODS = ("#1b6ca8", "#c1440e", "#2e7d32", "#7b3f99", "#8c6d1f", "#00838f", "#ad1457", "#555555")


@dataclass(frozen=True)
class Curve:
    """A line through points; `dash` is the length of dashes in pixels, 0 for a solid line."""

    x: Points
    y: Points
    colour: str
    dash: int = 0
    label: str = ""


@dataclass(frozen=True)
class Panel:
    """Curves over one pair of axes."""

    curves: Sequence[Curve]
    title: str = ""
    below: str = ""
    """Name of the horizontal axis."""
    costs: tuple[float, float] | None = None
    """Range of the vertical axis; by default that of the curves."""
    logs: tuple[bool, bool] = field(default=(False, False))
    """Whether the horizontal and the vertical axis are logarithmic."""


def over_time(trace: Mapping[str, NDArray[Any]], title: str = "") -> Pixels:
    """Return a chart of energy, primal and bound over seconds."""
    seconds = np.asarray(trace["seconds"], dtype=float)
    curves = [
        Curve(seconds, np.asarray(trace[name], dtype=float), colour, dash, name)
        for name, (colour, dash) in RUN.items()
    ]
    return panel_image(Panel(curves, title, "seconds", cost_range([trace])))


def convergence(trace: Mapping[str, NDArray[Any]], title: str = "") -> Pixels:
    """Return the chart of `over_time`, and beside it one of the relative gaps."""
    seconds = np.asarray(trace["seconds"], dtype=float)
    gaps = [Curve(seconds, gap, *RUN[name], label) for name, label, gap in relative_gaps(trace)]
    beside = Panel(gaps, "gaps relative to the bound", "seconds", logs=(False, True))
    return side_by_side([over_time(trace, title), panel_image(beside)])


def comparison(traces: Mapping[str, Mapping[str, NDArray[Any]]]) -> Pixels:
    """Return charts of bound (solid) and energy (dashed) of methods, by time and by work."""
    panels = []
    for column, below in (("seconds", "seconds"), ("work", "work (messages)")):
        curves = []
        for k, (method, trace) in enumerate(traces.items()):
            x = np.maximum(trace[column], 1e-4 if column == "seconds" else 1.0)
            colour = METHODS[k % len(METHODS)]
            curves.append(Curve(x, np.asarray(trace["bound"], float), colour, 0, method))
            curves.append(Curve(x, np.asarray(trace["energy"], float), colour, 4))
        title = "bound (solid), energy (dashed)"
        costs = cost_range(traces.values())
        panels.append(panel_image(Panel(curves, title, below, costs, (True, False))))
    return side_by_side(panels)


def side_by_side(images: Sequence[Pixels], apart: int = 0) -> Pixels:
    """Return colour images of equal height in a row, `apart` white pixels between them."""
    gap = np.full((images[0].shape[0], apart, 3), 255, dtype=np.uint8)
    parts = [part for image in images for part in (gap, image)]
    return np.concatenate(parts[1:], axis=1)


def panel_image(panel: Panel) -> Pixels:
    """Return the image of a panel, (rows, columns, 3) bytes."""
    return _Canvas(panel).drawn()


class _Canvas:
    """The drawing of one panel, `SIZES.fine` times as large as its image."""

    def __init__(self, panel: Panel) -> None:
        fine = SIZES.fine
        self._panel, self._fine = panel, fine
        self._image = Image.new("RGB", (SIZES.width * fine, SIZES.height * fine), "white")
        self._draw = ImageDraw.Draw(self._image)
        self._font = ImageFont.load_default(SIZES.text * fine)
        columns = [np.concatenate([getattr(c, axis) for c in panel.curves]) for axis in "xy"]
        self._x = Axis.of(columns[0], panel.logs[0], SIZES.left, SIZES.width - SIZES.right)
        low_high = columns[1] if panel.costs is None else np.array(panel.costs)
        self._y = Axis.of(low_high, panel.logs[1], SIZES.height - SIZES.bottom, SIZES.top)

    def drawn(self) -> Pixels:
        """Draw axes, curves and words."""
        for at, words in self._x.ticks():
            self._line([(at, SIZES.top), (at, SIZES.height - SIZES.bottom)], FAINT)
            self._words(at, SIZES.height - SIZES.bottom + 5, words, "ma")
        for at, words in self._y.ticks():
            self._line([(SIZES.left, at), (SIZES.width - SIZES.right, at)], FAINT)
            self._words(SIZES.left - 6, at, words, "rm")
        for curve in self._panel.curves:
            self._curve(curve)
        self._words(SIZES.left, 6, self._panel.title, "la")
        self._words((SIZES.left + SIZES.width) / 2, SIZES.height - 8, self._panel.below, "md")
        self._legend()
        reduced = self._image.resize((SIZES.width, SIZES.height), Image.Resampling.LANCZOS)
        return np.array(reduced, dtype=np.uint8)

    def _curve(self, curve: Curve) -> None:
        shown = np.isfinite(curve.x) & np.isfinite(curve.y)
        x, y = self._x.places(curve.x[shown]), self._y.places(curve.y[shown])
        points = list(zip(x.tolist(), y.tolist(), strict=True))
        for a, b in pairwise(points):
            for piece in _dashes(a, b, curve.dash):
                self._line(piece, curve.colour, 2)
        # marks show where the checks were; many would cover the line
        for px, py in points[:: max(1, len(points) // 12)]:
            self._dot(px, py, curve.colour)

    def _legend(self) -> None:
        named = [curve for curve in self._panel.curves if curve.label]
        for k, curve in enumerate(named):
            top = SIZES.top + 12 + 18 * k
            ends = (SIZES.width - 140.0, top), (SIZES.width - 110.0, top)
            for piece in _dashes(*ends, curve.dash):
                self._line(piece, curve.colour, 2)
            self._words(SIZES.width - 102, top, curve.label, "lm")

    def _line(self, points: Sequence[tuple[float, float]], colour: str, width: int = 1) -> None:
        scaled = [(x * self._fine, y * self._fine) for x, y in points]
        self._draw.line(scaled, fill=colour, width=width * self._fine)

    def _dot(self, x: float, y: float, colour: str) -> None:
        box = [(v + d) * self._fine for d in (-3, 3) for v in (x, y)]
        self._draw.ellipse(box, fill=colour)

    def _words(self, x: float, y: float, words: str, anchor: str) -> None:
        place = (x * self._fine, y * self._fine)
        self._draw.text(place, words, fill=INK, font=self._font, anchor=anchor)


def _dashes(
    a: tuple[float, float], b: tuple[float, float], dash: int
) -> Iterable[list[tuple[float, float]]]:
    """Return the pieces of a line from a to b."""
    length = math.dist(a, b)
    if not dash or length <= dash:
        return [[a, b]]
    starts = np.arange(0, length, 2 * dash)
    ends = np.minimum(starts + dash, length)
    (ax, ay), (bx, by) = a, b

    def at(distance: float) -> tuple[float, float]:
        part = distance / length
        return ax + part * (bx - ax), ay + part * (by - ay)

    return [[at(start), at(end)] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
