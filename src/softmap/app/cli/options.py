"""Arguments that several commands share, and how shells complete them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "FormatOption",
    "JsonOption",
    "MemoryOption",
    "ModelArgument",
    "ValuesOption",
    "complete_demo",
    "complete_format",
    "complete_method",
    "complete_methods",
]


def _beginning(names: list[str], start: str) -> list[str]:
    return [name for name in names if name.startswith(start)]


def methods() -> list[str]:
    """Names of methods."""
    from softmap.methods.registry import METHODS

    return list(METHODS)


def formats() -> list[str]:
    """Names of file formats."""
    from softmap.io.formats import FORMATS

    return list(FORMATS)


def complete_method(incomplete: str) -> list[str]:
    """Methods that begin with what was typed."""
    return _beginning(methods(), incomplete)


def complete_methods(incomplete: str) -> list[str]:
    """Lists of methods: the last one is completed."""
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in _beginning([*methods(), "highs"], last)]


def complete_format(incomplete: str) -> list[str]:
    """Formats that begin with what was typed."""
    return _beginning(formats(), incomplete)


def complete_demo(incomplete: str) -> list[str]:
    """Demos that begin with what was typed."""
    from softmap.app.vision.demos import NAMES

    return _beginning(list(NAMES), incomplete)


def _bytes(text: str) -> int:
    """A number of bytes: 500000000, 500M, 2G, 1.5GiB; units are powers of 1024."""
    import math

    word = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = "KMGT".find(word[-1:]) + 1 if word else 0
    try:
        number = float(word[:-1] if unit else word)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise typer.BadParameter(f"{text!r} is no number of bytes; such as 500M or 2G is one")
    return int(number * 1024**unit)


MemoryOption = Annotated[
    int | None, typer.Option(help="Bytes that the run may take: 500M, 2G.", parser=_bytes)
]

ModelArgument = Annotated[Path, typer.Argument(help="A model file, or - for standard input.")]

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Where name and content do not tell: uai, wcsp, cfn, opengm, dd, npz, ...",
        autocompletion=complete_format,
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

ValuesOption = Annotated[
    Literal["potential", "log", "cost"] | None, typer.Option(help="What UAI tables hold.")
]
