"""The documentation is true: every snippet, command and example of it runs and prints what it says.

A page's blocks run from top to bottom in one folder: `python` blocks share their names, `sh` blocks
are commands of ours, and an `output` block is what the block before it printed (`...` stands
for anything).
"""

import contextlib
import importlib.util
import io
import re
import runpy
import shlex
import warnings
from pathlib import Path

import pytest

import softmap
from softmap.app.cli.app import main
from support.data import ROOT
from support.pages import BLOCK, agrees, run_python

DOCS = ROOT / "docs"
PAGES = [DOCS / "index.md", DOCS / "tutorial.md", *sorted((DOCS / "guides").glob("*.md"))]
PAGES += [DOCS / "theory" / "sweeps.md", DOCS / "theory" / "algorithms.md", DOCS / "coming-from.md"]
PAGES += [DOCS / "how-it-works.md", DOCS / "exercises.md", DOCS / "reference" / "extend.md"]
PAGES.remove(DOCS / "guides" / "tasks.md")  # it has a test of its own
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
# A block that imports one of these is skipped, with its output, if the package is not installed.
OPTIONAL = ("cpmpy", "cv2", "dimod", "networkx", "pyagrum", "pytoulbar2", "skimage", "torch")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def name_of(path: Path) -> str:
    return str(path.relative_to(DOCS))


def run_commands(block: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        for line in block.strip().splitlines():
            program, *words = shlex.split(line, comments=True)
            assert program == "softmap", f"not a command of ours: {line}"
            assert main(words) == 0, line
    return shown.getvalue()


def run_page(path: Path) -> int:
    names: dict[str, object] = {"__name__": "__main__"}
    printed, checked, skipped = None, 0, False
    for language, block in BLOCK.findall(path.read_text("utf-8")):
        if language == "python":
            wanted = {
                name for name in OPTIONAL if re.search(rf"^(import|from) {name}", block, re.M)
            }
            skipped = any(importlib.util.find_spec(name) is None for name in wanted)
        if skipped:
            continue
        if language == "python":
            with warnings.catch_warnings():
                if wanted:  # their warnings, as errors, end the process in some bindings
                    warnings.simplefilter("ignore")
                printed = run_python(block, names, name_of(path))
        elif language == "sh":
            printed = run_commands(block)
        elif language == "output":
            assert printed is not None, f"nothing printed this:\n{block}"
            assert agrees(block, printed), f"the page says\n{block}\nbut it prints\n{printed}"
        checked += 1
    return checked


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # pages import what they write
    assert run_page(page) > 0 or page.name == "index.md"


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_of_the_gallery_runs(example, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    if "import torch" in example.read_text("utf-8"):
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert pyplot.get_fignums(), "an example of the gallery draws something"
    pyplot.close("all")


def test_the_page_of_benchmarks_has_a_table_for_each_stored_run(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    pages = pytest.importorskip("pages", reason="needs docutils")
    stored = pages.stored_runs(DOCS / "benchmarks")
    assert DOCS / "benchmarks" / "two-cores.jsonl" in stored
    assert all("| anneal " in pages.tables_of(file) for file in stored)


def test_every_public_name_has_its_place_in_the_reference():
    text = "\n".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"(?:auto\w+|py:data):: softmap\.(\w+)$", text, flags=re.MULTILINE))
    assert set(softmap.__all__) - listed == set()


def test_relative_links_lead_somewhere():
    made_by_the_build = {"gallery/index.rst"}
    made_by_the_build |= {f"gallery/{path.stem}.rst" for path in EXAMPLES}
    for page in sorted(DOCS.rglob("*.md")):
        if "_build" in page.parts or "gallery" in page.parts:
            continue
        for target in LINK.findall(page.read_text("utf-8")):
            if "://" not in target and target not in made_by_the_build:
                assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"
