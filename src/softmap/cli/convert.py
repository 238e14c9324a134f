"""softmap convert: from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softmap.cli.console import messages
from softmap.cli.files import check_targets

__all__ = ["convert_command"]


def convert_command(
    source: Annotated[Path, typer.Argument(help="A model file, or - for standard input.")],
    target: Annotated[Path, typer.Argument(help="The file to write; its suffix names the format.")],
    values: Annotated[
        str | None, typer.Option(help="UAI tables hold: potential, log or cost.")
    ] = None,
) -> None:
    """Convert a model to the format that a suffix names."""
    import softmap
    from softmap.cli.models import load

    check_targets(target=target)
    model = load(source, values=values)
    softmap.write(model, target)
    messages().print(f"wrote {target}: {model.num_variables:,} variables, {model.m:,} edges")
