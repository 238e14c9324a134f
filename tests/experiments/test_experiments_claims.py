"""Tables, intervals and claims from small fixed runs."""

import math
from itertools import product

import numpy as np
import pytest

from softmap.app.experiments import claims
from softmap.app.experiments.claims import (
    MAIN,
    Claim,
    Outcome,
    Verdict,
    details,
    overview,
    write_claims,
)
from softmap.app.experiments.entries import Method
from softmap.app.experiments.plan import Settings, settings_for
from softmap.app.experiments.problems import COLUMNS, Graph
from softmap.app.experiments.publishing import tables_of
from softmap.app.experiments.samples import (
    Bootstrap,
    Curve,
    Estimate,
    Evidence,
    first_below,
    gap_curve,
)
from softmap.app.experiments.tables import Table
from softmap.app.experiments.trials import Point, Unit
from softmap.errors import FormatError

UPDATES = (10, 100, 1000, 10000)
GRAPHS, TRIALS = 4, 3
OPTIMUM = -190.0


def truth(sizes=(100,), **changed):
    facts = {
        "m": 270, "labels": 3, "cost": 1.0, "min_degree": 1, "max_degree": 9, "optimum": OPTIMUM,
        "cvxpy_optimum": OPTIMUM + 1e-7, "unary_energy": 1.0, "uniform_cost": 3.0,
        "fingerprint": "abc", **changed,
    }  # fmt: skip
    rows = [
        [n if name == "n" else k if name == "graph" else facts[name] for name in COLUMNS]
        for n, k in product(sizes, range(GRAPHS))
    ]
    return Table.from_rows(COLUMNS, rows)


def runs(figure, method, form, gaps, n=100, messages=1, noise=0.0, checks=UPDATES):
    """Trials of a method whose gaps are given; noise multiplies those of a graph and a trial."""
    rng = np.random.default_rng(0)
    results = {}
    for graph, trial in product(range(GRAPHS), range(TRIALS)):
        factor = math.exp(noise * rng.normal())
        unit = Unit(figure, Graph(n, 3, graph), Method(method, form), 1000.0, trial, checks)
        results[unit] = [
            Point(k, messages * k, 0.1, OPTIMUM + factor * gap, math.nan, OPTIMUM - gap / 2,
                  OPTIMUM + gap / 2)
            for k, gap in zip(checks, gaps, strict=True)
        ]  # fmt: skip
    return results


def figure1(accelerated, noise=0.0):
    """EMP, SMP and BCD fall fast, faster and slowly; `accelerated` divides their gaps, by form."""
    standard = {"emp": (80, 40, 20, 10), "smp": (60, 20, 8, 4), "bcd": (90, 70, 50, 30)}
    results = {}
    for method, gaps in standard.items():
        each = 6 if method == "smp" else 1
        results |= runs("figure1", method, "standard", gaps, messages=each, noise=noise)
        for form, factors in accelerated.items():
            divided = [g / f for g, f in zip(gaps, factors, strict=True)]
            results |= runs("figure1", method, form, divided, messages=each, noise=-noise)
    return results


def verdicts(evidence, name):
    return {form: o.verdict for form, o in getattr(claims, name)(evidence).outcomes.items()}


HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED


def test_the_ratio_is_positive_where_acceleration_has_the_lower_error():
    evidence = Evidence(figure1({"printed": (2, 2, 2, 2), "proved": (1, 1, 1, 1)}), truth(), 50)
    ratio = evidence.ratio("figure1", 100, "emp", "printed")
    assert ratio == pytest.approx(np.full((GRAPHS, TRIALS, 4), math.log(2)))
    assert (evidence.ratio("figure1", 100, "emp", "proved") == 0).all()


def test_gaps_within_tolerances_count_as_equal():
    results = runs("figure1", "emp", "standard", (1, 1e-9, 0.0, -1e-9))
    results |= runs("figure1", "emp", "printed", (1, 1e-12, 1e-8, 1e-7))
    ratio = Evidence(results, truth(), 50).ratio("figure1", 100, "emp", "printed")
    assert (ratio == 0).all()


def test_columns_are_kept_apart():
    evidence = Evidence(runs("figure1", "emp", "standard", (8, 4, 2, 1)), truth(), 50)
    columns = evidence.runs("figure1", 100, "emp", "standard").columns
    assert columns["gap"][0, 0].tolist() == pytest.approx([8, 4, 2, 1])
    assert columns["returned_gap"][0, 0].tolist() == pytest.approx([8, 4, 2, 1])
    assert columns["bound_gap"][0, 0].tolist() == pytest.approx([4, 2, 1, 0.5])
    assert columns["exchanged_gap"][0, 0].tolist() == pytest.approx([4, 2, 1, 0.5])
    curve = gap_curve(evidence, evidence.runs("figure1", 100, "emp", "standard"))
    assert first_below(curve, 2.1) == 1000
    assert first_below(curve, 0.5) == math.inf


def test_a_bootstrap_draws_graphs_and_then_trials():
    """Values that differ between graphs alone have the interval of a mean of as many graphs."""
    graphs = np.random.default_rng(1).normal(size=(20, 1))
    values = np.repeat(graphs, 10, axis=1)
    samples = Bootstrap(20, 10, 4000).means(values)
    assert samples[0] == pytest.approx(values.mean())
    assert samples[1:].std() == pytest.approx(graphs.std() / math.sqrt(20), rel=0.05)
    within = np.random.default_rng(2).normal(size=(1, 10))
    spread = Bootstrap(1, 10, 4000).means(within)[1:].std()
    assert spread == pytest.approx(within.std() / math.sqrt(10), rel=0.05)


def test_intervals_hold_what_they_should():
    """Of a hundred samples of twenty graphs, most intervals contain the mean of the law."""
    rng = np.random.default_rng(3)
    bootstrap = Bootstrap(20, 2, 400)
    inside = 0
    for _ in range(100):
        values = rng.normal(size=(20, 1)) + 0.5 * rng.normal(size=(20, 2))
        estimate = Estimate.of(bootstrap.means(values))
        inside += estimate.low <= 0.0 <= estimate.high
    assert 84 <= inside <= 100


def test_claims_follow_from_the_numbers():
    """Printed is better throughout, proved is worse at first and better at the end."""
    evidence = Evidence(
        figure1({"printed": (1.1, 1.2, 1.3, 1.2), "proved": (0.5, 0.9, 1.6, 1.8)}), truth(), 50
    )
    assert verdicts(evidence, "stars_first") == {
        "standard": HOLDS, "printed": HOLDS, "proved": HOLDS,
    }  # fmt: skip
    assert verdicts(evidence, "edges_before_descent")["standard"] is HOLDS
    assert verdicts(evidence, "marginal") == {"printed": HOLDS, "proved": HOLDS}
    assert verdicts(evidence, "consistent") == {"printed": HOLDS, "proved": FAILS}
    assert verdicts(evidence, "conservative") == {"standard": HOLDS}
    assert verdicts(evidence, "dearer_stars")["standard"] is HOLDS
    assert verdicts(evidence, "equal_descent")["proved"] is HOLDS
    assert verdicts(evidence, "pairwise_matters") == {"standard": HOLDS}
    assert verdicts(evidence, "solvable") == {"standard": HOLDS}
    numbers = claims.marginal(evidence).outcomes["printed"].numbers
    assert "EMP 1.2 (at the end 1.2, within 5% of 1 up to 0 updates)" in numbers
    assert "SMP 6.00, EMP 1.00" in claims.dearer_stars(evidence).outcomes["standard"].numbers


def test_an_advantage_of_stars_is_one_over_edges():
    even = {"printed": (1, 1, 1, 1), "proved": (1, 1, 1, 1)}
    results = figure1(even) | runs("figure1", "smp", "printed", (30, 10, 4, 2), messages=6)
    results |= runs("figure1", "emp", "proved", (40, 20, 10, 5))
    evidence = Evidence(results, truth(), 50)
    assert verdicts(evidence, "especially_stars") == {"printed": HOLDS, "proved": FAILS}


def test_claims_fail_when_the_numbers_do():
    table = truth(unary_energy=-180.0, cvxpy_optimum=-191.0)
    evidence = Evidence(
        figure1({"printed": (1.0, 1.0, 1.0, 1.0), "proved": (3.0, 3.0, 3.0, 3.0)}), table, 50
    )
    assert verdicts(evidence, "consistent") == {"printed": FAILS, "proved": HOLDS}
    assert verdicts(evidence, "marginal")["proved"] is FAILS
    assert verdicts(evidence, "pairwise_matters") == {"standard": FAILS}
    assert verdicts(evidence, "solvable") == {"standard": FAILS}


def test_the_first_method_is_the_one_with_the_smallest_gap():
    swapped = {"emp": "smp", "smp": "emp", "bcd": "bcd"}
    results = figure1({"printed": (1, 1, 1, 1), "proved": (1, 1, 1, 1)})
    other = {
        Unit(u.figure, u.graph, Method(swapped[u.method.method], u.method.form), u.eta, u.trial,
             u.checks): points
        for u, points in results.items()
    }  # fmt: skip
    assert verdicts(Evidence(other, truth(), 50), "stars_first")["standard"] is FAILS


def test_a_claim_is_undecided_if_the_graphs_disagree():
    quiet = Evidence(figure1({"printed": (1, 1.1, 1.1, 1.1), "proved": (1, 1, 1, 1)}), truth(), 200)
    noisy = Evidence(
        figure1({"printed": (1, 1.1, 1.1, 1.1), "proved": (1, 1, 1, 1)}, noise=1.0), truth(), 200
    )
    assert verdicts(quiet, "marginal")["printed"] is HOLDS
    outcome = claims.marginal(noisy).outcomes["printed"]
    assert outcome.verdict is UNDECIDED
    assert outcome.effect.low < 0 < outcome.effect.high


def test_claims_of_figure_2():
    results = {}
    for n in (9, 36):
        results |= runs("figure2", "smp", "standard", (80, 40, 20, 10), n=n)
        results |= runs("figure2", "smp", "printed", (40, 30, 19, 9.9), n=n)  # ahead, then tapering
        results |= runs("figure2", "smp", "proved", (160, 60, 20, 5), n=n)  # behind, then ahead
    evidence = Evidence(results, truth((9, 36)), 50)
    assert verdicts(evidence, "all_sizes") == {"printed": HOLDS, "proved": FAILS}
    assert verdicts(evidence, "at_the_beginning") == {"printed": HOLDS, "proved": FAILS}
    assert verdicts(evidence, "tapers") == {"printed": HOLDS, "proved": FAILS}
    assert len(claims.decide(evidence)) == 5


def test_figure_4_compares_runs_of_equal_length():
    results = runs("figure4", "smp", "standard", (8, 4), checks=(10, 100))
    for form in ("printed", "proved"):
        results |= runs("figure4", "smp", form, (8, 8), checks=(10, 100))
        results |= runs("figure4", "smp", f"{form}-settled", (4,), checks=(10,))
        results |= runs("figure4", "smp", f"{form}-settled", (1,), checks=(100,))
    tables = tables_of(Evidence(results, truth(), 50))
    table = tables["figure4"]
    for form, means in (("printed", (0.0, -math.log(2))),
                        ("proved-settled", (math.log(2), math.log(4)))):  # fmt: skip
        assert table.where(form=form)["mean"].tolist() == pytest.approx(means)
        assert table.where(form=form)["least"].tolist() == pytest.approx(means)
    assert table.where(form="proved-settled")["ahead"].tolist() == [GRAPHS, GRAPHS]
    assert len(tables["figure4-graphs"]) == GRAPHS * len(table)


def estimate(value):
    return Estimate(value, value - 0.1, value + 0.1)


def test_claims_are_written_with_their_numbers():
    claim = Claim(
        "A says B.",
        "section X",
        "how much B",
        {"printed": Outcome(estimate(1.0), "seven"), "proved": Outcome(estimate(-1.0), "one")},
    )
    plain = Claim("C.", "section Y", "D", {"standard": Outcome(estimate(0.05), "two")})
    text = write_claims([claim, plain], Settings())
    assert "| 1 | A says B. | holds | +1 [+0.9, +1.1] | **does not hold** |" in text
    assert "| 2 | C. | **undecided** | +0.05 [-0.05, +0.15] |" in overview([claim, plain])
    assert "- *as printed*: **holds**, effect +1 [+0.9, +1.1]. Seven." in text
    assert "- *standard methods*: **undecided**" in details([plain])


def test_tables_come_back_from_csv(tmp_path):
    table = Table.from_rows(
        ("n", "method", "gap", "optimum"), [(5, "emp", math.pi, 1 / 3), (6, "smp", 1e-7, -2 / 3)]
    )
    table.to_csv(tmp_path / "t.csv")
    back = Table.from_csv(tmp_path / "t.csv")
    assert back["gap"] == pytest.approx(table["gap"], rel=1e-9)
    assert back["optimum"].tolist() == [1 / 3, -2 / 3]
    assert back["method"].tolist() == ["emp", "smp"]
    assert back["n"].dtype == np.int64
    (tmp_path / "bad.csv").write_text("n,gap\nten,1\n")
    with pytest.raises(FormatError):
        Table.from_csv(tmp_path / "bad.csv")
    with pytest.raises(ValueError, match="one length"):
        Table({"a": np.zeros(2), "b": np.zeros(3)})


def test_a_short_run_decides_nothing():
    """5,000 updates say nothing about sentences on 100,000 of them."""
    claim = Claim("It is faster.", MAIN, "how", {"standard": Outcome(estimate(-1.0), "numbers")})
    short = write_claims([claim], settings_for(quick=True))
    assert "**does not hold**" not in short
    assert "**not seen in this run**" in short
    assert "3 trials of 5,000 updates on 3 graphs" in short
    assert "without `--quick`" in short
    whole = write_claims([claim], settings_for())
    assert "**does not hold**" in whole
    assert "short run" not in whole


def test_a_curve_has_the_interval_of_each_point():
    samples = np.array([[1.0, 5.0], [0.0, 4.0], [2.0, 6.0]])
    curve = Curve.of(np.array([1.0, 2.0]), samples)
    assert curve.last == 5.0
    assert curve.at(0).value == 1.0
    assert curve.at(0).low < 1.0 < curve.at(0).high
