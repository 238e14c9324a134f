"""A result in words: its numbers as text, and its certificate in sentences."""

from __future__ import annotations

import math

from softmap.extend import PROVED, relative_gap
from softmap.views.console import amount, number, ratio
from softmap.views.subject import Subject


def result_facts(result: Subject) -> dict[str, str]:
    """Return energy, bound, gaps and time of a result as text, by name."""
    gap, lp_gap = (relative_gap(value, result.gap_unit) for value in (result.gap, result.lp_gap))
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


# Below this relative gap, a title states the number of equal digits instead of a percentage.
TINY = 1e-6


def headline(result: Subject) -> str:
    """Return a title: the quality of the labelling and the kind of its proof."""
    gap = relative_gap(result.gap, result.gap_unit)
    how = f"{'stated' if result.proof.stated else 'proved'} by {result.proof.text}"
    if getattr(result.status, "name", "") == "NONE_BELOW":
        return f"no labelling below the upper bound {result.upper_bound:.10g}, {how}"
    if not math.isfinite(result.energy):
        return "no labelling found that satisfies the hard constraints"
    if not math.isfinite(gap):
        return "a labelling without a lower bound"
    if gap <= PROVED:
        return f"optimal, {how}"
    if gap < TINY:
        return f"optimal to {math.floor(-math.log10(gap))} digits, {how}"
    return f"within {percent(gap)} of the optimum, {how}"


def standing(result: Subject) -> str:
    """Whether `softmap verify` can check the bound from the result alone, or needs its proof."""
    return "stated" if result.proof.stated else "to be checked by softmap verify"


def certificate_sentences(result: Subject) -> list[str]:
    """Return the sentences that say what a result proves."""
    said = [_labelling(result), _penalty(result), _bound(result), _cutoff(result)]
    said += [_verdict(result), _relaxation(result)]
    return [sentence for sentence in said if sentence]


def _labelling(result: Subject) -> str:
    if not math.isfinite(result.energy):
        return "No labelling that satisfies all hard constraints was found."
    return f"A labelling of cost {result.energy:.10g} was found."


def _penalty(result: Subject) -> str:
    """Return a sentence about costs that stand for hard constraints."""
    penalty = getattr(result, "penalty", None)
    if penalty is None:
        return ""
    costs = f"Costs of {penalty.cost:.10g} and more exceed all others together"
    if penalty.verdict == "avoided":
        return f"{costs}: they count as hard constraints, and the labelling satisfies them."
    if penalty.verdict == "needed":
        return f"{costs}: they count as hard constraints, and no labelling satisfies them all."
    return f"{costs}; whether a labelling can do without them is open."


def _bound(result: Subject) -> str:
    if not math.isfinite(result.bound):
        return "No lower bound is proved."
    least = f"No labelling costs less than {result.bound:.10g}"
    if result.proof.stated:
        return (
            f"{least}: that is stated by {_basis(result)}. The proof file of the run (option "
            "proof) is what softmap verify needs to check it."
        )
    return f"{least}: that is proved by {_basis(result)}."


def _cutoff(result: Subject) -> str:
    """Return a sentence about the upper bound that the user has set."""
    if not math.isfinite(result.upper_bound):
        return ""
    if result.energy <= result.upper_bound:
        return f"It costs no more than the upper bound {result.upper_bound:.10g} that was given."
    least = relative_gap(result.upper_bound - result.bound, result.gap_unit)
    if least <= max(PROVED, result.tolerances[1]):
        return f"So no labelling costs less than the upper bound {result.upper_bound:.10g}."
    return f"Whether a labelling costs less than the upper bound {result.upper_bound:.10g} is open."


def _basis(result: Subject) -> str:
    """Return the kind of proof of the bound, with its size."""
    proof = result.proof
    return f"{proof.text} ({proof.size})" if proof.size else proof.text


def _verdict(result: Subject) -> str:
    gap = relative_gap(result.gap, result.gap_unit)
    if not math.isfinite(result.energy):
        return "This does not prove that there is none. Do not use the labels of this result."
    if not math.isfinite(gap):
        return "The distance of the labelling from the optimum is not known."
    if gap == 0:
        return "The two agree, so the labelling is optimal."
    if gap <= PROVED:
        return f"The two agree to {result.gap:.1g}: to that precision, the labelling is optimal."
    return (
        f"So the labelling costs at most {amount(result.gap, 3)} more than the best one "
        f"({percent(gap)} of the bound)."
    )


def _relaxation(result: Subject) -> str:
    gap = relative_gap(result.lp_gap, result.gap_unit)
    if not math.isfinite(gap):
        return "No feasible point of the linear relaxation was found."
    within = f"to within {amount(result.lp_gap, 3)} ({percent(gap)})" if gap > PROVED else "exactly"
    sentence = f"The linear relaxation is solved {within}"
    if relative_gap(result.energy - result.primal, result.gap_unit) <= 10 * max(gap, PROVED):
        return f"{sentence}."
    sentence = f"{sentence}, at {result.primal:.10g}."
    if relative_gap(result.gap, result.gap_unit) <= max(PROVED, result.tolerances[1]):
        return sentence
    return (
        f"{sentence} It cannot raise the bound above that: the rest "
        "of the gap needs a better labelling, clusters or an exact search."
    )


def percent(fraction: float) -> str:
    """Return a relative gap in percent, with two significant digits."""
    if not math.isfinite(fraction):
        return "not known"
    return amount(100 * fraction).replace("e-0", "e-") + "\u00a0%"
