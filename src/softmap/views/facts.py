"""The numbers of a result as text, for terminals and notebooks."""

from __future__ import annotations

from softmap.relaxation.gaps import relative_gap
from softmap.views.console import number, ratio
from softmap.views.subject import Subject

__all__ = ["result_facts"]


def result_facts(result: Subject) -> dict[str, str]:
    """Return energy, bound, gaps and time of a result as text, by name."""
    gap, lp_gap = (relative_gap(value, result.unit) for value in (result.gap, result.lp_gap))
    return {
        "energy": number(result.energy),
        "bound": number(result.bound),
        "primal": number(result.primal),
        "gap": f"{ratio(result.gap)} ({ratio(gap)} relative)",
        "lp gap": f"{ratio(result.lp_gap)} ({ratio(lp_gap)} relative)",
        "time": f"{result.seconds:.2f} s, set-up {result.setup_seconds:.2f} s, "
        f"{result.sweeps:,.0f} sweeps",
        "stopped": str(result.status),
    }
