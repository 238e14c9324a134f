"""A certificate in words: what was found, what is proved, and what is not."""

from __future__ import annotations

import math

from softmap.relaxation.gaps import relative_gap
from softmap.views.subject import Subject

__all__ = ["EXACT", "certificate_sentences"]

# Up to this relative gap, bound and energy are said to agree.
EXACT = 1e-9


def certificate_sentences(result: Subject) -> list[str]:
    """Say in a few sentences what the numbers of a result prove."""
    return [_labelling(result), _bound(result), _verdict(result), _relaxation(result)]


def _labelling(result: Subject) -> str:
    if not math.isfinite(result.energy):
        return "No labelling that obeys all hard constraints was found."
    return f"A labelling of cost {result.energy:.10g} was found."


def _bound(result: Subject) -> str:
    if not math.isfinite(result.bound):
        return "No lower bound is proved."
    least = f"No labelling costs less than {result.bound:.10g}"
    if result.proof.stated:
        return (
            f"{least}: that is stated by {_basis(result)}; softmap verify needs its proof for it."
        )
    return f"{least}: that is proved by {_basis(result)}."


def _basis(result: Subject) -> str:
    """What the bound rests on, with its size."""
    proof = result.proof
    if proof.clusters:
        return f"{proof.kind} ({len(proof.clusters):,} of them)"
    if proof.nodes:
        return f"{proof.kind} ({proof.nodes:,} {'node' if proof.nodes == 1 else 'nodes'})"
    return str(proof.kind)


def _verdict(result: Subject) -> str:
    gap = relative_gap(result.gap, result.unit)
    if not math.isfinite(result.energy):
        return "That there is none is not proved, and the labels of this result are no answer."
    if not math.isfinite(gap):
        return "How far the labelling is from the best is not known."
    if gap == 0:
        return "The two agree, so the labelling is optimal."
    if gap <= EXACT:
        return f"The two agree to {result.gap:.1g}: to that precision, the labelling is optimal."
    return (
        f"So the labelling costs at most {result.gap:.3g} more than the best one "
        f"({_percent(gap)} of the bound)."
    )


def _relaxation(result: Subject) -> str:
    gap = relative_gap(result.lp_gap, result.unit)
    if not math.isfinite(gap):
        return "The linear relaxation has no feasible point yet."
    within = f"to within {result.lp_gap:.3g} ({_percent(gap)})" if gap > EXACT else "exactly"
    sentence = f"The linear relaxation is solved {within}"
    if relative_gap(result.energy - result.primal, result.unit) > 10 * max(gap, EXACT):
        return (
            f"{sentence}, at {result.primal:.10g}: it is loose here, so that a better bound has to "
            "come from clusters or from a search."
        )
    return f"{sentence}."


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g}\u00a0%"
