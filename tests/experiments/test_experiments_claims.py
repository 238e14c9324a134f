"""Tables, curves and claims from small fixed tables, and the page that is built of them."""

import importlib.util
import math

import numpy as np
import pytest

from softmap.app.experiments import claims
from softmap.app.experiments.claims import MAIN, Claim, Outcome, Shares, overview, write_claims
from softmap.app.experiments.plan import settings_for
from softmap.app.experiments.tables import Curve, Table, curve, first_below, log_ratio
from softmap.errors import FormatError
from support.data import ROOT

DOCS = ROOT / "docs" / "reproduction"
NAMES = (
    "n",
    "method",
    "form",
    "eta",
    "trial",
    "updates",
    "work",
    "gap",
    "returned_gap",
    "bound_gap",
)
UPDATES = (10, 100, 1000, 10000)


def runs(method, form, gaps, n=100, trials=2, messages=1):
    """Rows of a method whose gap is the same in each trial, but for a factor that averages out."""
    return [
        (n, method, form, 1000.0, t, k, messages * k, gap, gap, gap / 2)
        for t in range(trials)
        for k, gap in zip(UPDATES, gaps, strict=True)
    ]


def figure1(accelerated):
    """EMP, SMP and BCD fall fast, faster and slowly; `accelerated` divides their gaps, by form."""
    standard = {"emp": (80, 40, 20, 10), "smp": (60, 20, 8, 4), "bcd": (90, 70, 50, 30)}
    rows = []
    for method, gaps in standard.items():
        each = 6 if method == "smp" else 1
        rows += runs(method, "standard", gaps, messages=each)
        for form, factors in accelerated.items():
            rows += runs(
                method, form, [g / f for g, f in zip(gaps, factors, strict=True)], messages=each
            )
    return Table.from_rows(NAMES, rows)


TRUTH = Table.from_rows(
    ("n", "m", "labels", "cost", "min_degree", "max_degree", "optimum", "cvxpy_optimum",
     "unary_energy", "uniform_cost", "fingerprint"),
    [(100, 270, 3, 1.0, 1, 9, -190.0, -190.0 + 1e-7, 1.0, 3.0, "abc")],
)  # fmt: skip


def test_the_ratio_is_positive_where_acceleration_has_the_lower_error():
    standard = Table.from_rows(NAMES, runs("emp", "standard", (8, 4, 2, 1)))
    better = Table.from_rows(NAMES, runs("emp", "printed", (4, 2, 1, 0.5)))
    assert log_ratio(standard, better) == pytest.approx(np.full((2, 4), math.log(2)))
    assert (log_ratio(better, standard) < 0).all()
    assert (log_ratio(standard, standard) == 0).all()


def test_gaps_within_tolerances_count_as_equal():
    standard = Table.from_rows(NAMES, runs("emp", "standard", (1, 1e-9, 0.0, -1e-9)))
    other = Table.from_rows(NAMES, runs("emp", "printed", (1, 1e-12, 1e-8, 1e-7)))
    assert (log_ratio(standard, other) == 0).all()


def test_means_and_deviations_are_over_trials():
    rows = [(5, "emp", "standard", 1.0, t, k, 2 * k + t, g, g, g)
            for t, gaps in enumerate([(1.0, 3.0), (3.0, 5.0)])
            for k, g in zip((10, 20), gaps, strict=True)]  # fmt: skip
    found = curve(Table.from_rows(NAMES, rows))
    assert found.mean.tolist() == [2.0, 4.0]
    assert found.deviation.tolist() == [1.0, 1.0]
    assert found.work.tolist() == [20.5, 40.5]
    assert found.last == 4.0
    assert first_below(found, 2.0) == 10
    assert first_below(found, 1.0) == math.inf


def test_trials_are_paired():
    """A trial is compared with the trial of the same number, in whatever order rows come."""
    first = Table.from_rows(NAMES, runs("emp", "standard", (1, 1, 1, 1), trials=1))
    rows = [(*row[:4], t, *row[5:7], float(t + 1), 1.0, 1.0)
            for t in (1, 0) for row in runs("emp", "standard", (1, 1, 1, 1), trials=1)]  # fmt: skip
    two = Table.from_rows(NAMES, rows)
    ratio = log_ratio(two, two)
    assert (ratio == 0).all()
    assert two.by_trial("gap")[:, 0].tolist() == [1.0, 2.0]
    assert len(first.by_trial("gap")) == 1


def test_shares_know_a_draw():
    found = Curve(
        *(
            np.array(v)
            for v in ([1.0, 2, 3, 4], [1.0, 2, 3, 4], [0.5, 0.001, -0.004, 0.2], [0.0] * 4)
        )
    )
    assert Shares.of(found) == Shares(0.5, 0.5, 0.0)
    assert Shares.of(found).consistent
    level = Shares(0.0, 1.0, 0.0)
    assert not level.consistent
    assert not Shares(0.5, 0.3, 0.2).consistent


def outcomes(tables, name):
    return {form: v.holds for form, v in getattr(claims, name)(tables).outcomes.items()}


def test_claims_of_figure_1():
    table = figure1({"printed": (1.2, 1.2, 1.2, 1.2), "proved": (0.5, 0.5, 2.0, 4.0)})
    tables = {"figure1": table, "truth": TRUTH}
    assert outcomes(tables, "stars_first") == {"standard": True, "printed": True, "proved": True}
    assert outcomes(tables, "edges_before_descent")["standard"]
    assert outcomes(tables, "marginal") == {"printed": True, "proved": True}
    assert outcomes(tables, "consistent") == {"printed": True, "proved": False}
    assert outcomes(tables, "especially_stars") == {"printed": False, "proved": False}
    assert outcomes(tables, "conservative") == {"standard": True}
    assert outcomes(tables, "dearer_stars")["standard"]
    assert outcomes(tables, "equal_descent")["proved"]
    assert outcomes(tables, "pairwise_matters") == {"standard": True}
    assert outcomes(tables, "solvable") == {"standard": True}
    numbers = claims.marginal(tables).outcomes["printed"].numbers
    assert "EMP 1.2 (at the end 1.2, within 5% of 1 up to 0 updates)" in numbers
    assert "SMP 6.00, EMP 1.00" in claims.dearer_stars(tables).outcomes["standard"].numbers


def test_claims_fail_when_the_numbers_do():
    table = figure1({"printed": (1.0, 1.0, 1.0, 1.0), "proved": (3.0, 3.0, 3.0, 3.0)})
    truth = Table(
        {**TRUTH.columns, "unary_energy": np.array([-180.0]), "cvxpy_optimum": np.array([-191.0])}
    )
    tables = {"figure1": table, "truth": truth}
    assert outcomes(tables, "consistent") == {"printed": False, "proved": True}
    assert outcomes(tables, "marginal") == {"printed": True, "proved": False}
    assert outcomes(tables, "pairwise_matters") == {"standard": False}
    assert outcomes(tables, "solvable") == {"standard": False}
    other = [{"emp": "smp", "smp": "emp"}.get(m, m) for m in table["method"]]
    swapped = Table({**table.columns, "method": np.array(other, dtype=object)})
    assert not claims.stars_first({"figure1": swapped}).outcomes["standard"].holds


def test_claims_of_figure_2():
    rows = []
    for n in (9, 36):
        rows += runs("smp", "standard", (80, 40, 20, 10), n=n)
        rows += runs("smp", "printed", (40, 30, 19, 9.9), n=n)  # ahead at first, then tapering
        rows += runs("smp", "proved", (160, 60, 20, 5), n=n)  # behind at first, then ahead
    tables = {"figure2": Table.from_rows(NAMES, rows)}
    assert outcomes(tables, "all_sizes") == {"printed": True, "proved": False}
    assert outcomes(tables, "at_the_beginning") == {"printed": True, "proved": False}
    assert outcomes(tables, "tapers") == {"printed": True, "proved": False}
    assert len(claims.decide(tables)) == 3


def test_claims_are_written_with_their_numbers():
    claim = Claim(
        "A says B.",
        "section X",
        "B is so",
        {"printed": Outcome(True, "seven"), "proved": Outcome(False, "one")},
    )
    plain = Claim("C.", "section Y", "D", {"standard": Outcome(True, "two")})
    text = write_claims([claim, plain])
    assert "| 1 | A says B. | holds | **does not hold** |" in text
    assert "| 2 | C. | holds | holds |" in overview([claim, plain])
    assert "- *as printed*: **holds**. Seven." in text
    assert "- *standard methods*: **holds**. Two." in text


def test_tables_come_back_from_csv(tmp_path):
    table = Table.from_rows(NAMES, runs("emp", "standard", (1.5, math.pi, 1e-7, 0)))
    table.to_csv(tmp_path / "t.csv")
    back = Table.from_csv(tmp_path / "t.csv")
    assert list(back.columns) == list(NAMES)
    assert back["gap"] == pytest.approx(table["gap"], rel=1e-9)
    assert back["method"].tolist() == table["method"].tolist()
    assert back["updates"].dtype == np.int64
    assert list(back.distinct("method", "form")) == [("emp", "standard")]
    (tmp_path / "bad.csv").write_text("n,gap\nten,1\n")
    with pytest.raises(FormatError):
        Table.from_csv(tmp_path / "bad.csv")
    with pytest.raises(ValueError, match="one length"):
        Table({"a": np.zeros(2), "b": np.zeros(3)})


@pytest.mark.skipif(not (DOCS / "build.py").exists(), reason="the documentation is not here")
def test_the_page_is_built_from_the_tables(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    spec = importlib.util.spec_from_file_location("build", DOCS / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    assert (DOCS / "index.md").read_text(encoding="utf-8") == build.page()


def test_a_short_run_decides_nothing():
    """5,000 updates say nothing about sentences on 100,000 of them."""
    claim = Claim("It is faster.", MAIN, "it is", {"standard": Outcome(False, "numbers")})
    short = write_claims([claim], settings_for(quick=True))
    assert "does not hold" not in short
    assert "not seen in this run" in short
    assert "3 trials of 5,000 updates" in short
    assert "without `--quick`" in short
    whole = write_claims([claim], settings_for())
    assert "**does not hold**" in whole
    assert "short run" not in whole
