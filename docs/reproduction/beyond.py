"""beyond.md and its pictures from their tables: python docs/reproduction/beyond.py."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
FLOOR = 1e-6  # gaps below it count as this: the LP is solved that well
EVEN = 1e-3  # log ratios of a thousandth count as none
COLOURS = {"emp": "#9ecae1", "sampled-emp": "#4292c6", "greedy-emp": "#084594",
           "smp": "#fdae6b", "sampled-smp": "#e6550d", "greedy-smp": "#7f2704",
           "accel-smp": "#a1d99b", "accel-greedy-smp": "#238b45"}  # fmt: skip

Rows = list[dict[str, Any]]


def read(name: str) -> Rows:
    """The rows of a table, numbers as such."""
    with (HERE / name).open(encoding="utf-8") as file:
        return [
            {k: v if k in ("method", "model") else float(v) for k, v in row.items()}
            for row in csv.DictReader(file)
        ]


def ratios(rows: Rows, n: int, graph: int, method: str, column: str) -> tuple[Any, Any]:
    """Sweeps, and the mean over trials of log(gap of the method / best gap of accel-sweeps)."""
    mine = [r for r in rows if r["n"] == n and r["graph"] == graph]
    ours = {r["sweeps"]: r["best"] for r in mine if r["method"] == "accel-sweeps"}
    found = defaultdict(list)
    for r in mine:
        if r["method"] == method:
            below = max(ours[r["sweeps"]], FLOOR)
            found[r["sweeps"]].append(np.log(max(r[column], FLOOR) / below))
    sweeps = np.array(sorted(found))
    return sweeps, np.array([np.mean(found[k]) for k in sweeps])


def draw_sweeps(rows: Rows, path: Path) -> None:
    """Log ratios of SMP and EMP against accel-sweeps, a panel per size, a line per graph."""
    from matplotlib.figure import Figure

    sizes = sorted({int(r["n"]) for r in rows})
    figure = Figure(figsize=(3 * len(sizes), 5), layout="constrained")
    panels = figure.subplots(2, len(sizes), squeeze=False, sharex="col")
    for j, n in enumerate(sizes):
        for i, method in enumerate(("smp", "emp")):
            panel = panels[i][j]
            for graph in sorted({int(r["graph"]) for r in rows}):
                for column, style in (("gap", "-"), ("best", ":")):
                    x, y = ratios(rows, n, graph, method, column)
                    panel.plot(x, y, style, color=f"C{graph}", linewidth=1)
            panel.axhline(0, color="0.4", linewidth=0.6)
            panel.set(xscale="log", title=f"{method.upper()}, n = {n}")
    panels[0][0].set_ylabel("log(gap / gap of accel-sweeps)")
    panels[1][0].set_ylabel("log(gap / gap of accel-sweeps)")
    figure.supxlabel("sweeps with momentum (every method has sent as many messages)", fontsize=9)
    figure.savefig(path, dpi=110)


def sweep_table(rows: Rows) -> str:
    """The least log ratio of each size, over graphs and points, against the two readings."""
    lines = [
        "| method | n | points | ahead | even | behind | least ratio | behind its best so far | "
        "least ratio to that | median ratio | last ratio |",
        "| --- |" + " --- |" * 10,
    ]
    graphs = sorted({int(r["graph"]) for r in rows})
    for method in ("smp", "emp"):
        for n in sorted({int(r["n"]) for r in rows}):
            now = [ratios(rows, n, g, method, "gap")[1] for g in graphs]
            best = np.concatenate([ratios(rows, n, g, method, "best")[1] for g in graphs])
            whole = np.concatenate(now)
            cells = (
                method.upper(), n, whole.size, int((whole > EVEN).sum()),
                int((np.abs(whole) <= EVEN).sum()), int((whole < -EVEN).sum()),
                f"{whole.min():+.3f}", int((best < -EVEN).sum()), f"{best.min():+.3f}",
                f"{np.median(whole):+.2f}", f"{np.mean([r[-1] for r in now]):+.2f}",
            )  # fmt: skip
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def grouped(rows: Rows) -> dict[str, dict[str, Rows]]:
    """Rows by model and method, in order of appearance."""
    found: dict[str, dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["model"]][row["method"]].append(row)
    return found


def averaged(rows: Rows, column: str) -> np.ndarray:
    """The mean over trials of a column at each point."""
    trials = sorted({r["trial"] for r in rows})
    return np.mean([[r[column] for r in rows if r["trial"] == t] for t in trials], axis=0)


def draw_greedy(models: dict[str, dict[str, Rows]], path: Path) -> None:
    """Dual error by updates and gap by seconds, a column per model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.9 * len(models), 7), layout="constrained")
    panels = figure.subplots(3, len(models), squeeze=False)
    for j, (name, methods) in enumerate(models.items()):
        least = min(r["value"] for rows in methods.values() for r in rows)
        panels[0][j].set_title(name, fontsize=8)
        for method, rows in methods.items():
            error = np.maximum(averaged(rows, "value") - least, 1e-9 * abs(least))
            gap = np.maximum(averaged(rows, "gap"), FLOOR)
            style = {"color": COLOURS[method], "label": method, "linewidth": 1.2}
            panels[0][j].plot(averaged(rows, "updates"), error, **style)
            panels[1][j].plot(averaged(rows, "updates"), gap, **style)
            panels[2][j].plot(averaged(rows, "seconds"), gap, **style)
        for i, label in enumerate(("updates", "updates", "seconds")):
            panels[i][j].set(xscale="log", yscale="log", xlabel=label)
            panels[i][j].tick_params(labelsize=6)
    for i, label in enumerate(("L above the least found", "primal gap", "primal gap")):
        panels[i][0].set_ylabel(label)
    panels[0][0].legend(fontsize=5)
    figure.savefig(path, dpi=110)


def greedy_table(models: dict[str, dict[str, Rows]]) -> str:
    """Dual error after three amounts of work, last gap, and time per update of each method."""
    lines = ["| model | method | L − least, 3 sweeps | 30 sweeps | 300 sweeps | gap, 30 sweeps | "
             "gap, 300 sweeps | µs per update |", "| --- | --- |" + " --- |" * 6]  # fmt: skip
    for name, methods in models.items():
        least = min(r["value"] for rows in methods.values() for r in rows)
        for method, rows in methods.items():
            work = averaged(rows, "work") / (2 * rows[0]["m"])
            at = [int(np.argmin(np.abs(np.log(work / k)))) for k in (3, 30, 300)]
            error, gap = averaged(rows, "value") - least, averaged(rows, "gap")
            pace = 1e6 * averaged(rows, "seconds")[-1] / averaged(rows, "updates")[-1]
            numbers = [*(error[k] for k in at), *(gap[k] for k in at[1:]), pace]
            cells = [name, f"`{method}`", *(f"{number:.3g}" for number in numbers)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page() -> str:
    """The page; pictures are drawn beside it."""
    sweeps, models = read("beyond-sweeps.csv"), grouped(read("beyond-greedy.csv"))
    draw_sweeps(sweeps, HERE / "beyond-sweeps.png")
    draw_greedy(models, HERE / "beyond-greedy.png")
    text = (HERE / "beyond-template.md").read_text("utf-8")
    for name, part in {"$sweeps": sweep_table(sweeps), "$greedy": greedy_table(models)}.items():
        text = text.replace(name, part)
    return text


if __name__ == "__main__":
    (HERE / "beyond.md").write_text(page(), encoding="utf-8")
