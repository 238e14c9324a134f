"""Every command and every snippet of the README, as a new user would run them: in one folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.data import ROOT

README = (ROOT / "README.md").read_text("utf-8")
MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )


def as_run(line: str) -> list[str]:
    """`make demo` would install the project anew; what it runs then is what is tested."""
    words = shlex.split(line, comments=True)
    if words[:1] != ["make"]:
        return words
    # the options of a make that runs these tests are not for this one
    own = {name: value for name, value in os.environ.items() if name not in MAKE}
    shown = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *words[1:]],
        cwd=ROOT,
        env=own,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    last = shlex.split(shown.splitlines()[-1])
    return [Path(last[0]).name, *last[1:]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


def test_the_readme_runs_from_top_to_bottom(folder):
    ran = []
    for language, block in BLOCKS:
        if language == "python":
            done = run([sys.executable, "-W", "error", "-c", block], folder)
            assert done.returncode == 0, done.stderr
            ran.append("python")
        if language == "sh":
            for line in block.strip().splitlines():
                done = run(as_run(line), folder)
                assert done.returncode == 0, f"{line}: {done.stderr}"
                ran.append(line)
    assert "python" in ran
    assert "make demo" in ran
    assert any(line.startswith("softmap solve") for line in ran)
    written = {file.name for file in folder.rglob("*") if file.is_file()}
    assert {"grid.npz", "grid.MPE", "grid.html", "grid.uai", "compare.png"} <= written
    assert {"potts-input.png", "potts-labelling.png", "potts-convergence.png"} <= written


def test_links_of_the_readme_lead_somewhere():
    targets = re.findall(r'src="([^"]+)"', README) + re.findall(r"\]\(([^)h][^)]*)\)", README)
    assert targets
    for target in targets:
        assert (ROOT / target).is_file(), target
