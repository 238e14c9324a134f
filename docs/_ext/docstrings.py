"""Sections of docstrings as definition lists: the name and its type on a line, then what it is.

One entry may name several things, and text after a section's entries belongs to none of them.
"""

import re
from textwrap import dedent

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Examples", "Notes")
HEAD = re.compile(r"(?P<names>\*{0,2}\w[\w.]*(?:, \*{0,2}\w[\w.]*)*)(?: : (?P<words>.*))?")


def sections(lines: list[str]) -> list[str]:
    """The lines of a docstring, its sections written as reStructuredText."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        title = lines[at].strip()
        if title in SECTIONS and at + 1 < len(lines) and set(lines[at + 1].strip()) == {"-"}:
            end = next_section(lines, at + 2)
            out += ["", f".. rubric:: {title}", ""]
            body = lines[at + 2 : end]
            out += body if title in ("Examples", "Notes") else entries(body)
            at = end
        else:
            out.append(lines[at])
            at += 1
    return out


def next_section(lines: list[str], at: int) -> int:
    """Where the section after this one begins."""
    for k in range(at, len(lines) - 1):
        if lines[k].strip() in SECTIONS and set(lines[k + 1].strip()) == {"-"}:
            return k
    return len(lines)


def entries(lines: list[str]) -> list[str]:
    """A definition list with one item per entry; text after the last entry stays as it is."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and (lines[end][:1] == " " or not lines[end].strip()):
            end += 1
        body = dedent("\n".join(lines[at + 1 : end])).strip().splitlines()
        found = HEAD.fullmatch(lines[at].strip())
        if found is None or not (found["words"] or body):
            return [*out, *lines[at:], ""]
        names = ", ".join(f"``{name}``" for name in found["names"].split(", "))
        kind = f" : {found['words']}" if found["words"] and body else ""
        below = body or [found["words"]]
        out += [f"{names}{kind}", *(f"    {line}".rstrip() for line in below), ""]
        at = end
    return out


def process(*args: object) -> None:
    """What autodoc calls with the lines of a docstring, which are changed in place."""
    lines = args[-1]
    lines[:] = sections(list(lines))


# numpy's names for types, as autodoc writes out what they stand for
SPELT_OUT = (
    (r"~numpy\._typing\._array_like\._Buffer.*?_NestedSequence\[[\w| ]*str\]", "ArrayLike"),
    (r"~numpy\.ndarray\[tuple\[[^\]]*\], ~numpy\.dtype\[([^\[\]]*)\]\]", r"NDArray[\1]"),
)


def short_types(*args: object) -> tuple[str | None, ...]:
    """What autodoc calls with a signature: types of arrays as they are written in the source."""
    return tuple(part and _short(str(part)) for part in args[-2:])


def _short(signature: str) -> str:
    for pattern, name in SPELT_OUT:
        signature = re.sub(pattern, name, signature)
    return signature


def setup(app: object) -> dict[str, bool]:
    """Register the processor."""
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", short_types)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
