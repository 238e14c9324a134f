"""`memory_limit` against resident memory: the peak of a run, in a process of its own.

    python tests/faults/resident.py [--seconds 10] [FILE ...]

Without files, models of several kinds are generated. Each is solved with the smallest limit that
lets it start (the estimate of `softmap info` and 16 MiB), and without one. The table has, in MiB,
the size of the model, the estimate, the limit, and the resident memory of the model and the run at
its peak, beyond that of the program itself, with the limit and without one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

CHILD = """
import ctypes, gc, json, sys
import softmap
from softmap.run.memory import memory_needed, memory_of_run
kind, limited, seconds = sys.argv[1], sys.argv[2] == "limited", float(sys.argv[3])

def resident(name):
    for line in open("/proc/self/status"):
        if line.startswith(name):
            return int(line.split()[1]) / 1024

softmap.solve(softmap.generators.potts_grid(3, 3, 2, seed=1))  # what the program itself needs
before = resident("VmRSS")
if kind.startswith("{"):
    given = json.loads(kind)
    model = getattr(softmap.generators, given.pop("make"))(**given)
    model = model[0] if isinstance(model, tuple) else model  # with the planted labels
else:
    model = softmap.read(kind)
needed = memory_needed(model)
limit = memory_of_run(model)
gc.collect()
ctypes.CDLL(None).malloc_trim(0)  # what the reader has freed goes back to the system
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here, after the file was read
try:
    options = {"memory_limit": limit} if limited else {}
    said = softmap.solve(model, time_limit=seconds, threads=2, **options).status.name
except (softmap.NotEnoughMemory, softmap.InfeasibleModel) as error:
    said = type(error).__name__
peak = resident("VmHWM") - before
print(json.dumps([model.nbytes / 2**20, needed / 2**20, limit / 2**20, peak, said]))
"""

GENERATED = [
    {"make": "potts_grid", "rows": 100, "cols": 100, "d": 4, "seed": 1},
    {"make": "potts_grid", "rows": 300, "cols": 300, "d": 4, "seed": 2},
    {"make": "potts_grid", "rows": 60, "cols": 60, "d": 32, "seed": 3},
    {"make": "random_grid", "rows": 80, "cols": 80, "d": 6, "seed": 1},
    {"make": "stereo_grid", "rows": 60, "cols": 80, "d": 16, "seed": 1},
    {"make": "erdos_renyi", "n": 100, "d": 3, "seed": 1},
    {"make": "erdos_renyi", "n": 400, "d": 8, "seed": 2},
    {"make": "random_tree", "n": 20000, "d": 5, "seed": 1},
    {"make": "planted", "n": 3000, "d": 4, "seed": 1},
    {"make": "ragged_constrained", "n": 500, "seed": 1},
    {"make": "potts_grid", "rows": 500, "cols": 400, "d": 2, "seed": 4},
    {"make": "potts_grid", "rows": 30, "cols": 30, "d": 100, "seed": 5},
    {"make": "random_grid", "rows": 200, "cols": 150, "d": 3, "seed": 2},
    {"make": "random_grid", "rows": 20, "cols": 20, "d": 40, "seed": 3},
    {"make": "stereo_grid", "rows": 100, "cols": 120, "d": 8, "seed": 2},
    {"make": "erdos_renyi", "n": 3000, "d": 4, "seed": 3},
    {"make": "erdos_renyi", "n": 60, "d": 30, "seed": 4},
    {"make": "random_tree", "n": 500, "d": 60, "seed": 2},
    {"make": "planted", "n": 500, "d": 12, "seed": 2},
    {"make": "ragged_constrained", "n": 3000, "seed": 2},
]


def measured(kind: str, which: str, seconds: float) -> list:
    """Size of the model, estimate, limit and peak in MiB, and how the run ended."""
    command = [sys.executable, "-c", CHILD, kind, which, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return [0.0, 0.0, 0.0, 0.0, done.stderr.strip().splitlines()[-1][:60]]
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    """Print one row per model; 1 if a run with a limit took more."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--seconds", type=float, default=10.0, help="for each run")
    reader.add_argument("files", nargs="*")
    said = reader.parse_args()
    kinds = said.files or [json.dumps(one) for one in GENERATED]
    worse = 0
    print(f"{'model':36} {'size':>7} {'needs':>7} {'limit':>7} {'peak':>7} {'free':>7}  ended")
    for kind in kinds:
        name = kind[10:-1].replace('"', "") if kind.startswith("{") else Path(kind).name
        size, needed, limit, peak, ended = measured(kind, "limited", said.seconds)
        free = measured(kind, "free", said.seconds)[3]
        worse += peak > limit or not limit
        row = f"{name[:36]:36} {size:7.1f} {needed:7.1f} {limit:7.1f} {peak:7.1f} {free:7.1f}"
        print(f"{row}  {ended}", flush=True)
    print(f"{len(kinds)} models, {worse} beyond their limit")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
