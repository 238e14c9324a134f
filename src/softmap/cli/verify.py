"""softmap verify: is what a saved result says true?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softmap.cli.options import ModelArgument, ValuesOption

__all__ = ["verify_command"]


def verify_command(
    result: Annotated[Path, typer.Argument(help="A result written by --save or Result.save.")],
    model: ModelArgument,
    evidence: Annotated[Path | None, typer.Option(help="Variables to fix (.evid).")] = None,
    values: ValuesOption = None,
) -> None:
    """Check every statement of a saved result against its model."""
    import softmap
    from softmap.display.console import results

    loaded = softmap.read(str(model), values=values, evidence=evidence)
    report = softmap.verify(result, loaded)
    results().print(str(report))
    raise typer.Exit(0 if report.holds else 1)
