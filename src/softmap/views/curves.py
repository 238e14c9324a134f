"""Energy and bound over time as a small SVG chart, for notebooks, and what all charts share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Curves = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ChartSizes:
    """Sizes of the chart, in pixels."""

    width: int = 460
    height: int = 260
    left: int = 78
    right: int = 12
    top: int = 28
    bottom: int = 40


SIZES = ChartSizes()

# Curves differ by dash as well as by colour.
LINES = {"energy": ("#b2182b", ""), "bound": ("#1f5fa8", "7 4")}


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


def relative_gaps(trace: Curves) -> Iterator[tuple[str, str, NDArray[np.float64]]]:
    """Yield the column, the name and the values of each gap relative to the bound, at least 1e-12.

    They are the distances of energy and primal from their bounds.
    """
    scale = np.maximum(np.abs(trace["bound"]), np.finfo(float).tiny)
    for name, below, label in (("energy", "bound", "gap"), ("primal", "lp_bound", "LP gap")):
        gap = (trace[name] - trace.get(below, trace["bound"])) / scale
        yield name, label, np.maximum(gap, 1e-12)


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


def curves_svg(trace: Curves) -> str:
    """Return an SVG chart of energy and bound over seconds; empty if neither is finite."""
    costs = cost_range([{name: trace[name] for name in LINES}])
    if costs is None:
        return ""
    x = Axis(0.0, float(trace["seconds"][-1]) or 1.0, SIZES.left, SIZES.width - SIZES.right)
    y = Axis(*costs, SIZES.height - SIZES.bottom, SIZES.top)
    seconds = x.places(trace["seconds"])
    drawn = "".join(_line(seconds, y, trace[name], *ink) for name, ink in LINES.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZES.width} {SIZES.height}" '
        f'width="{SIZES.width}" font-family="system-ui, sans-serif" font-size="12">'
        f'<rect width="{SIZES.width}" height="{SIZES.height}" fill="#fff"/>'
        f"{_axes(x, y)}{_key()}{drawn}</svg>"
    )


def _line(x: NDArray[Any], axis: Axis, values: NDArray[Any], ink: str, dash: str) -> str:
    shown = np.isfinite(values)
    points = list(zip(x[shown].tolist(), axis.places(values[shown]).tolist(), strict=True))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{ink}"/>' for x, y in points[-1:]
    )
    return (
        f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="2" '
        f'stroke-dasharray="{dash}"/>{dots}'
    )


def _axes(horizontal: Axis, vertical: Axis) -> str:
    floor = SIZES.height - SIZES.bottom
    parts = []
    for x, words in horizontal.ticks():
        parts.append(_rule(x, SIZES.top, x, floor))
        parts.append(f'<text x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{words}</text>')
    for y, words in vertical.ticks():
        parts.append(_rule(SIZES.left, y, SIZES.width - SIZES.right, y))
        parts.append(f'<text x="{SIZES.left - 6}" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
    middle = (SIZES.left + SIZES.width - SIZES.right) / 2
    title = f'<text x="{middle}" y="{SIZES.height - 6}" text-anchor="middle">seconds</text>'
    return "".join(parts) + title


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _key() -> str:
    parts = []
    for k, (name, (ink, dash)) in enumerate(LINES.items()):
        x = SIZES.left + 110 * k
        parts.append(
            f'<line x1="{x}" y1="14" x2="{x + 26}" y2="14" stroke="{ink}" stroke-width="2" '
            f'stroke-dasharray="{dash}"/><text x="{x + 32}" y="18">{name}</text>'
        )
    return "".join(parts)
