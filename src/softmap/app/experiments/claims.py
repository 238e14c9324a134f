"""The empirical claims of the paper, decided by the tables of a reproduction, and claims.md.

Claims are paraphrased. Each has a rule that the numbers decide, and an outcome for each form of the
accelerated methods (a single outcome if it is not about acceleration).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from softmap.app.experiments.plan import Settings
from softmap.app.experiments.tables import Curve, Table, curve, first_below, ratio_curve
from softmap.app.experiments.trials import FORMS
from softmap.relaxation import theory

MAIN = "section “Numerical Experiments”"
APPENDIX = "appendix “Numerical Experiments Details”"
LEVEL = 0.005  # log-competitive ratios of at most this absolute value count as equal
CONSISTENT = 0.95  # a faster method must be ahead at this fraction of the points that differ
AHEAD = (
    f"mean log-competitive ratio above {LEVEL} at {CONSISTENT:.0%} of the points where it is not "
    f"within {LEVEL} of 0"
)


@dataclass(frozen=True)
class Outcome:
    """Whether a claim holds, and the numbers that decide it."""

    holds: bool
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: paraphrase, place, rule, and outcome.

    The keys of `outcomes` are "printed" and "proved", or "standard" for a claim that is not about
    accelerated methods.
    """

    says: str
    where: str
    rule: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)


@dataclass(frozen=True)
class Shares:
    """The fractions of a run in which the accelerated variant is ahead, level and behind."""

    ahead: float
    level: float
    behind: float

    @classmethod
    def of(cls, found: Curve) -> Shares:
        """Return the fractions for a mean log-competitive ratio."""
        ahead, behind = (float((s * found.mean > LEVEL).mean()) for s in (1, -1))
        return cls(ahead, 1.0 - ahead - behind, behind)

    @property
    def consistent(self) -> bool:
        """Whether it is ahead at nearly all points that differ, and at enough points."""
        return self.ahead >= max(CONSISTENT * (self.ahead + self.behind), 1.0 - CONSISTENT)

    def __str__(self) -> str:
        return f"ahead {self.ahead:.0%}, level {self.level:.0%}, behind {self.behind:.0%}"


Tables = Mapping[str, Table]
MARGINAL = 1.5  # an improvement of the gap by less than this factor is marginal
SAME_COST = 1.01


def decide(tables: Tables) -> list[Claim]:
    """Return all claims that the given tables can decide, in the order of the paper."""
    needs: list[tuple[str, Callable[[Tables], Claim]]] = [
        ("figure1", stars_first),
        ("figure1", edges_before_descent),
        ("figure1", marginal),
        ("figure1", consistent),
        ("figure1", especially_stars),
        ("figure1", conservative),
        ("figure1", dearer_stars),
        ("figure1", equal_descent),
        ("truth", pairwise_matters),
        ("truth", solvable),
        ("figure2", all_sizes),
        ("figure2", at_the_beginning),
        ("figure2", tapers),
    ]
    return [claim(tables) for name, claim in needs if name in tables]


def _beats(tables: Tables, form: str, winner: str, losers: tuple[str, ...]) -> Outcome:
    """Whether one method has the smallest final gap, and when it reaches the second smallest."""
    found = {m: curve(tables["figure1"].where(method=m, form=form)) for m in (winner, *losers)}
    rival = min(losers, key=lambda method: found[method].last)
    needed = first_below(found[winner], found[rival].last)
    ends = ", ".join(f"{m.upper()} {c.last:.3g}" for m, c in found.items())
    reached = f"after {needed:,.0f} updates" if math.isfinite(needed) else "never"
    numbers = f"final gaps: {ends}; {winner.upper()} is level with {rival.upper()}'s end {reached}"
    return Outcome(found[winner].last < found[rival].last, numbers)


def stars_first(tables: Tables) -> Claim:
    """SMP converges in the fewest iterations."""
    outcomes = {f: _beats(tables, f, "smp", ("emp", "bcd")) for f in ("standard", *FORMS)}
    rule = "after the same number of updates, the mean gap of SMP is the lowest"
    return Claim("SMP converges in the fewest iterations.", MAIN, rule, outcomes)


def edges_before_descent(tables: Tables) -> Claim:
    """EMP converges faster than coordinate descent."""
    outcomes = {f: _beats(tables, f, "emp", ("bcd",)) for f in ("standard", *FORMS)}
    rule = "after the same number of updates, the mean gap of EMP is below that of BCD"
    return Claim("EMP converges faster than coordinate descent.", MAIN, rule, outcomes)


def _factor(found: Curve) -> float:
    """Return the geometric mean, over a run, of standard gap / accelerated gap."""
    return math.exp(float(found.mean.mean()))


def marginal(tables: Tables) -> Claim:
    """Acceleration improves the primal value only marginally."""
    outcomes = {}
    for form in FORMS:
        found = {m: ratio_curve(tables["figure1"], m, form) for m in ("emp", "smp", "bcd")}
        factors = {m: _factor(c) for m, c in found.items()}
        numbers = ", ".join(
            f"{m.upper()} {factors[m]:.3g} (at the end {math.exp(c.last):.3g}, within 5% of 1 up to"
            f" {_level_until(c):,.0f} updates)"
            for m, c in found.items()
        )
        holds = all(1.0 <= factor < MARGINAL for factor in factors.values())
        outcomes[form] = Outcome(holds, f"standard gap / accelerated gap: {numbers}")
    says = "The accelerated variants, accelerated coordinate descent included, improve the primal "
    rule = f"geometric mean over the run of the ratio of gaps between 1 and {MARGINAL}, all three"
    return Claim(says + "value marginally.", MAIN, rule, outcomes)


def _level_until(found: Curve) -> float:
    """Return the number of updates up to which the two gaps differ by less than 5 %."""
    apart = np.flatnonzero(np.abs(found.mean) > math.log(1.05))
    level = found.updates[: apart[0]] if apart.size else found.updates
    return float(level.max(initial=0.0))


def consistent(tables: Tables) -> Claim:
    """The competitive ratios show the accelerated variants consistently faster."""
    outcomes = {}
    for form in FORMS:
        table, words = tables["figure1"], []
        shares = [Shares.of(ratio_curve(table, method, form)) for method in ("emp", "smp")]
        for method, now in zip(("emp", "smp"), shares, strict=True):
            kept = Shares.of(ratio_curve(table, method, form, "returned_gap"))
            words.append(f"{method.upper()} {now} (by what Algorithm 1 returns: {kept})")
        numbers = f"share of the points: {'; '.join(words)}"
        outcomes[form] = Outcome(all(s.consistent for s in shares), numbers)
    rule = f"{AHEAD}, EMP and SMP"
    says = "By the competitive ratio, the accelerated variants are consistently faster."
    return Claim(says, MAIN, rule, outcomes)


def especially_stars(tables: Tables) -> Claim:
    """Acceleration helps SMP most."""
    outcomes = {}
    for form in FORMS:
        edge, star = (
            float(ratio_curve(tables["figure1"], m, form).mean.mean()) for m in ("emp", "smp")
        )
        numbers = f"mean log-competitive ratio over the run: SMP {star:+.3f}, EMP {edge:+.3f}"
        outcomes[form] = Outcome(star > max(edge, 0.0), numbers)
    rule = "the mean log-competitive ratio of SMP is positive and above that of EMP"
    return Claim("They are so especially for SMP.", MAIN, rule, outcomes)


def conservative(tables: Tables) -> Claim:
    """The iteration bounds of the standard algorithms look conservative."""
    facts = tables["truth"]
    row = facts.where(n=tables["figure1"]["n"][0])
    sizes = theory.Sizes(
        int(row["n"][0]), int(row["m"][0]), round(row["labels"][0]), float(row["cost"][0]),
        round(row["min_degree"][0]), round(row["max_degree"][0]),
    )  # fmt: skip
    words, excess = [], []
    for method, blocks in (("emp", "edges"), ("smp", "stars")):
        found = curve(tables["figure1"].where(method=method, form="standard"))
        allowed = theory.standard_iterations(sizes, found.last, blocks)  # type: ignore[arg-type]
        excess.append(allowed / found.updates[-1])
        words.append(
            f"{method.upper()} reaches a gap of {found.last:.3g} in {found.updates[-1]:,.0f}"
            f" updates, Theorem 1 grants {allowed:.1e}"
        )
    rule = "Theorem 1 grants at least ten times the updates that were needed"
    outcome = Outcome(min(excess) >= 10, "; ".join(words))
    says = "The upper bounds for the standard algorithms may be overly conservative."
    return Claim(says, MAIN, rule, {"standard": outcome})


def _messages(tables: Tables, method: str, form: str) -> float:
    rows = tables["figure1"].where(method=method, form=form)
    return float((rows["work"] / rows["updates"])[rows["updates"] == rows["updates"].max()].mean())


def dearer_stars(tables: Tables) -> Claim:
    """An update of SMP takes more time than one of EMP."""
    outcomes = {}
    for form in ("standard", *FORMS):
        star, edge = (_messages(tables, m, form) for m in ("smp", "emp"))
        numbers = f"messages per update: SMP {star:.2f}, EMP {edge:.2f}"
        outcomes[form] = Outcome(star > edge, numbers)
    rule = "messages per update are more for SMP than for EMP"
    return Claim("Updates of SMP and Accel-SMP cost more each.", APPENDIX, rule, outcomes)


def equal_descent(tables: Tables) -> Claim:
    """An update of coordinate descent takes as much time as one of EMP."""
    outcomes = {}
    for form in ("standard", *FORMS):
        descent, edge = (_messages(tables, m, form) for m in ("bcd", "emp"))
        numbers = f"messages per update: BCD {descent:.2f}, EMP {edge:.2f}"
        outcomes[form] = Outcome(descent <= SAME_COST * edge, numbers)
    rule = "messages per update are the same to one per cent"
    says = "An update of coordinate descent is about as expensive as one of EMP."
    return Claim(says, APPENDIX, rule, outcomes)


def pairwise_matters(tables: Tables) -> Claim:
    """Minimising vertex costs alone is not enough."""
    facts = tables["truth"]
    row = facts.where(n=facts["n"].max())
    best, obvious, flat = (
        float(row[name][0]) for name in ("optimum", "unary_energy", "uniform_cost")
    )
    part = (flat - obvious) / (flat - best)
    numbers = (
        f"LP optimum {best:.1f}, labels of least vertex cost {obvious:.1f}, uniform marginals"
        f" {flat:.1f}: {part:.0%} of the way from the last to the first"
    )
    rule = "labels of least vertex cost come less than half the way from uniform to the optimum"
    says = "With these costs, vertices cannot simply take their least vertex cost."
    return Claim(says, APPENDIX, rule, {"standard": Outcome(part < 0.5, numbers)})


def solvable(tables: Tables) -> Claim:
    """The graphs are small enough for an LP solver."""
    facts = tables["truth"]
    checked = np.isfinite(facts["cvxpy_optimum"])
    apart = np.abs(facts["optimum"] - facts["cvxpy_optimum"])[checked]
    worst = float(apart.max(initial=0.0))
    values = ", ".join(
        f"n = {n}: {v:.6f}" for n, v in zip(facts["n"], facts["optimum"], strict=True)
    )
    other = (
        f"CVXPY differs by {max(worst, 1e-7):.0e} at most"
        if checked.any()
        else "CVXPY not installed"
    )
    rule = "HiGHS ends with an optimum on every graph; CVXPY, where asked, agrees to 1e-5"
    says = "The graphs are small enough for the optimum to come from a standard LP solver."
    return Claim(
        says, APPENDIX, rule, {"standard": Outcome(worst < 1e-5, f"LP optima: {values}; {other}")}
    )


def _by_size(tables: Tables, form: str) -> dict[int, Curve]:
    table = tables["figure2"]
    return {n: ratio_curve(table.where(n=n), "smp", form) for (n,) in table.distinct("n")}


def all_sizes(tables: Tables) -> Claim:
    """Accel-SMP is faster at every size."""
    outcomes = {}
    for form in FORMS:
        found = _by_size(tables, form)
        shares = {n: Shares.of(c) for n, c in found.items()}
        words = "; ".join(
            f"n = {n} {shares[n]} (mean {c.mean.mean():+.3f})" for n, c in found.items()
        )
        holds = all(s.consistent for s in shares.values())
        outcomes[form] = Outcome(holds, f"share of the points: {words}")
    rule = f"{AHEAD}, for every size"
    return Claim("Accel-SMP runs faster in all regimes.", APPENDIX, rule, outcomes)


def at_the_beginning(tables: Tables) -> Claim:
    """The advantage is largest at the beginning."""
    outcomes = {}
    for form in FORMS:
        words, early = [], []
        for n, found in _by_size(tables, form).items():
            k = int(found.mean.argmax())
            words.append(f"n = {n}: {found.mean[k]:+.3f} at {found.updates[k]:,.0f}")
            early.append(found.mean[k] > 0 and found.updates[k] <= 0.1 * found.updates[-1])
        outcomes[form] = Outcome(all(early), f"largest mean ratio: {'; '.join(words)}")
    rule = "the mean ratio is largest within the first tenth of the updates, and positive there"
    return Claim("It does so especially at the beginning.", APPENDIX, rule, outcomes)


def tapers(tables: Tables) -> Claim:
    """The advantage tapers off."""
    outcomes = {}
    for form in FORMS:
        words, ends = [], []
        for n, found in _by_size(tables, form).items():
            peak = float(found.mean.max())
            end = float(found.mean[-max(1, len(found.mean) // 10) :].mean())
            words.append(f"n = {n}: {peak:+.3f} down to {end:+.3f}")
            ends.append(peak > 0 and end < 0.5 * peak)
        outcomes[form] = Outcome(
            all(ends), f"from the largest mean ratio to the end: {'; '.join(words)}"
        )
    rule = "averaged over the last tenth of the points, the ratio is less than half its largest"
    return Claim("The improvement eventually tapers.", APPENDIX, rule, outcomes)


INTRODUCTION = """\
# What holds of the paper's experiments

Every empirical sentence of the paper's section on experiments and of its appendix, in our words,
decided by the tables beside this file. *As printed* are Algorithms 2 and 3 to the letter; *as
proved* is the form that their proofs need. “Gap” is ⟨C, Proj(μ^λ, 0)⟩ minus the LP optimum at the
current iterate λ. The log-competitive ratio is log(gap of the standard method / gap of the
accelerated one), positive where the accelerated one is ahead.
"""


@dataclass(frozen=True)
class Words:
    """The words for the outcome of a claim."""

    yes: str = "holds"
    no: str = "does not hold"


SHORT = Words("seen in this run", "not seen in this run")


def write_claims(claims: Sequence[Claim], settings: Settings | None = None) -> str:
    """Return the page claims.md. A run shorter than the paper's decides no claim."""
    words, introduction = Words(), INTRODUCTION
    full = Settings()
    if settings is not None and (settings.updates < full.updates or settings.trials < full.trials):
        words = SHORT
        introduction += f"""
**This was a short run**: {settings.trials} trials of {settings.updates:,} updates, in place of
{full.trials} trials of {full.updates:,}. The sentences are about the long run: this page says what
was seen and decides none of them; `softmap reproduce all` without `--quick` does.
"""
    return "\n".join([introduction, overview(claims, words), "", details(claims, words)])


def overview(claims: Sequence[Claim], words: Words | None = None) -> str:
    """Return a Markdown table with one row per claim."""
    lines = ["| | claim | as printed | as proved |", "| --- | --- | --- | --- |"]
    for k, claim in enumerate(claims, 1):
        cells = " | ".join(_word(claim.outcomes, form, words or Words()) for form in FORMS)
        lines.append(f"| {k} | {claim.says} | {cells} |")
    return "\n".join(lines)


def details(claims: Sequence[Claim], words: Words | None = None) -> str:
    """Return a section per claim: its place in the paper, its rule, and the numbers."""
    return "\n".join(_section(k, claim, words or Words()) for k, claim in enumerate(claims, 1))


def _word(outcomes: dict[str, Outcome], form: str, words: Words) -> str:
    outcome = outcomes.get(form, outcomes.get("standard"))
    if outcome is None:
        return "–"
    return words.yes if outcome.holds else f"**{words.no}**"


def _section(k: int, claim: Claim, words: Words) -> str:
    lines = [f"## {k}. {claim.says}", "", f"From the {claim.where}. Holds if: {claim.rule}.", ""]
    for form, outcome in claim.outcomes.items():
        name = "standard methods" if form == "standard" else f"as {form}"
        word = words.yes if outcome.holds else words.no
        lines.append(f"- *{name}*: **{word}**. {_capital(outcome.numbers)}.")
    return "\n".join([*lines, ""])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
