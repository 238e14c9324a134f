"""softmap solve-large: solve one model on all processes that mpiexec has started."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softmap.app.cli.options import JsonOption, ModelArgument, TimeOption, ValuesOption
from softmap.app.cli.targets import Targets, check_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softmap.scale.distributed import DistributedResult
    from softmap.solving.trace import Row


@dataclass(frozen=True)
class Large:
    """Limits of solve-large."""

    labels: int = 50_000_000
    """Largest number of variables for which one file holds all labels."""
    grace: float = 0.5
    """Seconds that other processes wait for process 0 to report an error first."""


LARGE = Large()


def solve_large_command(
    model: ModelArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the result.")],
    parts: Annotated[int | None, typer.Option(help="Number of parts [8 per process].")] = None,
    partition: Annotated[str, typer.Option(help="Partitioner: auto, grid, metis or own.")] = "auto",
    lp_gap: Annotated[float, typer.Option(help="Stop at this relative LP gap.")] = 1e-4,
    gap: Annotated[float, typer.Option(help="Stop at this relative gap.")] = 1e-6,
    time_limit: TimeOption = None,
    max_passes: Annotated[int | None, typer.Option(help="Stop after this many passes.")] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", "-j", help="Threads of each process.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between checkpoints.")] = 30.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")] = False,
    values: ValuesOption = None,
    as_json: JsonOption = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Be quiet.")] = False,
) -> None:
    """Solve one large model: mpiexec -n P softmap solve-large …

    MODEL is a model file, or a folder written by softmap convert --parts. From a folder, every
    process reads its own parts only.
    """
    from softmap.scale.processes import world

    comm = world()
    options: dict[str, Any] = {
        "partition": partition, "lp_gap": lp_gap, "gap": gap, "threads": threads,
        "time_limit": time_limit, "max_passes": max_passes, "checkpoint_every": checkpoint_every,
    }  # fmt: skip
    with _together(comm):
        if comm.rank == 0:
            check_folder("--out", out, [model], ("labels*", "result.json"))
        comm.Barrier()
        targets = Targets({"facts": out / "result.json", "labels": out / "labels.MPE"}, {})
        shown = not (no_progress or as_json)
        with targets.solving():
            result = _solved(model, out, comm, parts, resume, values, options, shown)
        _write(result, out, comm, targets, as_json)
    stopped = result.status.name == "INTERRUPTED"
    raise typer.Exit(targets.exit_code(130 if stopped else 0 if result.found else 3))


@contextlib.contextmanager
def _together(comm: Any) -> Iterator[None]:
    """Abort all processes if one fails, so that no process waits for it forever."""
    try:
        yield
    except typer.Exit:
        raise
    except BaseException as error:
        if comm.size == 1:
            raise
        time.sleep(LARGE.grace if comm.rank else 0.0)
        words = str(error) or type(error).__name__
        print(f"softmap: process {comm.rank} of {comm.size}: {words}", file=sys.stderr, flush=True)
        comm.Abort(2)


def _solved(
    model: Path,
    out: Path,
    comm: Any,
    parts: int | None,
    resume: bool,
    values: Any,
    options: dict[str, Any],
    shown: bool,
) -> DistributedResult:
    import softmap
    from softmap import distributed

    source: Any = model if model.is_dir() else softmap.read(str(model), values=values)
    folder = out / "checkpoint"
    options |= {"checkpoint": folder, "on_check": _show if shown else None}
    if resume and folder.is_dir():
        return distributed.resume(folder, source, comm, **options)
    return distributed.solve(source, comm, parts=parts, **options)


def _show(row: Row) -> None:
    """Print one line about a check."""
    from softmap.views.console import messages, number

    messages().print(
        f"{row.seconds:.1f} s  pass {row.sweeps:.0f}  bound {number(row.bound)}  "
        f"primal {number(row.primal)}  energy {number(row.energy)}"
    )


def _write(
    result: DistributedResult, out: Path, comm: Any, targets: Targets, as_json: bool
) -> None:
    """Print and write the results: labels by part, and in one file if the model is small."""
    import numpy as np

    from softmap.io.atomic import write_text
    from softmap.io.results import write_labels
    from softmap.views.console import facts_table, results

    facts = _facts(result)
    sent = comm.gather(result.halo_bytes, root=0)
    if comm.rank == 0:
        facts["halo_bytes_per_pass"] = sum(sent)
        shown = {name: str(value) for name, value in facts.items()}
        with targets.printing():
            if as_json:
                print(json.dumps(facts))
            else:
                results().print(facts_table(shown, title=str(out)))
        targets.write("facts", lambda path: write_text(path, [json.dumps(facts, indent=1), "\n"]))
    if result.found:
        for number, found in result.labels.items():
            path = out / f"labels-{number:05d}.npz"
            targets.write_to(f"part {number}", path, partial(_write_part, *found))
        if result.variables <= LARGE.labels:
            gathered = comm.gather(list(result.labels.values()), root=0)
            if comm.rank == 0:
                everything = np.empty(result.variables, dtype=np.int64)
                for variables, labels in chain.from_iterable(gathered):
                    everything[variables] = labels
                targets.write("labels", partial(write_labels, everything))
    comm.Barrier()


def _write_part(variables: NDArray[np.int64], labels: NDArray[np.int64], path: Path) -> None:
    import numpy as np

    from softmap.io.atomic import replacing

    with replacing(path) as file:
        np.savez(file, variables=variables, labels=labels)


def _facts(result: DistributedResult) -> dict[str, Any]:
    from softmap.app.cli.summary import finite

    costs = ("energy", "bound", "primal", "relative_gap", "relative_lp_gap")
    counts = ("passes", "seconds", "variables", "edges", "parts", "processes")
    return {
        "status": result.status.name.lower(),
        "found": result.found,
        **{name: finite(getattr(result, name)) for name in costs},
        **{name: getattr(result, name) for name in counts},
    }
