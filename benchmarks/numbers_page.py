"""The page of numbers, generated from the sources: `python -m benchmarks.tuning --page`.

The groups that a run takes from `tuning=` are read from their classes, with the comments of their
fields. The constants that no option reaches, in Python and in the compiled loops, are named in
`constants.csv`, with their units and origins; their values are read from the sources.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["PAGE", "Constant", "Field", "constants", "fields_of_rooms", "page"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "softmap"
PAGE = ROOT / "docs" / "maintainers" / "numbers.md"
SECTIONS = {"run": "Every run on the CPU", "call": "Other calls", "gpu": "On a GPU"}
HEAD = (
    "# Numbers that steer\n\n"
    "<!-- Written by `python -m benchmarks.tuning --page`; a test compares it with the sources. -->"
    "\n\n"
    "These numbers decide what runs when, how much of it, and from which size on. Each has its "
    'unit, its meaning and its origin: "D12" is decision 12 in docs/decisions. Not listed are '
    "arithmetic, formats, limits of what is accepted, sizes of windows, buffers whose size changes "
    "no result, and constants of published algorithms.\n\n"
    "`python -m benchmarks.tuning` halves and doubles each number of the first part, with "
    "`--outside` each number of Python in the second part.\n\n"
    "## What `tuning=` reaches\n\n"
    "A run takes these {fields} numbers from its options, in {groups} groups: "
    "`softmap.solve(model, tuning=softmap.tuning.Tuning(SearchNumbers(fresh=0.25)))`. A group is a "
    "class of the room that uses it.\n"
)
OUTSIDE = (
    "## Constants\n\n"
    "These {constants} numbers belong to one algorithm each, and no option reaches them: they are "
    "compiled, belong to a model or a machine, which many runs share, or to a call without "
    "`tuning=`."
)


@dataclass(frozen=True)
class Field:
    """A number of a group.

    Attributes
    ----------
    file : str
        The source, relative to the repository.
    group, name, value : str
        The class, the field and its default value, as in the source.
    meaning, origin : str
        Its comment: unit and meaning, and decisions.
    """

    file: str
    group: str
    name: str
    value: str
    meaning: str
    origin: str


@dataclass(frozen=True)
class Constant:
    """A number that no option reaches.

    Attributes
    ----------
    section : str
        Where it is used: a key of `SECTIONS`.
    file, name : str
        The source, relative to the repository, and the name of the number there.
    meaning, origin : str
        Unit and meaning, and decisions.
    """

    section: str
    file: str
    name: str
    meaning: str
    origin: str

    @property
    def value(self) -> str:
        """The value as in the source."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        number = r"[\w.'+-]+(?: ?(?:<<|\*|/) ?[\w.']+)?"
        declared = r"(?:(?:static|inline|constexpr) )*(?:Index|double|int|std::\w+) [^;]*?"
        declared = "" if self.file.endswith(".py") else declared
        found = re.search(
            rf"^\s*{declared}(?<!\w){re.escape(self.name)}(?:: \w+)? =\s+({number})(?=[;,)\s])",
            text,
            flags=re.MULTILINE,
        )
        if found is None:
            raise LookupError(f"{self.file} has no number {self.name}")
        return found[1]

    @property
    def owner(self) -> Any:
        """The module or the object of a module that holds the number; None if it is compiled."""
        if not self.file.startswith("src/softmap/"):
            return None
        module = import_module(self.file.removeprefix("src/").removesuffix(".py").replace("/", "."))
        objects = [each for each in vars(module).values() if is_dataclass(each)]
        holders = [each for each in objects if not isinstance(each, type)]
        holders = [each for each in holders if hasattr(each, self.name)]
        return next(iter([module] if hasattr(module, self.name) else holders), None)


def fields_of_rooms() -> list[Field]:
    """Return the fields of all subclasses of `Numbers`, room by room."""
    return [each for path in sorted(PACKAGE.rglob("*.py")) for each in _fields(path)]


def _fields(path: Path) -> Iterator[Field]:
    text = path.read_text(encoding="utf-8")
    if "(Numbers):" not in text:
        return
    lines, file = text.splitlines(), str(path.relative_to(ROOT))
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef) or "Numbers" not in map(ast.unparse, node.bases):
            continue
        for each in node.body:
            if not isinstance(each, ast.AnnAssign) or each.value is None:
                continue
            comment = lines[each.lineno - 1].partition("  # ")[2]
            meaning, _, origin = comment.rpartition("; ")
            value = ast.get_source_segment(text, each.value) or ""
            yield Field(file, node.name, ast.unparse(each.target), value, meaning, origin)


def constants() -> list[Constant]:
    """Return the rows of `constants.csv`."""
    with (Path(__file__).parent / "constants.csv").open(encoding="utf-8", newline="") as file:
        return [Constant(*row) for row in list(csv.reader(file))[1:]]


def page() -> str:
    """Return the text of the page."""
    fields, outside = fields_of_rooms(), constants()
    groups = list(dict.fromkeys((each.file, each.group) for each in fields))
    lines = [HEAD.format(fields=len(fields), groups=len(groups))]
    for file, group in groups:
        lines += [f"### `{group}`", "", f"`{file}`", "", *_head("number")]
        lines += [
            f"| `{each.name}` | `{each.value}` | {each.meaning} | {each.origin} |"
            for each in fields
            if (each.file, each.group) == (file, group)
        ]
        lines.append("")
    lines.append(OUTSIDE.format(constants=len(outside)))
    for section, title in SECTIONS.items():
        lines += ["", f"### {title}", "", *_head("file", "number")]
        lines += [
            f"| `{each.file}` | `{each.name}` | `{each.value}` | {each.meaning} | {each.origin} |"
            for each in outside
            if each.section == section
        ]
    return "\n".join(lines) + "\n"


def _head(*names: str) -> list[str]:
    """The first two rows of a table."""
    columns = [*names, "value", "unit and meaning", "origin"]
    return [f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
