"""softmap solve-many: solve many files, on all cores or on a Dask cluster."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from softmap.app.cli.options import (
    Exit,
    GapOption,
    GoalOption,
    JsonOption,
    LPGapOption,
    MemoryOption,
    ProofsOption,
    QuietOption,
    SeedOption,
    ValuesOption,
)
from softmap.app.cli.targets import Targets, check_folder
from softmap.errors import InfeasibleModel, WriteError
from softmap.views.console import messages, ratio, say
from softmap.views.progress import Display

if TYPE_CHECKING:
    from softmap.run.result import Result
    from softmap.scale.many.cluster import Connection
    from softmap.scale.many.items import Answer, Folder, Item
    from softmap.scale.many.work import ModelOutcome, Settings


@dataclass(frozen=True)
class Intervals:
    """Intervals between progress reports of a run over many models."""

    summary: float = 5.0
    """Seconds between two writes of the summary during a run."""
    worst: int = 5
    """Number of models with the largest gaps shown."""
    lines: float = 10.0
    """Seconds between two lines without a terminal."""
    pictures: float = 0.2
    """Seconds between two updates of the display on a terminal."""


INTERVALS = Intervals()


def solve_many_command(
    files: Annotated[list[Path], typer.Argument(help="Model files, or folders of them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for results.")],
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-j", help="Models at the same time [one per core].")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", "-t", help="Seconds for each model.")
    ] = None,
    evidence: Annotated[
        bool, typer.Option(help="Read X.uai with the evidence X.uai.evid, if that file exists.")
    ] = True,
    checkpoints: Annotated[
        Path | None, typer.Option(help="Folder of checkpoints, shared by all workers.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="The algorithm [anneal].")] = None,
    goal: GoalOption = None,
    gap: GapOption = None,
    lp_gap: LPGapOption = None,
    seed: SeedOption = None,
    threads: Annotated[int | None, typer.Option(help="Threads for a large model.")] = None,
    values: ValuesOption = None,
    memory_limit: MemoryOption = None,
    proofs: ProofsOption = None,
    as_json: JsonOption = False,
    no_progress: QuietOption = False,
) -> None:
    """Solve many models, skipping those that already have a result."""
    from softmap.arguments import count
    from softmap.scale.many.cluster import Connection
    from softmap.scale.many.items import Folder, files_in, listed
    from softmap.scale.many.solve import shared_folder
    from softmap.scale.many.work import Settings
    from softmap.tasks.batch import checked_options

    options = {
        "method": method, "goal": goal, "gap": gap, "lp_gap": lp_gap, "time_limit": time_limit,
        "seed": seed, "memory_limit": memory_limit,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    paths = files_in(files)
    folder = Folder(out, given | ({"values": values} if values else {}))
    checked_options("softmap solve-many", given)
    if workers is not None:
        workers = count("workers", workers, 1)
    if threads is not None:
        given |= {"threads": count("threads", threads, 1)}
    items = listed([path.absolute() for path in paths], evidence=evidence)
    written = {"--out": out, "--checkpoints": checkpoints, "--proofs": proofs}
    _check_folders(written, items, paths)
    settings = Settings(given, values, shared_folder(checkpoints), pick, shared_folder(proofs))
    targets, quiet = Targets({}, {}), no_progress or as_json
    with targets.solving():
        failed = _run(folder, items, settings, Connection(cluster, workers), quiet)
    targets.write_to("summary", folder.summary, lambda path: folder.summarise())
    if as_json:
        with targets.printing():
            print(json.dumps(_object(folder)))
    raise typer.Exit(targets.exit_code(Exit.FAILURE if failed else Exit.OK))


WRITTEN = {
    "--out": ("json", "MPE"),
    "--checkpoints": ("checkpoint.npz",),
    "--proofs": ("proof",),
}


def _check_folders(folders: dict[str, Path | None], items: list[Item], paths: list[Path]) -> None:
    """Raise an error if a folder is not writable, or if a file to write is an input."""
    for option, folder in folders.items():
        if folder is not None:
            names = [f"{escape(item.name)}.{kind}" for item in items for kind in WRITTEN[option]]
            check_folder(option, folder, paths, ["summary.csv", *names])


def _run(
    folder: Folder, items: list[Item], settings: Settings, connection: Connection, quiet: bool
) -> int:
    """Solve the models and store the results; return the number of models that failed."""
    from softmap.scale.many.solve import outcomes

    known = {item.name: _shown_path(item.source) for item in items}
    with_evidence = sum(item.evidence is not None for item in items)
    if with_evidence and not quiet:
        say(f"{with_evidence} of {len(items)} models have evidence (X.evid beside X)")
    written = time.monotonic()
    with ManyDisplay(messages(), len(items), folder.rows, not quiet) as show:
        for outcome in outcomes(folder.with_known(items), settings, connection):
            _keep(folder, outcome, known[outcome.name], show)
            show()
            if time.monotonic() - written > INTERVALS.summary:
                with suppress(WriteError):  # the final summary reports the error
                    folder.summarise()
                written = time.monotonic()
    return sum(row["state"] == "failed" for row in folder.rows.values())


def _object(folder: Folder) -> dict[str, Any]:
    """The fields of `--json`: counts of states, and the row of each model, by name."""
    from softmap import __version__
    from softmap.scale.many.items import COLUMNS

    rows = [folder.rows[name] for name in sorted(folder.rows)]
    states = Counter(row["state"] for row in rows)
    return {
        "models": len(rows),
        **{name: states[name] for name in ("solved", "unchanged", "failed")},
        "rows": [{name: row.get(name) for name in COLUMNS} for row in rows],
        "version": __version__,
    }


def _shown_path(source: Any) -> str:
    """The path of a file, relative to the current folder if it is inside."""
    path = str(source)
    near = os.path.relpath(path)
    return path if near.startswith("..") else near


def _keep(folder: Folder, outcome: ModelOutcome, file: str, show: ManyDisplay) -> None:
    """Store the outcome of one model; a failed write is recorded, and the run continues."""
    if isinstance(outcome.error, InfeasibleModel):
        from softmap.app.cli.summary import infeasible_object
        from softmap.scale.many.items import Answer

        answer = Answer(infeasible_object(outcome.error), None)
        outcome = replace(outcome, value=answer, error=None, unchanged=False)
    if outcome.error is not None:
        folder.keep_error(outcome.name, outcome.error)
        show.error(file, outcome.error)
    elif outcome.unchanged:
        folder.keep_old(outcome.name)
    else:
        try:
            folder.keep(outcome.name, outcome.fingerprint, outcome.value)
        except WriteError as error:
            folder.keep_error(outcome.name, error)
            show.error(file, error)


def pick(result: Result) -> Answer:
    """The part of a result that a worker returns: facts and labels, not λ or the model."""
    from softmap.app.cli.summary import as_object
    from softmap.scale.many.items import Answer

    relative = result.relative_gap(result.gap) if result.found else None
    return Answer(
        as_object(result) | {"relative_gap": relative}, result.labels if result.found else None
    )


def remaining(done: int, total: int, seconds: float) -> float:
    """Estimate the remaining seconds from the mean time of the models solved so far."""
    return seconds / done * (total - done) if done else float("inf")


class ManyDisplay(Display):
    """Called after each model; prints totals when left.

    Parameters
    ----------
    console : Console
        Where to print.
    total : int
        Number of models.
    rows : dict
        The facts about each solved model, by name. The caller adds entries during the run.
    enabled : bool
        Whether progress and totals are shown; errors are in any case.
    """

    def __init__(
        self, console: Console, total: int, rows: dict[str, dict[str, Any]], enabled: bool
    ) -> None:
        super().__init__(console, INTERVALS.lines, 1 / INTERVALS.pictures)
        self._total, self._rows, self._enabled = total, rows, enabled
        self._in_place = self._in_place and enabled

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._enabled:
            self.print(self.totals())

    def __call__(self, snapshot: Any = None) -> None:
        """Show the progress, unless the last line was printed a moment ago."""
        if self._enabled:
            self.show()

    def error(self, file: str, error: Exception) -> None:
        """Report at once which file has no result, and why, even if progress is not shown."""
        words = " ".join(str(error).split()) or type(error).__name__
        named = words.startswith((file, os.path.abspath(file)))
        self.print(f"softmap: {words}" if named else f"softmap: {file}: {words}")

    def totals(self) -> str:
        """One sentence over all models."""
        states = Counter(row["state"] for row in self._rows.values())
        infeasible = sum(row.get("status") == "infeasible" for row in self._rows.values())
        proved = sum(row.get("status") in ("optimal", "gap") for row in self._rows.values())
        return (
            f"{len(self._rows)} of {self._total} models: {states['solved']} solved, "
            f"{states['unchanged']} unchanged, {states['failed']} failed; {proved} proved optimal"
            f"{f', {infeasible} infeasible' if infeasible else ''}; "
            f"{self.seconds:.1f} s"
        )

    def line(self) -> str:
        """Return how many models are done, and the estimated time left."""
        done = len(self._rows)
        # results of an earlier run took no time and are left out of the estimate
        fresh = sum(row["state"] != "unchanged" for row in self._rows.values())
        left = remaining(fresh, fresh + self._total - done, self.seconds)
        failed = sum(row["state"] == "failed" for row in self._rows.values())
        rest = f"about {left:.0f} s left" if left < float("inf") else "no estimate yet"
        return f"{done} of {self._total} done, {failed} failed, {rest}"

    def table(self) -> Table:
        """Return the line, and below it the models with the largest gaps."""
        table = Table(title=self.line(), title_justify="left", box=None, pad_edge=False)
        for name in ("worst gaps", "gap", "status"):
            table.add_column(name, header_style="dim")
        gaps = [(row.get("relative_gap"), name) for name, row in self._rows.items()]
        worst = sorted(((gap, name) for gap, name in gaps if gap is not None), reverse=True)
        for gap, name in worst[: INTERVALS.worst]:
            table.add_row(name, ratio(gap), str(self._rows[name].get("status", "")))
        return table
