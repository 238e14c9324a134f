"""What a command says when a solver has finished."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from softmap import __version__
from softmap.model.facts import arity_max
from softmap.views.streams import say

if TYPE_CHECKING:
    from rich.console import Console

    from softmap.solving.result import Result

__all__ = ["NOTHING_FOUND", "as_object", "exit_code", "print_result", "remark", "show_result"]

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
        "relative_gap": _finite(result.relative_gap(result.gap)),
        "relative_lp_gap": _finite(result.relative_gap(result.lp_gap)),
        "proof": result.proof.kind.name.lower(),
        "stated": result.proof.stated,
        "labels": result.labels.reshape(-1).tolist() if result.found else None,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def print_result(console: Console, result: Result) -> None:
    """The labelling if it is small or an image, the numbers, and what they prove."""
    from softmap.views.answer import print_answer  # JSON needs no words
    from softmap.views.console import facts_table
    from softmap.views.facts import result_facts
    from softmap.views.words import certificate_sentences

    print_answer(console, result)
    console.print(facts_table(result_facts(result)))
    console.print(" ".join(certificate_sentences(result)))


def show_result(result: Result, *, as_json: bool, quiet: bool = False) -> None:
    """Print a result for people or for scripts; `quiet`: only what must not be missed."""
    if as_json:
        print(json.dumps(as_object(result)))
    elif not quiet:
        from softmap.views.console import results

        print_result(results(), result)
    remark(result)


def remark(result: Result) -> None:
    """Say on standard error what a reader of the output alone might miss."""
    if result.status.name == "INTERRUPTED":
        say("interrupted; this is the best found so far")
    if not result.found:
        say("no labelling that obeys all hard constraints was found")


def exit_code(result: Result) -> int:
    """The exit code for why it stopped: 130 if interrupted, 3 if no labelling was found."""
    if result.status.name == "INTERRUPTED":
        return 130
    return 0 if result.found else NOTHING_FOUND
