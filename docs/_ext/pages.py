"""Directives for what pages show of the project itself: help of commands, benchmark tables."""

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.transforms.post_transforms import SphinxPostTransform
from typer.main import get_command


class UnbrokenNumbers(SphinxPostTransform):
    """Numbers stay on one line with their units, short entries of tables too; long names break."""

    default_priority = 900
    SPLIT = re.compile(r"(?<=\d) (?=(?:s|ms|µs|ns|h|dB|%|[kMGT]i?B(?:/s)?|×)(?!\w))|(?<=×) (?=\d)")
    SHORT = 14  # characters: longer entries of a table may be broken
    LONG = re.compile(r"\w{30,}")  # names that are broken after underscores

    def run(self, **_: Any) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if not isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.math):
                joined = self.SPLIT.sub("\u00a0", text)
                joined = self.LONG.sub(lambda name: name[0].replace("_", "_\u200b"), joined)
                if joined != text:
                    text.parent.replace(text, nodes.Text(joined))
        for entry in self.document.findall(nodes.entry):
            if len(entry.astext()) <= self.SHORT:
                entry["classes"].append("unbroken")


class GalleryOrder:
    """The order of the gallery: images first, then other models; a new example goes last."""

    FIRST = ("stereo", "inpainting", "denoising", "potts_grid", "tightening", "side_chains")

    def __init__(self, folder: str) -> None:
        """The sort key of one folder of examples."""

    def __call__(self, filename: str) -> tuple[int, str]:
        name = filename.removeprefix("plot_").removesuffix(".py")
        return (self.FIRST.index(name) if name in self.FIRST else len(self.FIRST), name)


def legible_text(*_: object) -> None:
    """Set the text of the gallery's figures larger: it is read in thumbnails and on phones, too."""
    import matplotlib.pyplot as plt

    plt.rcParams |= {"font.size": 13.0, "axes.titlesize": "medium", "figure.autolayout": True}


class CommandHelp(Directive):
    """`{command-help} solve`: what `softmap solve --help` says, with its options as a table."""

    required_arguments = 0
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        from softmap.app.cli.app import COMMANDS, app

        group = get_command(app)
        context = group.context_class(group, info_name="softmap")
        if not self.arguments:
            rows = [
                (name, group.get_command(context, name).get_short_help_str(200))
                for name in COMMANDS
            ]
            return [table(("command", "what it does"), [((name,), said) for name, said in rows])]
        command = group.get_command(context, self.arguments[0])
        inner = command.context_class(command, info_name=f"softmap {self.arguments[0]}")
        usage = command.get_usage(inner).removeprefix("Usage: ")
        usage = " ".join(usage.split())
        parts: list[nodes.Node] = [nodes.literal_block(usage, usage, language="text")]
        for text in (command.help or "").split("\n\n"):
            parts.append(nodes.paragraph(text, " ".join(text.split())))
        return [*parts, table(("option", "meaning"), options(command, inner))]


def options(command: Any, context: Any) -> list[tuple[tuple[str, ...], str]]:
    """The arguments and options of a command: how each is written, and its meaning."""
    found = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            written, meaning = record
            written = written.replace("  ", " ")
            found.append((tuple(written.split(", ")), meaning))
    return found


def table(head: tuple[str, str], rows: list[tuple[tuple[str, ...], str]]) -> nodes.table:
    """A table of two columns: code, and text."""
    group = nodes.tgroup(cols=2)
    group += [nodes.colspec(colwidth=35), nodes.colspec(colwidth=65)]
    top = nodes.row()
    top += [nodes.entry("", nodes.paragraph(text=words)) for words in head]
    body = nodes.tbody()
    for codes, words in rows:
        code = nodes.paragraph()
        for k, one in enumerate(codes):
            code += [nodes.Text(", ")] if k else []
            code += nodes.literal(one, one)
        row = nodes.row()
        row += [nodes.entry("", code), nodes.entry("", nodes.paragraph(text=words))]
        body += row
    group += [nodes.thead("", top), body]
    found = nodes.table(classes=["options"])
    found += group
    return found


class BenchmarkTables(Directive):
    """`{benchmark-tables}`: tables of the stored runs beside the page, one part per file.

    A file of runs of `python -m benchmarks.run` has its facts in `.facts.json` beside it.
    """

    def run(self) -> list[nodes.Node]:
        environment = self.state.document.settings.env
        folder = Path(environment.doc2path(environment.docname)).parent
        stored = stored_runs(folder)
        for file in stored:
            environment.note_dependency(str(file))
        text = "\n\n".join(map(tables_of, stored)) or "No results are stored with this build."
        container = nodes.section()
        container.document = self.state.document
        lines = StringList(text.splitlines(), source="benchmarks")
        self.state.nested_parse(lines, self.content_offset, container, match_titles=True)
        return container.children


def stored_runs(folder: Path) -> list[Path]:
    """The files of runs in a folder; the scoreboard's file is none: it has a page of its own."""
    facts = sorted(folder.glob("*.facts.json"))
    return [path.with_name(path.name.replace(".facts.json", ".jsonl")) for path in facts]


def tables_of(file: Path) -> str:
    """The tables of one file of results, as Markdown."""
    from benchmarks import summary

    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    text = summary.tables(rows).replace("\n## ", "\n### ").removeprefix("## ")
    return f"## {file.stem.replace('-', ' ').capitalize()}\n\n### {text}"


def keep_bars(*args: object) -> None:
    """Docstrings write |N_i| for a size; reStructuredText would take that for a substitution."""
    lines = args[-1]
    for number, line in enumerate(lines):
        pieces = line.split("`")
        pieces[::2] = [piece.replace("|", r"\|") for piece in pieces[::2]]
        lines[number] = "`".join(pieces)


def setup(app: object) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("command-help", CommandHelp)
    app.add_post_transform(UnbrokenNumbers)
    app.connect("autodoc-process-docstring", keep_bars)
    # results may be new: this page is read at every build
    app.connect("env-get-outdated", lambda *_: ["benchmarks/index"])
    app.add_directive("benchmark-tables", BenchmarkTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
