"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from softmap.cli.choices import complete_format

__all__ = ["FormatOption", "JsonOption", "ModelArgument", "ValuesOption"]

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
