"""claims.md: the outcomes at a glance, then claim by claim with the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from softmap.experiments.claim import Claim, Outcome
from softmap.experiments.methods import FORMS

__all__ = ["details", "overview", "write_claims"]

INTRODUCTION = """\
# What holds of the paper's experiments

Every empirical sentence of the paper's section on experiments and of its appendix, in our words,
decided by the tables beside this file. *As printed* are Algorithms 2 and 3 to the letter; *as
proved* is the form that their proofs need. “Gap” is ⟨C, Proj(μ^λ, 0)⟩ minus the LP optimum at the
current iterate λ. The log-competitive ratio is log(gap of the standard method / gap of the
accelerated one), positive where the accelerated one is ahead.
"""


def write_claims(claims: Sequence[Claim]) -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, overview(claims), "", details(claims)])


def overview(claims: Sequence[Claim]) -> str:
    """A table with one line per claim."""
    lines = ["| | claim | as printed | as proved |", "| --- | --- | --- | --- |"]
    for k, claim in enumerate(claims, 1):
        cells = " | ".join(_word(claim.outcomes, form) for form in FORMS)
        lines.append(f"| {k} | {claim.says} | {cells} |")
    return "\n".join(lines)


def details(claims: Sequence[Claim]) -> str:
    """Where each claim stands in the paper, how it was decided, and by which numbers."""
    return "\n".join(_section(k, claim) for k, claim in enumerate(claims, 1))


def _word(outcomes: dict[str, Outcome], form: str) -> str:
    outcome = outcomes.get(form, outcomes.get("standard"))
    if outcome is None:
        return "–"
    return "holds" if outcome.holds else "**does not hold**"


def _section(k: int, claim: Claim) -> str:
    lines = [f"## {k}. {claim.says}", "", f"From the {claim.where}. Holds if: {claim.rule}.", ""]
    for form, outcome in claim.outcomes.items():
        name = "standard methods" if form == "standard" else f"as {form}"
        word = "holds" if outcome.holds else "does not hold"
        lines.append(f"- *{name}*: **{word}**. {_capital(outcome.numbers)}.")
    return "\n".join([*lines, ""])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
