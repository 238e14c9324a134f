"""Chart of `benchmarks.decoders --threshold`: python -m benchmarks.decoders_chart RUN.json OUT."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

STYLES = {"softmap": "o-", "BP+OSD": "s--", "matching": "^:"}


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    """Failures of each decoder, and the part of proved shots, against the error rate."""
    figure, (failures, proofs) = plt.subplots(1, 2, figsize=(10, 3.8))
    series: dict[tuple[int, str], list[tuple[float, dict[str, Any]]]] = {}
    for row in rows:
        match = re.fullmatch(r"surface d=(\d+) p=([\d.]+)", row["task"])
        assert match is not None, row["task"]
        key = int(match[1]), row["decoder"]
        series.setdefault(key, []).append((float(match[2]), row))
    distances = sorted({distance for distance, _ in series})
    for (distance, decoder), points in series.items():
        colour = f"C{distances.index(distance)}"
        shown = [(p, row["failures"] / row["shots"]) for p, row in points if row["failures"]]
        label = f"d = {distance}, {decoder}"
        failures.plot(*zip(*shown, strict=True), STYLES[decoder], color=colour, label=label)
        if decoder == "softmap":
            part = [100 * row["proved"] / row["shots"] for _, row in points]
            proofs.plot([p for p, _ in points], part, "o-", color=colour, label=f"d = {distance}")
    failures.set(title="failures per shot", yscale="log", xlabel="error rate p")
    proofs.set(title="shots proved most likely (%)", xlabel="error rate p", ylim=(0, 102))
    for axis in (failures, proofs):
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out)
    plt.close(figure)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    draw(json.loads(source.read_text())["rows"], target)
