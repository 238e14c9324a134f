"""What the safeguard of `anneal-safe` costs: passes and CPU time to a certified gap.

    python -m benchmarks.safeguard docs/theory [INSTANCE...]     writes docs/theory/safeguard.csv

One thread, runs of both methods in turn in one process, the least CPU time of three runs of each
(of one, if that takes long). No time limit, so that the passes do not depend on the machine.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.instances import INSTANCES
from softmap import core, solve
from softmap.methods.base import METHODS, Floats
from softmap.model import Model, Network
from softmap.paper.anneal_safe import AnnealSafe, AnnealSafeState

GAPS = (1e-3, 1e-4, 1e-6)
TIMES = 3
LONG = 10.0  # s, of CPU time, from which on a run is not repeated
MOST = 3000  # passes of a run
COLUMNS = ("instance", "gap", "method", "passes", "seconds", "reached", "guards", "restarts",
           "held", "stages")  # fmt: skip


class Counted(AnnealSafe):
    """`anneal-safe`, whose last state can be read after the run."""

    last: AnnealSafeState

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> AnnealSafeState:
        state = super().init(model, lam, seed, deadline)
        Counted.last = state
        return state


def measured(model: Model, method: str, gap: float) -> dict[str, Any]:
    """Run a method to a relative LP gap; return passes, CPU seconds and what the safeguard did."""
    began = time.process_time()
    result = solve(
        model, method=method, goal="lp", lp_gap=gap, gap=0.0, max_work=2 * model.m * MOST, threads=1
    )
    row: dict[str, Any] = {"method": method.removesuffix("-counted"), "gap": gap}
    row |= {"seconds": time.process_time() - began, "passes": round(result.sweeps)}
    row["reached"] = int(result.relative_gap(result.lp_gap) <= gap)
    if method == "anneal-safe-counted":
        state = Counted.last
        row["passes"] = state.passes  # without the messages of the safeguard
        row |= {name: getattr(state, name) for name in ("guards", "restarts", "held", "stages")}
    return row


def rows(names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield one row per instance, gap and method: the run of least CPU time."""
    METHODS["anneal-safe-counted"] = Counted
    for name in names or list(INSTANCES):
        model = INSTANCES[name].build()
        for gap in GAPS:
            runs: dict[str, list[dict[str, Any]]] = {"anneal": [], "anneal-safe-counted": []}
            for _ in range(TIMES):
                for method, made in runs.items():
                    made.append(measured(model, method, gap))
                if runs["anneal"][0]["seconds"] > LONG:
                    break
            for made in runs.values():
                yield {"instance": name, **min(made, key=lambda row: row["seconds"])}


def main() -> None:
    """Write the table, a line at a time."""
    path = Path(sys.argv[1]) / "safeguard.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows(sys.argv[2:]):
            row["seconds"] = f"{row['seconds']:.4g}"
            writer.writerow(row)
            file.flush()
            print(row, flush=True)


if __name__ == "__main__":
    main()
