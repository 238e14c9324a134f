"""Ask the package index where softmap and each of its extras install from wheels alone.

Resolves the requirements in pyproject.toml with uv for every platform and Python below, without
building anything, and prints a table. The exit status is 1 where softmap itself or what its tests
need does not resolve.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from requirements import libraries

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {  # how a table calls them, and how uv does
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux aarch64": "aarch64-manylinux_2_28",
    "macOS arm64": "aarch64-apple-darwin",
    "Windows": "x86_64-pc-windows-msvc",
}
ITSELF = "softmap"  # the row without any extra
NEEDED = (ITSELF, "test")


def resolves(requirements: list[str], platform: str, version: str) -> bool:
    """Whether the index has wheels for these requirements and all that they need.

    Parameters
    ----------
    requirements : list of str
        Lines of a requirements file; a marker is judged for the platform asked about.
    platform : str
        One of the values of `PLATFORMS`.
    version : str
        Of Python, such as "3.11".
    """
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-config"]
    command += ["--only-binary", ":all:", "--python", sys.executable, "--no-python-downloads"]
    command += ["--python-platform", platform, "--python-version", version, "-"]
    found = subprocess.run(command, input="\n".join(requirements), capture_output=True, text=True)
    if found.returncode == 0:
        return True
    if "No solution found" in found.stderr:
        return False
    raise SystemExit(f"uv could not say: {found.stderr.strip()}")


def missing(requirements: list[str], platform: str, version: str) -> list[str]:
    """Names of the requirements that do not resolve, each asked for alone."""
    if resolves(requirements, platform, version):
        return []
    alone = [line for line in requirements if not resolves([line], platform, version)]
    return [re.split("[<>=;]", line)[0] for line in alone] or ["not all together"]


def rows(project: dict[str, Any]) -> dict[str, list[str]]:
    """Requirements of softmap, and of each extra with those extras that it names."""
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return {ITSELF: libraries(project, [])} | {
        name: libraries(project, [name]) for name in extras if extras[name]
    }


def cell(lacking: dict[str, list[str]]) -> str:
    """What lacks in which version of Python, as one cell of the table."""
    if not any(lacking.values()):
        return "yes"
    names = sorted({name for found in lacking.values() for name in found})
    versions = {name: [v for v in VERSIONS if name in lacking[v]] for name in names}
    return ", ".join(
        name if len(at) == len(VERSIONS) else f"{name} ({', '.join(at)})"
        for name, at in versions.items()
    )


def main() -> int:
    """Print the table."""
    asked = rows(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])
    cases = list(product(asked, PLATFORMS, VERSIONS))
    with ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        answers = pool.map(lambda c: missing(asked[c[0]], PLATFORMS[c[1]], c[2]), cases)
        found = dict(zip(cases, answers, strict=True))
    print(f"Wheels for Python {VERSIONS[0]} to {VERSIONS[-1]}; what has none is named.\n")
    print("| extra |", " | ".join(PLATFORMS), "|")
    print("|---" * (len(PLATFORMS) + 1) + "|")
    for row in asked:
        cells = [cell({v: found[row, p, v] for v in VERSIONS}) for p in PLATFORMS]
        print(f"| {row} |", " | ".join(cells), "|")
    return int(any(lacking for (row, *_), lacking in found.items() if row in NEEDED))


if __name__ == "__main__":
    raise SystemExit(main())
