"""More time, no worse answer: python -m benchmarks.doubled [--seconds 0.5 1 2 4]
[--processes P] [--each K].

Every model of `benchmarks.variants` under limits that double; a pair counts against us if the
longer run has a higher energy or a lower bound, by more than a thousandth of the gap of the
shorter one.
"""

from __future__ import annotations

import argparse
import math
from contextlib import contextmanager
from itertools import pairwise

from benchmarks.variants import PLAIN, Ran, run_all

WORSE = 1e-3  # of the gap of the shorter run


@contextmanager
def plain():
    """A run as it is."""
    yield {}


def worse(short: Ran, long: Ran) -> list[str]:
    """What is worse in the longer run."""
    gap = max(short.energy - short.bound, 1e-9 * abs(short.bound), 1e-12)
    if math.isinf(gap):
        return [] if long.energy <= short.energy else ["energy"]
    found = ["energy"] if long.energy - short.energy > WORSE * gap else []
    return [*found, *(["bound"] if short.bound - long.bound > WORSE * gap else [])]


def main() -> None:
    """Run all limits, and print the pairs that are worse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--each", type=int, default=1, help="models of each family, at most")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    runs: dict[tuple[str, float], Ran] = {}
    for seconds in given.seconds:
        found = run_all(
            {PLAIN: plain}, seconds=seconds, processes=given.processes, repeats=1, out=None,
            only=given.only, each=given.each,
        )  # fmt: skip
        runs |= {(ran.model, seconds): ran for ran in found}
    pairs = bad = 0
    for model in sorted({model for model, _ in runs}):
        for short, long in pairwise(given.seconds):
            if (model, short) in runs and (model, long) in runs:
                pairs += 1
                if what := worse(runs[model, short], runs[model, long]):
                    bad += 1
                    print(f"{model}: {short} → {long} s: {', '.join(what)}")
    print(f"{bad} of {pairs} pairs are worse")


if __name__ == "__main__":
    main()
