"""What all charts of runs share: the range of costs, gaps, and axes with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
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
