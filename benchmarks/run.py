"""softmap beside its peers: `python -m benchmarks.run [--instances a,b] [--methods c,d]`.

Writes results.jsonl (one line per run), a table and one plot per instance. Our own methods run
first; a peer that has not reached a gap in PATIENCE times our time is not waited for any longer.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import plots, summary
from benchmarks.instances import INSTANCES, ROOT
from benchmarks.peers import PEERS, available
from benchmarks.runner import Limits, attempts, run_task
from softmap.model import Model

PATIENCE = 60.0
LEAST = 10.0  # seconds every peer gets
LARGEST_LP = 5_000_000  # columns: beyond it the general LP solvers are not tried
RACERS = ("anneal", "anneal-star", "trws")


@dataclass
class Session:
    """The options of a run and the rows so far."""

    methods: list[str]
    gaps: list[float]
    limits: Limits
    out: Path
    race_seconds: float
    rows: list[dict[str, Any]] = field(default_factory=list)

    def record(self, row: dict[str, Any]) -> None:
        """Store a row at once, so that nothing is lost when a run is cut short."""
        self.rows.append(row)
        with (self.out / "results.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(summary.line(row), flush=True)

    def patience(self, instance: str, method: str, gap: float) -> Limits:
        """Our own methods get the whole limit, peers a multiple of our time."""
        ours = summary.fastest(self.rows, instance, gap, "ours")
        if PEERS[method].kind == "ours" or ours is None:
            return self.limits
        seconds = min(self.limits.time_limit, max(LEAST, PATIENCE * ours["seconds"]))
        return Limits(seconds, self.limits.threads)


def bench_instance(session: Session, name: str) -> None:
    """All methods at all gaps, then the race of bounds and energies."""
    model = INSTANCES[name].build()
    for gap in session.gaps:
        for method in session.methods:
            for row in _rows(session, name, model, method, gap):
                session.record(row)
    for method in RACERS:
        if method in session.methods and session.race_seconds > 0:
            session.record(_race(session, name, model, method))


def _rows(
    session: Session, name: str, model: Model, method: str, gap: float
) -> Iterator[dict[str, Any]]:
    reason = _unfit(model, method)
    if reason:
        blank = dict.fromkeys(("seconds", "primal", "energy", "lp_gap", "map_gap"), math.inf)
        yield blank | {
            "instance": name,
            "method": method,
            "gap": gap,
            "bound": -math.inf,
            "status": reason,
            "reached": False,
        }
    else:
        yield from attempts(name, model, method, gap, session.patience(name, method, gap))


def _unfit(model: Model, method: str) -> str | None:
    columns = int(model.network.node_offset[-1] + model.network.edge_offset[-1])
    if not available(method):
        return f"{PEERS[method].needs} is not installed"
    if PEERS[method].kind == "lp" and columns > LARGEST_LP:
        return f"not tried: an LP of {columns:,} columns"
    return None


def _race(session: Session, name: str, model: Model, method: str) -> dict[str, Any]:
    """Run for a fixed time, whatever the gap, for the curves against time."""
    task = {
        "instance": name,
        "fingerprint": model.fingerprint(),
        "method": method,
        "gap": 0.0,
        "tolerance": 0.0,
        "time_limit": session.race_seconds,
        "threads": session.limits.threads,
    }
    return task | run_task(task, model) | {"reached": False}


def arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", default=",".join(INSTANCES), help="names, comma between")
    parser.add_argument("--methods", default=",".join(PEERS), help="names, comma between")
    parser.add_argument("--gap", default="1e-3,1e-4,1e-6", help="relative LP gaps to certify")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--time-limit", type=float, default=60.0, help="most seconds for one run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--race-seconds", type=float, default=5.0, help="0: no race of the bounds")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for; table and plots at the end."""
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.jsonl").unlink(missing_ok=True)
    session = Session(
        methods=options.methods.split(","),
        gaps=[float(gap) for gap in options.gap.split(",")],
        limits=Limits(options.time_limit, options.threads),
        out=options.out,
        race_seconds=options.race_seconds,
    )
    for name in options.instances.split(","):
        bench_instance(session, name)
        plots.draw(session.rows, name, session.out)
    text = summary.tables(session.rows)
    (options.out / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
