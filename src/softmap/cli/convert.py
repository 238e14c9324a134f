"""softmap convert: from one file format to another, or into parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softmap.cli.console import messages
from softmap.cli.files import check_targets
from softmap.cli.options import ModelArgument, ValuesOption

__all__ = ["convert_command"]


def convert_command(
    source: ModelArgument,
    target: Annotated[Path, typer.Argument(help="The file to write; its suffix names the format.")],
    values: ValuesOption = None,
    integer: Annotated[
        bool, typer.Option("--integer", help="For .lp and .mps: the integer program.")
    ] = False,
    parts: Annotated[
        int | None, typer.Option(help="Cut it into so many parts; TARGET is a folder.")
    ] = None,
    partition: Annotated[str, typer.Option(help="How: auto, grid, metis or own.")] = "auto",
) -> None:
    """Convert a model to the format that a suffix names, or into parts for solve-large."""
    import softmap
    from softmap.io.streams import bare_suffixes

    if parts is None:
        check_targets(target=target)
    model = softmap.read(str(source), values=values)
    if parts is not None:
        from softmap.distributed import write_parts

        write_parts(model, target, parts, partition=partition)
    elif bare_suffixes(target)[-1:] in ([".lp"], [".mps"]):
        softmap.lp.write(model, target, integer=integer)
    elif integer:
        raise softmap.OptionError("--integer is for .lp and .mps files")
    else:
        softmap.write(model, target)
    messages().print(f"wrote {target}: {model.num_visible:,} variables, {model.m:,} edges")
