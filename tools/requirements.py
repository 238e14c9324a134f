"""Print what pip is to install, one requirement per line.

requirements.py tools: what builds the core; CMake and Ninja only where the machine has none that
will do. requirements.py libraries [EXTRA ...]: what softmap and the named extras need.
requirements.py lowest [EXTRA ...]: the same, each at the smallest version that it may have.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


_OWN = re.compile(r"softmap\[([^\]]*)\]")
_MINIMUM = re.compile(r"([A-Za-z0-9._-]+(?:\[[^\]]*\])?)\s*>=\s*([0-9][^\s,;]*)[^;]*")


def libraries(project: dict[str, Any], extras: Sequence[str]) -> list[str]:
    """What softmap and some extras need, with the requirements of extras that these name."""
    found = list(project["dependencies"])
    front, seen = [*extras], set[str]()
    while front:
        extra = front.pop(0)
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in project["optional-dependencies"][extra]:
            if own := _OWN.fullmatch(requirement):
                front += own[1].split(",")
            else:
                found.append(requirement)
    return [*dict.fromkeys(found)]


def at_minimum(requirement: str) -> str:
    """Return `name==version` for `name>=version`, with its marker; others unchanged."""
    match = _MINIMUM.match(requirement)
    if match is None:
        return requirement
    return f"{match[1]}=={match[2]}{requirement[match.end() :]}"


def main(kind: str, *extras: str) -> None:
    """Print the requirements of one kind."""
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8")
    said = tomllib.loads(text)
    project = said["project"]
    if kind == "tools":
        wanted = build_tools(said["build-system"]["requires"])
    else:
        wanted = libraries(project, extras)
        if kind == "lowest":
            wanted = [at_minimum(requirement) for requirement in wanted]
    print("\n".join(wanted))


if __name__ == "__main__":
    main(*sys.argv[1:])
