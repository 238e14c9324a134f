"""Time to a certified gap, one chart for all instances: python -m benchmarks.gap_chart ROWS OUT."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]
MARKERS = "osD^v<>P"


def times(rows: list[Row], gap: float) -> dict[str, dict[str, float]]:
    """Seconds of the fastest run that certified the gap, by method and instance."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["gap"] == gap and row["reached"]:
            mine = found.setdefault(row["method"], {})
            mine[row["instance"]] = min(row["seconds"], mine.get(row["instance"], float("inf")))
    return found


def draw(rows: list[Row], out: Path) -> None:
    """A row per instance, a mark per method that certified the gap; left is faster."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "softmap"  # the same rows make the same file
    gaps = sorted({row["gap"] for row in rows if row["gap"] > 0}, reverse=True)
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    # one panel below the other: a phone shows it at half the size, and the text stays legible
    mpl.rcParams["font.size"] = 15
    size = (7.5, 3.8 * len(gaps) + 0.6)
    figure, axes = plt.subplots(len(gaps), 1, figsize=size, sharex=True, layout="constrained")
    for axis, gap in zip(axes, gaps, strict=True):
        found = times(rows, gap)
        for k, method in enumerate(methods):
            mine = found.get(method, {})
            places = [instances.index(name) for name in mine]
            axis.plot(
                list(mine.values()),
                places,
                MARKERS[k % len(MARKERS)],
                label=method,
                alpha=0.8,
                ms=9,
            )
        axis.set(xscale="log", title=f"relative LP gap of {gap:g}")
        axis.set_yticks(range(len(instances)), instances)
        axis.invert_yaxis()
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("seconds")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    draw([json.loads(line) for line in source.read_text("utf-8").splitlines()], target)
