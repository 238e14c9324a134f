"""Nothing but its room, the registry and its module of the checker names a subsolver."""

from __future__ import annotations

import ast
import re
import tokenize
from io import StringIO
from pathlib import Path

import pytest

from softmap.subsolvers.registry import TABLE, kinds

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "softmap"
ROOMS = PACKAGE / "subsolvers"
REGISTRY = (ROOMS / "registry.py", PACKAGE / "verification" / "table.py")
# "assignment" is a field of a format, too
FORMATS = {PACKAGE / "io" / "results.py"}
SHARED = {"search"}  # kind of evidence that several rooms share: any search states its bound so


def files() -> list[Path]:
    """All modules outside of the rooms, the tables and the checker."""
    every = sorted(PACKAGE.rglob("*.py"))
    outside = [path for path in every if ROOMS not in path.parents]
    return [path for path in outside if path not in REGISTRY]


def evidence_kinds() -> set[str]:
    """The words for kinds of evidence in all rooms."""
    text = "\n".join(path.read_text() for path in ROOMS.rglob("*.py"))
    own = re.findall(r'^    kind = "([\w ]+)"', text, flags=re.MULTILINE)
    return {*own, *re.findall(r'\bkind="([\w ]+)",\s+text=', text)} - SHARED


def modules() -> set[str]:
    """The folders of rooms, and their modules, with the folder."""
    paths = [path for path in ROOMS.rglob("*.py") if path.parent != ROOMS]
    parts = [path.relative_to(ROOMS).with_suffix("").parts for path in paths]
    return {f"subsolvers.{'.'.join(part)}" for part in parts} | {
        f"subsolvers.{part[0]}" for part in parts
    }


CLASSES = {kind.__name__ for kind in kinds()} | {
    kind.evidence.__name__ for kind in kinds() if kind.evidence is not None
}
KINDS, MODULES = evidence_kinds(), modules()


def named(text: str, *, words: bool = False) -> set[str]:
    """What a module names: identifiers of code, imports, literals, code in docstrings.

    Parameters
    ----------
    text : str
        The module.
    words : bool, default False
        Whether it may have words that are those of evidence, such as the module of the checker.
    """
    found: set[str] = set()
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.NAME and token.string in CLASSES:
            found.add(token.string)
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            found |= set(re.findall(r"`(\w+)`", token.string)) & CLASSES
            literal = token.string.strip("rbf").strip("'\"")
            if literal in KINDS and not words:
                found.add(literal)
        found |= {name for name in MODULES if name in token.string}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
            found |= {name for name in MODULES if f"softmap.{name}" in whole}
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
            found |= {name for name in MODULES if f"softmap.{name}" in whole}
    return found


def test_no_module_outside_its_room_names_a_subsolver():
    offenders = {}
    for path in files():
        words = path in FORMATS or path.parent.name == "verification"
        if names := named(path.read_text(), words=words):
            offenders[str(path.relative_to(PACKAGE))] = names
    assert offenders == {}


@pytest.mark.parametrize(
    "line",
    ["from softmap.subsolvers.cores import cores", "x: Cores", "import softmap.subsolvers.cores",
     "from softmap.subsolvers import cores", '"""See `Tighten`."""', "# see `Passes`",
     'if proof.kind == "tightened": pass'],
)  # fmt: skip
def test_a_name_is_seen_wherever_it_stands(line):
    assert named(line)


def test_the_tests_know_all_rooms():
    assert len(TABLE) == len(set(kinds())) >= 15
    assert {"tightened", "assignment", "cores", "semidefinite"} <= KINDS
