"""Charts of `benchmarks.wide`: python -m benchmarks.wide_chart ROWS.jsonl OUT.png."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullLocator

Row = dict[str, Any]


def draw(rows: list[Row], out: Path) -> None:
    """Cost of a pass and of a check against the number of labels, and of a run against pixels."""
    figure, (passes, checks, runs) = plt.subplots(1, 3, figsize=(13, 3.5))
    for family in dict.fromkeys(r["family"] for r in rows if r["what"] == "labels"):
        mine = [r for r in rows if r["what"] == "labels" and r["family"] == family]
        counts = [r["labels"] for r in mine]
        passes.plot(counts, [r["ns per edge and label"] for r in mine], "o-", label=family)
    judged = [r for r in rows if r["what"] == "checks"]
    counts = list(dict.fromkeys(r["labels"] for r in judged))
    for place, name in enumerate(("first η", "thirty times that")):
        ratio = [[r["propose / pass"] for r in judged if r["labels"] == d][place] for d in counts]
        checks.plot(counts, ratio, "o-", label=name)
    sized = [r for r in rows if r["what"] == "pixels"]
    for name in ("one pass", "all of the run"):
        each = [r[f"µs per pixel, {name}"] for r in sized]
        runs.plot([r["pixels"] for r in sized], each, "o-", label=name)
    passes.set(title="one pass: ns per edge and label", xscale="log", xlabel="labels")
    checks.set(title="one check, all of it ÷ one pass", xscale="log", xlabel="labels")
    runs.set(title="µs per pixel, to an LP gap of 1e-3", xscale="log", yscale="log")
    runs.set_xlabel("pixels")
    for axis in (passes, checks):
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticks([4, 16, 64, 256], ["4", "16", "64", "256"])
    passes.set_ylim(bottom=0)
    checks.set_ylim(bottom=0)
    for axis in (passes, checks, runs):
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    draw([json.loads(line) for line in source.read_text().splitlines()], target)
