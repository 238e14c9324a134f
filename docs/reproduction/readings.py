"""readings.md and its figure from the stored run: python docs/reproduction/readings.py."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from benchmarks.readings import CONTROL, FAMILIES, ITERATES, KINDS, Reading, readings

from softmap.app.experiments.samples import Bootstrap, Curve

HERE = Path(__file__).resolve().parent
AHEAD, EVEN = 0.05, 0.02  # log ratios that count as ahead, and as no difference
FLOOR = 1e-6  # the tolerance of the LP solver
CAP = 1e12  # costs of readings that diverge
COLOURS = {"last": "#b2182b", "least slack": "#2166ac", "average": "#8c6d1f"}
VERDICTS = ("ahead throughout", "ahead for a while", "no difference", "behind")


@dataclass(frozen=True)
class Line:
    """A curve: one iterate of one reading on graphs of one kind; `ratio` is [graph, point]."""

    kind: str
    reading: Reading
    iterate: str
    axis: np.ndarray
    ratio: np.ndarray

    @cached_property
    def curve(self) -> Curve:
        """The mean over the graphs, with intervals."""
        return interval_curve(self.axis, self.ratio)

    @property
    def verdict(self) -> str:
        """What the curve shows of what the paper reports: that acceleration is ahead."""
        mean = self.curve.mean
        if mean.min() >= -EVEN and mean.max() >= AHEAD:
            return VERDICTS[0]
        if mean.max() >= AHEAD:
            return VERDICTS[1]
        return VERDICTS[2] if np.abs(mean).max() < AHEAD else VERDICTS[3]


def read(folder: Path = HERE) -> list[Line]:
    """All curves, with intervals over the graphs."""
    with np.load(folder / "readings.npz") as stored:
        costs, checks = stored["costs"], stored["checks"].astype(float)
    with (folder / "readings-optima.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = []
    for k, kind in enumerate(KINDS):
        optima = np.array([float(row["optimum"]) for row in rows if row["kind"] == kind])
        gaps = np.nan_to_num(costs[k], nan=CAP, posinf=CAP) - optima[:, None, None, None]
        logs = np.log(np.clip(gaps, FLOOR, CAP))
        for number, reading in enumerate(readings()):
            for i, iterate in enumerate(ITERATES):
                plain = logs[:, FAMILIES.index(reading.family), i]
                ratio = plain - logs[:, len(FAMILIES) + number, i]
                lines.append(Line(kind, reading, iterate, checks, ratio))
    return lines


@cache
def bootstrap(graphs: int) -> Bootstrap:
    """Samples of graphs."""
    return Bootstrap(graphs, 1, draws=500)


def interval_curve(axis: np.ndarray, ratio: np.ndarray) -> Curve:
    """The mean of an array [graph, point] over the graphs, with intervals."""
    return Curve.of(axis, bootstrap(len(ratio)).means(ratio[:, None]))


def controls(lines: list[Line]) -> dict[tuple[str, str, str, str, str], Line]:
    """The curves without momentum, by kind, family, λ off the block, start of θ and iterate."""
    return {place(line): line for line in lines if line.reading.step == CONTROL}


def place(line: Line) -> tuple[str, str, str, str, str]:
    """What a curve and its control have in common."""
    reading = line.reading
    return line.kind, reading.family, reading.off, reading.start, line.iterate


def draw(lines: list[Line], path: Path) -> None:
    """Every reading as a small chart: a row per method and graph, a column per step and θ."""
    from matplotlib.figure import Figure

    heads = list(dict.fromkeys((x.reading.family, x.kind, x.reading.off) for x in lines))
    columns = list(dict.fromkeys((x.reading.step, x.reading.start) for x in lines))
    figure = Figure(figsize=(1.5 * len(columns), 1.35 * len(heads)), layout="constrained")
    axes = figure.subplots(len(heads), len(columns), squeeze=False, sharex=True)
    control = controls(lines)
    for line in lines:
        reading = line.reading
        head = reading.family, line.kind, reading.off
        column = reading.step, reading.start
        panel = axes[heads.index(head)][columns.index(column)]
        panel.plot(
            line.curve.axis, np.clip(line.curve.mean, -2, 2), color=COLOURS[line.iterate],
            linewidth=1,
        )  # fmt: skip
        if line.iterate == "last":
            low, high = (np.clip(x, -2, 2) for x in (line.curve.low, line.curve.high))
            panel.fill_between(line.curve.axis, low, high, color=COLOURS["last"], alpha=0.15)
            panel.plot(
                line.curve.axis, np.clip(control[place(line)].curve.mean, -2, 2), "k:", linewidth=1
            )
        panel.axhline(0, color="0.5", linewidth=0.5)
        panel.set(xscale="log", ylim=(-2.1, 2.1))
        panel.tick_params(labelsize=5)
    for j, (step, start) in enumerate(columns):
        axes[0][j].set_title(f"{step}\nθ from {start}", fontsize=6)
    for i, (family, kind, off) in enumerate(heads):
        axes[i][0].set_ylabel(f"{family.upper()}, {kind}\noff the block: {off}", fontsize=6)
    figure.suptitle(
        "log ratio by updates, cut at ±2; red: last iterate with its interval, blue: least slack,"
        " brown: average; dotted: the last iterate of the control, without momentum (v = 0)",
        fontsize=7,
    )
    figure.savefig(path, dpi=110)


def table(lines: list[Line]) -> str:
    """One row per curve that is ahead throughout, with the control beside it."""
    rows = [
        "| graph | method | off the block | step of v | θ from | iterate | least | most | last |"
        " last, control | difference |",
        "| --- " * 11 + "|",
    ]
    control = controls(lines)
    for line in (x for x in lines if x.verdict == VERDICTS[0]):
        reading, curve = line.reading, line.curve
        alone = control[place(line)]
        numbers = (
            f"{curve.mean.min():+.2f}", curve.at(int(curve.mean.argmax())).text(),
            curve.at(-1).text(), f"{alone.curve.last:+.2f}",
            interval_curve(line.axis, line.ratio - alone.ratio).at(-1).text(),
        )  # fmt: skip
        cells = (line.kind, reading.family.upper(), reading.off, reading.step, reading.start)
        rows.append(f"| {' | '.join((*cells, line.iterate, *numbers))} |")
    return "\n".join(rows) if len(rows) > 2 else "None is ahead throughout."


def counts(lines: list[Line]) -> str:
    """How many curves of each kind there are."""
    rows = [f"| | {' | '.join(VERDICTS)} |", "| --- |" + " --- |" * len(VERDICTS)]
    groups = defaultdict(list)
    for line in lines:
        reading = line.reading
        groups[line.kind, reading.family, reading.off].append(line.verdict)
    for (kind, family, off), seen in groups.items():
        name = f"{family.upper()}, {kind} graph, off the block: {off}"
        rows.append(f"| {name} | {' | '.join(str(seen.count(v)) for v in VERDICTS)} |")
    return "\n".join(rows)


def at(curve: Curve, updates: float) -> str:
    """A curve at a number of updates."""
    return curve.at(int(np.abs(curve.axis - updates).argmin())).text()


def share(lines: list[Line]) -> str:
    """Readings with λ off the block on random graphs: the last iterate beside the control."""
    rows = [
        "| method | step of v | at 1,000 updates | 3,000 | 10,000 | 30,000 |",
        "| --- " * 6 + "|",
    ]
    for line in lines:
        reading = line.reading
        if (line.kind, reading.off, reading.start, line.iterate) == ("random", "λ", "1", "last"):
            cells = (at(line.curve, k) for k in (1000, 3000, 10000, 30000))
            step = f"**{reading.step}**" if reading.step == CONTROL else reading.step
            rows.append(f"| {reading.family.upper()} | {step} | {' | '.join(cells)} |")
    return "\n".join(rows)


def page(lines: list[Line]) -> str:
    """The whole page."""
    template = (HERE / "readings-template.md").read_text("utf-8")
    parts = {
        "$counts": counts(lines), "$table": table(lines), "$total": str(len(lines)),
        "$share": share(lines),
    }  # fmt: skip
    for name, text in parts.items():
        template = template.replace(name, text)
    return template


def main() -> None:
    """Write the page and its figure beside the stored run."""
    lines = read()
    draw(lines, HERE / "readings.png")
    (HERE / "readings.md").write_text(page(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
