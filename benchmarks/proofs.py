"""Proofs of the instances of the data folder: what writing and checking them takes.

`python -m benchmarks.proofs [--seconds S] [--only TEXT ...]` (ten seconds each by default). Each
instance is solved on one thread without a proof, then with one, which is checked. Times are CPU
seconds, so that others may use the machine. Ends with status 1 if a proof is not accepted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import softmap

# the table of what is known is shared with the tests
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.data import shared_data
from support.known import Known, known

GAPS = {"gap": 1e-4, "lp_gap": 1e-7}  # those of the data report
HEADER = (
    "| instance | bound by | nodes | run | with proof | MB | check | check / run | verdict |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def row(case: Known, seconds: float, folder: Path) -> tuple[str, bool]:
    """A line about an instance that was solved, and whether its proof was accepted."""
    model, path = case.read(), folder / "proof"
    given = {"threads": 1, "time_limit": seconds, **GAPS}
    plain, first = timed(softmap.solve, model, **given)
    if plain.relative_gap(plain.gap) > GAPS["gap"]:
        return "", True
    result, second = timed(softmap.solve, model, proof=path, **given | {"time_limit": 3 * seconds})
    report, check = timed(softmap.verify, result, proof=path)
    cells = [
        case.name, result.proof.kind, f"{result.proof.nodes:,}", f"{first:.2f}",
        f"{second:.2f}", f"{path.stat().st_size / 1e6:.2f}", f"{check:.2f}",
        f"{check / first:.1f}",
        report["bound"].verdict.value if report.holds else report["proof"].numbers,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |", report.checked


def timed(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, float]:
    """What a call returns, and its CPU time in seconds."""
    began = time.process_time()
    found = call(*args, **options)
    return found, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="+", default=[""])
    given = parser.parse_args()
    print(HEADER)
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        for case in known(shared_data()):
            if not any(text in case.name for text in given.only):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("always", softmap.ProofWarning)
                line, accepted = row(case, given.seconds, Path(folder))
            if line:
                print(line, flush=True)
            fine = fine and accepted
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
