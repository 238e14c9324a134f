"""What a command prints after a solver has finished."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from softmap import __version__
from softmap.app.cli.options import Exit, as_typed
from softmap.io.results import labelling_object
from softmap.model.facts import arity_max
from softmap.views.console import say

if TYPE_CHECKING:
    from rich.console import Console

    from softmap.errors import InfeasibleModel
    from softmap.run.result import Result


COSTS = ("energy", "bound", "primal", "gap", "lp_gap")


def answered(result: Result) -> bool:
    """Whether there is a labelling that costs no more than the upper bound that was given."""
    return result.found and result.energy <= result.upper_bound


def as_object(result: Result) -> dict[str, Any]:
    """The fields of `--json`; numbers that are not finite are null.

    A labelling that costs more than the upper bound that was given is no answer: it is left out.
    """
    model, found = result.model, answered(result)
    costs = {name: finite(getattr(result, name)) for name in COSTS}
    return {
        "found": found,
        **(costs if found else costs | {"energy": None, "gap": None}),
        "status": result.status.name.lower(),
        "method": result.method,
        "variables": model.n,
        "edges": model.m,
        "labels_max": int(model.num_labels.max()),
        "arity_max": arity_max(model.network),
        "sweeps": float(result.sweeps),
        "work": int(result.work),
        "seconds": float(result.seconds),
        "setup_seconds": float(result.setup_seconds),
        "threads": int(result.threads),
        "version": __version__,
        "relative_gap": finite(result.relative_gap(result.gap)) if found else None,
        "relative_lp_gap": finite(result.relative_gap(result.lp_gap)),
        "proof": result.proof.kind,
        "stated": result.proof.stated,
        "upper_bound": finite(result.upper_bound),
        "penalty": None if result.penalty is None else asdict(result.penalty),
        "failures": [failure._asdict() for failure in result.failures],
        "labels": None,
        **(labelling_object(result.labels.reshape(-1).tolist(), model) if found else {}),
    }


def infeasible_object(error: InfeasibleModel) -> dict[str, Any]:
    """The fields of `--json` if no labelling satisfies the hard constraints."""
    return {
        "found": False, **dict.fromkeys(COSTS), "status": "infeasible", "reason": str(error),
        "variable": error.variable,
        "constraints": [asdict(constraint) for constraint in error.constraints],
        "labels": None, "version": __version__,
    }  # fmt: skip


def show_infeasible(error: InfeasibleModel, *, as_json: bool) -> None:
    """Print that the model is infeasible."""
    if as_json:
        print(json.dumps(infeasible_object(error)))
    else:
        print(f"Infeasible: {error}.")


def finite(value: float) -> float | None:
    """Return a number for JSON; None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def print_result(console: Console, result: Result) -> None:
    """Print the labelling if it is small or an image, the figures and the certificate."""
    from softmap.views.answer import print_answer  # not needed for JSON
    from softmap.views.console import facts_table
    from softmap.views.words import certificate_sentences, result_facts

    if answered(result):
        print_answer(console, result)
    facts = {name: as_typed(words) for name, words in result_facts(result).items()}
    console.print(facts_table(facts))
    console.print(" ".join(certificate_sentences(result)))


def show_result(result: Result, *, as_json: bool, quiet: bool = False) -> None:
    """Print a result as text or as JSON; `quiet` prints warnings only."""
    if as_json:
        print(json.dumps(as_object(result)))
    elif not quiet:
        from softmap.views.console import results

        print_result(results(), result)
    remark(result)


def remark(result: Result) -> None:
    """Print a warning to standard error if the answer is not what the user may expect."""
    if result.status.name == "INTERRUPTED":
        say("interrupted; this is the best found so far")
    if result.status.name == "NONE_BELOW":
        say(f"no labelling costs less than the upper bound {result.upper_bound:.10g}")
    elif not result.found:
        say("no labelling that satisfies all hard constraints was found")
    elif not answered(result):
        say(f"no labelling below the upper bound {result.upper_bound:.10g} was found")


def exit_code(result: Result) -> int:
    """The exit code of a result: whether it was interrupted, and whether it is an answer."""
    if result.status.name == "INTERRUPTED":
        return Exit.INTERRUPTED
    if result.status.name == "NONE_BELOW":
        return Exit.NONE_BELOW
    return Exit.OK if answered(result) else Exit.NOTHING_FOUND
