"""Arguments that several commands share, and how shells complete them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "FormatOption",
    "JsonOption",
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
