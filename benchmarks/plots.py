"""One picture per instance: distance of bound, primal and energy to the LP optimum against time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.instances import OPTIMA
from benchmarks.races import best_so_far
from softmap.relaxation.gaps import gap_unit

Row = dict[str, Any]
COLUMNS = ("bound", "primal", "energy")


def draw(rows: list[Row], instance: str, out: Path) -> None:
    """Curves where a method keeps a trace, a point per run where it does not."""
    mine = [r for r in rows if r["instance"] == instance]
    reference = _reference(mine, instance)
    if not math.isfinite(reference):
        return
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), sharex=True, sharey=True)
    for axis, column in zip(axes, COLUMNS, strict=True):
        for k, method in enumerate(dict.fromkeys(r["method"] for r in mine)):
            runs = [r for r in mine if r["method"] == method]
            _curve(axis, runs, column, reference, f"C{k}")
        axis.set(xscale="log", yscale="log", xlabel="seconds", title=column)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("relative distance to the LP optimum")
    axes[0].legend(fontsize=7)
    figure.suptitle(instance)
    figure.tight_layout()
    figure.savefig(out / f"{instance}.png", dpi=110)
    plt.close(figure)


def _reference(rows: list[Row], instance: str) -> float:
    """The middle of the tightest bracket we know."""
    known = OPTIMA.get(instance, (-math.inf, math.inf))
    low = max([known[0], *(r["bound"] for r in rows)])
    high = min([known[1], *(r["primal"] for r in rows)])
    return (low + high) / 2


def _curve(axis: Any, runs: list[Row], column: str, reference: float, colour: str) -> None:
    traced = [r for r in runs if r.get("trace")]
    scale = gap_unit(reference)
    if traced:
        trace = traced[-1]["trace"]
        seconds, values = np.asarray(trace["seconds"]), best_so_far(trace, column)
        style = "-"
    else:
        seconds = np.array([r["seconds"] for r in runs])
        values, style = np.array([r[column] for r in runs]), "o"
    distance = np.maximum(np.abs(values - reference) / scale, 1e-9)
    shown = np.isfinite(distance) & (seconds > 0)
    axis.plot(seconds[shown], distance[shown], style, color=colour, label=runs[0]["method"])
