"""softmap info, convert, energy and verify: describe, convert and check files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softmap.app.cli.options import (
    BlockOption,
    EvidenceOption,
    Exit,
    FormatOption,
    JsonOption,
    ModelArgument,
    PartitionOption,
    ValuesOption,
)
from softmap.app.cli.targets import Targets, check_folder, evidence_file, labellings, read_model
from softmap.views.console import facts_table, messages, results

if TYPE_CHECKING:
    from softmap.model import Model

PROOF = b'{"format": "softmap proof"'


def info_command(
    model: ModelArgument,
    values: ValuesOption = None,
    form: FormatOption = None,
    block: BlockOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe a model: sizes, families, structure."""
    from softmap.model.facts import model_facts

    loaded = read_model(model, values=values, form=form, block=block)
    if as_json:
        print(json.dumps(_object(loaded)))
        return
    facts = model_facts(loaded.network) | _structure(loaded)
    results().print(facts_table(facts, title=str(model)))


def _object(model: Model) -> dict[str, Any]:
    """The fields of `--json`."""
    from softmap.model.facts import arity_counts, families
    from softmap.run.memory import memory_of_run

    counts = model.num_labels
    consistent = _consistent(model)
    return {
        "variables": model.n,
        "edges": model.m,
        "labels_min": int(counts.min()),
        "labels_max": int(counts.max()),
        "arities": {str(arity): number for arity, number in arity_counts(model.network).items()},
        "families": families(model.network),
        "hard_constraints": model.network.has_forbidden,
        "shape": model.shape,
        "components": int(model.network.graph.components().max()) + 1,
        "colours": int(model.network.graph.colouring().max()) + 1,
        "bytes": int(model.network.nbytes),
        "bytes_to_solve": memory_of_run(model.network),
        "arc_consistent": isinstance(consistent, int),
        "states_removed": consistent if isinstance(consistent, int) else None,
    }


def _structure(model: Model) -> dict[str, str]:
    from softmap.run.memory import memory_of_run

    components = model.network.graph.components()
    colours, needed = model.network.graph.colouring(), memory_of_run(model.network)
    return {
        "connected components": f"{int(components.max()) + 1:,}",
        "colours": f"{int(colours.max()) + 1}",
        "memory of the model": _memory(model.network.nbytes),
        "memory of a run": f"about {_memory(needed)} (the least --memory-limit)",
        "arc consistency": _consistency(model),
    }


def _memory(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def _consistency(model: Model) -> str:
    removed = _consistent(model)
    if isinstance(removed, str):
        return f"no labelling satisfies the hard constraints: {removed}"
    states = model.unary.size
    return f"removes {removed:,} of {states:,} states" if removed else "removes no states"


def _consistent(model: Model) -> int | str:
    """Return the number of states that arc consistency removes, or why the model is infeasible."""
    import numpy as np

    from softmap.errors import InfeasibleModel
    from softmap.relaxation.consistency import arc_consistency

    try:
        allowed = arc_consistency(model)
    except InfeasibleModel as error:
        return str(error)
    return int((~allowed & ~np.isposinf(model.unary)).sum())


def convert_command(
    source: ModelArgument,
    target: Annotated[Path, typer.Argument(help="The file to write; its suffix names the format.")],
    values: ValuesOption = None,
    form: FormatOption = None,
    block: BlockOption = None,
    evidence: EvidenceOption = None,
    scale: Annotated[
        float | None,
        typer.Option(help="Factor of all costs (.wcsp, .wcnf and .opb files hold whole numbers)."),
    ] = None,
    integer: Annotated[
        bool, typer.Option("--integer", help="Write the integer program (.lp, .mps).")
    ] = False,
    parts: Annotated[
        int | None, typer.Option(help="Number of parts; TARGET is then a folder.")
    ] = None,
    partition: PartitionOption = "auto",
) -> None:
    """Convert a model to another format, or to parts.

    The suffix of TARGET names the format. Parts are for softmap solve-large.
    """
    import softmap

    if parts is None:
        Targets({"TARGET": target}, {"the model": source, "the evidence": evidence_file(evidence)})
    else:
        check_folder("TARGET", target, [source], ("part-*", "model.json"))
    written = softmap.io.format_of(target)
    if scale is not None and written not in ("wcsp", "wcnf", "opb"):
        raise softmap.OptionError(
            f"--scale is for .wcsp, .wcnf and .opb files, which hold whole numbers: {target}"
        )
    if integer and written not in ("lp", "mps"):
        raise softmap.OptionError("--integer is for .lp and .mps files")
    model = read_model(source, values=values, form=form, block=block, evidence=evidence)
    if parts is not None:
        from softmap.scale.distributed import write_parts

        write_parts(model, target, parts, partition=partition)
    else:
        options: dict[str, Any] = {} if scale is None else {"scale": scale}
        options |= {"integer": True} if integer else {}
        softmap.write(model, target, **options)
    messages().print(f"wrote {target}: {model.n:,} variables, {model.m:,} edges")


def energy_command(
    model: ModelArgument,
    labels: Annotated[Path, typer.Argument(help="A labelling: .MPE, .sol, .json or a result.")],
    values: ValuesOption = None,
    form: FormatOption = None,
    block: BlockOption = None,
    evidence: EvidenceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the cost of a labelling, or of each labelling in a file."""
    import math

    loaded = read_model(model, values=values, form=form, block=block, evidence=evidence)
    energies = [float(loaded.energy(one)) for one in labellings(labels, loaded)]
    finite = [energy if math.isfinite(energy) else None for energy in energies]
    if as_json:
        print(json.dumps({"energies": finite, "energy": finite[-1]}))
    else:
        for energy in energies:
            print("inf (a hard constraint is broken)" if energy == math.inf else f"{energy:.17g}")
    raise typer.Exit(Exit.OK if None not in finite else Exit.NOTHING_FOUND)


def _is_proof(path: Path) -> bool:
    """Whether a file begins as proofs do; one that cannot be read is none."""
    try:
        with path.open("rb") as file:
            return file.read(len(PROOF)) == PROOF
    except OSError:
        return False


def verify_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A result written by --save and its model, in either order; or, with --proof, a "
            "model."
        ),
    ],
    evidence: EvidenceOption = None,
    values: ValuesOption = None,
    form: FormatOption = None,
    block: BlockOption = None,
    proof: Annotated[
        Path | None, typer.Option(help="The proof that softmap solve --proof wrote.")
    ] = None,
    effort: Annotated[
        float, typer.Option(help="Factor of the limits on memory and work of a check.")
    ] = 1.0,
    export: Annotated[
        Path | None, typer.Option(help="Write the integer model, for theorems/check.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a saved result, or a proof, against its model.

    Every statement is recomputed, if possible. A statement that was recomputed is called
    checked. A bound that rests on an exact search is
    called stated, unless its proof is given and every step of the proof holds. A proof without a
    result is checked alone: softmap verify MODEL --proof FILE. The exit code is 0
    if every statement was checked, 6 if none is false but some are only stated, and 1 if one is
    false.
    """
    import softmap
    from softmap.io.store import is_archive
    from softmap.views.console import results

    if len(files) == 2 and is_archive(files[1]) and not is_archive(files[0]):
        files = [files[1], files[0]]
    if len(files) > 2 or (len(files) == 1 and proof is None):
        raise softmap.OptionError("expected RESULT MODEL, or MODEL --proof FILE")
    if proof is None and any(map(_is_proof, files)):
        raise softmap.OptionError("a proof is given by --proof: softmap verify MODEL --proof FILE")
    given = {"a file to check": files[0], "the model": files[-1], "--proof": proof}
    targets = Targets({"--export": export}, given)
    loaded = read_model(files[-1], values=values, form=form, block=block, evidence=evidence)
    known: list[Any] = [files[0], loaded] if len(files) == 2 else [loaded]
    report = softmap.verify(*known, proof=proof, effort=effort)
    with targets.printing():
        if as_json:
            print(json.dumps(report.as_dict()))
        else:
            results().print(str(report))
    targets.write("--export", lambda path: softmap.verification.export_model(path, loaded.network))
    codes = {"checked": Exit.OK, "stated": Exit.STATED, "false": Exit.FAILURE}
    raise typer.Exit(targets.exit_code(codes[report.verdict.value]))
