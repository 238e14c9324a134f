"""Print what pip is to install, one requirement per line.

requirements.py tools: what builds the core; CMake and Ninja only where the machine has none that
will do. requirements.py libraries [EXTRA ...]: what softmap and the named extras need.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

OLDEST_CMAKE = (3, 26) if sys.version_info >= (3, 12) else (3, 25)  # as in pyproject.toml


def build_tools(required: list[str]) -> list[str]:
    """What builds the core: `required`, and programs that are missing here."""
    missing = []
    if not _cmake_will_do():
        missing.append("cmake>=" + ".".join(map(str, OLDEST_CMAKE)))
    if shutil.which("ninja") is None:
        missing.append("ninja")
    return [*required, *missing]


def _cmake_will_do() -> bool:
    if (program := shutil.which("cmake")) is None:
        return False
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    return version is not None and tuple(map(int, version.groups())) >= OLDEST_CMAKE


def main(kind: str, *extras: str) -> None:
    """Print the requirements of one kind."""
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8")
    said = tomllib.loads(text)
    project = said["project"]
    if kind == "tools":
        wanted = build_tools(said["build-system"]["requires"])
    else:
        named = (project["optional-dependencies"][extra] for extra in extras)
        wanted = sum(named, project["dependencies"])
    print("\n".join(wanted))


if __name__ == "__main__":
    main(*sys.argv[1:])
