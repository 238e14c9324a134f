"""The models of the UAI 2022 competition beside the best values of its entrants.

`python -m benchmarks.uai2022 [--seconds 10] [--workers 1] [--only TEXT] [--out FILE]`: each model
runs with one thread, `--workers` of them at a time. The entrants' values, after 20 seconds and
after an hour, are read from `more/uai2022-mpe-best.csv` in the folder of instances; they are
decadic logarithms of probabilities with one decimal. FILE holds one JSON object with the facts of
the run and a row per model; `make figures` turns it into the page and the tables.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import softmap
from benchmarks.contest import read
from benchmarks.facts import facts

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.data import shared_data

ROUNDING = 0.05 * math.log(10)  # half of the last decimal of the entrants' values, as an energy
SUFFIXES = (".uai", ".uai.xz", ".uai.gz")
Row = dict[str, Any]


def entrants(root: Path) -> dict[str, Row]:
    """The best energies of the entrants by problem; None where no entrant had a labelling."""
    with (root / "more" / "uai2022-mpe-best.csv").open(encoding="utf-8") as file:
        return {
            row["problem"]: {name: _energy(row[name]) for name in ("best20", "best3600")}
            for row in csv.DictReader(file)
        }


def _energy(text: str) -> float | None:
    return -float(text) * math.log(10) if text.strip() else None


def models(root: Path, names: dict[str, Row]) -> Iterator[tuple[str, Path]]:
    """Problem and file of every model at hand, each problem once."""
    seen = set()
    for path in sorted(root.rglob("*.uai*")):
        stem = next((path.name.removesuffix(s) for s in SUFFIXES if path.name.endswith(s)), None)
        if stem in names and stem not in seen and path.is_file():
            seen.add(stem)
            yield stem, path


def solved(problem: str, path: Path, seconds: float) -> Row:
    """One run with one thread; reading is not counted."""
    model = read(path)
    began = time.perf_counter()
    result = softmap.solve(model, time_limit=seconds, threads=1)
    return {
        "problem": problem,
        "variables": model.network.num_variables,
        "energy": result.energy,
        "bound": result.bound,
        "proved": result.status in (softmap.Status.OPTIMAL, softmap.Status.GAP),
        "seconds": time.perf_counter() - began,
    }


def compared(row: Row, best: float | None) -> int:
    """1: better than the entrants' value beyond its rounding; 0: equal within it; -1: worse."""
    if best is None:
        return 1 if math.isfinite(row["energy"]) else 0
    apart = row["energy"] - best
    return 0 if abs(apart) <= 1.01 * ROUNDING else 1 if apart < 0 else -1


def main() -> None:
    """Run the models and store the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    root = shared_data()
    if root is None:
        sys.exit("no folder of instances beside the project")
    best = entrants(root)
    chosen = [one for one in models(root, best) if options.only in one[0]]
    rows: list[Row] = []
    with ProcessPoolExecutor(options.workers) as pool:
        runs = [pool.submit(solved, *one, options.seconds) for one in chosen]
        for run in runs:
            row = run.result()
            rows.append(row | best[row["problem"]])
            print(rows[-1], flush=True)
    known = facts() | {"seconds": options.seconds, "workers": options.workers}
    if options.out:
        text = json.dumps({"facts": known, "rows": rows}, indent=1)
        options.out.write_text(text + "\n", encoding="utf-8")
    after = [compared(row, row["best3600"]) for row in rows]
    print(
        f"{len(rows)} models, {sum(row['proved'] for row in rows)} proved; beside the best after "
        f"an hour: better {after.count(1)}, equal {after.count(0)}, worse {after.count(-1)}"
    )


if __name__ == "__main__":
    main()
