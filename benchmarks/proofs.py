"""Proofs of the instances of the data folder: what writing and checking them takes.

`python -m benchmarks.proofs [--seconds S] [--only TEXT]` (ten seconds each by default). Each
instance is solved without a proof, then with one, which is checked. Ends with status 1 if a proof
is not accepted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

import softmap

# the table of what is known is shared with the tests
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.data import shared_data
from support.known import Known, known

GAPS = {"gap": 1e-4, "lp_gap": 1e-7}  # those of the data report
HEADER = (
    "| instance | bound by | nodes | seconds | with proof | MB | check | leaves | verdict |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def row(case: Known, seconds: float, folder: Path) -> tuple[str, bool]:
    """A line about an instance that was solved, and whether its proof was accepted."""
    model, path = case.read(), folder / "proof"
    began = time.perf_counter()
    plain = softmap.solve(model, time_limit=seconds, **GAPS)
    first = time.perf_counter() - began
    if plain.relative_gap(plain.gap) > GAPS["gap"]:
        return "", True
    began = time.perf_counter()
    result = softmap.solve(model, time_limit=3 * seconds, proof=path, **GAPS)
    second = time.perf_counter() - began
    began = time.perf_counter()
    report = softmap.verify(result, proof=path)
    check = time.perf_counter() - began
    said = report["proof"].numbers
    leaves = said.split(" leaves")[0].split()[-1] if "leaves" in said else ""
    cells = [
        case.name, result.proof.kind.name.lower(), f"{result.proof.nodes:,}", f"{first:.2f}",
        f"{second:.2f}", f"{path.stat().st_size / 1e6:.2f}", f"{check:.2f}", leaves,
        report["bound"].verdict.value if report.holds else said,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |", report.checked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print(HEADER)
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        for case in known(shared_data()):
            if given.only not in case.name:
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
