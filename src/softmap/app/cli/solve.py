"""softmap solve: a model file in, a labelling and its certificate out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softmap.app.cli.options import (
    FormatOption,
    JsonOption,
    ModelArgument,
    ValuesOption,
    complete_method,
)
from softmap.app.cli.targets import STANDARD, Targets, same_file
from softmap.errors import OptionError

if TYPE_CHECKING:
    from softmap.model import Model
    from softmap.solving.result import Result

__all__ = ["solve_command"]


def solve_command(
    model: ModelArgument,
    evidence: Annotated[Path | None, typer.Option(help="Variables to fix (.evid).")] = None,
    method: Annotated[
        str | None,
        typer.Option(help="anneal (default), trws, mplp, smp, ...", autocompletion=complete_method),
    ] = None,
    goal: Annotated[
        Literal["map", "lp", "labels", "optimal"] | None,
        typer.Option(help="What to go on for after the relaxation [map]."),
    ] = None,
    mbest: Annotated[int | None, typer.Option(help="Find so many best labellings.")] = None,
    gap: Annotated[float | None, typer.Option(help="Stop at this relative gap [1e-6].")] = None,
    lp_gap: Annotated[float | None, typer.Option(help="The relaxation's gap [1e-4].")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    eta: Annotated[float | None, typer.Option(help="Inverse temperature (for smp etc.).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of what is random [0].")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads [all].")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64 [by backend].")] = None,
    backend: Annotated[str | None, typer.Option(help="cpu or cuda [cpu].")] = None,
    values: ValuesOption = None,
    form: FormatOption = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the labelling (.MPE); - prints it alone.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Write the run, a row per check.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about the run (.html).")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the result, for softmap verify.")] = None,
    proof: Annotated[
        Path | None, typer.Option(help="Write a proof of the bound, for softmap verify.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Save the run here as it goes.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on from a checkpoint.")] = None,
    as_json: JsonOption = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Be quiet.")] = False,
) -> None:
    """Solve a model and certify the answer."""
    import softmap
    from softmap.app.cli.summary import exit_code
    from softmap.views.progress import display

    targets = _targets(locals())
    if as_json and output == STANDARD:
        raise softmap.OptionError("--json holds the labels: leave out --output -")
    loaded = softmap.read(str(model), values=values, evidence=evidence, format=form)
    options: dict[str, Any] = {
        "method": method, "goal": goal, "gap": gap, "lp_gap": lp_gap, "time_limit": time_limit,
        "eta": eta, "seed": seed, "threads": threads, "dtype": dtype, "backend": backend,
        "checkpoint": checkpoint, "proof": proof,
    }  # fmt: skip
    if mbest is not None:
        from softmap.app.cli.ranked import solve_ranked

        other = {"trace": trace, "report": report, "save": save, "resume": resume}
        raise typer.Exit(solve_ranked(loaded, mbest, options | other, targets, as_json))
    with display(not no_progress, time_limit) as show:
        result = _run(loaded, resume, on_snapshot=show, **options)
    _tell(result, targets, as_json, model.name)
    raise typer.Exit(targets.exit_code(exit_code(result)))


def _tell(result: Result, targets: Targets, as_json: bool, title: str) -> None:
    """Print the answer, then write the files."""
    from softmap.app.cli.summary import show_result
    from softmap.io.results import format_labels, write_labels

    alone = targets.path("--output") == STANDARD
    with targets.printing():
        if alone and result.found:
            print(format_labels(result.labels), end="")
        show_result(result, as_json=as_json, quiet=alone)
    if result.found and not alone:
        targets.write("--output", partial(write_labels, result.labels))
    targets.write("--trace", result.trace.to_csv)
    targets.write("--report", partial(result.report, title=title))
    targets.write("--save", partial(result.save, with_model=False))


def _targets(given: Mapping[str, Any]) -> Targets:
    """The files of a run; a checkpoint may go on in the file it is resumed from."""
    for name in ("report", "save", "proof", "checkpoint"):
        if given[name] == STANDARD:
            raise OptionError(f"--{name} - cannot be standard output; name a file")
    resume, checkpoint = given["resume"], given["checkpoint"]
    goes_on = resume is not None and checkpoint is not None and same_file(resume, checkpoint)
    names = ("output", "trace", "report", "save", "proof", "checkpoint")
    return Targets(
        {f"--{name}": given[name] for name in names},
        {
            "the model": given["model"],
            "the evidence": given["evidence"],
            "the checkpoint": None if goes_on else resume,
        },
    )


def _run(model: Model, resume: Path | None, **options: Any) -> Result:
    """Solve, or go on; what the user left open is for the solver, or the checkpoint, to say."""
    import softmap

    given = {name: value for name, value in options.items() if value is not None}
    if resume is None:
        return softmap.solve(model, **given)
    if fixed := [
        f"--{name}"
        for name in ("method", "goal", "eta", "dtype", "seed", "backend")
        if name in given
    ]:
        raise softmap.OptionError(
            f"--resume goes on as the run began: {', '.join(fixed)} cannot change"
        )
    return softmap.resume(resume, model, **given)
