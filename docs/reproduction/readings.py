"""readings.md and its picture from readings.csv: python docs/reproduction/readings.py."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
AHEAD, EVEN = 0.05, 0.02  # log ratios that count as ahead, and as no difference
FAMILIES = {"emp": "EMP", "smp": "SMP"}
COLOURS = {"last": "#b2182b", "least slack": "#2166ac", "average": "#8c6d1f"}

Key = tuple[str, str, str, str, str]
Curves = dict[Key, dict[str, tuple[np.ndarray, np.ndarray]]]


def read(path: Path) -> Curves:
    """Curves by (graph, family, off, step, start), then by iterate."""
    points = defaultdict(list)
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = tuple(row[name] for name in ("graph", "family", "off", "step", "start"))
            points[key, row["iterate"]].append((int(row["updates"]), float(row["ratio"])))
    found: Curves = defaultdict(dict)
    for (key, iterate), rows in points.items():
        updates, ratios = np.array(sorted(rows)).T
        found[key][iterate] = updates, ratios
    return found


def verdict(ratios: np.ndarray) -> str:
    """What a curve shows of what the paper reports: that acceleration is ahead."""
    if ratios.min() >= -EVEN and ratios.max() >= AHEAD:
        return "ahead throughout"
    if ratios.max() >= AHEAD:
        return "ahead for a while"
    return "no difference" if np.abs(ratios).max() < AHEAD else "behind"


def draw(curves: Curves, path: Path) -> None:
    """Every reading as a small chart: a row per family and graph, a column per step and θ."""
    from matplotlib.figure import Figure

    lines = sorted({key[:3] for key in curves})
    columns = list(dict.fromkeys(key[3:] for key in curves))
    figure = Figure(figsize=(1.55 * len(columns), 1.35 * len(lines)), layout="constrained")
    axes = figure.subplots(len(lines), len(columns), squeeze=False, sharex=True)
    for i, line in enumerate(lines):
        for j, column in enumerate(columns):
            panel = axes[i][j]
            for iterate, (updates, ratios) in curves[line + column].items():
                panel.plot(updates, np.clip(ratios, -2, 2), color=COLOURS[iterate], linewidth=1)
            panel.axhline(0, color="0.5", linewidth=0.5)
            panel.set(xscale="log", ylim=(-2.1, 2.1))
            panel.tick_params(labelsize=5)
            if i == 0:
                panel.set_title(f"{column[0]}\nθ from {column[1]}", fontsize=6)
            if j == 0:
                graph, family, off = line
                panel.set_ylabel(f"{FAMILIES[family]}, {graph}\noff the block: {off}", fontsize=6)
    figure.suptitle(
        "log ratio by updates, cut at ±2; red: last iterate, blue: least slack, brown: average",
        fontsize=7,
    )
    figure.savefig(path, dpi=110)


def table(curves: Curves) -> str:
    """One line per reading whose best curve is ahead at some time; the others are counted."""
    rows = []
    for key, iterates in curves.items():
        for iterate, (_, ratios) in iterates.items():
            graph, family, off, step, start = key
            cells = (graph, FAMILIES[family], off, step, start, iterate)
            numbers = (f"{ratios.min():+.2f}", f"{ratios.max():+.2f}", f"{ratios[-1]:+.2f}")
            rows.append((verdict(ratios), float(ratios.min()), cells, numbers))
    shown = [r for r in rows if r[0] == "ahead throughout"]
    lines = [
        "| graph | method | off the block | step of v | θ from | iterate | least | most | last |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {' | '.join(cells)} | {' | '.join(n)} |" for _, _, cells, n in shown]
    return "\n".join(lines) if shown else "None is ahead throughout."


def counts(curves: Curves) -> str:
    """How many curves of each kind there are."""
    kinds = ("ahead throughout", "ahead for a while", "no difference", "behind")
    lines = [f"| | {' | '.join(kinds)} |", "| --- |" + " --- |" * len(kinds)]
    groups = defaultdict(list)
    for (graph, family, off, _, _), iterates in curves.items():
        groups[graph, family, off] += [verdict(ratios) for _, ratios in iterates.values()]
    for (graph, family, off), found in groups.items():
        name = f"{FAMILIES[family]}, {graph} graph, off the block: {off}"
        lines.append(f"| {name} | {' | '.join(str(found.count(kind)) for kind in kinds)} |")
    return "\n".join(lines)


def page(curves: Curves) -> str:
    """The whole page."""
    total = sum(len(iterates) for iterates in curves.values())
    template = (HERE / "readings-template.md").read_text("utf-8")
    parts = {"$counts": counts(curves), "$table": table(curves), "$total": str(total)}
    for name, text in parts.items():
        template = template.replace(name, text)
    return template


if __name__ == "__main__":
    stored = read(HERE / "readings.csv")
    draw(stored, HERE / "readings.png")
    (HERE / "readings.md").write_text(page(stored), encoding="utf-8")
