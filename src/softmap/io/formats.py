"""Which format a file has, by name and by content, and the two verbs `read` and `write`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from softmap.errors import FormatError, ModelError, OptionError, shown
from softmap.io.cfn import parse_cfn
from softmap.io.cfn_writer import write_cfn
from softmap.io.dd import parse_dd
from softmap.io.evidence import read_evidence
from softmap.io.npz import parse_npz, write_npz
from softmap.io.opengm import parse_opengm
from softmap.io.opengm_writer import write_opengm
from softmap.io.streams import Content, Source, bare_suffixes, load, open_content
from softmap.io.uai import Values, default_values, parse_uai
from softmap.io.uai_writer import write_uai
from softmap.io.wcsp import parse_wcsp
from softmap.io.wcsp_writer import write_wcsp
from softmap.model import Model, checked_model

__all__ = ["FORMATS", "Format", "format_of", "read", "write"]


@dataclass(frozen=True)
class Format:
    """A format: the names it goes by, how its content begins, its two halves."""

    name: str
    suffixes: tuple[str, ...]
    begins: re.Pattern[bytes]
    parse: Callable[..., Model]
    write: Callable[..., None] | None


_SKIP = rb"(?:\s|#[^\n]*\n|c[ \t][^\n]*\n)*"

FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("npz", (".npz",), re.compile(rb"PK\x03\x04"), parse_npz, write_npz),
        Format("opengm", (".h5", ".hdf5"), re.compile(rb"\x89HDF"), parse_opengm, write_opengm),
        Format(
            "uai",
            (".uai", ".lg"),
            re.compile(_SKIP + rb"(?:MARKOV|BAYES)\s", re.IGNORECASE),
            parse_uai,
            write_uai,
        ),
        Format("cfn", (".cfn",), re.compile(rb"(?:\s|#[^\n]*\n)*\{"), parse_cfn, write_cfn),
        Format("dd", (".dd",), re.compile(_SKIP + rb"(?:p|gm)\s+\d"), parse_dd, None),
        Format(
            "wcsp",
            (".wcsp",),
            re.compile(rb"\s*\S+\s+\d+\s+\d+\s+\d+\s+\d+\s"),
            parse_wcsp,
            write_wcsp,
        ),
    )
}
_BINARY = ("npz", "opengm")


def format_of(name: object, data: bytes = b"") -> str | None:
    """Name of the format of a file, None if neither name nor content tells.

    Binary formats are recognised by their first bytes whatever the name; else the name decides,
    and the content only where the name says nothing.
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
    values: Values | None = None,
    evidence: Source | Mapping[int, int] | None = None,
    format: str | None = None,
) -> Model:
    """Read a model from a file, an open binary file, or standard input ("-").

    Parameters
    ----------
    source : path, "-" or binary file; .gz, .xz and .bz2 are unpacked
    values : {"potential", "log", "cost"}, optional
        What the tables of a UAI file hold. Default: potentials, or logarithms for `.LG`.
    evidence : path or mapping, optional
        Observed labels by variable.
    format : str, optional
        One of `softmap.io.FORMATS`, where name and content do not tell.
    """
    _check_format(format)
    content = load(source)
    key = format or format_of(content.name, content.data)
    if key is None:
        known = ", ".join(FORMATS)
        message = f"expected one of the formats {known}; neither name nor content is one of them"
        raise FormatError(message, content.name, expected=known)
    model = _parse(content, key, values)
    if evidence is None:
        return model
    observed = evidence if isinstance(evidence, Mapping) else read_evidence(evidence)
    try:
        return model.condition(observed)
    except ModelError as error:
        name = None if isinstance(evidence, Mapping) else evidence
        raise FormatError(str(error), name) from error


def _check_format(format: object) -> None:
    if format is not None and not (isinstance(format, str) and format in FORMATS):
        raise OptionError(f"format must be one of {', '.join(FORMATS)}, not {shown(format)}")


def _parse(content: Content, key: str, values: Values | None) -> Model:
    if key == "uai":
        return parse_uai(content, values=default_values(content.name) if values is None else values)
    if values is not None:
        raise OptionError(f"values={shown(values)} is for UAI files; {content.name} is {key}")
    return FORMATS[key].parse(content)


def write(model: Model, target: Source, *, format: str | None = None, **options: Any) -> None:
    """Write a model; the format follows from the suffix (.uai, .LG, .wcsp, .cfn, .h5, .npz).

    The file appears whole or not at all; .gz, .xz and .bz2 are packed. `options` go to the
    format's own writer (`values` for UAI, `scale` for WCSP).
    """
    checked_model(model)
    _check_format(format)
    key = format or format_of(getattr(target, "name", target))
    writable = [name for name, form in FORMATS.items() if form.write is not None]
    if key not in writable:
        found = f"not {key}" if key else f"cannot tell from {shown(target)}"
        raise OptionError(f"expected a format that can be written ({', '.join(writable)}): {found}")
    writer = FORMATS[key].write
    assert writer is not None
    writer(model, target, **options)
