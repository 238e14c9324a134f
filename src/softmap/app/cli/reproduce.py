"""softmap reproduce: the paper's figures beside ours, and the claims they test."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softmap.app.cli.options import QuietOption
from softmap.app.cli.targets import check_folder

if TYPE_CHECKING:
    from softmap.app.experiments.trials import Unit


class Experiment(StrEnum):
    """What to reproduce."""

    FIGURE1 = "figure1"
    FIGURE2 = "figure2"
    FIGURE3 = "figure3"
    FIGURE4 = "figure4"
    ALL = "all"


def reproduce_command(
    what: Annotated[Experiment, typer.Argument(help="Which figure, or all.")],
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = Path(
        "reproduction"
    ),
    graphs: Annotated[int | None, typer.Option(help="Graphs of each size [20].")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials on each graph [10].")] = None,
    updates: Annotated[int | None, typer.Option(help="Updates of each trial [100000].")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the first graph [0].")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small run, for a first look.")] = False,
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="MODULE:CLASS",
            help="Add your own method to Figures 1 to 3, also one from the current"
            " folder; may be repeated.",
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Trials at a time [all cores].")] = None,
    no_progress: QuietOption = False,
) -> None:
    """Run the paper's experiments; report which claims hold.

    Writes the run (run.npz), tables (CSV), figures (PNG, SVG), claims.md and manifest.json. The
    same command, given again, resumes an interrupted run.
    """
    from softmap.app.experiments.plan import FIGURES, Plan, settings_for
    from softmap.app.experiments.reproduce import NO_FIGURES, can_draw, reproduce
    from softmap.views.console import messages
    from softmap.views.progress import ShareDisplay

    check_folder("--out", out)
    settings = settings_for(
        quick=quick, graphs=graphs, trials=trials, updates=updates, seed=seed, own=tuple(own or ())
    )
    figures = FIGURES if what is Experiment.ALL else (what.value,)
    plan = Plan(figures, settings, threads)
    console = messages()
    if not can_draw():
        console.print(NO_FIGURES, markup=False)
    show = ShareDisplay(console, plan.cost)

    def done(unit: Unit) -> None:
        if not no_progress:
            show.advance(unit.cost, f"{unit.figure} {unit.method.label}")

    with nullcontext() if no_progress else show:
        try:
            written = reproduce(plan, out, on_done=done)
        except KeyboardInterrupt:
            console.print("finished trials are kept; the same command goes on from here")
            raise
    for path in written:
        print(path)
