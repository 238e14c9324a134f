"""The page on the architecture names the packages, files and names that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
RUN = ("run", "drive", "subsolvers", "tasks")
PACKAGES = {path.parent.name for path in (ROOT / "src" / "softmap").glob("*/__init__.py")}


def test_the_table_has_every_package_and_no_other():
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)) == PACKAGES


def test_the_picture_has_every_package():
    picture = (ROOT / "docs" / "images" / "architecture.svg").read_text()
    assert set(re.findall(r'font-weight="bold"[^>]*>(\w+)<', picture)) == PACKAGES
    shown = set(re.findall(r"\w+", " ".join(re.findall(">([^<]+)</text>", picture))))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    assert not shown & folders  # what is no package of softmap, such as `benchmarks`


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:src|tests)/[\w/.]+)`", PAGE))))
def test_a_path_that_is_named_exists(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(\w+\.py)`", PAGE))))
def test_a_module_of_a_run_exists(name):
    assert any([*(ROOT / "src" / "softmap" / package).rglob(name)] for package in RUN)


@pytest.mark.parametrize(
    "name",
    ["assembled", "offer_lam", "offer_bound", "offer_point", "offer_labels", "Tolerances", "Share",
     "ByWork", "ByTime", "Outcome", "Judge", "Subsolver", "Evidence", "Board", "Once", "begin",
     "snapshot", "restore", "at_once", "refute"],
)  # fmt: skip
def test_a_name_of_a_run_is_defined(name):
    paths = (path for package in RUN for path in (ROOT / "src" / "softmap" / package).rglob("*.py"))
    sources = (path.read_text() for path in paths)
    assert f"`{name}`" in PAGE
    assert any(re.search(rf"(def|class) {name}\b", source) for source in sources)
