"""softmap demo: an example problem, solved and drawn."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softmap.app.cli.options import QuietOption, complete_demo

if TYPE_CHECKING:
    from softmap.app.cli.targets import Targets
    from softmap.app.vision.demos import Demo
    from softmap.run.result import Result

KINDS = ("input", "labelling", "pair", "convergence")  # suffixes of the images written


def demo_command(
    name: Annotated[
        str,
        typer.Argument(
            help="photo, potts, stereo, denoise, segment or matching.",
            autocompletion=complete_demo,
        ),
    ] = "photo",
    image: Annotated[Path | None, typer.Option(help="Your own picture (denoise, segment).")] = None,
    left: Annotated[Path | None, typer.Option(help="Left picture (stereo).")] = None,
    right: Annotated[Path | None, typer.Option(help="Right picture (stereo).")] = None,
    truth: Annotated[Path | None, typer.Option(help="True disparities, as a picture.")] = None,
    truth_scale: Annotated[
        float | None, typer.Option(help="Grey levels per disparity in --truth.")
    ] = None,
    labels: Annotated[int | None, typer.Option(help="Number of labels.")] = None,
    size: Annotated[
        int | None, typer.Option(help="Longest side of the picture; matching: points.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic data.")] = 0,
    lp_gap: Annotated[float, typer.Option(help="Stop at this relative LP gap.")] = 1e-6,
    time_limit: Annotated[
        float, typer.Option("--time-limit", "-t", help="Stop after this many seconds.")
    ] = 6.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path(),
    report: Annotated[Path | None, typer.Option(help="Write a page about the run (.html).")] = None,
    no_progress: QuietOption = False,
) -> None:
    """Solve a small problem from start to finish."""
    import softmap
    from softmap.app.cli.summary import exit_code
    from softmap.app.cli.targets import Targets, check_folder
    from softmap.app.vision import demos
    from softmap.views.progress import display

    check_folder("--out", out)
    pictures = {kind: out / f"{name}-{kind}.png" for kind in KINDS}
    given = {"--image": image, "--left": left, "--right": right, "--truth": truth}
    targets = Targets({**pictures, "--report": report}, given)
    options = demos.DemoOptions(
        size=size, labels=labels, seed=seed, image=image, left=left, right=right, truth=truth,
        truth_scale=truth_scale,
    )  # fmt: skip
    demo = demos.build(name, options)
    with targets.printing():
        print(demo.story)
    with display(not no_progress, time_limit) as show:
        limits: dict[str, Any] = {"lp_gap": lp_gap, "time_limit": time_limit, "seed": seed}
        result = softmap.solve(demo.model, on_snapshot=show, **limits, **demo.options)
    _tell(name, demo, result, targets, time_limit)
    raise typer.Exit(targets.exit_code(exit_code(result)))


def _tell(name: str, demo: Demo, result: Result, targets: Targets, time_limit: float) -> None:
    """Print the result, then draw it."""
    from softmap.app.cli.summary import print_result, remark
    from softmap.views import page
    from softmap.views.charts import side_by_side
    from softmap.views.console import results
    from softmap.views.plotting import enlarged, save_convergence, save_image

    labels = result.labels.reshape(-1)
    with targets.printing():
        print_result(results(), result)
        if demo.score is not None:
            print(f"Compared with the truth: {demo.score(labels)}.")
        if demo.remark is not None and (said := demo.remark(labels)) is not None:
            print(f"{said}.")
        if result.status.name == "TIME_LIMIT":
            print(f"Stopped after {time_limit:g} s; --time-limit {8 * time_limit:g} allows more.")
    given, found = enlarged(demo.shown), enlarged(demo.paint(labels))
    images = {"input": given, "labelling": found, "pair": side_by_side([given, found], 12)}
    for kind, image in images.items():
        targets.write(kind, partial(save_image, image))
    targets.write("convergence", partial(save_convergence, result.trace.columns(), title=name))
    targets.write(
        "--report",
        lambda path: page.write(
            result, path, f"softmap demo {name}", demo.picture, demo.paint(labels)
        ),
    )
    targets.tell()
    remark(result)
