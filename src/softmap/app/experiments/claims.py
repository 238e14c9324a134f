"""The empirical claims of the paper, decided by a stored run, and claims.md.

Claims are paraphrased. Each has an effect, a number that is above 0 where the claim holds, with a
95 % interval over graphs and trials: the claim holds if the interval is above 0, does not hold if
it is below, and is undecided otherwise. There is one outcome for each form of the accelerated
methods (a single one if the claim is not about acceleration).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from softmap.app.experiments.entries import FORMS
from softmap.app.experiments.plan import FIGURE1, FIGURE2, Settings
from softmap.app.experiments.samples import Curve, Estimate, Evidence, first_below, gap_curve
from softmap.paper import theory

Floats = NDArray[np.float64]

MAIN = "section “Numerical Experiments”"
APPENDIX = "appendix “Numerical Experiments Details”"
LEVEL = 0.005  # log-competitive ratios of at most this absolute value count as equal
CONSISTENT = 0.95  # a faster method must be ahead at this fraction of the points that differ
SHARE = (
    f"of the points where the mean log-competitive ratio is not within {LEVEL} of 0, those where it"
    f" is above: at least {CONSISTENT:.0%}"
)
MARGINAL = 1.5  # an improvement of the gap by less than this factor is marginal
SAME_COST = 0.01  # relative difference of costs that count as the same
EVERY = ("standard", *FORMS)
METHODS = ("emp", "smp", "bcd")


class Verdict(Enum):
    """What a run says about a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Outcome:
    """The effect that decides a claim, and the numbers behind it.

    Attributes
    ----------
    effect : Estimate
        At least 0 where the claim holds.
    numbers : str
        The numbers that the effect is made of, in words.
    """

    effect: Estimate
    numbers: str

    @property
    def verdict(self) -> Verdict:
        """Whether the interval of the effect is on one side of 0."""
        if self.effect.low >= 0:
            return Verdict.HOLDS
        return Verdict.FAILS if self.effect.high < 0 else Verdict.UNDECIDED


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: paraphrase, place, effect, and outcome.

    The keys of `outcomes` are "printed" and "proved", or "standard" for a claim that is not about
    accelerated methods.
    """

    says: str
    where: str
    effect: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)


Decision = Callable[[Evidence, str], Outcome]  # of the form of the methods
CLAIMS: list[tuple[str | None, Callable[[Evidence], Claim]]] = []  # with the figure it needs


def _claim(
    figure: str | None, where: str, says: str, effect: str, forms: Sequence[str] = FORMS
) -> Callable[[Decision], Callable[[Evidence], Claim]]:
    """Register a claim, which the function below decides for each form of the methods."""

    def registered(decide: Decision) -> Callable[[Evidence], Claim]:
        def claim(evidence: Evidence) -> Claim:
            return Claim(says, where, effect, {form: decide(evidence, form) for form in forms})

        CLAIMS.append((figure, claim))
        return claim

    return registered


def decide(evidence: Evidence) -> list[Claim]:
    """Return all claims that a run can decide, in the order of the paper."""
    there = evidence.figures()
    return [claim(evidence) for figure, claim in CLAIMS if figure is None or figure in there]


def _size(evidence: Evidence) -> int:
    return evidence.sizes(FIGURE1)[0]


def _beats(evidence: Evidence, form: str, winner: str, losers: tuple[str, ...]) -> Outcome:
    """Compare the final gap of one method with the smallest of the others."""
    n = _size(evidence)
    runs = {m: evidence.runs(FIGURE1, n, m, form) for m in (winner, *losers)}
    ends = {m: evidence.means(r.log()[:, :, -1]) for m, r in runs.items()}
    curves = {m: gap_curve(evidence, r) for m, r in runs.items()}
    rival = min(losers, key=lambda method: curves[method].last)
    needed = first_below(curves[winner], curves[rival].last)
    gaps = ", ".join(f"{m.upper()} {c.last:.3g}" for m, c in curves.items())
    reached = f"after {needed:,.0f} updates" if math.isfinite(needed) else "never"
    least = np.min([ends[method] for method in losers], axis=0)
    numbers = f"final gaps: {gaps}; {winner.upper()} is level with {rival.upper()}'s end {reached}"
    return Outcome(Estimate.of(least - ends[winner]), numbers)


@_claim(
    FIGURE1, MAIN, "SMP converges in the fewest iterations.",
    "log(smallest final gap of EMP and BCD / final gap of SMP)", EVERY,
)  # fmt: skip
def stars_first(evidence: Evidence, form: str) -> Outcome:
    """Compare the final gaps of the three methods."""
    return _beats(evidence, form, "smp", ("emp", "bcd"))


@_claim(
    FIGURE1, MAIN, "EMP converges faster than coordinate descent.",
    "log(final gap of BCD / final gap of EMP)", EVERY,
)  # fmt: skip
def edges_before_descent(evidence: Evidence, form: str) -> Outcome:
    """Compare the final gaps of EMP and BCD."""
    return _beats(evidence, form, "emp", ("bcd",))


@_claim(
    FIGURE1, MAIN, "The accelerated variants, accelerated coordinate descent included, improve "
    "the primal value marginally.",
    f"the mean over the run of log(standard gap / accelerated gap), which is between 0 and log"
    f" {MARGINAL} for all three: the least distance to these limits",
)  # fmt: skip
def marginal(evidence: Evidence, form: str) -> Outcome:
    """Compute the geometric mean, over a run, of standard gap / accelerated gap."""
    n = _size(evidence)
    words, margins = [], []
    for method in METHODS:
        ratio = evidence.means(evidence.ratio(FIGURE1, n, method, form))
        mean = ratio.mean(axis=1)
        margins.append(np.minimum(mean, math.log(MARGINAL) - mean))
        curve = Curve.of(evidence.runs(FIGURE1, n, method, form).axis, ratio)
        words.append(
            f"{method.upper()} {math.exp(mean[0]):.3g} (at the end {math.exp(curve.last):.3g},"
            f" within 5% of 1 up to {_level_until(curve):,.0f} updates)"
        )
    effect = Estimate.of(np.min(margins, axis=0))
    return Outcome(effect, f"standard gap / accelerated gap: {', '.join(words)}")


def _level_until(curve: Curve) -> float:
    """Return the number of updates up to which the two gaps differ by less than 5 %."""
    apart = np.flatnonzero(np.abs(curve.mean) > math.log(1.05))
    level = curve.axis[: apart[0]] if apart.size else curve.axis
    return float(level.max(initial=0.0))


def _shares(samples: Floats) -> tuple[Floats, str]:
    """Return share of the differing points that are ahead minus `CONSISTENT`, and all shares.

    It is also negative if fewer than 1 - `CONSISTENT` of all points are ahead.
    """
    ahead, behind = ((s * samples > LEVEL).mean(axis=1) for s in (1, -1))
    differ = np.maximum(ahead + behind, 1.0 / samples.shape[1])
    margin = np.minimum(ahead / differ - CONSISTENT, ahead - (1.0 - CONSISTENT))
    level = 1.0 - ahead[0] - behind[0]
    return margin, f"ahead {ahead[0]:.0%}, level {level:.0%}, behind {behind[0]:.0%}"


@_claim(
    FIGURE1, MAIN, "By the competitive ratio, the accelerated variants are consistently faster.",
    f"{SHARE}, for EMP and SMP; the smaller share minus {CONSISTENT}",
)  # fmt: skip
def consistent(evidence: Evidence, form: str) -> Outcome:
    """Count the points at which the accelerated EMP and SMP are ahead."""
    n = _size(evidence)
    words, margins = [], []
    for method in ("emp", "smp"):
        margin, said = _shares(evidence.means(evidence.ratio(FIGURE1, n, method, form)))
        kept = evidence.means(evidence.ratio(FIGURE1, n, method, form, "returned_gap"))
        margins.append(margin)
        words.append(f"{method.upper()} {said} (by what Algorithm 1 returns: {_shares(kept)[1]})")
    effect = Estimate.of(np.min(margins, axis=0))
    return Outcome(effect, f"share of the points: {'; '.join(words)}")


@_claim(
    FIGURE1, MAIN, "They are so especially for SMP.",
    "mean log-competitive ratio of SMP, minus that of EMP or 0, whichever is larger",
)  # fmt: skip
def especially_stars(evidence: Evidence, form: str) -> Outcome:
    """Compare the mean log-competitive ratios of SMP and EMP."""
    n = _size(evidence)
    edge, star = (
        evidence.means(evidence.ratio(FIGURE1, n, method, form)).mean(axis=1)
        for method in ("emp", "smp")
    )
    numbers = (
        f"mean log-competitive ratio over the run: SMP {Estimate.of(star).text('+.3f')}, EMP"
        f" {Estimate.of(edge).text('+.3f')}"
    )
    return Outcome(Estimate.of(star - np.maximum(edge, 0.0)), numbers)


@_claim(
    FIGURE1, MAIN, "The upper bounds for the standard algorithms may be overly conservative.",
    "log10(updates that Theorem 1 grants / updates needed) minus 1, EMP or SMP, whichever is less",
    ("standard",),
)  # fmt: skip
def conservative(evidence: Evidence, form: str) -> Outcome:
    """Compare the updates of a run with the iteration bounds of Theorem 1."""
    n = _size(evidence)
    words, excess = [], []
    for method in ("emp", "smp"):
        runs = evidence.runs(FIGURE1, n, method, form)
        granted = _granted(evidence, n, method, runs.columns["gap"][:, :, -1])
        excess.append(evidence.means(np.log10(granted / runs.axis[-1])))
        words.append(
            f"{method.upper()} reaches a gap of {gap_curve(evidence, runs).last:.3g} in"
            f" {runs.axis[-1]:,.0f} updates, Theorem 1 grants"
            f" {np.exp(np.log(granted).mean()):.1e}"
        )
    return Outcome(Estimate.of(np.min(excess, axis=0) - 1.0), "; ".join(words))


def _granted(evidence: Evidence, n: int, method: str, gaps: Floats) -> Floats:
    """Return the updates that Theorem 1 grants for final gaps, [graph, trial]."""
    facts = evidence.truth.where(n=n)
    granted = np.empty_like(gaps)
    for graph in range(len(gaps)):
        sizes = theory.Sizes(
            n, int(facts["m"][graph]), round(facts["labels"][graph]), facts["cost"][graph],
            round(facts["min_degree"][graph]), round(facts["max_degree"][graph]),
        )  # fmt: skip
        for trial, gap in enumerate(gaps[graph]):
            blocks: theory.Blocks = "stars" if method == "smp" else "edges"
            granted[graph, trial] = theory.standard_iterations(sizes, gap, blocks)
    return granted


def _messages(evidence: Evidence, method: str, form: str) -> Floats:
    """Return messages per update, as bootstrapped means."""
    runs = evidence.runs(FIGURE1, _size(evidence), method, form)
    return evidence.means(runs.columns["work"][:, :, -1] / runs.axis[-1])


@_claim(
    FIGURE1, APPENDIX, "Updates of SMP and Accel-SMP cost more each.",
    "messages per update of SMP minus those of EMP", EVERY,
)  # fmt: skip
def dearer_stars(evidence: Evidence, form: str) -> Outcome:
    """Compare the messages per update of SMP and EMP."""
    star, edge = (_messages(evidence, m, form) for m in ("smp", "emp"))
    numbers = f"messages per update: SMP {star[0]:.2f}, EMP {edge[0]:.2f}"
    return Outcome(Estimate.of(star - edge), numbers)


@_claim(
    FIGURE1, APPENDIX, "An update of coordinate descent is about as expensive as one of EMP.",
    f"{SAME_COST} minus the relative difference of messages per update", EVERY,
)  # fmt: skip
def equal_descent(evidence: Evidence, form: str) -> Outcome:
    """Compare the messages per update of BCD and EMP."""
    descent, edge = (_messages(evidence, m, form) for m in ("bcd", "emp"))
    numbers = f"messages per update: BCD {descent[0]:.2f}, EMP {edge[0]:.2f}"
    return Outcome(Estimate.of(SAME_COST - np.abs(descent / edge - 1.0)), numbers)


@_claim(
    None, APPENDIX, "With these costs, vertices cannot simply take their least vertex cost.",
    "0.5 minus the part of the way from uniform to the optimum that the labels of least vertex cost"
    " come", ("standard",),
)  # fmt: skip
def pairwise_matters(evidence: Evidence, form: str) -> Outcome:
    """Compare the labels of least vertex cost with uniform marginals and the optimum."""
    n = int(evidence.truth["n"].max())
    best, obvious, flat = (
        evidence.reference(name, n)[:, None] for name in ("optimum", "unary_energy", "uniform_cost")
    )
    part = evidence.means((flat - obvious) / (flat - best))
    numbers = (
        f"mean LP optimum {best.mean():.1f}, labels of least vertex cost {obvious.mean():.1f},"
        f" uniform marginals {flat.mean():.1f}: {part[0]:.0%} of the way from the last to the first"
    )
    return Outcome(Estimate.of(0.5 - part), numbers)


@_claim(
    None, APPENDIX,
    "The graphs are small enough for the optimum to come from a standard LP solver.",
    "1e-5 minus the largest difference between HiGHS and CVXPY on any graph", ("standard",),
)  # fmt: skip
def solvable(evidence: Evidence, form: str) -> Outcome:
    """Compare the optima of HiGHS and CVXPY."""
    facts = evidence.truth
    checked = np.isfinite(facts["cvxpy_optimum"])
    apart = np.abs(facts["optimum"] - facts["cvxpy_optimum"])[checked]
    worst = float(apart.max(initial=0.0))
    count = f"HiGHS ends with an optimum on all {len(facts)} graphs"
    agrees = f"CVXPY differs by {max(worst, 1e-7):.0e} at most on {checked.sum()} graphs"
    other = agrees if checked.any() else "CVXPY not installed"
    return Outcome(Estimate.of(np.array([1e-5 - worst])), f"{count}; {other}")


def _by_size(evidence: Evidence, form: str) -> dict[int, tuple[Floats, Floats]]:
    """Return updates and bootstrapped mean ratios of SMP by size."""
    return {
        n: (
            evidence.runs(FIGURE2, n, "smp", form).axis,
            evidence.means(evidence.ratio(FIGURE2, n, "smp", form)),
        )
        for n in evidence.sizes(FIGURE2)
    }


@_claim(
    FIGURE2, APPENDIX, "Accel-SMP runs faster in all regimes.",
    f"{SHARE}, for every size; the smallest share minus {CONSISTENT}",
)  # fmt: skip
def all_sizes(evidence: Evidence, form: str) -> Outcome:
    """Count the points at which Accel-SMP is ahead, for every size."""
    words, margins = [], []
    for n, (_, ratio) in _by_size(evidence, form).items():
        margin, said = _shares(ratio)
        margins.append(margin)
        words.append(f"n = {n} {said} (mean {ratio[0].mean():+.3f})")
    return Outcome(Estimate.of(np.min(margins, axis=0)), f"share of the points: {'; '.join(words)}")


@_claim(
    FIGURE2, APPENDIX, "It does so especially at the beginning.",
    "the largest mean ratio within the first tenth of the updates, minus the largest later or 0;"
    " the smallest over the sizes",
)  # fmt: skip
def at_the_beginning(evidence: Evidence, form: str) -> Outcome:
    """Find the largest mean ratio of every size, early and later."""
    words, margins = [], []
    for n, (updates, ratio) in _by_size(evidence, form).items():
        early = updates <= max(0.1 * updates[-1], updates[0])
        first = ratio[:, early].max(axis=1)
        margins.append(first - np.maximum(ratio[:, ~early].max(axis=1, initial=0.0), 0.0))
        k = int(ratio[0].argmax())
        words.append(f"n = {n}: {ratio[0, k]:+.3f} at {updates[k]:,.0f}")
    return Outcome(Estimate.of(np.min(margins, axis=0)), f"largest mean ratio: {'; '.join(words)}")


@_claim(
    FIGURE2, APPENDIX, "The improvement eventually tapers.",
    "half the largest mean ratio minus its mean over the last tenth of the points, or the largest"
    f" minus {LEVEL} if that is less; the smallest over the sizes",
)  # fmt: skip
def tapers(evidence: Evidence, form: str) -> Outcome:
    """Compare the largest mean ratio with that of the last tenth of the points."""
    words, margins = [], []
    for n, (_, ratio) in _by_size(evidence, form).items():
        peak = ratio.max(axis=1)
        end = ratio[:, -max(1, ratio.shape[1] // 10) :].mean(axis=1)
        margins.append(np.minimum(0.5 * peak - end, peak - LEVEL))
        words.append(f"n = {n}: {peak[0]:+.3f} down to {end[0]:+.3f}")
    return Outcome(
        Estimate.of(np.min(margins, axis=0)),
        f"from the largest mean ratio to the end: {'; '.join(words)}",
    )


INTRODUCTION = """\
# What holds of the paper's experiments

Every empirical sentence of the paper's section on experiments and of its appendix, in our words,
decided by the stored run beside this file ({graphs} graphs of each size, {trials} trials on each).
*As printed* are Algorithms 2 and 3 to the letter; *as proved* is the form that their proofs need.
“Gap” is ⟨C, Proj(μ^λ, 0)⟩ minus the LP optimum at the current iterate λ; means of gaps are
geometric. The log-competitive ratio is log(gap of the standard method / gap of the accelerated
one), positive where the accelerated one is ahead.

A claim has an **effect**, at least 0 where it holds, with a 95 % interval in brackets (bootstrap
over graphs, and over trials on each). It *holds* if the interval is at least 0, *does not hold* if
the interval is below 0, and is *undecided* otherwise.
"""

SHORT = """
**This was a short run**: {trials} trials of {updates:,} updates on {graphs} graphs, in place of
{full.trials} trials of {full.updates:,} on {full.graphs}. The sentences are about the long run:
this page says what was seen and decides none of them; `softmap reproduce all` without `--quick`
does.
"""
Words = dict[Verdict, str]
DECIDED: Words = {verdict: verdict.value for verdict in Verdict}
SEEN: Words = {
    Verdict.HOLDS: "seen in this run",
    Verdict.FAILS: "not seen in this run",
    Verdict.UNDECIDED: "undecided in this run",
}


def write_claims(claims: Sequence[Claim], settings: Settings) -> str:
    """Return the page claims.md. A run shorter than the paper's decides no claim."""
    words, full = DECIDED, Settings()
    introduction = INTRODUCTION.format(graphs=settings.graphs, trials=settings.trials)
    least = (settings.updates, settings.trials, settings.graphs)
    if any(a < b for a, b in zip(least, (full.updates, full.trials, full.graphs), strict=True)):
        words = SEEN
        introduction += SHORT.format(
            trials=settings.trials, updates=settings.updates, graphs=settings.graphs, full=full
        )
    return "\n".join([introduction, overview(claims, words), "", details(claims, words)])


def overview(claims: Sequence[Claim], words: Words = DECIDED) -> str:
    """Return a Markdown table with one row per claim."""
    lines = [
        "| | claim | as printed | effect | as proved | effect |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for k, claim in enumerate(claims, 1):
        cells = " | ".join(_cells(claim.outcomes, form, words) for form in FORMS)
        lines.append(f"| {k} | {claim.says} | {cells} |")
    return "\n".join(lines)


def outcome_of(claim: Claim, form: str) -> Outcome | None:
    """Return the outcome of a claim for a form of the accelerated methods."""
    return claim.outcomes.get(form, claim.outcomes.get("standard"))


def _cells(outcomes: dict[str, Outcome], form: str, words: Words) -> str:
    outcome = outcomes.get(form, outcomes.get("standard"))
    if outcome is None:
        return "– | –"
    word = words[outcome.verdict]
    bold = word if outcome.verdict is Verdict.HOLDS else f"**{word}**"
    return f"{bold} | {outcome.effect.text('+.2g')}"


def details(claims: Sequence[Claim], words: Words = DECIDED) -> str:
    """Return a section per claim: its place in the paper, its effect, and the numbers."""
    lines = []
    for k, claim in enumerate(claims, 1):
        place = f"From the {claim.where}. Effect: {claim.effect}."
        lines += [f"## {k}. {claim.says}", "", place, ""]
        for form, outcome in claim.outcomes.items():
            name = "standard methods" if form == "standard" else f"as {form}"
            numbers = outcome.numbers[:1].upper() + outcome.numbers[1:]
            effect = outcome.effect.text("+.3g")
            lines.append(f"- *{name}*: **{words[outcome.verdict]}**, effect {effect}. {numbers}.")
        lines.append("")
    return "\n".join(lines)
