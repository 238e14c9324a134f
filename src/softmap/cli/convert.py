"""softmap convert: from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softmap.cli.files import check_targets
from softmap.cli.options import ModelArgument, ValuesOption
from softmap.display.console import messages

__all__ = ["convert_command"]


def convert_command(
    source: ModelArgument,
    target: Annotated[Path, typer.Argument(help="The file to write; its suffix names the format.")],
    values: ValuesOption = None,
) -> None:
    """Convert a model to the format that a suffix names."""
    import softmap

    check_targets(target=target)
    model = softmap.read(str(source), values=values)
    softmap.write(model, target)
    messages().print(f"wrote {target}: {model.num_variables:,} variables, {model.m:,} edges")
