"""A new user's ten tasks: each is on the page of tasks, in at most eight lines that run."""

import re

import pytest
from test_docs import run_page

from support.data import ROOT
from support.pages import BLOCK

PAGE = ROOT / "docs" / "guides" / "tasks.md"
TASKS = {
    "Your own picture": "softmap.segment(",
    "A timetable with hard constraints": "np.inf",
    "A UAI file": 'softmap.read("model.uai")',
    "A Bayes net with names": ".as_dict()",
    "A QUBO": "from_qubo(Q)",
    "A changed model": "warm_start=first",
    "A batch": "for frame in",
    "A time limit": "time_limit=",
    "A script": "--json",
    "A report": "report(",
}
PARTS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S))


@pytest.mark.parametrize("task", TASKS)
def test_a_task_takes_at_most_eight_lines(task):
    blocks = [text for kind, text in BLOCK.findall(PARTS[task]) if kind in ("python", "sh")]
    lines = [line for text in blocks for line in text.splitlines() if line.strip()]
    assert TASKS[task] in "\n".join(lines)
    assert len(lines) <= 8


def test_the_tasks_are_done(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGE) >= 2 * len(TASKS) - 2
    written = {file.name for file in tmp_path.iterdir()}
    assert {"model.uai.MPE", "photo.html", "hard.html", "model.html"} <= written


def test_there_are_ten_and_no_others():
    assert list(PARTS) == list(TASKS)
