"""softmap solve: a model file in, a labelling and its certificate out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from softmap.app.cli.options import (
    BackendOption,
    BestOption,
    BlockOption,
    DiversityOption,
    DtypeOption,
    EtaOption,
    EvidenceOption,
    Exit,
    FormatOption,
    GapOption,
    GoalOption,
    InitialOption,
    JsonOption,
    LPGapOption,
    MemoryOption,
    MethodOption,
    ModelArgument,
    OutputOption,
    QueryOption,
    QuietOption,
    SeedOption,
    ThreadsOption,
    TimeOption,
    UpperBoundOption,
    ValuesOption,
)
from softmap.app.cli.targets import (
    STANDARD,
    Targets,
    best_labels,
    evidence_file,
    read_model,
)
from softmap.errors import InfeasibleModel, OptionError
from softmap.views.console import number, results, say

if TYPE_CHECKING:
    from rich.table import Table

    from softmap.app.cli.competition import Lines
    from softmap.model import Model
    from softmap.run.result import Result
    from softmap.tasks.mbest import RankedLabelling
    from softmap.tasks.summed import MarginalMap


OPTIONS = (
    "method", "goal", "gap", "lp_gap", "time_limit", "eta", "seed", "threads", "dtype", "backend",
    "checkpoint", "upper_bound", "memory_limit", "proof",
)  # fmt: skip
"""Options that `softmap.solve` takes under the same names."""


def solve_command(
    model: ModelArgument,
    evidence: EvidenceOption = None,
    query: QueryOption = None,
    initial: InitialOption = None,
    upper_bound: UpperBoundOption = None,
    method: MethodOption = None,
    goal: GoalOption = None,
    mbest: BestOption = None,
    diversity: DiversityOption = None,
    gap: GapOption = None,
    lp_gap: LPGapOption = None,
    time_limit: TimeOption = None,
    memory_limit: MemoryOption = None,
    eta: EtaOption = None,
    seed: SeedOption = None,
    threads: ThreadsOption = None,
    dtype: DtypeOption = None,
    backend: BackendOption = None,
    values: ValuesOption = None,
    form: FormatOption = None,
    block: BlockOption = None,
    output: OutputOption = None,
    trace: Annotated[Path | None, typer.Option(help="Write one row per check (.csv).")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about the run (.html).")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the result, for softmap verify.")] = None,
    proof: Annotated[Path | None, typer.Option(help="Write a proof, for softmap verify.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Save the run here at intervals.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue from a checkpoint.")] = None,
    as_json: JsonOption = False,
    competition: Annotated[
        Literal["maxsat", "pb"] | None,
        typer.Option(help="Print o, s and v lines in the format of the MaxSAT or PB competition."),
    ] = None,
    no_progress: QuietOption = False,
) -> None:
    """Solve a model and certify the answer."""
    given = locals()
    from softmap.app.cli.competition import Lines
    from softmap.app.cli.summary import exit_code
    from softmap.run.interrupts import Interrupts
    from softmap.views.progress import display

    targets = _targets(given)
    try:
        loaded = read_model(model, values=values, form=form, block=block, evidence=evidence)
        options = _options(given, loaded)
        with Interrupts() as held:  # a signal after the run does not lose what it found
            if query is not None or mbest is not None:
                code = _other_question(loaded, given, options, targets)
                raise typer.Exit(Exit.INTERRUPTED if held.noted else code)
            lines = None if competition is None else Lines(competition, loaded)
            with targets.solving(), lines or display(not no_progress, time_limit) as show:
                result, error = _run(loaded, resume, on_snapshot=show, **options)
            _tell(result, targets, as_json, model.name, lines)
            if error is not None:  # the answer so far is printed and written
                raise error
    except InfeasibleModel as error:
        raise typer.Exit(_infeasible(error, targets, as_json, competition)) from None
    raise typer.Exit(targets.exit_code(exit_code(result)))


def _options(given: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Return the options of `softmap.solve`, with the first labelling read from its file."""
    options = {name: given[name] for name in OPTIONS}
    if given["initial"] is not None:
        options["initial"] = best_labels(given["initial"], model)
    return options


def _infeasible(
    error: InfeasibleModel, targets: Targets, as_json: bool, competition: str | None
) -> int:
    """Say that no labelling has finite cost; return the exit code."""
    from softmap.app.cli.summary import show_infeasible

    with targets.printing():
        if competition is None:
            show_infeasible(error, as_json=as_json)
        else:
            print("s UNSATISFIABLE")
    return targets.exit_code(Exit.INFEASIBLE)


def _tell(result: Result, targets: Targets, as_json: bool, title: str, lines: Lines | None) -> None:
    """Print the answer, then write the files."""
    from softmap.app.cli.summary import answered, show_result
    from softmap.io.results import format_labellings, write_labels

    alone, found = targets.path("--output") == STANDARD, answered(result)
    with targets.printing():
        if lines is not None:
            lines.finish(result, found)
        elif alone and found:
            print(format_labellings([result.labels]), end="")
        show_result(result, as_json=as_json, quiet=alone or lines is not None)
    if found and not alone:
        targets.write("--output", partial(write_labels, result.labels, model=result.model))
    targets.write("--trace", result.trace.to_csv)
    targets.write("--report", partial(result.report, title=title))
    targets.write("--save", partial(result.save, with_model=False))


def _targets(given: Mapping[str, Any]) -> Targets:
    """The files of a run; a checkpoint may overwrite the file that the run resumes from."""
    if given["as_json"] and given["output"] == STANDARD:
        raise OptionError("--json holds the labels: leave out --output -")
    other = given["as_json"] or given["output"] == STANDARD or given["mbest"] is not None
    if given["competition"] is not None and other:
        raise OptionError("--competition prints the answer: leave out --json, --output -, --mbest")
    if given["diversity"] is not None and given["mbest"] is None:
        raise OptionError("--diversity needs --mbest, the number of labellings")
    for name in ("report", "save", "proof", "checkpoint"):
        if given[name] == STANDARD:
            raise OptionError(f"--{name} - cannot be standard output; name a file")
    from softmap.io.store import same_file

    resume, checkpoint = given["resume"], given["checkpoint"]
    goes_on = resume is not None and checkpoint is not None and same_file(resume, checkpoint)
    names = ("output", "trace", "report", "save", "proof", "checkpoint")
    return Targets(
        {f"--{name}": given[name] for name in names},
        {
            "the model": given["model"],
            "the evidence": evidence_file(given["evidence"]),
            "the query": given["query"],
            "the first labelling": given["initial"],
            "the checkpoint": None if goes_on else resume,
        },
    )


def _run(model: Model, resume: Path | None, **options: Any) -> tuple[Result, BaseException | None]:
    """Return the result, and the exception that has ended the run, if there is one."""
    try:
        return _solved(model, resume, **options), None
    except (Exception, KeyboardInterrupt) as error:
        result: Result | None = getattr(error, "result", None)
        if result is None:
            raise
        return result, error


def _solved(model: Model, resume: Path | None, **options: Any) -> Result:
    """Solve or resume; options not given take the solver's or the checkpoint's values."""
    import softmap

    given = {name: value for name, value in options.items() if value is not None}
    if resume is None:
        solve = softmap.paper.solve if "eta" in given else softmap.solve
        return solve(model, **given)
    names = ("method", "goal", "eta", "dtype", "seed", "backend", "upper_bound", "initial")
    if fixed := [_option(name) for name in names if name in given]:
        raise softmap.OptionError(
            f"--resume keeps the options of the stopped run: {', '.join(fixed)} cannot change"
        )
    return softmap.resume(resume, model, **given)


def _option(name: str) -> str:
    """The option of the command that sets an argument of `solve`."""
    return f"--{name.replace('_', '-')}"


def _other_question(
    model: Model, given: Mapping[str, Any], options: dict[str, Any], targets: Targets
) -> int:
    """Solve marginal MAP, or find several labellings; return the exit code."""
    names = ("trace", "report", "save", "resume", "diversity", "mbest")
    options = options | {name: given[name] for name in names}
    if given["query"] is not None:
        return solve_query(model, given["query"], options, targets, given["as_json"])
    return solve_ranked(model, options.pop("mbest"), options, targets, given["as_json"])


TAKEN = ("gap", "time_limit", "threads", "seed", "diversity", "proof")


def solve_ranked(
    model: Model, most: int, options: dict[str, Any], targets: Targets, as_json: bool
) -> int:
    """Find, print and write the best labellings of a model; return the exit code."""
    import softmap

    given = {name: value for name, value in options.items() if value is not None}
    if other := [_option(name) for name in given if name not in TAKEN]:
        raise OptionError(f"--mbest proves each labelling, and does not take {', '.join(other)}")
    with targets.solving():
        found = softmap.solve_mbest(model, most, **given)
    from softmap.io.results import format_labellings, write_labellings

    labellings = [entry.labels for entry in found]
    alone = targets.path("--output") == STANDARD
    with targets.printing():
        if alone and found:
            print(format_labellings(labellings), end="")
        elif as_json:
            print(json.dumps([_as_object(entry, model) for entry in found], default=str))
        else:
            results().print(_table(found))
    if found and not alone:
        targets.write("--output", partial(write_labellings, labellings, model=model))
    if len(found) < most:
        say(_fewer(found, most, given))
    return targets.exit_code()


def solve_query(
    model: Model, query: Path, options: dict[str, Any], targets: Targets, as_json: bool
) -> int:
    """Solve, print and write marginal MAP with the maxima of a query; return the exit code."""
    import softmap
    from softmap.io.atomic import write_text
    from softmap.io.results import format_maxima, read_query

    given = {name: value for name, value in options.items() if value is not None}
    if other := [_option(name) for name in given if name not in ("gap", "time_limit")]:
        raise OptionError(f"--query takes --gap and --time-limit only, not {', '.join(other)}")
    maxima = read_query(query)
    if wrong := [v for v in maxima if v >= model.n]:
        raise OptionError(f"{query}: the model has no variable {wrong[0]}")
    with targets.solving():
        found = softmap.marginal_map(model, query=maxima, **given)
    text, alone = format_maxima(found.variables, found.labels), targets.path("--output") == STANDARD
    with targets.printing():
        if as_json:
            print(json.dumps(_query_object(found)))
        elif not alone:
            results().print(_query_words(found))
        if found.found and (alone or not as_json):
            print(text, end="")
    if found.found and not alone:
        targets.write("--output", partial(write_text, pieces=[text]))
    return targets.exit_code(Exit.OK if found.found else Exit.NOTHING_FOUND)


def _query_object(found: MarginalMap) -> dict[str, Any]:
    """The JSON fields of marginal MAP; numbers that are not finite are null."""
    from softmap.app.cli.summary import finite

    return {
        "found": found.found, "energy": finite(found.energy), "bound": finite(found.bound),
        "gap": finite(found.gap), "status": found.status.name.lower(), "stated": found.stated,
        "seconds": found.seconds, "variables": found.variables.tolist(),
        "labels": found.labels.tolist() if found.found else None,
    }  # fmt: skip


def _query_words(found: MarginalMap) -> str:
    """The sentences about marginal MAP."""
    return (
        f"-log of the sum for these labels is at most {number(found.energy)}, for all labels at "
        f"least {number(found.bound)}: {found.status}. The bounds are stated, without a proof file."
    )


def _fewer(found: list[RankedLabelling], most: int, given: Mapping[str, Any]) -> str:
    """The sentence that says why there are fewer labellings than --mbest asked for."""
    whole = all(entry.proved for entry in found)
    if not whole or "time_limit" in given:
        return f"--mbest {most}: {len(found)} found within the limits"
    apart = f" that differ in {given['diversity']} variables" if "diversity" in given else ""
    return f"--mbest {most}: only {len(found)} labellings{apart} exist"


def _as_object(entry: RankedLabelling, model: Model) -> dict[str, Any]:
    """The JSON fields of one labelling; a bound that is not finite is null."""
    from softmap.app.cli.summary import finite
    from softmap.io.results import labelling_object

    return {
        **labelling_object(entry.labels.reshape(-1).tolist(), model),
        "energy": entry.energy,
        "bound": finite(entry.bound),
        "proved": entry.proved,
    }


def _table(found: list[RankedLabelling]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("rank", "energy", "bound", "proved"):
        table.add_column(name, justify="right", header_style="dim")
    for rank, entry in enumerate(found, 1):
        proved = "yes" if entry.proved else "no"
        table.add_row(str(rank), number(entry.energy), number(entry.bound), proved)
    return table
