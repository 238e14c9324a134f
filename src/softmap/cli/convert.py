"""softmap convert: from one file format to another, or into parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from softmap.cli.options import FormatOption, ModelArgument, ValuesOption
from softmap.cli.targets import Targets, check_folder
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
    integer: Annotated[
        bool, typer.Option("--integer", help="For .lp and .mps: the integer program.")
    ] = False,
    parts: Annotated[
        int | None, typer.Option(help="Cut it into so many parts; TARGET is a folder.")
    ] = None,
    partition: Annotated[str, typer.Option(help="How: auto, grid, metis or own.")] = "auto",
    parts_form: Annotated[str, typer.Option(help="Files of parts: npz or hdf5.")] = "npz",
) -> None:
    """Convert a model to the format that a suffix names, or into parts for solve-large."""
    import softmap
    from softmap.io.streams import bare_suffixes

    if parts is None:
        Targets({"TARGET": target}, {"the model": source})
    else:
        check_folder("TARGET", target, [source], ("part-*", "model.json"))
    program = bare_suffixes(target)[-1:] in ([".lp"], [".mps"])
    if scale is not None and (program or softmap.io.format_of(target) != "wcsp"):
        raise softmap.OptionError(f"--scale is for .wcsp files, which hold whole numbers: {target}")
    if integer and not program:
        raise softmap.OptionError("--integer is for .lp and .mps files")
    model = softmap.read(str(source), values=values, format=form)
    if parts is not None:
        from softmap.distributed import write_parts

        write_parts(model, target, parts, partition=partition, form=parts_form)
    elif program:
        softmap.lp.write(model, target, integer=integer)
    else:
        options: dict[str, Any] = {} if scale is None else {"scale": scale}
        softmap.write(model, target, **options)
    messages().print(f"wrote {target}: {model.num_visible:,} variables, {model.m:,} edges")
