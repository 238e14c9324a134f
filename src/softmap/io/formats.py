"""The table of file formats, and the functions that use it: `read`, `parse`, `write`.

A row names the functions of a format. Their module is imported when a file of that format is read
or written; recognising a format does not need it.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from softmap.errors import FormatError, ModelError, OptionError, shown
from softmap.hints import instead
from softmap.io.atomic import write_bytes
from softmap.io.results import inline_evidence, read_evidence
from softmap.io.streams import Content, Source, bare_suffixes, load, open_content
from softmap.model import Model, checked_model

Function = str | Callable[..., Any]


@dataclass(frozen=True)
class Format:
    """A file format.

    Functions are given as `"module.function"` of `softmap.io`, by their full path, or as they are.

    Attributes
    ----------
    name : str
    suffixes : tuple of str, lower case
    begins : pattern that the first bytes of such a file match
    reader : function from `Content` and options to a model; None if there is none
    writer : function from a network and options to pieces of text or bytes; None if there is none
    only : str
        Which models it can hold, where that is not all of them.
    said : bool
        Whether the writer takes the model, with its constraints, instead of its network.
    """

    name: str
    suffixes: tuple[str, ...]
    begins: re.Pattern[bytes]
    reader: Function | None = None
    writer: Function | None = None
    only: str = ""
    said: bool = False

    def parse(self, data: bytes | Content, **options: Any) -> Model:
        """Return the model of a file given as bytes."""
        content = open_content(data)
        if self.reader is None:
            raise FormatError(f"{self.name} files can be written, not read", content.name)
        try:
            model: Model = self._load(self.reader, options)(content, **options)
        except ModelError as error:
            raise FormatError(str(error), content.name) from error
        return model

    def pieces(self, model: Model, **options: Any) -> Iterable[str | bytes | memoryview]:
        """Return the content of a file with the model, in pieces."""
        if self.writer is None:
            raise OptionError(f"{self.name} files can be read, not written")
        found: Iterable[str | bytes | memoryview] = self._load(self.writer, options)(
            model if self.said else model.network, **options
        )
        return found

    def _load(self, function: Function, options: Mapping[str, Any]) -> Callable[..., Any]:
        """Import the function; raise `OptionError` if it does not take these options."""
        if isinstance(function, str):
            module, _, name = function.rpartition(".")
            home = module if "." in module else f"softmap.io.{module}"
            function = getattr(import_module(home), name)
        assert callable(function)
        if options:
            parameters = inspect.signature(function).parameters.values()
            known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
            if unknown := [name for name in options if name not in known]:
                taken = f"; they take {', '.join(known)}" if known else "; they take none"
                hint = instead(unknown[0], ["format"]) or taken
                raise OptionError(f"{unknown[0]!r} is no option of {self.name} files{hint}")
        return function


_SKIP = rb"(?:\s|#[^\n]*\n|c[ \t][^\n]*\n)*"
_NEVER = rb"(?!)"  # matches nothing: lists of numbers are recognised by file name only
_XML = rb"\s*(?:<\?[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"
_PROGRAM = rb"(?:\s|\\[^\n]*\n)*(?:minimi[sz]e|maximi[sz]e|minimum|maximum)\b"
_TWO = "variables with two labels each"
_BAYES = "Bayesian networks"


def _row(
    name: str, suffixes: str, begins: bytes, module: str, only: str = "", flags: int = 0
) -> Format:
    """Return a format with functions `module.parse_name` and `module.format_name`."""
    writer = None if only == _READ_ONLY else f"{module}.format_{name}"
    start = re.compile(begins, flags)
    reader = f"{module}.parse_{name}"
    return Format(name, tuple(suffixes.split()), start, reader, writer, only if writer else "")


_READ_ONLY = "read only"

FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        replace(_row("npz", ".npz", rb"PK\x03\x04", "npz"), said=True),
        _row("opengm", ".h5 .hdf5", rb"\x89HDF", "opengm"),
        _row("uai", ".uai .lg", _SKIP + rb"(?:MARKOV|BAYES)\s", "uai", flags=re.IGNORECASE),
        _row("cfn", ".cfn", rb"(?:\s|#[^\n]*\n)*\{", "cfn"),
        _row("dd", ".dd", _SKIP + rb"(?:p|gm)\s+\d", "dd", _READ_ONLY),
        _row(
            "bif",
            ".bif",
            rb"(?:\s|//[^\n]*\n)*(?:network|variable)\s[^{;]*\{",
            "bayes_text",
            _BAYES,
        ),
        _row(
            "xmlbif",
            ".xmlbif .xbif .xml",
            _XML + rb"<(?:!DOCTYPE\s+)?BIF[\s>]",
            "bayes_xml",
            _BAYES,
            re.DOTALL,
        ),
        _row("net", ".net .hugin", rb"(?:\s|%[^\n]*\n)*(?:net|class)\s*\{", "bayes_text", _BAYES),
        _row("xdsl", ".xdsl", _XML + rb"<smile[\s>]", "bayes_xml", _BAYES, re.DOTALL),
        _row("qpbo", ".qpbo", _NEVER, "qubo", _TWO),
        _row("qubo", ".qubo", _SKIP + rb"p\s+qubo\s", "qubo", _TWO),
        _row("coo", ".coo", rb"#\s*vartype", "qubo", _TWO),
        _row("maxcut", ".mc .rud", _NEVER, "qubo", "cuts of graphs"),
        _row("wcnf", ".wcnf", rb"(?:\s|c[^\n]*\n)*(?:p\s+wcnf\s|h[ \t]+-?\d)", "logic", _TWO),
        _row(
            "opb",
            ".opb .wbo",
            rb"(?:\s|\*[^\n]*\n)*(?:min:|max:|soft:|[-+]?\d+\s+~?[A-Za-z_]\w*\s)",
            "logic",
            _TWO,
        ),
        _row(
            "dem",
            ".dem",
            _SKIP + rb"(?:error\s*[\[(]|detector\s*[\[( ]|shift_detectors)",
            "dem",
            _READ_ONLY,
            re.IGNORECASE,
        ),
        _row("stim", ".stim", _NEVER, "dem", _READ_ONLY),
        _row(
            "alist",
            ".alist",
            # two lines of two numbers, and a line of more
            rb"(?:\s|#[^\n]*\n)*(?:\d+[ \t]+\d+\s*\n\s*){2}\d+[ \t]+\d+[ \t]+\d",
            "alist",
            _READ_ONLY,
        ),
        _row(
            "wcsp",
            ".wcsp",
            # a name and four numbers, or five words on the first line
            rb"\s*(?:[^\s\d]\S*\s+\d+\s+\d+\s+\d+\s+\d+\s"
            rb"|\S+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t\r]*\n)",
            "wcsp",
        ),
        # Linear programs are written by a package above this one, which is named here only.
        Format(
            "lp",
            (".lp",),
            re.compile(_PROGRAM, re.IGNORECASE),
            "programs.parse_lp",
            "softmap.relaxation.lp.format_lp",
        ),
        Format(
            "mps",
            (".mps",),
            re.compile(rb"(?:\*[^\n]*\n|\s)*NAME\b[^\n]*\n(?:\*[^\n]*\n|\s)*(?:ROWS|OBJSENSE)"),
            "programs.parse_mps",
            "softmap.relaxation.lp.format_mps",
        ),
        _row("qap", ".dat", rb"\s*\d+[ \t\r]*\n\s*-?\d[-\d. \t]*\r?\n", "qap", _READ_ONLY),
    )
}

_BINARY = ("npz", "opengm")


def format_of(name: object, data: bytes = b"") -> str | None:
    """Return the name of the format of a file, or None if it is not recognised.

    Binary formats are recognised by their first bytes, whatever the file name. Otherwise the file
    name decides; the content decides if the file name has no known suffix.
    """
    head = open_content(data).data[: 1 << 16]
    for key in _BINARY:
        if FORMATS[key].begins.match(head):
            return key
    for suffix in reversed(bare_suffixes(name)):
        for key, form in FORMATS.items():
            if suffix in form.suffixes:
                return key
    return next((key for key, form in FORMATS.items() if form.begins.match(head)), None)


def read(
    source: Source,
    *,
    values: str | None = None,
    evidence: Source | Mapping[int, int] | None = None,
    format: str | None = None,
    **options: Any,
) -> Model:
    """Read a model from a file, an open binary file, or standard input ("-").

    Parameters
    ----------
    source : path, "-" or binary file; .gz, .xz and .bz2 are unpacked
    values : {"potential", "log", "cost"}, optional
        What the tables of a UAI file hold. Default: potentials, or logarithms for `.LG`.
    evidence : path, text or mapping, optional
        Observed labels by variable: an evidence file, a mapping, or text such as "0=3,x7=1" with
        variables and labels by number or by name.
    format : str, optional
        One of `softmap.io.FORMATS`, where name and content do not tell.
    block : int
        Of `.dd` files with several problems: which one, from 0.
    one_to_one : bool
        Of `.dd` and `.dat` files: add one constraint over all variables for each label that may be
        used once. The energies are the same, the bound is tighter, and the model larger.
    seen : array of 0 and 1
        Of `.dem` and `.stim` files: which detectors fired; see `softmap.io.Detectors.model`.
    """
    _check_format(format)
    content = load(source)
    form = _format(content, format)
    model = form.parse(content, **_options(form, content.name, options | {"values": values}))
    if evidence is None:
        return model
    missing = isinstance(evidence, str) and evidence != "-" and not os.path.exists(evidence)
    inline = missing and "=" in str(evidence)
    if missing and not inline:
        known = "there is no such file; labels are given as 0=3,x7=1"
        raise OptionError(f"evidence={shown(evidence)}: {known}")
    try:
        if inline:
            return model.condition(inline_evidence(model, str(evidence)))
        return model.condition(
            evidence if isinstance(evidence, Mapping) else read_evidence(evidence)
        )
    except ModelError as error:
        if inline:
            raise OptionError(f"evidence={evidence}: {error}") from error
        name = None if isinstance(evidence, Mapping) else evidence
        raise FormatError(str(error), name) from error


def parse(data: bytes, format: str | None = None, **options: Any) -> Model:
    """Return the model of a file given as bytes.

    Parameters
    ----------
    data : bytes
        The content of the file.
    format : str, optional
        One of `softmap.io.FORMATS`; by default recognised by the content.
    **options
        Options of `read`.

    Returns
    -------
    Model
    """
    _check_format(format)
    content = open_content(data)
    form = _format(content, format)
    return form.parse(content, **_options(form, None, options))


def write(model: Model, target: Source, *, format: str | None = None, **options: Any) -> None:
    """Write a model; the format follows from the suffix (.uai, .LG, .wcsp, .cfn, .h5, .npz, ...).

    The file is written atomically, and compressed if its name ends in .gz, .xz or .bz2. A model
    that the format cannot represent raises an error that names the reason. Names are written if
    the format can represent all of them.

    Parameters
    ----------
    model : Model
    target : path, "-" or binary file
    format : str, optional
        One of `softmap.io.FORMATS`; by default recognised by the name.
    values : {"potential", "log", "cost"}
        Of UAI files: what the tables contain. Default: potentials, or logarithms for `.LG`.
    scale : float
        Of WCSP, WCNF and OPB files, which contain integers only: costs are multiplied by it.
    compress : bool
        Of `.npz` files: whether to compress the arrays (the default).
    drop_constant : bool
        Of `.qpbo` and `.mc` files, which have no constant: leave it out.
    integer : bool
        Of `.lp` and `.mps` files, which contain the LP relaxation by default: write the integer
        program, whose optimum is the best labelling.
    """
    checked_model(model)
    _check_format(format)
    name = getattr(target, "name", target)
    key = format or format_of(name)
    writable = [name for name, form in FORMATS.items() if form.writer is not None]
    if key not in writable:
        found = f"not {key}" if key else f"cannot tell from {shown(str(target))}"
        raise OptionError(f"expected a format that can be written ({', '.join(writable)}): {found}")
    form = FORMATS[key]
    pieces = form.pieces(model, **_options(form, name, options))
    write_bytes(target, (p.encode() if isinstance(p, str) else p for p in pieces))


def _check_format(format: object) -> None:
    if format is not None and not (isinstance(format, str) and format in FORMATS):
        hint = instead(format, FORMATS) if isinstance(format, str) else ""
        raise OptionError(f"format must be one of {', '.join(FORMATS)}, not {shown(format)}{hint}")


def _format(content: Content, format: str | None) -> Format:
    """Return the requested format, or the recognised one."""
    key = format or format_of(content.name, content.data)
    if key is None:
        known = ", ".join(name for name, form in FORMATS.items() if form.reader is not None)
        message = f"expected one of the formats {known}; neither name nor content is one of them"
        message += _advice(content)
        raise FormatError(message, content.name, expected=known)
    return FORMATS[key]


def _advice(content: Content) -> str:
    """Return what to do with a file of a kind that is no model, if it is known."""
    if not content.data:
        return "; the file is empty"
    if content.data[:8].startswith((b"\xff\xd8\xff", b"\x89PNG", b"P5", b"P6", b"GIF8", b"BM")):
        return "; images are for softmap.segment, denoise and stereo, or softmap demo --image"
    if re.match(rb"(c[^\n]*\n)*p\s+cnf\b", content.data[:4096]):
        return "; DIMACS CNF becomes WCNF with 'h ' before each clause, without the line 'p cnf'"
    return ""


def _options(form: Format, name: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options; UAI files named `.LG` hold logarithms by default."""
    options = {key: value for key, value in given.items() if value is not None}
    if form.name == "uai" and bare_suffixes(name)[-1:] == [".lg"]:
        options.setdefault("values", "log")
    return options
