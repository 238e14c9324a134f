"""manifest.json: what is needed to repeat a reproduction to the bit, and to see whether one did."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import softmap
from softmap.experiments.settings import Settings
from softmap.io.atomic import write_text

__all__ = ["write_manifest"]

PACKAGES = ("numpy", "scipy", "highspy", "cvxpy", "clarabel", "matplotlib")
# These show times and differ from run to run.
TIMED = ("figure3-seconds.csv", "figure3.png", "figure3.svg")


def write_manifest(
    folder: Path, what: str, settings: Settings, code: str, files: Iterable[Path]
) -> Path:
    """Write settings, versions and a digest of every file that another run must repeat."""
    content = {
        "what": what,
        "settings": settings.as_dict(),
        "versions": versions(),
        "code": code,
        "files": {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(files)
            if path.name not in TIMED
        },
    }
    path = folder / "manifest.json"
    write_text(path, [json.dumps(content, indent=2) + "\n"])
    return path


def versions() -> dict[str, str]:
    """Of the library, the language, the machine and the packages that numbers depend on."""
    found = {
        "softmap": softmap.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
