"""Every command and every snippet of the README, as a new user would run them: in one folder."""

import contextlib
import io
import re

import pytest

import first_minute
from softmap.app.cli.app import main
from support.data import ROOT

README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


class Runner:
    """Runs the first command of the program as a process, the others by calling its `main`."""

    def __init__(self):
        self.processes = 0

    def __call__(self, command, folder):
        if command[0] == "softmap" and self.processes:
            with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
                assert main(command[1:]) == 0, command
        else:
            self.processes += command[0] == "softmap"
            first_minute.run(command, folder)


def test_the_readme_runs_from_top_to_bottom(folder):
    runner = Runner()
    ran = first_minute.run_text(ROOT / "README.md", folder, "--time-limit", "0.5", run=runner)
    assert runner.processes == 1
    assert "python" in ran
    assert {"make demo", "softmap demo"} <= set(ran)
    assert any(line.startswith("softmap solve") for line in ran)
    written = {file.name for file in folder.rglob("*") if file.is_file()}
    assert {"grid.npz", "grid.MPE", "grid.html", "grid.uai", "compare.png"} <= written
    assert {"photo-pair.png", "photo-convergence.png", "report.html"} <= written


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_first_lines_print_what_stands_below_them(name, folder):
    text = (ROOT / name).read_text("utf-8")
    code, output = re.search(
        r"```python\n(.*?)```\n\n```output\n(.*?)```", text, re.DOTALL
    ).groups()
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(code, {})
    assert shown.getvalue() == output


def test_an_image_file_is_read_without_extras(folder):
    both = f"{first_minute.PICTURE}; {first_minute.SEGMENTED}"
    first_minute.run([first_minute.sys.executable, "-c", both], folder)


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
