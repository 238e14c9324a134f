"""The readings of the paper: all combinations, and what each changes."""

import csv
import runpy

import numpy as np
import pytest

from benchmarks import readings
from softmap import generators
from softmap.paper import methods as paper
from support.data import ROOT

FOLDER = ROOT / "docs" / "reproduction"


def test_every_combination_is_read_once():
    found = readings.readings()
    assert len(set(found)) == len(found) == 2 * 2 * 6 * 2


@pytest.mark.parametrize("family", readings.FAMILIES)
def test_the_printed_reading_is_the_printed_method(family):
    model = generators.erdos_renyi(12, 3, seed=1)
    method, state = readings.Reading(family, "λ", "printed", "1").begin(model, 5)
    kind = paper.AccelSMPPrinted if family == "smp" else paper.AccelEMPPrinted
    other = kind(readings.ETA)
    usual = other.init(model, None, 5)
    method.step(state, 50)
    other.step(usual, 50)
    np.testing.assert_array_equal(method.propose(state).lam, other.propose(usual).lam)


def test_readings_differ_in_what_they_say():
    model = generators.erdos_renyi(12, 3, seed=1)
    seen = set()
    for reading in readings.readings():
        method, state = reading.begin(model, 5)
        method.step(state, 40)
        seen.add(method.propose(state).lam.tobytes())
    # the printed step of edges is the sharpest one that is proved
    assert len(seen) == len(readings.readings()) - 4


def test_a_small_table_has_a_curve_for_every_reading(tmp_path):
    path = readings.write(tmp_path, size=9, seeds=1, updates=30, points=2)
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(readings.readings()) * 3 * 2
    assert all(np.isfinite(float(row["ratio"])) for row in rows)


def test_the_page_is_that_of_its_table():
    made = runpy.run_path(str(FOLDER / "readings.py"))
    stored = made["read"](FOLDER / "readings.csv")
    assert (FOLDER / "readings.md").read_text("utf-8") == made["page"](stored)
