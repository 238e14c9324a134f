"""softmap verify: is what a saved result says true?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from softmap.cli.options import JsonOption, ModelArgument, ValuesOption

__all__ = ["verify_command"]


def verify_command(
    result: Annotated[Path, typer.Argument(help="A result written by --save or Result.save.")],
    model: ModelArgument,
    evidence: Annotated[Path | None, typer.Option(help="Variables to fix (.evid).")] = None,
    values: ValuesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every statement of a saved result against its model.

    What was recomputed is called checked. A bound that an exact search has proved cannot be
    recomputed: it is called stated. The exit code is 1 where a statement is false.
    """
    import softmap
    from softmap.display.console import results

    loaded = softmap.read(str(model), values=values, evidence=evidence)
    report = softmap.verify(result, loaded)
    if as_json:
        print(json.dumps(report.as_dict()))
    else:
        results().print(str(report))
    raise typer.Exit(0 if report.holds else 1)
