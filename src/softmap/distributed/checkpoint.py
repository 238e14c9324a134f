"""Runs over parts on disk: one archive per part, and a manifest that makes them one checkpoint.

Archives of a new checkpoint have new names; the manifest, written last and atomically, names them
with their digests. Whatever dies at whatever moment, the folder holds the last whole checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count
from softmap.distributed.run import PartsProgress, PartsRun
from softmap.errors import CheckpointError, WriteError
from softmap.io.atomic import write_text
from softmap.solving.archive import Arrays, digest, read_archive, write_archive
from softmap.solving.trace import Trace

__all__ = ["Manifest", "read_manifest", "restore", "save"]

KIND, PART, VERSION = "checkpoint in parts", "part of a checkpoint", 3
MANIFEST = "checkpoint.json"
COUNTS = ("passes", "samples", "next_check", "refined_at", "labelled_at", "improved_at")


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint says of itself."""

    folder: Path
    facts: dict[str, Any]

    @property
    def parts(self) -> int:
        """Parts of the model."""
        return len(self.facts["digests"])


def save(folder: Path, run: PartsRun) -> None:
    """Write a checkpoint; all processes together."""
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
    team.comm.Barrier()  # nobody goes on to change what is being named


def _made(folder: Path) -> OSError | None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        return error
    return None


def _file(folder: Path, serial: str, number: int) -> Path:
    return folder / f"part-{number:05d}-{serial}.npz"


def _save_part(folder: Path, serial: str, number: int, run: PartsRun) -> str:
    chains = run.passes.chains[number]
    arrays = {name: getattr(chains, name) for name in chains.STORED}
    arrays |= {"lam": run.lam[number], "labels": run.labels.labels[number]}
    header = {"kind": PART, "version": VERSION, "model": run.whole.fingerprint, "number": number}
    found = digest(header, arrays)
    write_archive(_file(folder, serial, number), header, arrays)
    return found


def _save_manifest(folder: Path, serial: str, run: PartsRun, digests: list[str]) -> None:
    state = run.progress
    numbers = {f.name: getattr(state, f.name) for f in fields(PartsProgress) if f.name != "trace"}
    facts = {
        "kind": KIND,
        "version": VERSION,
        "model": run.whole.fingerprint,
        "serial": serial,
        "digests": digests,
        "clock": run.passes.clock.tolist(),
        "energy": run.labels.energy,
        "progress": numbers,
        "trace": state.trace.array().tolist(),
    }
    facts["digest"] = digest(facts, {})
    write_text(folder / MANIFEST, [json.dumps(facts), "\n"])
    for old in folder.glob("part-*.npz"):
        if not old.name.endswith(f"-{serial}.npz"):
            old.unlink(missing_ok=True)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, if it is whole."""
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
    """Put a freshly begun run where the stored one was; all processes together."""
    facts, team = manifest.facts, run.team
    problem = None
    try:
        if facts["model"] != run.whole.fingerprint:
            raise CheckpointError(f"{manifest.folder}: this checkpoint belongs to another model")
        for number in run.passes.chains:
            _restore_part(manifest, number, run)
        _restore_numbers(facts, run)
    except Exception as error:  # of any type: whatever a damaged file may lead to
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
    chains = run.passes.chains[number]
    for name in chains.STORED:
        place = getattr(chains, name)
        place[...] = _like(place, arrays, name, problem)
    run.lam[number][...] = _like(run.lam[number], arrays, "lam", problem)
    run.labels.labels[number][...] = _like(run.labels.labels[number], arrays, "labels", problem)
    counts = chains.part.model.num_labels
    labels = run.labels.labels[number]
    if (labels < 0).any() or (labels >= counts).any():
        raise problem("a label is out of its range")


def _like(place: NDArray[Any], arrays: Arrays, name: str, problem: Any) -> NDArray[Any]:
    """A stored array, if it fits in the place of another."""
    found: NDArray[Any] = arrays[name]
    if (found.dtype, found.shape) != (place.dtype, place.shape):
        raise problem(f"{name}: expected {place.dtype}{place.shape}, cut otherwise")
    return found


def _restore_numbers(facts: dict[str, Any], run: PartsRun) -> None:
    numbers: dict[str, Any] = {name: float(value) for name, value in facts["progress"].items()}
    numbers |= {name: count(name, facts["progress"][name]) for name in COUNTS}
    trace = Trace.from_array(np.array(facts["trace"], dtype=np.float64))
    run.progress = PartsProgress(**numbers, trace=trace)
    run.passes.clock = np.array(facts["clock"], dtype=np.float64)
    run.labels.energy = float(facts["energy"])
