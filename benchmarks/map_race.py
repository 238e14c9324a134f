"""Labellings and proofs beside toulbar2: every model of the data folder, one thread each.

`python -m benchmarks.map_race [--seconds S] [--only TEXT] [--out FILE]` (ten seconds each by
default). Needs the `toulbar2` command, as Debian ships it; energies of its labellings are computed
from the model by us. One JSON object per model goes to FILE, the table to the screen.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import softmap
from benchmarks.summary import markdown

# the table of what is known is shared with the tests
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from data import shared_data
from known import Known, known

OPENERS = {".xz": lzma.open, ".gz": gzip.open}
SAME = 1e-6  # relative difference under which two energies count as equal
UNREAD = ("wcsp_13", "wcsp_18")  # several tables for one pair: toulbar2 adds them up wrongly


@dataclass(frozen=True)
class Entry:
    """What one solver says of one model."""

    energy: float
    proved: bool
    seconds: float
    bound: float = -math.inf


@dataclass(frozen=True)
class Race:
    """Both entries of one model."""

    name: str
    variables: int
    ours: Entry
    toulbar2: Entry | None

    def better(self) -> int:
        """1 if our labelling is better, -1 if worse, 0 if equal."""
        if self.toulbar2 is None:
            return 0
        ours, theirs = self.ours.energy, self.toulbar2.energy
        if ours == theirs:
            return 0
        if not math.isfinite(ours) or not math.isfinite(theirs):
            return 1 if ours < theirs else -1
        apart = abs(ours - theirs) > SAME * max(abs(ours), abs(theirs))
        return 0 if not apart else 1 if ours < theirs else -1


def solve_ours(model: softmap.Model, seconds: float) -> Entry:
    """Our run, reading not counted."""
    began = time.perf_counter()
    result = softmap.solve(model, time_limit=seconds, threads=1)
    taken = time.perf_counter() - began
    proved = result.status in (softmap.Status.OPTIMAL, softmap.Status.GAP)
    return Entry(result.energy, proved, taken, result.bound)


def solve_theirs(case: Known, model: softmap.Model, seconds: float, folder: Path) -> Entry | None:
    """toulbar2's run with its defaults, by its own clock; None where it does not read the model."""
    command, solution = _command(case, model, folder), folder / "solution"
    solution.unlink(missing_ok=True)
    done = subprocess.run(
        ["toulbar2", *command, f"-timer={max(1, round(seconds))}", f"-w={solution}"],
        capture_output=True,
        text=True,
        timeout=5 * seconds + 60,
    )
    found = re.findall(r"Optimum: .*? and ([\d.]+) seconds", done.stdout)
    if done.returncode != 0 and not found and not solution.exists():
        return None
    energy = _energy(model, solution)
    return Entry(energy, bool(found), float(found[-1]) if found else seconds)


def _command(case: Known, model: softmap.Model, folder: Path) -> list[str]:
    """The model in a file that toulbar2 reads: the original one where it can."""
    name = case.path.name.removesuffix(".xz").removesuffix(".gz")
    target = folder / name
    rewrite = case.path.suffix in (".h5", ".dd") or case.name.startswith("uai-cost")
    if rewrite or any(word in name for word in UNREAD):
        target = target.with_suffix(".uai")
        softmap.write(model, target)
        return [str(target)]
    opener = OPENERS.get(case.path.suffix, open)
    with opener(case.path, "rb") as file:
        target.write_bytes(file.read())
    evidence = case.companion(".evid")
    return [str(target), str(evidence)] if evidence else [str(target)]


def _energy(model: softmap.Model, solution: Path) -> float:
    words = solution.read_text().split() if solution.exists() else []
    if len(words) != model.num_variables:
        return math.inf
    try:
        return float(model.energy(np.array([int(word) for word in words])))
    except (ValueError, softmap.ModelError):
        return math.inf


def race(only: str, seconds: float) -> Iterator[Race]:
    """All models whose name contains the text."""
    root = shared_data()
    if root is None:
        sys.exit("no folder of instances beside the project")
    softmap.solve(softmap.generators.random_grid(6, 6, 3), time_limit=1.0)  # loads what is lazy
    for case in known(root):
        if only not in case.name:
            continue
        model = case.read()
        with tempfile.TemporaryDirectory() as folder:
            theirs = solve_theirs(case, model, seconds, Path(folder))
        yield Race(case.name, model.num_variables, solve_ours(model, seconds), theirs)


def table(races: list[Race]) -> str:
    """The races as Markdown."""

    def cells(entry: Entry | None) -> list[str]:
        if entry is None:
            return ["–", "–"]
        return [f"{entry.energy:.8g}", f"{entry.seconds:.2f} s" if entry.proved else "open"]

    head = ["model", "variables", "energy", "proof", "bound", "toulbar2: energy", "proof"]
    rows = [
        [r.name, str(r.variables), *cells(r.ours), f"{r.ours.bound:.8g}", *cells(r.toulbar2)]
        for r in races
    ]
    return markdown(head, rows)


def summary(races: list[Race]) -> str:
    """Proofs and labellings counted."""
    signs = [r.better() for r in races]
    theirs = sum(r.toulbar2 is not None and r.toulbar2.proved for r in races)
    return (
        f"{len(races)} models; proved: ours {sum(r.ours.proved for r in races)}, "
        f"toulbar2 {theirs}; "
        f"labelling better on {signs.count(1)}, equal on {signs.count(0)}, "
        f"worse on {signs.count(-1)}"
    )


def main() -> None:
    """Race and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    races = []
    for one in race(options.only, options.seconds):
        races.append(one)
        print(one, flush=True)
        if options.out:
            lines = [json.dumps(asdict(r)) for r in races]
            options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(table(races))
    print(summary(races))


if __name__ == "__main__":
    main()
