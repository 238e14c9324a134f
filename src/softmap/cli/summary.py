"""What a command says when a solver has finished."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.console import Console

from softmap import __version__
from softmap.cli.console import facts_table, number, ratio
from softmap.report.facts import arity_max
from softmap.report.words import certificate_sentences

if TYPE_CHECKING:
    from softmap.solving.result import Result

__all__ = ["NOTHING_FOUND", "as_object", "exit_code", "print_result"]

NOTHING_FOUND = 3  # the exit code when no labelling obeys the hard constraints


def as_object(result: Result) -> dict[str, Any]:
    """The fields of `--json`. JSON knows no infinity: what is not finite is null."""
    model = result.model
    return {
        "found": result.found,
        "energy": _finite(result.energy),
        "bound": _finite(result.bound),
        "primal": _finite(result.primal),
        "gap": _finite(result.gap),
        "lp_gap": _finite(result.lp_gap),
        "status": result.status.name.lower(),
        "method": result.method,
        "variables": model.num_visible,
        "edges": model.m,
        "labels_max": int(model.num_labels[: model.num_visible].max()),
        "arity_max": arity_max(model),
        "sweeps": float(result.sweeps),
        "work": int(result.work),
        "seconds": float(result.seconds),
        "setup_seconds": float(result.setup_seconds),
        "threads": int(result.threads),
        "version": __version__,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def print_result(console: Console, result: Result) -> None:
    """Numbers, then what they prove."""
    gap, lp_gap = (result.relative_gap(value) for value in (result.gap, result.lp_gap))
    console.print(
        facts_table(
            {
                "energy": number(result.energy),
                "bound": number(result.bound),
                "primal": number(result.primal),
                "gap": f"{ratio(result.gap)} ({ratio(gap)} relative)",
                "lp gap": f"{ratio(result.lp_gap)} ({ratio(lp_gap)} relative)",
                "time": f"{result.seconds:.2f} s, set-up {result.setup_seconds:.2f} s, "
                f"{result.sweeps:,.0f} sweeps",
                "stopped": str(result.status),
            }
        )
    )
    console.print(" ".join(certificate_sentences(result)))


def exit_code(result: Result) -> int:
    """The exit code for why it stopped: 130 if interrupted, 3 if no labelling was found."""
    if result.status.name == "INTERRUPTED":
        return 130
    return 0 if result.found else NOTHING_FOUND
