"""Every command and every snippet of the README, as a new user would run them: in one folder."""

import re

import pytest

import first_minute
from support.data import ROOT

README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


def test_the_readme_runs_from_top_to_bottom(folder):
    ran = first_minute.run_text(ROOT / "README.md", folder, "--time-limit", "0.5")
    assert "python" in ran
    assert {"make demo", "softmap demo"} <= set(ran)
    assert any(line.startswith("softmap solve") for line in ran)
    written = {file.name for file in folder.rglob("*") if file.is_file()}
    assert {"grid.npz", "grid.MPE", "grid.html", "grid.uai", "compare.png"} <= written
    assert {"photo-pair.png", "photo-convergence.png", "report.html"} <= written


def test_an_image_file_is_read_without_extras(folder):
    first_minute.run([first_minute.sys.executable, "-c", first_minute.PICTURE], folder)
    first_minute.run([first_minute.sys.executable, "-c", first_minute.SEGMENTED], folder)


def test_every_extra_is_in_the_table_of_extras():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    table = page.split("| extra | what it adds |")[1].split("\n\n")[0]
    named = set(
        re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))
    )
    assert named == set(project["optional-dependencies"]) - {"report"}  # which is empty


def test_the_number_of_formats_is_right():
    from softmap.io.formats import FORMATS

    assert f"| {len(FORMATS)} file formats" in README


def test_links_of_the_readme_lead_somewhere():
    targets = re.findall(r'src="([^"]+)"', README) + re.findall(r"\]\(([^)h][^)]*)\)", README)
    assert targets
    for target in targets:
        assert (ROOT / target.partition("#")[0]).is_file(), target
