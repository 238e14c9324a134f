"""The stored run of the published pages is what today's code computes, to the bit.

After a change that is meant to change numbers: `softmap reproduce all --out docs/reproduction`,
`python -m benchmarks.readings docs/reproduction`, `make figures-paper` (decision 133).
"""

import json
import runpy
import sys

import numpy as np
import pytest

from benchmarks import readings
from softmap import core
from softmap.app.experiments.archive import load_run
from softmap.app.experiments.code import code_digest
from softmap.app.experiments.plan import FIGURES, Plan
from softmap.app.experiments.problems import optimum
from softmap.app.experiments.publishing import tables_of
from softmap.app.experiments.reproduce import stored_evidence, stored_settings
from softmap.app.experiments.tables import Table
from softmap.app.experiments.trials import follow
from support.data import ROOT

DOCS = ROOT / "docs" / "reproduction"
EXACT = [0, 1, 3, 4, 5, 6]  # the fields of a point but the seconds
STALE = "the stored run is not what today's code computes: see decision 133"

pytestmark = [
    pytest.mark.skipif(not (DOCS / "run.npz").exists(), reason="the stored run is not here"),
]
same_bits = pytest.mark.skipif(core.level() == "v2", reason="no fused instructions: decision 29")


@pytest.fixture(scope="module")
def run():
    return load_run(DOCS)


@pytest.fixture(scope="module")
def manifest():
    return json.loads((DOCS / "manifest.json").read_text(encoding="utf-8"))


def piece(run, graph, until):
    """One trial on one graph of every curve of every figure, up to some updates."""
    curves = {}
    for unit in run:
        key = (
            unit.figure,
            unit.graph.n,
            unit.method,
            unit.eta,
            unit.last if unit.method.settled else 0,
        )
        if unit.graph.seed == graph and unit.checks[0] <= until:
            curves.setdefault(key, unit)
    return curves.values()


def again(run, units, until):
    different = []
    for unit in units:
        now = np.array(follow(unit, until))[:, EXACT]
        before = np.array(run[unit])[: len(now), EXACT]
        if not np.array_equal(now, before, equal_nan=True):
            different.append(f"{unit.figure} n = {unit.graph.n} {unit.method.label}")
    return different


@same_bits
def test_a_piece_of_the_stored_run_again(run):
    assert again(run, piece(run, 0, 500), 500) == [], STALE


@same_bits
def test_whole_trials_again_if_the_code_has_changed(run, manifest):
    """The digest alone is no reason to repeat the run, but to look at more of it."""
    figures = ("figure4",) if code_digest() == manifest["code"] else ("figure1", "figure3")
    units = [u for u in piece(run, 3, 10**9) if u.figure in figures and u.last <= 100_000]
    if figures == ("figure4",):
        units = [u for u in units if u.method.settled and u.last <= 10_000]
    assert len(units) > 8
    assert again(run, units, None) == [], STALE


@same_bits
def test_readings_again():
    with np.load(DOCS / "readings.npz") as stored:
        costs, checks = stored["costs"], stored["checks"].tolist()
    few = tuple(k for k in checks if k <= 60)
    for k, kind in enumerate(readings.KINDS):
        now = readings.piece(kind, readings.SIZE, 2, few)
        np.testing.assert_array_equal(now, costs[k, 2, :, :, : len(few)], err_msg=STALE)


def test_optima_again():
    """Another machine may end at another vertex of equal cost: the last digits are its own."""
    truth = Table.from_csv(DOCS / "truth.csv")
    for n in (9, 81):
        facts = truth.where(n=n)
        graph = next(unit.graph for unit in Plan(FIGURES, stored_settings(DOCS)).units
                     if (unit.graph.n, unit.graph.seed) == (n, 1))  # fmt: skip
        assert graph.model().fingerprint() == facts["fingerprint"][1]
        assert facts["optimum"][1] == pytest.approx(optimum(graph.model()), abs=1e-8)


def test_the_stored_run_is_the_full_one(run, manifest):
    settings = stored_settings(DOCS)
    assert (settings.graphs, settings.trials, settings.updates) == (20, 10, 100_000)
    assert list(run) == Plan(FIGURES, settings).units
    assert set(manifest) == {"figures", "settings", "date", "machine", "versions", "code"}


@pytest.fixture(scope="module")
def page():
    """The page, and the tables, made of the stored run."""
    sys.path.insert(0, str(DOCS))
    try:
        build = runpy.run_path(str(DOCS / "build.py"))
    finally:
        sys.path.remove(str(DOCS))
    return build


@pytest.fixture(scope="module")
def evidence():
    return stored_evidence(DOCS)


def test_the_pages_are_built_from_the_run(page, evidence):
    assert (DOCS / "index.md").read_text(encoding="utf-8") == page["page"](DOCS, evidence)
    lines = page["readings"].read()
    assert (DOCS / "readings.md").read_text("utf-8") == page["readings"].page(lines)


def test_the_tables_are_those_of_the_run(evidence):
    made = tables_of(evidence)
    for name, table in made.items():
        stored = Table.from_csv(DOCS / f"{name}.csv")
        assert list(stored.columns) == list(table.columns)
        for column, values in table.columns.items():
            if values.dtype == object:
                assert stored[column].tolist() == values.tolist()
            else:
                np.testing.assert_allclose(stored[column], values, rtol=1e-8, atol=1e-12)
