"""Every instance of the data folder: bound, energy, best known, solved or not.

`python -m benchmarks.data_report [--seconds S] [--only TEXT]` (ten seconds each by default). Ends
with status 1 if a certificate contradicts what is known or `softmap.verify` rejects it, or if an
instance whose relaxation is known to be tight was not solved.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import softmap

# the table of what is known is shared with the tests
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.data import shared_data
from support.known import Known, known

TOLERANCE = 1e-4
HEADER = (
    "| instance | variables | edges | bound | energy | best known | gap | LP gap | seconds "
    "| verdict |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


@dataclass(frozen=True)
class Outcome:
    """What a run said of one instance."""

    case: Known
    size: tuple[int, int]
    bound: float
    energy: float
    gap: float
    lp_gap: float
    seconds: float
    verified: bool

    @property
    def solved(self) -> bool:
        """Whether the labelling is proved optimal to a relative 1e-4."""
        return self.gap <= TOLERANCE

    @property
    def contradiction(self) -> str | None:
        """What is wrong with the certificate, if anything: nothing may pass the best known."""
        if not self.verified:
            return "WRONG: softmap.verify rejects it"
        best = self.case.best
        if best is None:
            return None
        slack = 1e-4 + 1e-6 * abs(best)  # the README rounds to four decimals
        if self.bound > best + slack:
            return "WRONG: bound above the best known energy"
        if self.case.proved and self.energy < best - slack:
            return "WRONG: energy below the proved optimum"
        return None

    @property
    def verdict(self) -> str:
        """One phrase: solved, or why not."""
        if self.contradiction:
            return self.contradiction
        if self.solved:
            return "solved"
        if self.lp_gap <= TOLERANCE:
            return "LP solved; the relaxation is not tight or the rounding missed it"
        return "time was up before the LP was solved" + (" (tight)" if self.case.tight else "")


def run(case: Known, seconds: float) -> Outcome:
    """Read and solve one instance."""
    model = case.read()
    begin = time.perf_counter()
    result = softmap.solve(model, time_limit=seconds, gap=TOLERANCE, lp_gap=1e-7)
    took = time.perf_counter() - begin
    return Outcome(
        case,
        (model.network.num_variables, model.m),
        result.bound,
        result.energy,
        result.relative_gap(result.gap),
        result.relative_gap(result.lp_gap),
        took,
        softmap.verify(result).holds,
    )


def warm_up() -> None:
    """Compile the kernels of every family, outside the clock."""
    cube = np.arange(8.0).reshape(2, 2, 2)
    groups = [([[0, 1], [1, 2]], softmap.SharedTables([np.eye(2)], [0, 0]))]
    factors = [((0, 1, 2), cube), ((0, 3), np.eye(2))]
    softmap.solve(softmap.Model.from_factors([2] * 4, factors, groups=groups))
    softmap.solve(softmap.generators.potts_grid(4, 4, 3, seed=0))
    softmap.solve(softmap.generators.random_grid(4, 4, 3, seed=0))


def row(outcome: Outcome) -> str:
    best = "" if outcome.case.best is None else f"{outcome.case.best:.4f}"
    n, m = outcome.size
    return (
        f"| {outcome.case.name} | {n} | {m} | {outcome.bound:.4f} | {outcome.energy:.4f} | {best} "
        f"| {outcome.gap:.1e} | {outcome.lp_gap:.1e} | {outcome.seconds:.1f} | {outcome.verdict} |"
    )


def summary(outcomes: list[Outcome]) -> str:
    tight = [o for o in outcomes if o.case.tight]
    compared = [o for o in outcomes if o.case.best is not None]
    reached = [
        o for o in compared if o.energy <= (o.case.best or 0.0) + 1e-4 + 1e-6 * abs(o.energy)
    ]
    return (
        f"{sum(o.solved for o in outcomes)} of {len(outcomes)} solved; of {len(tight)} known to be "
        f"tight {sum(o.solved for o in tight)}; best known energy reached on {len(reached)} of "
        f"{len(compared)}; {sum(o.contradiction is not None for o in outcomes)} contradictions; "
        f"{sum(o.verified for o in outcomes)} of {len(outcomes)} results pass `softmap.verify`."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="", help="instances whose name contains this")
    options = parser.parse_args()
    root = shared_data()
    if root is None:
        print("no data folder: set SOFTMAP_DATA, or put it at ../shared/data")
        return 0
    warm_up()
    print(HEADER)
    outcomes = []
    for case in known(root):
        if options.only in case.name:
            outcomes.append(run(case, options.seconds))
            print(row(outcomes[-1]), flush=True)
    print("\n" + summary(outcomes))
    failed = any(o.contradiction or (o.case.tight and not o.solved) for o in outcomes)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
