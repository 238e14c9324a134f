"""toulbar2, by its command and by its Python package: labels, bound and time to proof.

`python -m benchmarks.peers.toulbar2 FILE SECONDS [vns]` runs the package, with `vns` its large
neighbourhoods, and prints one JSON object, so that the time limit can be enforced from outside.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Found", "by_command", "by_package"]

UNIT = {".uai": 1e-7}  # of its costs, by the kind of file: probabilities become whole numbers
_OPTIMUM = re.compile(r"Optimum: (-?[\d.]+).*? and ([\d.]+) seconds")
_GAP = re.compile(r"Optimality gap: \[(-?[\d.]+), (-?[\d.]+)\]")


@dataclass(frozen=True)
class Found:
    """What a run of toulbar2 left.

    `short` is how far its bound is below its labelling's cost, `stated` the cost that it states of
    a labelling that it has proved, in its own units.
    """

    labels: list[int]
    proved: bool
    seconds: float
    short: float = math.inf
    stated: float = math.nan


def by_command(files: list[Path], seconds: float, *options: str) -> Found | None:
    """The `toulbar2` command with its defaults or options; None if it is missing or fails."""
    if shutil.which("toulbar2") is None:
        return None
    solution = files[0].with_suffix(".solution")
    solution.unlink(missing_ok=True)
    try:
        done = subprocess.run(
            ["toulbar2", *map(str, files), f"-timer={max(1, round(seconds))}", f"-w={solution}",
             *options], capture_output=True, text=True, timeout=3 * seconds + 30, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    proved, gaps = _OPTIMUM.findall(done.stdout), _GAP.findall(done.stdout)
    labels = [int(word) for word in solution.read_text().split()] if solution.exists() else []
    if proved:
        stated, taken = map(float, proved[-1])
        return Found(labels, True, taken, 0.0, stated)
    if done.returncode != 0 and not labels and not gaps:
        return None
    short = _short(files[0], *map(float, gaps[-1])) if gaps else math.inf
    return Found(labels, False, seconds, short)


def by_package(file: Path, seconds: float, *options: str) -> Found | None:
    """The package `pytoulbar2` in a process of its own; None where it is missing or fails."""
    command = [sys.executable, "-m", __name__, str(file), str(seconds), *options]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=3 * seconds + 30, check=False
        )
        return Found(**json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, IndexError, ValueError, TypeError):
        return None


def _short(file: Path, lower: float, upper: float) -> float:
    return (upper - lower) * UNIT.get(file.suffix, 1.0)


def main() -> None:
    """Solve one file by the package."""
    import pytoulbar2

    file, seconds, vns = Path(sys.argv[1]), float(sys.argv[2]), "vns" in sys.argv[3:]
    began = time.perf_counter()
    network = pytoulbar2.CFN(verbose=-1, vns=-4 if vns else None)  # as -vns of the command
    network.Read(str(file))
    found = network.Solve(timeLimit=max(1, round(seconds)))
    taken = time.perf_counter() - began
    lower = network.GetDDualBound()
    labels, upper = (list(found[0]), float(found[1])) if found else ([], math.inf)
    proved = taken < seconds and bool(found) and not vns
    short = 0.0 if proved else _short(file, lower, upper)
    print(
        json.dumps(
            {"labels": labels, "proved": proved, "seconds": taken, "short": short, "stated": upper}
        )
    )


if __name__ == "__main__":
    main()
