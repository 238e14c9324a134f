"""Charts as images, drawn with Pillow: for notebooks, and the files that commands write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from softmap.views.curves import Axis, Chart, Line

Pixels = NDArray[np.uint8]


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
DASHES = {"solid": 0, "dash": 9, "dashdot": 4}  # pixels


def side_by_side(images: Sequence[Pixels], apart: int = 0) -> Pixels:
    """Return colour images of equal height in a row, `apart` white pixels between them."""
    gap = np.full((images[0].shape[0], apart, 3), 255, dtype=np.uint8)
    parts = [part for image in images for part in (gap, image)]
    return np.concatenate(parts[1:], axis=1)


def chart_image(*charts: Chart) -> Pixels:
    """Return the image of charts in a row, (rows, columns, 3) bytes."""
    return side_by_side([_Canvas(chart).drawn() for chart in charts])


class _Canvas:
    """The drawing of one chart, `SIZES.fine` times as large as its image."""

    def __init__(self, chart: Chart) -> None:
        fine = SIZES.fine
        self._chart, self._fine = chart, fine
        self._image = Image.new("RGB", (SIZES.width * fine, SIZES.height * fine), "white")
        self._draw = ImageDraw.Draw(self._image)
        self._font = ImageFont.load_default(SIZES.text * fine)
        self._x = Axis.of(chart.x, chart.logs[0], SIZES.left, SIZES.width - SIZES.right)
        values = np.concatenate([line.y for line in chart.lines])
        shown = values if chart.window is None else np.array(chart.window)
        self._y = Axis.of(shown, chart.logs[1], SIZES.height - SIZES.bottom, SIZES.top)

    def drawn(self) -> Pixels:
        """Draw axes, curves and words."""
        for at, words in self._x.ticks():
            self._line([(at, SIZES.top), (at, SIZES.height - SIZES.bottom)], FAINT)
            self._words(at, SIZES.height - SIZES.bottom + 5, words, "ma")
        for at, words in self._y.ticks():
            self._line([(SIZES.left, at), (SIZES.width - SIZES.right, at)], FAINT)
            self._words(SIZES.left - 6, at, words, "rm")
        for line in self._chart.lines:
            self._curve(line)
        self._words(SIZES.left, 6, self._chart.title, "la")
        self._words((SIZES.left + SIZES.width) / 2, SIZES.height - 8, self._chart.xlabel, "md")
        self._legend()
        reduced = self._image.resize((SIZES.width, SIZES.height), Image.Resampling.LANCZOS)
        return np.array(reduced, dtype=np.uint8)

    def _curve(self, line: Line) -> None:
        along, style = self._chart.x if line.x is None else line.x, line.drawn
        shown = np.isfinite(along) & np.isfinite(line.y)
        x, y = self._x.places(along[shown]), self._y.places(line.y[shown])
        points = list(zip(x.tolist(), y.tolist(), strict=True))
        for a, b in pairwise(points):
            for piece in _dashes(a, b, DASHES[style.dash]):
                self._line(piece, style.colour, 2)
        # marks show where the checks were; many would cover the line
        for px, py in points[:: max(1, len(points) // 12)]:
            self._dot(px, py, style.colour)

    def _legend(self) -> None:
        named = [line for line in self._chart.lines if line.name]
        for k, line in enumerate(named):
            top = SIZES.top + 12 + 18 * k
            ends = (SIZES.width - 140.0, top), (SIZES.width - 110.0, top)
            for piece in _dashes(*ends, DASHES[line.drawn.dash]):
                self._line(piece, line.drawn.colour, 2)
            self._words(SIZES.width - 102, top, line.name, "lm")

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
