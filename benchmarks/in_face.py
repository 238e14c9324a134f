"""In-face Frank-Wolfe steps beside `anneal`: CPU time to a certified gap.

    python -m benchmarks.in_face FILE.jsonl [INSTANCE...]      adds lines to the file

`python -m benchmarks.run --methods anneal,in-face` compares both like other solvers, once per
tolerance. Here the steps run once per model, and the clock stops while the judge looks at them, so
that nothing but the method is timed: the least time that it can need.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.certify import certify
from benchmarks.facts import facts
from benchmarks.instances import INSTANCES
from benchmarks.peers.in_face import InFace
from softmap import solve
from softmap.model import Model

NAMES = ("tree5000", "potts64", "rand128", "er1000", "er10000")
GAPS = (1e-3, 1e-4)
LIMIT = 40.0  # CPU seconds
LONGER = 1.3  # CPU time between two certificates


def steps(model: Model) -> Iterator[dict[str, Any]]:
    """Yield a row per gap: CPU time, sweeps and the certified gap when it was reached, or last."""
    method, seconds, due = InFace(model.network), 0.0, 0.05
    gaps, gap = list(GAPS), float("inf")
    while gaps and seconds < LIMIT:
        began = time.process_time()
        method.advance()
        seconds += time.process_time() - began
        if seconds < min(due, LIMIT):
            continue
        due = LONGER * seconds
        gap = certify(model, method.answer("")).lp_gap
        while gaps and gap <= gaps[0]:
            yield {"gap": gaps.pop(0), "cpu_seconds": seconds, "lp_gap": gap, "reached": True}
    for asked in gaps:
        yield {"gap": asked, "cpu_seconds": seconds, "lp_gap": gap, "reached": False}


def ours(model: Model) -> Iterator[dict[str, Any]]:
    """Yield a row per gap: CPU time of `anneal` from the model to the answer, on one thread."""
    solve(model, goal="lp", lp_gap=1e-1, gap=0.0, threads=1)
    for gap in GAPS:
        began = time.process_time()
        result = solve(model, goal="lp", lp_gap=gap, gap=0.0, threads=1)
        seconds, last = time.process_time() - began, result.relative_gap(result.lp_gap)
        yield {"gap": gap, "cpu_seconds": seconds, "lp_gap": last, "reached": last <= gap}


def main(file: str, *names: str) -> None:
    """Add the lines of the instances to a file."""
    for name in names or NAMES:
        model = INSTANCES[name].build()
        for method, rows in (("anneal", ours(model)), ("in-face", steps(model))):
            for row in rows:
                whole = {"instance": name, "method": method, **row, "date": facts()["date"]}
                with Path(file).open("a", encoding="utf-8") as out:
                    out.write(json.dumps(whole) + "\n")
                print(whole, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
