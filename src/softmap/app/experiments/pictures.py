"""The figures of a reproduction, as PNG and SVG, reproducible byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softmap.app.experiments.entries import FORMS, OWN, SETTLED, Method
from softmap.app.experiments.plan import FIGURE1, FIGURE2, FIGURE3, FIGURE3_ETA, FIGURE4
from softmap.app.experiments.publishing import (
    compared,
    ratio_curve,
    seconds_of,
    settling,
)
from softmap.app.experiments.samples import Curve, Estimate, Evidence, gap_curve
from softmap.views.plotting import drawing_for

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
    OWN: "-",
}
OWN_COLOURS = ("#882255", "#117733", "#332288")  # of one's own methods
PRINTED, PROVED = "#0072B2", "#D55E00"  # the forms in Figure 4
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


def draw_all(evidence: Evidence, folder: Path) -> list[Path]:
    """Draw every figure of a run; return the files."""
    pictures: dict[str, tuple[float, float, Callable[[Any, Evidence], None]]] = {
        FIGURE1: (10.5, 4.3, _figure1),
        FIGURE2: (8.0, 3.9, _figure2),
        FIGURE3: (9.0, 7.6, _figure3),
        FIGURE3_ETA: (9.0, 4.6, _figure3_eta),
        FIGURE4: (10.5, 4.3, _figure4),
    }
    written = []
    for name, (width, height, draw) in pictures.items():
        if name in evidence.figures():
            paths = [folder / f"{name}.png", folder / f"{name}.svg"]
            with drawing_for(paths, width, height, STYLE) as drawing:
                draw(drawing, evidence)
            written += paths
    return written


def _band(axes: Any, x: Any, curve: Curve, label: str, **style: Any) -> None:
    """Draw a mean and shade its interval."""
    axes.plot(x, curve.mean, label=label, **style)
    axes.fill_between(x, curve.low, curve.high, color=style["color"], alpha=0.15, linewidth=0)


def _style(evidence: Evidence, figure: str, entry: Method) -> dict[str, Any]:
    if entry.form == OWN:
        own = [each for each in evidence.entries(figure) if each.form == OWN]
        return {"color": OWN_COLOURS[own.index(entry) % len(OWN_COLOURS)], "linestyle": "-"}
    return {"color": COLOURS[entry.method], "linestyle": DASHES[entry.form]}


def _legend(drawing: Any, axes: Any, columns: int) -> None:
    """Draw the legend below the panels."""
    handles, labels = axes.get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=3.2)


def _figure1(drawing: Any, evidence: Evidence) -> None:
    left, *right = drawing.subplots(1, 3, width_ratios=(1.25, 1, 1))
    n = evidence.sizes(FIGURE1)[0]
    for entry in evidence.entries(FIGURE1):
        curve = gap_curve(evidence, evidence.runs(FIGURE1, n, entry.method, entry.form))
        _band(left, curve.axis, curve, entry.label, **_style(evidence, FIGURE1, entry))
    left.set(xscale="log", yscale="log", xlabel="updates", ylabel="⟨C, Proj(μ)⟩ − LP optimum")
    left.set_title("primal gap of the current iterate")
    for axes, method in zip(right, ("emp", "smp"), strict=True):
        for entry in evidence.entries(FIGURE1):
            if method in [standard for standard, _ in compared(entry)]:
                curve = ratio_curve(evidence, FIGURE1, n, entry, method)
                _band(axes, curve.axis, curve, entry.label, **_style(evidence, FIGURE1, entry))
        _ratio_axes(axes, f"{method.upper()} against Accel-{method.upper()}")
    _legend(drawing, left, 3)


def _ratio_axes(axes: Any, title: str) -> None:
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    axes.set(xscale="log", xlabel="updates", ylabel="log-competitive ratio", title=title)
    axes.annotate(
        "above 0: the second method is ahead", (0.03, 0.02), xycoords="axes fraction", fontsize=7,
        color="0.35",
    )  # fmt: skip


def _figure2(drawing: Any, evidence: Evidence) -> None:
    entries = [entry for entry in evidence.entries(FIGURE2) if entry.form != "standard"]
    panels = drawing.subplots(1, len(entries), sharey=True)
    for axes, entry in zip(panels, entries, strict=True):
        for k, n in enumerate(evidence.sizes(FIGURE2)):
            curve = ratio_curve(evidence, FIGURE2, n, entry, "smp")
            colour, marker = SIZES[k % len(SIZES)]
            _band(
                axes, curve.axis, curve, f"n = {n}", color=colour, marker=marker, markevery=3,
                markersize=4,
            )  # fmt: skip
        _ratio_axes(axes, f"SMP against {entry.label}")
    _legend(drawing, panels[0], 3)


def _figure3(drawing: Any, evidence: Evidence) -> None:
    panels = drawing.subplots(2, 2, sharex="col", sharey="row")
    n = evidence.sizes(FIGURE3)[0]
    names = {
        "gap": "primal gap: ⟨C, Proj(μ)⟩ − LP optimum",
        "bound_gap": "bound gap: LP optimum − bound",
    }
    for row, (column, name) in enumerate(names.items()):
        for entry in evidence.entries(FIGURE3):
            runs = evidence.runs(FIGURE3, n, entry.method, entry.form)
            curve, style = gap_curve(evidence, runs, column), _style(evidence, FIGURE3, entry)
            for axes, x in zip(panels[row], (curve.axis, seconds_of(runs)), strict=True):
                _band(axes, x, curve, entry.label, **style)
        panels[row][0].set(ylabel=name)
        for axes in panels[row]:
            axes.set(xscale="log", yscale="log")
    panels[1][0].set(xlabel="work (messages)")
    panels[1][1].set(xlabel="seconds of one core")
    _legend(drawing, panels[0][0], 3)


def _figure3_eta(drawing: Any, evidence: Evidence) -> None:
    panels = drawing.subplots(1, 2)
    n, etas = evidence.sizes(FIGURE3_ETA)[0], np.array(evidence.etas(FIGURE3_ETA))
    names = {"gap": "primal gap", "bound_gap": "bound gap"}
    for axes, column in zip(panels, names, strict=True):
        for entry in evidence.entries(FIGURE3_ETA):
            ends = [
                gap_curve(
                    evidence,
                    evidence.runs(FIGURE3_ETA, n, entry.method, entry.form, eta=eta),
                    column,
                ).at(-1)
                for eta in etas.tolist()
            ]
            values = (np.array([getattr(e, k) for e in ends]) for k in ("value", "low", "high"))
            style = _style(evidence, FIGURE3_ETA, entry)
            _band(axes, etas, Curve(etas, *values), entry.label, marker=".", **style)
        if FIGURE3 in evidence.figures():
            for entry in (each for each in evidence.entries(FIGURE3) if each.steered):
                runs = evidence.runs(FIGURE3, n, entry.method, entry.form)
                level = gap_curve(evidence, runs, column).last
                axes.axhline(level, label=entry.label, color=COLOURS[entry.method], linewidth=1.2)
        axes.set(xscale="log", yscale="log", xlabel="η", ylabel=names[column])
    drawing.suptitle("after the same number of messages", fontsize=9)
    _legend(drawing, panels[0], 3)


def _figure4(drawing: Any, evidence: Evidence) -> None:
    *lengths, graphs = drawing.subplots(1, 3, width_ratios=(1, 1, 1.25))
    n = evidence.sizes(FIGURE4)[0]
    ratios = {
        (method, form, updates): ratio
        for size, method, form, updates, ratio in settling(evidence)
        if size == n
    }
    for axes, method in zip(lengths, ("smp", "emp"), strict=True):
        for form, colour in zip(FORMS, (PRINTED, PROVED), strict=True):
            for end, dash in ((SETTLED, "-"), ("", (0, (2, 1.5)))):
                at = sorted(k for m, f, k in ratios if (m, f) == (method, form + end))
                means = np.stack(
                    [evidence.means(ratios[method, form + end, k]) for k in at], axis=1
                )
                words = f"as {form}, {'settled' if end else 'alone'}"
                curve = Curve.of(np.array(at, dtype=float), means)
                _band(axes, at, curve, words, color=colour, linestyle=dash, marker=".")
        name = method.upper()
        _ratio_axes(axes, f"{name} against Accel-{name}")
        axes.set(xlabel="updates of the whole run")
    _by_graph(graphs, evidence, ratios)
    _legend(drawing, lengths[0], 4)


def _by_graph(axes: Any, evidence: Evidence, ratios: Any) -> None:
    """Draw the ratio on every graph with an interval over its trials, at the longest runs."""
    shown = (("smp", "printed", "o"), ("smp", "proved", "s"), ("emp", "proved", "^"))
    colours = (PRINTED, PROVED, "#009E73")
    for shift, ((method, form, marker), colour) in enumerate(zip(shown, colours, strict=True)):
        last = max(k for m, f, k in ratios if (m, f) == (method, form + SETTLED))
        ratio = ratios[method, form + SETTLED, last]
        ends = [Estimate.of(evidence.means(trials[None])) for trials in ratio]
        ends.sort(key=lambda end: end.value)
        for place, end in enumerate(ends):
            x = place + 1 + 0.25 * (shift - 1)
            axes.plot([x, x], [end.low, end.high], color=colour, linewidth=1.0)
            label = f"Accel-{method.upper()} as {form}, {last:,}" if place == 0 else None
            axes.plot(x, end.value, marker, color=colour, markersize=3.5, label=label)
    axes.axhline(0.0, color="0.4", linewidth=0.8)
    axes.set(xlabel="graph (sorted)", ylabel="log-competitive ratio", title="settled, by graph")
    axes.legend(fontsize=7, loc="upper left")
