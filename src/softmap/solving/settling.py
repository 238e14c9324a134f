"""When the relaxation should make way to the stages after it."""

from __future__ import annotations

import math

from softmap.solving.trace import StageName, Trace

__all__ = ["has_settled"]

OVERTAKEN = 20  # passes after which the relaxation makes way to a search that proves more
SETTLING = 40  # passes before the relaxation may make way because its bound has settled
LITTLE = 0.01  # part of the MAP gap


def has_settled(trace: Trace, *, overtaken: bool) -> bool:
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
