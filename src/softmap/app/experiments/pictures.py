"""The figures of a reproduction, as PNG and SVG, reproducible byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softmap.app.experiments.tables import Curve, Table, curve, ratio_curve
from softmap.app.experiments.trials import FORMS, Method
from softmap.views.plotting import drawing_for

Tables = Mapping[str, Table]

# The colours of Okabe and Ito, for colour-blind readers; forms also differ in dashes.
COLOURS = {
    "emp": "#0072B2",
    "smp": "#D55E00",
    "bcd": "#009E73",
    "momentum": "#CC79A7",
    "anneal": "#000000",
    "momentum-star": "#E69F00",
    "anneal-star": "#56B4E9",
}
DASHES: dict[str, Any] = {
    "standard": "-",
    "printed": (0, (5, 2)),
    "proved": (0, (1, 1.2)),
    "fixed": "-",
    "annealed": "-",
}
SIZES = {0: ("#0072B2", "o"), 1: ("#E69F00", "s"), 2: ("#009E73", "^")}
STYLE: Any = {
    "svg.hashsalt": "softmap",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}


def draw_all(tables: Tables, folder: Path) -> list[Path]:
    """Draw every figure that the given tables allow; return the files."""
    pictures: dict[str, tuple[float, float, Callable[[Any, Tables], None]]] = {
        "figure1": (10.5, 4.3, _figure1),
        "figure2": (8.0, 3.9, _figure2),
        "figure3": (9.0, 7.6, _figure3),
        "figure3-eta": (9.0, 4.6, _figure3_eta),
    }
    written = []
    for name, (width, height, draw) in pictures.items():
        if name in tables:
            paths = [folder / f"{name}.png", folder / f"{name}.svg"]
            with drawing_for(paths, width, height, STYLE) as drawing:
                draw(drawing, tables)
            written += paths
    return written


def _band(axes: Any, x: Any, found: Curve, label: str, *, positive: bool, **style: Any) -> None:
    """Draw a mean and shade its standard deviation."""
    low, high = found.mean - found.deviation, found.mean + found.deviation
    if positive:
        low = np.maximum(low, found.mean / 10)  # a log scale needs positive values
    axes.plot(x, found.mean, label=label, **style)
    axes.fill_between(x, low, high, color=style["color"], alpha=0.13, linewidth=0)


def _style(method: str, form: str) -> dict[str, Any]:
    return {"color": COLOURS[method], "linestyle": DASHES[form]}


def _legend(drawing: Any, axes: Any, columns: int) -> None:
    """Draw the legend below the panels."""
    handles, labels = axes.get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=3.2)


def _figure1(drawing: Any, tables: Tables) -> None:
    table = tables["figure1"]
    left, *right = drawing.subplots(1, 3, width_ratios=(1.25, 1, 1))
    for method, form in table.distinct("method", "form"):
        found = curve(table.where(method=method, form=form))
        label = Method(method, form).label
        _band(left, found.updates, found, label, positive=True, **_style(method, form))
    left.set(xscale="log", yscale="log", xlabel="updates", ylabel="⟨C, Proj(μ)⟩ − LP optimum")
    left.set_title("primal gap of the current iterate")
    for axes, method in zip(right, ("emp", "smp"), strict=True):
        for form in FORMS:
            found = ratio_curve(table, method, form)
            _band(axes, found.updates, found, f"as {form}", positive=False, **_style(method, form))
        _ratio_axes(axes, f"{method.upper()} against Accel-{method.upper()}")
    _legend(drawing, left, 3)


def _ratio_axes(axes: Any, title: str) -> None:
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    axes.set(xscale="log", xlabel="updates", ylabel="log-competitive ratio", title=title)
    axes.annotate(
        "above 0: acceleration is ahead", (0.03, 0.02), xycoords="axes fraction", fontsize=7,
        color="0.35",
    )  # fmt: skip


def _figure2(drawing: Any, tables: Tables) -> None:
    table = tables["figure2"]
    panels = drawing.subplots(1, 2, sharey=True)
    for axes, form in zip(panels, FORMS, strict=True):
        for k, (n,) in enumerate(table.distinct("n")):
            found = ratio_curve(table.where(n=n), "smp", form)
            colour, marker = SIZES[k % len(SIZES)]
            _band(
                axes, found.updates, found, f"n = {n}", positive=False, color=colour,
                marker=marker, markevery=4, markersize=4,
            )  # fmt: skip
        _ratio_axes(axes, f"SMP against Accel-SMP as {form}")
    _legend(drawing, panels[0], 3)


def _figure3(drawing: Any, tables: Tables) -> None:
    table, clock = tables["figure3"], tables["figure3-seconds"]
    panels = drawing.subplots(2, 2, sharex="col", sharey="row")
    for row, (column, name) in enumerate(
        (
            ("gap", "primal gap: ⟨C, Proj(μ)⟩ − LP optimum"),
            ("bound_gap", "bound gap: LP optimum − bound"),
        )
    ):
        for method, form in table.distinct("method", "form"):
            rows = table.where(method=method, form=form)
            found = curve(rows, column)
            seconds = clock.where(method=method, form=form).by_trial("seconds").mean(axis=0)
            label, style = Method(method, form).label, _style(method, form)
            for axes, x in zip(panels[row], (found.work, seconds), strict=True):
                _band(axes, x, found, label, positive=True, **style)
        panels[row][0].set(ylabel=name)
        for axes in panels[row]:
            axes.set(xscale="log", yscale="log")
    panels[1][0].set(xlabel="work (messages)")
    panels[1][1].set(xlabel="seconds of one core")
    _legend(drawing, panels[0][0], 3)


def _figure3_eta(drawing: Any, tables: Tables) -> None:
    table = tables["figure3-eta"]
    panels = drawing.subplots(1, 2)
    names = {"gap": "primal gap", "bound_gap": "bound gap"}
    for axes, column in zip(panels, names, strict=True):
        for method, form in table.distinct("method", "form"):
            rows = table.where(method=method, form=form)
            etas = np.unique(rows["eta"])
            ends = [curve(rows.where(eta=eta), column) for eta in etas]
            mean, deviation = (
                np.array([getattr(e, k)[-1] for e in ends]) for k in ("mean", "deviation")
            )
            found = Curve(etas, etas, mean, deviation)
            label = Method(method, form).label
            _band(axes, etas, found, label, positive=True, marker=".", **_style(method, form))
        for method, form in _annealed(tables):
            level = curve(tables["figure3"].where(method=method, form=form), column).last
            axes.axhline(
                level, label=Method(method, form).label, color=COLOURS[method], linewidth=1.2
            )
        axes.set(xscale="log", yscale="log", xlabel="η", ylabel=names[column])
    drawing.suptitle("after the same number of messages", fontsize=9)
    _legend(drawing, panels[0], 3)


def _annealed(tables: Tables) -> list[tuple[str, str]]:
    if "figure3" not in tables:
        return []
    return [k for k in tables["figure3"].distinct("method", "form") if k[1] == "annealed"]
