"""open-questions.md and its figures from their tables: python docs/theory/open_questions.py.

The tables are made by `python -m benchmarks.tightness`, `benchmarks.greedy_acceleration` and
`benchmarks.interior_points`, each with this folder as its argument.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from softmap.paper import rates

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parent / "images"
COLOURS = {"smp": "#e6550d", "emp": "#3182bd", "accel-smp": "#a63603", "accel-emp": "#08519c",
           "random": "#756bb1", "semi-greedy": "#31a354", "greedy": "#e6550d",
           "interior": "#000000", "accel-sweeps": "#31a354"}  # fmt: skip
TEXT = ("model", "method", "form")
CHAIN, GAP = 20, 0.1  # of the two families of runs on chains
TIE = 0.5

Rows = list[dict[str, Any]]


def read(name: str) -> Rows:
    """Return the rows of a table, numbers as such."""
    with (HERE / name).open(encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return [{k: v if k in TEXT else float(v) for k, v in row.items()} for row in rows]


def families(rows: Rows) -> dict[str, tuple[str, Rows]]:
    """Return the runs of each family, with the column that varies in it."""
    chains = [r for r in rows if r["model"] == "chain"]
    return {
        "chain, n": ("n", [r for r in chains if r["epsilon"] == GAP]),
        f"chain of {CHAIN}, 1/ε": ("epsilon", [r for r in chains if r["n"] == CHAIN]),
        "paper's law, n = 20, 1/ε": ("epsilon", [r for r in rows if r["model"] == "law"]),
    }


def series(rows: Rows, column: str, method: str) -> tuple[Any, Any]:
    """Return n or 1/ε, and the updates, of every run of a method that ended."""
    mine = [r for r in rows if r["method"] == method and r["updates"] > 0]
    size = np.array([r[column] if column == "n" else 1 / r[column] for r in mine])
    return size, np.array([r["updates"] for r in mine])


def exponent(size: Any, updates: Any) -> tuple[float, float]:
    """Return the slope of log(updates) in log(size) and half of its 95 % interval.

    The means at the sizes are fitted, so that the interval also says how straight the line is.
    """
    sizes = np.unique(size)
    x = np.log(sizes)
    y = np.array([np.log(updates[size == s]).mean() for s in sizes])
    slope, constant = np.polyfit(x, y, 1)
    rest = y - slope * x - constant
    spread = math.sqrt((rest**2).sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum())
    return float(slope), float(student.ppf(0.975, len(x) - 2) * spread)


def exponent_table(rows: Rows) -> str:
    """Return a table of exponents."""
    methods = list(dict.fromkeys(r["method"] for r in rows))
    lines = ["| in | " + " | ".join(f"`{m}`" for m in methods) + " |"]
    lines.append("| --- |" + " --- |" * len(methods))
    for name, (column, runs) in families(rows).items():
        if "law" in name:  # no straight line
            continue
        cells = []
        for method in methods:
            slope, half = exponent(*series(runs, column, method))
            cells.append(f"{slope:.2f} ± {half:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw_tightness(rows: Rows, path: Path) -> None:
    """Draw updates to a gap of ε by n and by 1/ε, with the lower bounds on chains."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    panels = figure.subplots(1, 3)
    for panel, (name, (column, runs)) in zip(panels, families(rows).items(), strict=True):
        for method in dict.fromkeys(r["method"] for r in runs):
            size, updates = series(runs, column, method)
            panel.plot(size, updates, "o", markersize=3, color=COLOURS[method], label=method)
        if name == "chain, n":
            for method, blocks in (("smp", "stars"), ("emp", "edges")):
                sizes = sorted({r["n"] for r in runs})
                low = [lower(int(n), runs, blocks) for n in sizes]
                panel.plot(sizes, low, "--", color=COLOURS[method], linewidth=1)
        panel.set(xscale="log", yscale="log", title=name)
        panel.xaxis.set_minor_formatter("")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("updates")
    panels[0].legend(fontsize=7)
    save(figure, path)


def lower(n: int, runs: Rows, blocks: Any) -> float:
    """Return the lower bound on the updates to an expected gap of ε on the chain."""
    eta = next(r["eta"] for r in runs if r["n"] == n)
    first = float(rates.chain_gap(0, n, eta, TIE, blocks))
    return math.log(first / GAP) / -math.log1p(-rates.chain_decay(n, blocks))


def draw_greedy(rows: Rows, path: Path) -> None:
    """Draw the dual error and the sum of the condition by updates, a column per model."""
    from matplotlib.figure import Figure

    models = list(dict.fromkeys(r["model"] for r in rows))
    figure = Figure(figsize=(2.6 * len(models), 4.6), layout="constrained")
    panels = figure.subplots(2, len(models), squeeze=False, sharex="col")
    for column, model in enumerate(models):
        mine = [r for r in rows if r["model"] == model]
        for form in dict.fromkeys(r["form"] for r in mine):
            updates, error, share = means([r for r in mine if r["form"] == form])
            panels[0][column].plot(updates, error, color=COLOURS[form], label=form)
            panels[1][column].plot(updates, share, color=COLOURS[form])
        panels[0][column].set(xscale="log", yscale="log")
        panels[0][column].set_title(model, fontsize=8)
        panels[0][column].yaxis.set_minor_formatter("")
        panels[1][column].set(xlabel="updates")
        panels[1][column].axhline(0, color="0.5", linewidth=0.6)
    panels[0][0].set_ylabel("L(λ) - L*")
    panels[1][0].set_ylabel("condition / distance")
    panels[0][0].legend(fontsize=7)
    save(figure, path)


def means(rows: Rows) -> tuple[Any, Any, Any]:
    """Return updates, and the means over trials of the error and of S_k over its scale."""
    groups: dict[float, Rows] = defaultdict(list)
    for row in rows:
        groups[row["updates"]].append(row)
    updates = sorted(groups)
    error = [np.mean([r["error"] for r in groups[k]]) for k in updates]
    share = [np.mean([r["condition"] / r["start"] for r in groups[k]]) for k in updates]
    return np.array(updates), np.maximum(error, 1e-9), np.array(share)


def greedy_table(rows: Rows) -> str:
    """Return the errors at the end, and the range of the condition, of every model and form."""
    lines = [
        "| model | n, m | updates | random | semi-greedy | greedy | greedy: S_k over distance |"
    ]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for model in dict.fromkeys(r["model"] for r in rows):
        mine = [r for r in rows if r["model"] == model]
        ends = {form: means([r for r in mine if r["form"] == form]) for form in
                ("random", "semi-greedy", "greedy")}  # fmt: skip
        share = ends["greedy"][2]
        cells = [f"{error[-1]:.2g}" for _, error, _ in ends.values()]
        n, m, last = int(mine[0]["n"]), int(mine[0]["m"]), int(ends["greedy"][0][-1])
        low, high = share.min(), share.max()
        cells = [model, f"{n}, {m}", f"{last:,}", *cells, f"{low:.2g} to {high:.2g}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw_interior(rows: Rows, path: Path) -> None:
    """Draw the error of the bound against CPU seconds, a line per graph and method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.4), layout="constrained")
    panel = figure.subplots()
    for method in dict.fromkeys(r["method"] for r in rows):
        for graph in sorted({r["graph"] for r in rows}):
            mine = [r for r in rows if r["method"] == method and r["graph"] == graph]
            errors = np.maximum([r["error"] for r in mine], 1e-8)
            label = method if graph == 0 else None
            seconds = [r["seconds"] for r in mine]
            panel.plot(seconds, errors, color=COLOURS[method], linewidth=1, label=label)
    panel.set(xscale="log", yscale="log", xlabel="CPU seconds, one thread")
    panel.set_ylabel("LP optimum - bound")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=7)
    save(figure, path)


def interior_table(rows: Rows) -> str:
    """Return the mean CPU milliseconds to an error of the bound, by method."""
    errors = (10.0, 1.0, 0.1, 0.001, 1e-5)
    methods = list(dict.fromkeys(r["method"] for r in rows))
    lines = ["| LP optimum − bound | " + " | ".join(f"`{m}`" for m in methods) + " |"]
    lines.append("| --- |" + " --- |" * len(methods))
    graphs = sorted({r["graph"] for r in rows})
    for error in errors:
        cells = []
        for method in methods:
            mine = [r for r in rows if r["method"] == method and r["error"] <= error]
            times = [[r["seconds"] for r in mine if r["graph"] == g] for g in graphs]
            reached = all(times)
            cells.append(f"{1e3 * np.mean([min(s) for s in times]):.2g}" if reached else "–")
        lines.append(f"| {error:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def save(figure: Any, path: Path) -> None:
    """Write a figure without its date, so that equal tables give equal files."""
    figure.savefig(path, dpi=110, metadata={"Software": None})


def page() -> str:
    """Return the page; the figures are written beside those of other pages."""
    tightness, greedy, interior = (read(f"{n}.csv") for n in ("tightness", "greedy", "interior"))
    draw_tightness(tightness, IMAGES / "tightness.png")
    draw_greedy(greedy, IMAGES / "greedy-acceleration.png")
    draw_interior(interior, IMAGES / "interior-points.png")
    text = (HERE / "open-questions-template.md").read_text("utf-8")
    parts = {"$exponents": exponent_table(tightness), "$greedy": greedy_table(greedy),
             "$interior": interior_table(interior)}  # fmt: skip
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


if __name__ == "__main__":
    (HERE / "open-questions.md").write_text(page(), encoding="utf-8")
