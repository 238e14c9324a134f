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
from softmap.app.experiments.repeating import different, part
from softmap.app.experiments.reproduce import stored_evidence, stored_settings
from softmap.app.experiments.tables import Table
from support.data import ROOT

DOCS = ROOT / "docs" / "reproduction"
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


@same_bits
def test_a_part_of_the_stored_run_again(run):
    units = [unit for unit in part(run, 0) if unit.checks[0] <= 1000]
    assert len(units) > 60
    assert different(run, units, 1000) == [], STALE


@same_bits
def test_whole_trials_again(run, manifest):
    """`make figures-paper` repeats long ones if the code has changed, and stores its digest."""
    units = [u for u in part(run, 3) if u.method.settled and u.last <= 10_000]
    if code_digest() != manifest["checked"]:
        units += [u for u in part(run, 3) if u.figure == "figure1" or u.method.sweeping]
    assert len(units) > 8
    assert different(run, units) == [], STALE


def test_a_difference_is_noticed(run):
    unit = part(run, 0)[0]
    point = run[unit][2]
    changed = {unit: [*run[unit][:2], point._replace(primal=np.nextafter(point.primal, 0))]}
    assert different(changed, [unit], point.updates) == [
        f"{unit.figure} n = {unit.graph.n} {unit.method.label}"
    ]


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
    assert set(manifest) == {
        "figures", "settings", "date", "machine", "versions", "code", "checked",
    }  # fmt: skip


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
