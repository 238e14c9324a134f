"""The charts of runs as data, and what their drawers share: ranges and axes with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Curves = Mapping[str, NDArray[Any]]


def cost_range(traces: Iterable[Curves]) -> tuple[float, float] | None:
    """Return a range of costs for a chart, from the last three quarters of each run.

    The first rows are often far away and would compress the other rows. Return None if no cost is
    finite.
    """
    parts = [
        trace[name][len(trace[name]) // 4 :]
        for trace in traces
        for name in ("bound", "primal", "energy")
        if name in trace
    ]
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    low, high = float(values.min()), float(values.max())
    size = max(abs(low), abs(high)) or 1.0
    # costs that differ only by rounding are drawn as one level
    margin = 0.08 * (high - low) if high - low > 1e-9 * size else 1e-3 * size
    return low - margin, high + margin


@dataclass(frozen=True)
class Style:
    """How a line is drawn: by dash and mark as well as by colour, for print and colour-blindness.

    Attributes
    ----------
    colour : str
        The colour on white, as "#rrggbb".
    dash : "solid", "dash" or "dashdot"
    mark : "circle", "square" or "triangle"
    """

    colour: str
    dash: str = "solid"
    mark: str = "circle"


STYLES = {
    "energy": Style("#b2182b"),
    "primal": Style("#8c6d1f", "dash", "square"),
    "bound": Style("#2166ac", "dashdot", "triangle"),
}
METHODS = ("#1b6ca8", "#c1440e", "#2e7d32", "#7b3f99", "#8c6d1f", "#00838f", "#ad1457", "#555555")


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes
    ----------
    name : str
        Its name in the key; "" for none.
    y : float array
        Values, one for each entry of `x`.
    style : str or Style
        One of `STYLES`, or another style.
    x : float array, optional
        Values along the horizontal axis, if they are not those of the chart.
    """

    name: str
    y: NDArray[Any]
    style: str | Style
    x: NDArray[Any] | None = None

    @property
    def drawn(self) -> Style:
        """The style."""
        return STYLES[self.style] if isinstance(self.style, str) else self.style


@dataclass(frozen=True)
class Chart:
    """A chart as data; reports, notebooks, files and figures of matplotlib draw it.

    Attributes
    ----------
    lines : tuple of Line
    x : float array
        Values along the horizontal axis.
    xlabel, title : str
    window : (float, float), optional
        Range of the vertical axis; by default that of the lines.
    logs : (bool, bool)
        Whether the horizontal and the vertical axis are logarithmic.
    percent : bool
        Whether values are shown in percent where there is room for it.
    """

    lines: tuple[Line, ...]
    x: NDArray[Any]
    xlabel: str = "seconds"
    title: str = ""
    window: tuple[float, float] | None = None
    logs: tuple[bool, bool] = (False, False)
    percent: bool = False


def values_chart(trace: Curves, title: str = "") -> Chart:
    """Return the chart of energy, primal and bound over seconds."""
    lines = tuple(Line(name, np.asarray(trace[name], float), name) for name in STYLES)
    return Chart(lines, np.asarray(trace["seconds"], float), "seconds", title, cost_range([trace]))


def gaps_chart(trace: Curves, unit: float | None = None) -> Chart:
    """Return the chart of the distances of energy and primal from their bounds, at least 1e-12.

    Parameters
    ----------
    trace : mapping
        The columns of a trace.
    unit : float, optional
        What distances are divided by; the bound of each row by default.
    """
    scale = np.maximum(np.abs(trace["bound"]), np.finfo(float).tiny) if unit is None else unit
    lines = tuple(
        Line(
            label, np.maximum((trace[name] - trace.get(below, trace["bound"])) / scale, 1e-12), name
        )
        for name, below, label in (("energy", "bound", "gap"), ("primal", "lp_bound", "LP gap"))
    )
    seconds = np.asarray(trace["seconds"], float)
    return Chart(
        lines, seconds, title="gaps relative to the bound", logs=(False, True), percent=True
    )


def smoothing_chart(trace: Curves) -> Chart:
    """Return the chart of η and of the slack."""
    eta, slack = Style(STYLES["bound"].colour), Style(STYLES["energy"].colour, "dash", "square")
    lines = (Line("η", trace["eta"], eta), Line("slack", trace["slack"], slack))
    return Chart(lines, np.asarray(trace["seconds"], float), logs=(False, True))


def comparison_charts(traces: Mapping[str, Curves]) -> list[Chart]:
    """Return charts of bound (solid) and energy (dashed) of methods, by time and by work."""
    charts = []
    for column, below, least in (("seconds", "seconds", 1e-4), ("work", "work (messages)", 1.0)):
        lines = []
        for k, (method, trace) in enumerate(traces.items()):
            x, colour = np.maximum(trace[column], least), METHODS[k % len(METHODS)]
            lines.append(Line(method, np.asarray(trace["bound"], float), Style(colour), x))
            lines.append(Line("", np.asarray(trace["energy"], float), Style(colour, "dashdot"), x))
        along = np.concatenate([line.x for line in lines if line.x is not None])
        title, window = "bound (solid), energy (dashed)", cost_range(traces.values())
        charts.append(Chart(tuple(lines), along, below, title, window, (True, False)))
    return charts


@dataclass(frozen=True)
class Axis:
    """Maps values, or their logarithms, linearly to pixels."""

    low: float
    high: float
    first: float
    last: float
    log: bool = False

    @classmethod
    def of(cls, values: NDArray[Any], log: bool, first: float, last: float) -> Axis:
        """Return the axis from pixel `first` to pixel `last` that shows all finite values."""
        finite = values[np.isfinite(values) & ((values > 0) | (not log))]
        seen = np.log10(finite) if log else finite
        low, high = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
        if high - low < 1e-12 * max(1.0, abs(low)):
            low, high = low - 0.5, high + 0.5
        return cls(low, high, first, last, log)

    def places(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the pixels of values; values outside of the range are moved to its ends."""
        seen = np.log10(np.maximum(values, 1e-300)) if self.log else values
        part = np.clip((seen - self.low) / (self.high - self.low), -0.02, 1.02)
        return np.asarray(self.first + part * (self.last - self.first), dtype=float)

    def ticks(self) -> list[tuple[float, str]]:
        """Return about five pixels of round values, each with a distinct text."""
        step = _round_step((self.high - self.low) / 4)
        if self.log:
            step = max(1.0, math.ceil(step))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = np.arange(first, last + 1) * step
        exact = np.asarray(10.0**values if self.log else values, dtype=np.float64)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        form = f",.{digits}f" if np.abs(exact).max(initial=0.0) < 1e7 else ".6g"
        words = [f"{value:{'g' if self.log else form}}" for value in exact.tolist()]
        return list(zip(self.places(exact).tolist(), words, strict=True))


def _round_step(size: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least `size`."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= size * (1 - 1e-9))
