"""Gaps between what was found and what is proved: the one place that says what relative means."""

from __future__ import annotations

__all__ = ["Gaps", "gap_unit", "relative_gap"]


class Gaps:
    """What an energy, a bound and a primal value say together."""

    energy: float
    bound: float
    primal: float

    @property
    def gap(self) -> float:
        """`energy - bound`, at least 0; 0 proves the labelling optimal."""
        return max(0.0, self.energy - self.bound)

    @property
    def lp_gap(self) -> float:
        """`primal - bound`, at least 0; 0 proves the point optimal for the LP relaxation."""
        return max(0.0, self.primal - self.bound)

    def relative_gap(self, gap: float) -> float:
        """`gap / max(1, |bound|)`."""
        return relative_gap(gap, self.bound)


def gap_unit(bound: float) -> float:
    """`max(1, |bound|)`: the unit of relative gaps."""
    return max(1.0, abs(bound))


def relative_gap(gap: float, bound: float) -> float:
    """`gap / max(1, |bound|)`: the gap in units of the bound, or of 1 where that is small."""
    return gap / gap_unit(bound)
