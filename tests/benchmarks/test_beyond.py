"""The tables beyond the paper: fair shares of work, and a page that fits its tables."""

import csv
import runpy
from pathlib import Path

from benchmarks import beyond

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"


def test_every_method_gets_as_many_messages(tmp_path, monkeypatch):
    for name, value in (("SIZES", (9,)), ("GRAPHS", 1), ("TRIALS", 2), ("UPDATES", 400)):
        monkeypatch.setattr(beyond, name, value)
    beyond.main("sweeps", str(tmp_path))
    with (tmp_path / "beyond-sweeps.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ours = {row["sweeps"]: int(row["work"]) for row in rows if row["method"] == "accel-sweeps"}
    assert len(rows) == 5 * len(ours)
    assert all(int(row["work"]) >= ours[row["sweeps"]] for row in rows)
    assert all(float(row["gap"]) >= -1e-6 <= float(row["bound_gap"]) for row in rows)
    best = [float(row["best"]) for row in rows if row["method"] == "accel-sweeps"]
    assert best == sorted(best, reverse=True)


def test_the_page_is_that_of_its_tables():
    made = runpy.run_path(str(FOLDER / "beyond.py"))
    sweeps, models = made["read"]("beyond-sweeps.csv"), made["read"]("beyond-greedy.csv")
    page = (FOLDER / "beyond.md").read_text("utf-8")
    assert made["sweep_table"](sweeps) in page
    assert made["greedy_table"](made["grouped"](models)) in page
