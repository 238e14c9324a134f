"""Figures in texts are those of the stored runs."""

import json
import re

import pytest
from benchmarks.map_race import Entry, Race, as_json, races_of

from benchmarks import figures

CLAIM = re.compile(r"\d+ of \d+ models|proved optimal, of \d+|times as fast|\d+ times as long")


@pytest.mark.parametrize("path", figures.texts(), ids=lambda path: path.name)
def test_texts_and_stored_runs_agree(path):
    text = path.read_text("utf-8")
    assert figures.renewed(text) == text, "make figures"
    assert text.count("<!--figure") == len(figures.FIGURE.findall(text))


@pytest.mark.parametrize("path", [figures.ROOT / "README.md", figures.ROOT / "docs" / "index.md"])
def test_a_comparison_in_the_readme_has_a_stored_run(path):
    rest = figures.FIGURE.sub("", path.read_text("utf-8"))
    for line in rest.splitlines():
        assert not CLAIM.search(line) or re.search(r"\d", line) is None, line


def test_every_figure_is_used_and_can_be_made():
    used = {
        n for path in figures.texts() for n, _ in figures.FIGURE.findall(path.read_text("utf-8"))
    }
    assert used == set(figures.FIGURES)
    for name, figure in figures.FIGURES.items():
        assert figure() or name.startswith("uai2022"), name


def test_stored_runs_say_when_and_where():
    for name in ("labels.json", "landing.json", "gpu.json"):
        assert {"date", "softmap"} <= figures.stored(name)["facts"].keys()


def test_a_race_survives_its_file():
    one = Race("a/b", 3, Entry(1.5, True, 0.25, 1.5), Entry(float("inf"), False, 10.0), None)
    stored = json.loads(as_json([one], 10.0))
    assert races_of(stored["races"]) == [one]
    assert stored["facts"]["seconds"] == 10.0
