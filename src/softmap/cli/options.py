"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["ModelArgument", "ValuesOption"]

ModelArgument = Annotated[Path, typer.Argument(help="A model file, or - for standard input.")]

ValuesOption = Annotated[
    Literal["potential", "log", "cost"] | None, typer.Option(help="What UAI tables hold.")
]
