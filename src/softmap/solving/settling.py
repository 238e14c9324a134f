"""When the relaxation should make way to the stages after it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from softmap.solving.trace import StageName, Status, Trace

if TYPE_CHECKING:
    from softmap.solving.run import Run

__all__ = ["makes_way"]

SHARE = 0.4  # of the time limit that the relaxation may take where more is to follow
FIRST = 20  # passes that come before anything else: without them, later stages have little to hold
OVERTAKEN = 20  # passes after which the relaxation makes way to a search that proves more
SETTLING = 40  # passes before the relaxation may make way because its bound has settled
LITTLE = 0.01  # part of the MAP gap


def makes_way(run: Run) -> Status | None:
    """Whether later stages should have the rest of the time, as far as there is a limit."""
    limit = run.options.time_limit
    more = run.options.goal != "lp" and run.algorithm.sweeping and len(run.trace) > 0
    if not more or not limit:
        return None
    middle = (run.judge.bound + run.judge.primal) / 2  # the LP optimum is likely below it
    overtaken = middle < run.proved and math.isfinite(run.search.energy)
    enough = run.seconds > SHARE * limit and run.done >= FIRST
    done = enough or _has_settled(run.trace, overtaken=overtaken)
    return Status.RELAXED if done else None


def _has_settled(trace: Trace, *, overtaken: bool) -> bool:
    """Whether the second half of all passes gained little of what is left to prove.

    `overtaken` says that a short search has proved more than the relaxation is likely to prove.
    """
    rows = [row for row in trace if row.stage == StageName.RELAX]
    if not rows or rows[-1].sweeps < OVERTAKEN or not math.isfinite(rows[-1].energy):
        return False
    last = rows[-1]
    if overtaken or last.sweeps < SETTLING:
        return overtaken
    earlier = max((row.bound for row in rows if 2 * row.sweeps <= last.sweeps), default=0.0)
    return last.bound - earlier <= LITTLE * (last.energy - last.bound)
