"""Energy and bound over time as a small SVG chart, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    ticks: int = 4
    """Approximate number of ticks on each axis."""


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


def curves_svg(trace: Curves) -> str:
    """Return an SVG chart of energy and bound over seconds; empty if neither is finite."""
    costs = cost_range([{name: trace[name] for name in LINES}])
    if costs is None:
        return ""
    seconds = trace["seconds"]
    end = float(seconds[-1]) or 1.0
    drawn = "".join(_line(seconds / end, trace[name], costs, *LINES[name]) for name in LINES)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZES.width} {SIZES.height}" '
        f'width="{SIZES.width}" font-family="system-ui, sans-serif" font-size="12">'
        f'<rect width="{SIZES.width}" height="{SIZES.height}" fill="#fff"/>'
        f"{_axes(end, costs)}{_key()}{drawn}</svg>"
    )


def _x(part: float) -> float:
    return SIZES.left + part * (SIZES.width - SIZES.left - SIZES.right)


def _y(cost: float, costs: tuple[float, float]) -> float:
    inner = SIZES.height - SIZES.top - SIZES.bottom
    part = (cost - costs[0]) / (costs[1] - costs[0])
    return SIZES.top + inner * (1 - part)


def _line(
    parts: NDArray[Any], values: NDArray[Any], costs: tuple[float, float], ink: str, dash: str
) -> str:
    points = [
        (_x(part), min(max(_y(value, costs), SIZES.top), SIZES.height - SIZES.bottom))
        for part, value in zip(parts.tolist(), values.tolist(), strict=True)
        if np.isfinite(value)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{ink}"/>' for x, y in points[-1:]
    )
    return (
        f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="2" '
        f'stroke-dasharray="{dash}"/>{dots}'
    )


def _axes(end: float, costs: tuple[float, float]) -> str:
    floor = SIZES.height - SIZES.bottom
    parts = []
    for value, words in _ticks(0.0, end):
        x = _x(value / end)
        parts.append(_rule(x, SIZES.top, x, floor))
        parts.append(f'<text x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{words}</text>')
    for value, words in _ticks(*costs):
        y = _y(value, costs)
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


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers between `low` and `high`, each with a distinct text."""
    raw = (high - low) / SIZES.ticks
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= 0.999 * raw)
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    values = [k * step for k in range(first, last + 1)]
    if max(map(abs, values), default=0.0) >= 1e7:
        return [(value, f"{value:.6g}") for value in values]
    return [(value, f"{value:,.{digits}f}") for value in values]
