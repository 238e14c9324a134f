"""One solver on one model: `python -m benchmarks.contest SOLVER FILE SECONDS` prints its answers.

Each answer is a line of JSON with energy, bound, proof and seconds; the last one counts, so that a
run that is killed keeps what it had. Reading the file is not counted.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import softmap
from benchmarks.peers.decoding import decoded
from benchmarks.peers.labels import SOLVERS, Answer, energy_of

# models whose evidence at hand (ten variables at 0) is not the competition's, which has none
EXAMPLES = ("pedigree1",)


def row_of(model: Any, answer: Answer) -> dict[str, Any]:
    """An answer with the energy of its labels by our model."""
    return {
        "variables": int(model.n),
        "energy": energy_of(model, answer.labels),
        "bound": answer.bound,
        "proved": bool(answer.proved),
        "seconds": round(answer.seconds, 3),
    }


def printed(row: dict[str, Any]) -> None:
    """Print a row; what is not finite is null."""
    finite = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
    print(json.dumps(finite), flush=True)


def evidence_of(path: Path) -> Path | None:
    """The file of evidence beside a UAI file; None if there is none or it is only an example."""
    stem = path.name.split(".uai")[0]
    if ".uai" not in path.name or stem in EXAMPLES:
        return None
    return next(iter(sorted(path.parent.glob(f"{stem}.uai.evid*"))), None)


def read(path: Path) -> Any:
    """The model of a file, the evidence beside it applied."""
    return softmap.read(path, evidence=evidence_of(path))


def main() -> None:
    """Run one solver."""
    solver, path, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    if ".dem" in path.name:
        printed(decoded(solver, path))
        return
    model = read(path)
    for answer in SOLVERS[solver](path, model, seconds):
        printed(row_of(model, answer))


if __name__ == "__main__":
    main()
