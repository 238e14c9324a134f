"""Print what pip installs before the core is built, for one call of pip: the tools of the build,
the dependencies of softmap, and the extras that are named: requirements.py [EXTRA ...].

CMake and Ninja are listed only where the machine has none that will do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

OLDEST_CMAKE = (3, 26)  # as in CMakeLists.txt


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


def main() -> None:
    """Print one requirement per line."""
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8")
    said = tomllib.loads(text)
    project = said["project"]
    wanted = [*build_tools(said["build-system"]["requires"]), *project["dependencies"]]
    for extra in sys.argv[1:]:
        wanted += project["optional-dependencies"][extra]
    print("\n".join(wanted))


if __name__ == "__main__":
    main()
