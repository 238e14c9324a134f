"""Convergence of bounds and energies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.plotting.figure import figure

__all__ = ["Columns", "draw_convergence", "save_comparison", "save_convergence"]

# One array per column of a trace: seconds, work, bound, primal, energy, ...
Columns = Mapping[str, NDArray[Any]]

# Told apart by dash and marker as well, for print and for eyes that see colours alike.
STYLES = {
    "energy": {"color": "#b2182b", "linestyle": "-", "marker": "o"},
    "primal": {"color": "#8c6d1f", "linestyle": "--", "marker": "s"},
    "bound": {"color": "#2166ac", "linestyle": "-.", "marker": "^"},
}


def save_convergence(trace: Columns, path: Path | str, title: str = "") -> None:
    """Energy, primal and bound against time, and the gaps between them."""
    with figure(path, 9.0, 3.6, panels=2) as (values, gaps):
        draw_convergence(trace, values, gaps)
        values.set(title=title)


def draw_convergence(trace: Columns, values: Any, gaps: Any) -> None:
    """Energy, primal and bound on one pair of axes, the gaps between them on another."""
    for name, style in STYLES.items():
        values.plot(trace["seconds"], trace[name], label=name, **_sparse(style, trace))
    values.set_ylim(*_window([trace]))
    values.set(xlabel="seconds", ylabel="cost")
    values.ticklabel_format(axis="y", useOffset=False)
    scale = np.maximum(np.abs(trace["bound"]), np.finfo(float).tiny)
    for name, label in (("energy", "gap"), ("primal", "LP gap")):
        relative = (trace[name] - trace["bound"]) / scale
        style = _sparse(STYLES[name], trace)
        gaps.plot(trace["seconds"], np.maximum(relative, 1e-12), label=label, **style)
    gaps.set(xlabel="seconds", ylabel="relative to the bound", yscale="log", title="gaps")
    for axes in (values, gaps):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)


def save_comparison(traces: Mapping[str, Columns], path: Path | str) -> None:
    """Bound (solid) and energy (dotted) of several methods, against time and against work."""
    with figure(path, 10.0, 4.2, panels=2) as axes:
        for panel, column in zip(axes, ("seconds", "work"), strict=True):
            for k, (method, trace) in enumerate(traces.items()):
                style = {"color": f"C{k}", "marker": "o^sDvP*X"[k % 8], "markersize": 4}
                style["markevery"] = max(1, len(trace["bound"]) // 12)
                x = np.maximum(trace[column], 1e-4 if column == "seconds" else 1.0)
                panel.plot(x, trace["bound"], label=method, **style)
                panel.plot(x, trace["energy"], linestyle=":", **style)
            panel.set_ylim(*_window(list(traces.values())))
            panel.ticklabel_format(axis="y", useOffset=False)
            panel.set(xlabel=column if column == "seconds" else "work (messages)", xscale="log")
            panel.grid(alpha=0.3)
        axes[0].set(ylabel="bound (solid), energy (dotted)")
        axes[0].legend(frameon=False)


def _sparse(style: Mapping[str, Any], trace: Columns) -> dict[str, Any]:
    """A marker now and then."""
    return {**style, "markersize": 4, "markevery": max(1, len(trace["bound"]) // 10)}


def _window(traces: list[Columns]) -> tuple[float, float]:
    """A range of costs that leaves the first, far-off rows out of sight."""
    bounds = [_settled(trace["bound"]) for trace in traces]
    energies = [_settled(trace["energy"]) for trace in traces]
    finite = [v[np.isfinite(v)] for v in bounds + energies]
    shown = np.concatenate([v for v in finite if v.size] or [np.zeros(1)])
    low, high = float(shown.min()), float(shown.max())
    margin = 0.08 * (high - low) or max(1.0, abs(high)) * 1e-3
    return low - margin, high + margin


def _settled(column: NDArray[Any]) -> NDArray[Any]:
    return column[min(len(column) - 1, len(column) // 4) :]
