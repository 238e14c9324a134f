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

from softmap.app.cli.options import (
    JsonOption,
    MemoryOption,
    ModelArgument,
    PartitionOption,
    QuietOption,
    TimeOption,
    ValuesOption,
)
from softmap.app.cli.targets import Targets, check_folder
from softmap.errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softmap.model import Model
    from softmap.run.trace import Row
    from softmap.scale.distributed import DistributedResult


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
    partition: PartitionOption = "auto",
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
    memory_limit: MemoryOption = None,
    proof: Annotated[
        Path | None, typer.Option(help="Write a proof of the bound, for softmap verify.")
    ] = None,
    as_json: JsonOption = False,
    no_progress: QuietOption = False,
) -> None:
    """Solve one large model: mpiexec -n P softmap solve-large …

    MODEL is a model file, or a folder written by softmap convert --parts. From a folder, every
    process reads its own parts only.
    """
    import softmap
    from softmap.run.interrupts import Interrupts
    from softmap.scale.processes import world

    comm = world()
    if proof is not None and model.is_dir():
        raise OptionError("--proof needs a model file: no process reads all parts of a folder")
    options: dict[str, Any] = {
        "partition": partition, "lp_gap": lp_gap, "gap": gap, "threads": threads,
        "time_limit": time_limit, "max_passes": max_passes, "checkpoint_every": checkpoint_every,
        "memory_limit": memory_limit,
    }  # fmt: skip
    with _together(comm):
        if comm.rank == 0:
            check_folder("--out", out, [model], ("labels*", "result.json"))
        comm.Barrier()
        named = {"facts": out / "result.json", "labels": out / "labels.MPE"}
        targets = Targets(named | {"--proof": proof}, {"the model": model})
        options["on_snapshot"] = None if no_progress or as_json else _show
        source: Any = model if model.is_dir() else softmap.read(str(model), values=values)
        with Interrupts():  # a signal after the run does not lose what it found
            with targets.solving():
                result = _solved(source, out, comm, parts, resume, options)
            _write(result, out, comm, targets, as_json)
            if proof is not None:
                _write_proof(result, source, comm, targets)
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
    source: Any, out: Path, comm: Any, parts: int | None, resume: bool, options: dict[str, Any]
) -> DistributedResult:
    from softmap import distributed

    folder = out / "checkpoint"
    options |= {"checkpoint": folder}
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
        if (
            result.variables <= LARGE.labels
            and (everything := _all_labels(result, comm)) is not None
        ):
            targets.write("labels", partial(write_labels, everything))
    comm.Barrier()


def _all_labels(result: DistributedResult, comm: Any) -> NDArray[np.int64] | None:
    """The labels of all variables in process 0, None in others."""
    import numpy as np

    gathered = comm.gather(list(result.labels.values()), root=0)
    if comm.rank:
        return None
    everything = np.empty(result.variables, dtype=np.int64)
    for variables, labels in chain.from_iterable(gathered):
        everything[variables] = labels
    return everything


def _write_proof(result: DistributedResult, model: Model, comm: Any, targets: Targets) -> None:
    """Write λ of all processes as a proof, with the labelling if there is one."""
    import numpy as np

    from softmap.drive.prooffile import write_dual
    from softmap.run.certificate import certificate

    labels = _all_labels(result, comm) if result.found else None
    gathered = comm.gather(list(result.lam.values()), root=0)
    if comm.rank:
        return
    network = model.network
    lam = np.zeros(network.half_size)
    for halves, values in chain.from_iterable(gathered):
        sizes = np.diff(network.half_offset)[halves]
        shift = network.half_offset[halves] - np.cumsum(sizes) + sizes
        lam[np.arange(len(values)) + np.repeat(shift, sizes)] = values
    bound = min(result.bound, certificate(model, lam, result.eta).bound)
    targets.write("--proof", lambda path: write_dual(path, model, lam, bound, labels))


def _write_part(variables: NDArray[np.int64], labels: NDArray[np.int64], path: Path) -> None:
    from softmap.io.atomic import replacing
    from softmap.io.store import write_arrays

    with replacing(path) as file:
        write_arrays(file, {"variables": variables, "labels": labels})


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
