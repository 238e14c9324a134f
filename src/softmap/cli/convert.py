"""softmap convert: from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from softmap.cli.files import check_targets
from softmap.cli.options import FormatOption, ModelArgument, ValuesOption
from softmap.display.console import messages

__all__ = ["convert_command"]


def convert_command(
    source: ModelArgument,
    target: Annotated[Path, typer.Argument(help="The file to write; its suffix names the format.")],
    values: ValuesOption = None,
    form: FormatOption = None,
    scale: Annotated[
        float | None, typer.Option(help="Costs of a .wcsp are these times a scale, rounded.")
    ] = None,
) -> None:
    """Convert a model to the format that a suffix names (.uai, .LG, .wcsp, .cfn, .h5, .npz)."""
    import softmap

    check_targets(target=target)
    if scale is not None and softmap.io.format_of(target) != "wcsp":
        raise softmap.OptionError(f"--scale is for .wcsp files, which hold whole numbers: {target}")
    model = softmap.read(str(source), values=values, format=form)
    options: dict[str, Any] = {} if scale is None else {"scale": scale}
    softmap.write(model, target, **options)
    messages().print(f"wrote {target}: {model.num_variables:,} variables, {model.m:,} edges")
