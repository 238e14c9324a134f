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
from softmap.paper import theory

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


EVERY = ("standard", *FORMS)
METHODS = ("emp", "smp", "bcd")
Decision = Callable[[Tables, str], Outcome]  # of the tables and the form of the methods
CLAIMS: list[tuple[str, Callable[[Tables], Claim]]] = []  # the table that each claim needs


def _claim(
    table: str, where: str, says: str, rule: str, forms: Sequence[str] = FORMS
) -> Callable[[Decision], Callable[[Tables], Claim]]:
    """Register a claim, which the function below decides for each form of the methods."""

    def registered(decide: Decision) -> Callable[[Tables], Claim]:
        def claim(tables: Tables) -> Claim:
            return Claim(says, where, rule, {form: decide(tables, form) for form in forms})

        CLAIMS.append((table, claim))
        return claim

    return registered


def decide(tables: Tables) -> list[Claim]:
    """Return all claims that the given tables can decide, in the order of the paper."""
    return [claim(tables) for table, claim in CLAIMS if table in tables]


def _beats(tables: Tables, form: str, winner: str, losers: tuple[str, ...]) -> Outcome:
    """Whether one method has the smallest final gap, and when it reaches the second smallest."""
    found = {m: curve(tables["figure1"].where(method=m, form=form)) for m in (winner, *losers)}
    rival = min(losers, key=lambda method: found[method].last)
    needed = first_below(found[winner], found[rival].last)
    ends = ", ".join(f"{m.upper()} {c.last:.3g}" for m, c in found.items())
    reached = f"after {needed:,.0f} updates" if math.isfinite(needed) else "never"
    numbers = f"final gaps: {ends}; {winner.upper()} is level with {rival.upper()}'s end {reached}"
    return Outcome(found[winner].last < found[rival].last, numbers)


@_claim(
    "figure1", MAIN, "SMP converges in the fewest iterations.",
    "after the same number of updates, the mean gap of SMP is the lowest", EVERY,
)  # fmt: skip
def stars_first(tables: Tables, form: str) -> Outcome:
    """Compare the final gaps of the three methods."""
    return _beats(tables, form, "smp", ("emp", "bcd"))


@_claim(
    "figure1", MAIN, "EMP converges faster than coordinate descent.",
    "after the same number of updates, the mean gap of EMP is below that of BCD", EVERY,
)  # fmt: skip
def edges_before_descent(tables: Tables, form: str) -> Outcome:
    """Compare the final gaps of EMP and BCD."""
    return _beats(tables, form, "emp", ("bcd",))


@_claim(
    "figure1", MAIN, "The accelerated variants, accelerated coordinate descent included, improve "
    "the primal value marginally.",
    f"geometric mean over the run of the ratio of gaps between 1 and {MARGINAL}, all three",
)  # fmt: skip
def marginal(tables: Tables, form: str) -> Outcome:
    """Compute the geometric mean, over a run, of standard gap / accelerated gap."""
    found = {m: ratio_curve(tables["figure1"], m, form) for m in METHODS}
    factors = {m: math.exp(float(c.mean.mean())) for m, c in found.items()}
    numbers = ", ".join(
        f"{m.upper()} {factors[m]:.3g} (at the end {math.exp(c.last):.3g}, within 5% of 1 up to"
        f" {_level_until(c):,.0f} updates)"
        for m, c in found.items()
    )
    holds = all(1.0 <= factor < MARGINAL for factor in factors.values())
    return Outcome(holds, f"standard gap / accelerated gap: {numbers}")


def _level_until(found: Curve) -> float:
    """Return the number of updates up to which the two gaps differ by less than 5 %."""
    apart = np.flatnonzero(np.abs(found.mean) > math.log(1.05))
    level = found.updates[: apart[0]] if apart.size else found.updates
    return float(level.max(initial=0.0))


@_claim(
    "figure1", MAIN, "By the competitive ratio, the accelerated variants are consistently faster.",
    f"{AHEAD}, EMP and SMP",
)  # fmt: skip
def consistent(tables: Tables, form: str) -> Outcome:
    """Count the points at which the accelerated EMP and SMP are ahead."""
    table, words = tables["figure1"], []
    shares = [Shares.of(ratio_curve(table, method, form)) for method in ("emp", "smp")]
    for method, now in zip(("emp", "smp"), shares, strict=True):
        kept = Shares.of(ratio_curve(table, method, form, "returned_gap"))
        words.append(f"{method.upper()} {now} (by what Algorithm 1 returns: {kept})")
    return Outcome(all(s.consistent for s in shares), f"share of the points: {'; '.join(words)}")


@_claim(
    "figure1", MAIN, "They are so especially for SMP.",
    "the mean log-competitive ratio of SMP is positive and above that of EMP",
)  # fmt: skip
def especially_stars(tables: Tables, form: str) -> Outcome:
    """Compare the mean log-competitive ratios of SMP and EMP."""
    ratios = (ratio_curve(tables["figure1"], m, form) for m in ("emp", "smp"))
    edge, star = (float(ratio.mean.mean()) for ratio in ratios)
    numbers = f"mean log-competitive ratio over the run: SMP {star:+.3f}, EMP {edge:+.3f}"
    return Outcome(star > max(edge, 0.0), numbers)


@_claim(
    "figure1", MAIN, "The upper bounds for the standard algorithms may be overly conservative.",
    "Theorem 1 grants at least ten times the updates that were needed", ("standard",),
)  # fmt: skip
def conservative(tables: Tables, form: str) -> Outcome:
    """Compare the updates of a run with the iteration bounds of Theorem 1."""
    row = tables["truth"].where(n=tables["figure1"]["n"][0])
    sizes = theory.Sizes(
        int(row["n"][0]), int(row["m"][0]), round(row["labels"][0]), float(row["cost"][0]),
        round(row["min_degree"][0]), round(row["max_degree"][0]),
    )  # fmt: skip
    words, excess = [], []
    for method, blocks in (("emp", "edges"), ("smp", "stars")):
        found = curve(tables["figure1"].where(method=method, form=form))
        allowed = theory.standard_iterations(sizes, found.last, blocks)  # type: ignore[arg-type]
        excess.append(allowed / found.updates[-1])
        words.append(
            f"{method.upper()} reaches a gap of {found.last:.3g} in {found.updates[-1]:,.0f}"
            f" updates, Theorem 1 grants {allowed:.1e}"
        )
    return Outcome(min(excess) >= 10, "; ".join(words))


def _messages(tables: Tables, method: str, form: str) -> float:
    rows = tables["figure1"].where(method=method, form=form)
    return float((rows["work"] / rows["updates"])[rows["updates"] == rows["updates"].max()].mean())


@_claim(
    "figure1", APPENDIX, "Updates of SMP and Accel-SMP cost more each.",
    "messages per update are more for SMP than for EMP", EVERY,
)  # fmt: skip
def dearer_stars(tables: Tables, form: str) -> Outcome:
    """Compare the messages per update of SMP and EMP."""
    star, edge = (_messages(tables, m, form) for m in ("smp", "emp"))
    return Outcome(star > edge, f"messages per update: SMP {star:.2f}, EMP {edge:.2f}")


@_claim(
    "figure1", APPENDIX, "An update of coordinate descent is about as expensive as one of EMP.",
    "messages per update are the same to one per cent", EVERY,
)  # fmt: skip
def equal_descent(tables: Tables, form: str) -> Outcome:
    """Compare the messages per update of BCD and EMP."""
    descent, edge = (_messages(tables, m, form) for m in ("bcd", "emp"))
    numbers = f"messages per update: BCD {descent:.2f}, EMP {edge:.2f}"
    return Outcome(descent <= SAME_COST * edge, numbers)


@_claim(
    "truth", APPENDIX, "With these costs, vertices cannot simply take their least vertex cost.",
    "labels of least vertex cost come less than half the way from uniform to the optimum",
    ("standard",),
)  # fmt: skip
def pairwise_matters(tables: Tables, form: str) -> Outcome:
    """Compare the labels of least vertex cost with uniform marginals and the optimum."""
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
    return Outcome(part < 0.5, numbers)


@_claim(
    "truth", APPENDIX,
    "The graphs are small enough for the optimum to come from a standard LP solver.",
    "HiGHS ends with an optimum on every graph; CVXPY, where asked, agrees to 1e-5", ("standard",),
)  # fmt: skip
def solvable(tables: Tables, form: str) -> Outcome:
    """Compare the optima of HiGHS and CVXPY."""
    facts = tables["truth"]
    checked = np.isfinite(facts["cvxpy_optimum"])
    apart = np.abs(facts["optimum"] - facts["cvxpy_optimum"])[checked]
    worst = float(apart.max(initial=0.0))
    pairs = zip(facts["n"], facts["optimum"], strict=True)
    values = ", ".join(f"n = {n}: {v:.6f}" for n, v in pairs)
    agrees = f"CVXPY differs by {max(worst, 1e-7):.0e} at most"
    other = agrees if checked.any() else "CVXPY not installed"
    return Outcome(worst < 1e-5, f"LP optima: {values}; {other}")


def _by_size(tables: Tables, form: str) -> dict[int, Curve]:
    table = tables["figure2"]
    return {n: ratio_curve(table.where(n=n), "smp", form) for (n,) in table.distinct("n")}


@_claim(
    "figure2", APPENDIX, "Accel-SMP runs faster in all regimes.", f"{AHEAD}, for every size"
)  # fmt: skip
def all_sizes(tables: Tables, form: str) -> Outcome:
    """Count the points at which Accel-SMP is ahead, for every size."""
    found = _by_size(tables, form)
    shares = {n: Shares.of(c) for n, c in found.items()}
    words = "; ".join(f"n = {n} {shares[n]} (mean {c.mean.mean():+.3f})" for n, c in found.items())
    return Outcome(all(s.consistent for s in shares.values()), f"share of the points: {words}")


@_claim(
    "figure2", APPENDIX, "It does so especially at the beginning.",
    "the mean ratio is largest within the first tenth of the updates, and positive there",
)  # fmt: skip
def at_the_beginning(tables: Tables, form: str) -> Outcome:
    """Find the largest mean ratio of every size."""
    words, early = [], []
    for n, found in _by_size(tables, form).items():
        k = int(found.mean.argmax())
        words.append(f"n = {n}: {found.mean[k]:+.3f} at {found.updates[k]:,.0f}")
        early.append(found.mean[k] > 0 and found.updates[k] <= 0.1 * found.updates[-1])
    return Outcome(all(early), f"largest mean ratio: {'; '.join(words)}")


@_claim(
    "figure2", APPENDIX, "The improvement eventually tapers.",
    "averaged over the last tenth of the points, the ratio is less than half its largest",
)  # fmt: skip
def tapers(tables: Tables, form: str) -> Outcome:
    """Compare the largest mean ratio with that of the last tenth of the points."""
    words, ends = [], []
    for n, found in _by_size(tables, form).items():
        peak = float(found.mean.max())
        end = float(found.mean[-max(1, len(found.mean) // 10) :].mean())
        words.append(f"n = {n}: {peak:+.3f} down to {end:+.3f}")
        ends.append(peak > 0 and end < 0.5 * peak)
    return Outcome(all(ends), f"from the largest mean ratio to the end: {'; '.join(words)}")


INTRODUCTION = """\
# What holds of the paper's experiments

Every empirical sentence of the paper's section on experiments and of its appendix, in our words,
decided by the tables beside this file. *As printed* are Algorithms 2 and 3 to the letter; *as
proved* is the form that their proofs need. “Gap” is ⟨C, Proj(μ^λ, 0)⟩ minus the LP optimum at the
current iterate λ. The log-competitive ratio is log(gap of the standard method / gap of the
accelerated one), positive where the accelerated one is ahead.
"""


HOLDS = ("holds", "does not hold")
SHORT = ("seen in this run", "not seen in this run")
Words = tuple[str, str]  # for a claim that holds, and for one that does not


def write_claims(claims: Sequence[Claim], settings: Settings | None = None) -> str:
    """Return the page claims.md. A run shorter than the paper's decides no claim."""
    words, introduction = HOLDS, INTRODUCTION
    full = Settings()
    if settings is not None and (settings.updates < full.updates or settings.trials < full.trials):
        words = SHORT
        introduction += f"""
**This was a short run**: {settings.trials} trials of {settings.updates:,} updates, in place of
{full.trials} trials of {full.updates:,}. The sentences are about the long run: this page says what
was seen and decides none of them; `softmap reproduce all` without `--quick` does.
"""
    return "\n".join([introduction, overview(claims, words), "", details(claims, words)])


def overview(claims: Sequence[Claim], words: Words = HOLDS) -> str:
    """Return a Markdown table with one row per claim."""
    lines = ["| | claim | as printed | as proved |", "| --- | --- | --- | --- |"]
    for k, claim in enumerate(claims, 1):
        cells = " | ".join(_word(claim.outcomes, form, words) for form in FORMS)
        lines.append(f"| {k} | {claim.says} | {cells} |")
    return "\n".join(lines)


def _word(outcomes: dict[str, Outcome], form: str, words: Words) -> str:
    outcome = outcomes.get(form, outcomes.get("standard"))
    if outcome is None:
        return "–"
    return words[0] if outcome.holds else f"**{words[1]}**"


def details(claims: Sequence[Claim], words: Words = HOLDS) -> str:
    """Return a section per claim: its place in the paper, its rule, and the numbers."""
    lines = []
    for k, claim in enumerate(claims, 1):
        place = f"From the {claim.where}. Holds if: {claim.rule}."
        lines += [f"## {k}. {claim.says}", "", place, ""]
        for form, outcome in claim.outcomes.items():
            name = "standard methods" if form == "standard" else f"as {form}"
            numbers = outcome.numbers[:1].upper() + outcome.numbers[1:]
            lines.append(f"- *{name}*: **{words[not outcome.holds]}**. {numbers}.")
        lines.append("")
    return "\n".join(lines)
