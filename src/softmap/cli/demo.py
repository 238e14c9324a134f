"""softmap demo: a model with a story, solved and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softmap.cli.choices import complete_demo

if TYPE_CHECKING:
    from softmap.demos import Demo
    from softmap.solving.result import Result

__all__ = ["demo_command"]


def demo_command(
    name: Annotated[
        str,
        typer.Argument(
            help="potts, stereo, denoise, segment or matching.", autocompletion=complete_demo
        ),
    ] = "potts",
    image: Annotated[Path | None, typer.Option(help="Your own picture (denoise, segment).")] = None,
    left: Annotated[Path | None, typer.Option(help="Left picture (stereo).")] = None,
    right: Annotated[Path | None, typer.Option(help="Right picture (stereo).")] = None,
    truth: Annotated[Path | None, typer.Option(help="True disparities, as a picture.")] = None,
    truth_scale: Annotated[
        float | None, typer.Option(help="Grey levels per disparity in --truth.")
    ] = None,
    labels: Annotated[int | None, typer.Option(help="Number of labels.")] = None,
    size: Annotated[int | None, typer.Option(help="Longest side, or number of points.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic data.")] = 0,
    lp_gap: Annotated[float, typer.Option(help="Stop at this relative LP gap.")] = 1e-6,
    time_limit: Annotated[float, typer.Option(help="Stop after so many seconds.")] = 30.0,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path(),
    report: Annotated[Path | None, typer.Option(help="Write a page about the run (.html).")] = None,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Be quiet.")] = False,
) -> None:
    """Solve a small problem from start to finish."""
    import softmap
    from softmap import demos
    from softmap.cli.extras import check_extras
    from softmap.cli.files import check_targets
    from softmap.cli.summary import exit_code, print_result, remark
    from softmap.display.console import results
    from softmap.display.progress import display

    out.mkdir(parents=True, exist_ok=True)
    check_targets(report=report)
    check_extras(plot=True)
    options = demos.DemoOptions(
        size=size, labels=labels, seed=seed, image=image, left=left, right=right, truth=truth,
        truth_scale=truth_scale,
    )  # fmt: skip
    demo = demos.build(name, options)
    console = results()
    console.print(demo.story)
    with display(not no_progress, time_limit) as show:
        result = softmap.solve(
            demo.model, lp_gap=lp_gap, time_limit=time_limit, seed=seed, on_snapshot=show
        )
    print_result(console, result)
    if demo.score is not None:
        console.print(f"Against the truth: {demo.score(result.labels.reshape(-1))}.")
    written = _draw(name, demo, result, out)
    if report is not None:
        result.report(report, title=f"softmap demo {name}", picture=demo.picture)
        written.append(report)
    console.print("Wrote " + ", ".join(str(path) for path in written))
    remark(result)
    raise typer.Exit(exit_code(result))


def _draw(name: str, demo: Demo, result: Result, folder: Path) -> list[Path]:
    from softmap.plotting import save_convergence

    kinds = ("input", "labelling", "convergence")
    picture, labelling, convergence = (folder / f"{name}-{kind}.png" for kind in kinds)
    demo.draw_input(picture)
    demo.draw_labelling(result.labels.reshape(-1), labelling)
    save_convergence(result.trace.columns(), convergence, title=name)
    return [picture, labelling, convergence]
