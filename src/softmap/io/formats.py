"""Which format a file has, by name and by content, and the two verbs `read` and `write`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softmap.errors import FormatError, ModelError, OptionError, shown
from softmap.io.evidence import read_evidence
from softmap.io.named import Named
from softmap.io.registry import FORMATS, Format
from softmap.io.streams import Content, Source, bare_suffixes, load, open_content
from softmap.io.uai import Values, default_values, parse_uai
from softmap.model import Model, checked_model

__all__ = ["FORMATS", "Format", "format_of", "read", "read_named", "write"]


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
    content, key = _opened(source, format)
    model = _parse(content, key, values)
    if evidence is None:
        return model
    observed = evidence if isinstance(evidence, Mapping) else read_evidence(evidence)
    try:
        return model.condition(observed)
    except ModelError as error:
        name = None if isinstance(evidence, Mapping) else evidence
        raise FormatError(str(error), name) from error


def _opened(source: Source, format: str | None) -> tuple[Content, str]:
    """The bytes, and the name of their format."""
    _check_format(format)
    content = load(source)
    key = format or format_of(content.name, content.data)
    if key is None:
        known = ", ".join(FORMATS)
        message = f"expected one of the formats {known}; neither name nor content is one of them"
        raise FormatError(message, content.name, expected=known)
    return content, key


def read_named(source: Source, *, format: str | None = None) -> Named:
    """Read a model with the names of its variables and labels (BIF, XMLBIF, NET, XDSL).

    Parameters
    ----------
    source : path, "-" or binary file
    format : str, optional
        One of `softmap.io.FORMATS`, where name and content do not tell.
    """
    content, key = _opened(source, format)
    parse = FORMATS[key].named
    if parse is None:
        known = ", ".join(name for name, form in FORMATS.items() if form.named)
        message = f"expected a format with names ({known}), found {key}"
        raise FormatError(message, content.name, expected=known)
    return parse(content)


def _check_format(format: object) -> None:
    if format is not None and not (isinstance(format, str) and format in FORMATS):
        raise OptionError(f"format must be one of {', '.join(FORMATS)}, not {shown(format)}")


def _parse(content: Content, key: str, values: Values | None) -> Model:
    if key == "uai":
        return parse_uai(content, values=default_values(content.name) if values is None else values)
    if values is not None:
        raise OptionError(f"values={shown(values)} is for UAI files; {content.name} is {key}")
    return FORMATS[key].parse(content)


def write(
    model: Model | Named, target: Source, *, format: str | None = None, **options: Any
) -> None:
    """Write a model; the format follows from the suffix (.uai, .LG, .wcsp, .cfn, .h5, .npz, ...).

    The file appears whole or not at all; .gz, .xz and .bz2 are packed. `options` go to the
    format's own writer (`values` for UAI, `scale` for WCSP, WCNF and OPB). Formats that cannot hold
    every model say so; those of Bayesian networks also take a `Named` model.
    """
    checked_model(model.model if isinstance(model, Named) else model)
    _check_format(format)
    key = format or format_of(getattr(target, "name", target))
    writable = [name for name, form in FORMATS.items() if form.write is not None]
    if key not in writable:
        found = f"not {key}" if key else f"cannot tell from {shown(target)}"
        raise OptionError(f"expected a format that can be written ({', '.join(writable)}): {found}")
    writer = FORMATS[key].write
    assert writer is not None
    if isinstance(model, Named) and FORMATS[key].named is None:
        model = model.model
    writer(model, target, **options)
