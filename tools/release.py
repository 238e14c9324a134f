"""Check that version, tag and changelog agree: `python tools/release.py v0.3.0`.

Without a tag, only the files are compared, as the tests do. The version of a release has no
`.dev`; between releases it has one, and the changelog then begins with *Unreleased*.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Where the version stands, besides `softmap.__version__`.
ELSEWHERE = {
    "CITATION.cff": r"^version: (\S+)$",
    "tools/conda/meta.yaml": r'set version = "([^"]+)"',
}


def stated(path: str, pattern: str) -> str:
    """Return the first group of a pattern in a file of the project."""
    match = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise SystemExit(f"{path}: no version was found; expected {pattern}")
    return match[1]


def faults(tag: str | None = None) -> list[str]:
    """Return a sentence for each place that contradicts the version of the package.

    Parameters
    ----------
    tag : str, optional
        The tag of a release, such as v0.3.0.
    """
    version = stated("src/softmap/__init__.py", r'^__version__ = "([^"]+)"$')
    newest = stated("CHANGELOG.md", r"^## (\S+)")
    sentences = []
    if ".dev" in version:
        if newest != "Unreleased":
            sentences.append(f"CHANGELOG.md begins with {newest}; expected Unreleased")
        released = stated("CHANGELOG.md", r"^## (\d\S*)")
    else:
        if newest != version:
            sentences.append(f"CHANGELOG.md begins with {newest}; expected {version}")
        released = version
    for path, pattern in ELSEWHERE.items():
        other = stated(path, pattern)
        if other != released:
            sentences.append(f"{path} says {other}; expected {released}")
    if tag is not None and tag != f"v{version}":
        sentences.append(f"the tag is {tag}; expected v{version}, the version of the package")
    return sentences


if __name__ == "__main__":
    wrong = faults(*sys.argv[1:2])
    print("\n".join(wrong) or "version, changelog, citation and recipe agree")
    sys.exit(1 if wrong else 0)
