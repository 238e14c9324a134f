"""Checkpoints of distributed runs: one archive per part, and a manifest.

The archives of a new checkpoint have new names. The manifest lists them with their digests and is
written last, atomically. The folder therefore holds a complete checkpoint whenever a process dies.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from softmap.arguments import count
from softmap.errors import CheckpointError, WriteError
from softmap.io.atomic import write_text
from softmap.methods.policy import Cooling, Schedule
from softmap.scale.distributed.run import PartsProgress, PartsRun
from softmap.solving.archive import digest, read_archive, write_archive
from softmap.solving.trace import Trace

KIND, PART, VERSION = "checkpoint in parts", "part of a checkpoint", 3
MANIFEST = "checkpoint.json"
NUMBERS = ("passes", "samples", "bound", "primal", "seconds")  # fields of `PartsProgress`


@dataclass(frozen=True)
class Manifest:
    """The manifest of a checkpoint."""

    folder: Path
    facts: dict[str, Any]

    @property
    def parts(self) -> int:
        """Number of parts of the model."""
        return len(self.facts["digests"])


def save(folder: Path, run: PartsRun) -> None:
    """Write a checkpoint; collective call of all processes."""
    state, team = run.progress, run.team
    run.passes.settle()
    problem: Exception | None = _made(folder) if team.rank == 0 else None
    serial = f"{state.passes:010d}"
    digests: dict[int, str] = {}
    if not team.together(problem):
        try:
            for number in run.passes.chains:
                digests[number] = _save_part(folder, serial, number, run)
        except (OSError, MemoryError) as error:
            problem = error
    told = team.comm.allgather((digests, None if problem is None else str(problem)))
    if words := next((words for _, words in told if words), None):
        raise WriteError(folder, words)
    if team.rank == 0:
        every = {number: text for found, _ in told for number, text in found.items()}
        _save_manifest(folder, serial, run, [every[k] for k in range(run.whole.parts)])
    team.comm.Barrier()  # no process continues before the manifest is written


def _made(folder: Path) -> OSError | None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        return error
    return None


def _file(folder: Path, serial: str, number: int) -> Path:
    return folder / f"part-{number:05d}-{serial}.npz"


def _save_part(folder: Path, serial: str, number: int, run: PartsRun) -> str:
    arrays = run.arrays(number)
    header = {"kind": PART, "version": VERSION, "model": run.whole.fingerprint, "number": number}
    found = digest(header, arrays)
    write_archive(_file(folder, serial, number), header, arrays)
    return found


def _save_manifest(folder: Path, serial: str, run: PartsRun, digests: list[str]) -> None:
    state = run.progress
    facts = {
        "kind": KIND,
        "version": VERSION,
        "model": run.whole.fingerprint,
        "serial": serial,
        "digests": digests,
        "clock": run.passes.clock.tolist(),
        "progress": {name: getattr(state, name) for name in NUMBERS},
        "cooling": asdict(state.cooling),
        "schedule": asdict(state.schedule),
        "trace": state.trace.array().tolist(),
    }
    facts["digest"] = digest(facts, {})
    write_text(folder / MANIFEST, [json.dumps(facts), "\n"])
    for old in folder.glob("part-*.npz"):
        if not old.name.endswith(f"-{serial}.npz"):
            old.unlink(missing_ok=True)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; raise an error if it is damaged."""
    path = folder / MANIFEST
    try:
        facts = json.loads(path.read_text("utf-8"))
        told = facts.pop("digest")
        sound = facts["kind"] == KIND and told == digest(facts, {})
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{path}: expected the manifest of a checkpoint in parts") from error
    if not sound or facts.get("version") != VERSION:
        raise CheckpointError(f"{path}: not a manifest of this version, or changed since")
    return Manifest(folder, facts)


def restore(manifest: Manifest, run: PartsRun) -> None:
    """Restore a stored state into a new run; collective call of all processes."""
    facts, team = manifest.facts, run.team
    problem = None
    try:
        if facts["model"] != run.whole.fingerprint:
            raise CheckpointError(f"{manifest.folder}: this checkpoint belongs to another model")
        for number in run.passes.chains:
            _restore_part(manifest, number, run)
        run.go_on(_progress(facts), np.array(facts["clock"], dtype=np.float64))
    except Exception as error:  # a damaged file may cause errors of any type
        problem = str(error)
    if words := next((words for words in team.comm.allgather(problem) if words), None):
        raise CheckpointError(words)


def _restore_part(manifest: Manifest, number: int, run: PartsRun) -> None:
    path = _file(manifest.folder, manifest.facts["serial"], number)

    def problem(sentence: str) -> CheckpointError:
        return CheckpointError(f"{path}: {sentence}")

    header, arrays = read_archive(path, PART, VERSION, problem)
    if digest(header, arrays) != manifest.facts["digests"][number]:
        raise problem("not the part that the manifest names")
    for name, place in run.arrays(number).items():
        found = arrays[name]
        if (found.dtype, found.shape) != (place.dtype, place.shape):
            raise problem(f"{name}: expected {place.dtype}{place.shape}, cut otherwise")
    labels, counts = arrays["labels"], run.passes.chains[number].part.model.num_labels
    if (labels < 0).any() or (labels >= counts).any():
        raise problem("a label is out of its range")
    run.put(number, arrays)


def _progress(facts: dict[str, Any]) -> PartsProgress:
    return PartsProgress(
        cooling=Cooling(**_numbers(Cooling, facts["cooling"])),
        schedule=Schedule(**_numbers(Schedule, facts["schedule"])),
        trace=Trace.from_array(np.array(facts["trace"], dtype=np.float64)),
        **_numbers(PartsProgress, facts["progress"], NUMBERS),
    )


def _numbers(kind: Any, facts: dict[str, Any], names: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the stored fields of a dataclass, converted to the types of its fields."""
    return {
        f.name: count(f.name, facts[f.name]) if f.type == "int" else float(facts[f.name])
        for f in fields(kind)
        if not names or f.name in names
    }
