"""Runs on disk: everything a run needs to go on as if it had never stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import astuple, fields, is_dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from softmap.errors import CheckpointError
from softmap.model import Model
from softmap.solving.judge import Judge
from softmap.solving.result import Row, Trace

__all__ = ["load", "save"]

VERSION = 1
JUDGED = ("bound", "primal", "energy", "eta")
JUDGED_ARRAYS = ("lam", "coupling", "labels")


def _leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any, str, Any]]:
    """Every array and number of a state: (path, owner, field, value)."""
    for f in fields(state):
        value = getattr(state, f.name)
        if isinstance(value, Model):
            continue
        if is_dataclass(value):
            yield from _leaves(value, f"{prefix}{f.name}.")
        else:
            yield f"{prefix}{f.name}", state, f.name, value


def save(path: Path, model: Model, settings: dict[str, Any], run: Any) -> None:
    """Write atomically: a killed process leaves the last whole checkpoint."""
    arrays: dict[str, NDArray[Any]] = {
        f"state/{name}": np.asarray(value) for name, _, _, value in _leaves(run.state)
    }
    judge = run.judge
    arrays |= {f"judge/{name}": np.asarray(getattr(judge, name)) for name in JUDGED}
    arrays |= {f"judge/{name}": getattr(judge, name) for name in JUDGED_ARRAYS}
    if judge.nodes is not None:
        arrays["judge/nodes"] = judge.nodes
    arrays["trace"] = np.array([astuple(row) for row in run.trace], dtype=np.float64)
    header = {
        "version": VERSION,
        "model": model.fingerprint(),
        "settings": settings,
        "seconds": run.seconds,
        "next_check": run.next_check,
        "done": run.done,
        "decoded_at": run.decoded_at,
        "improved_at": run.improved_at,
        "best_gaps": run.best_gaps,
    }
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path, model: Model) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a checkpoint of this model."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes())
        version = header["version"]
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: there is no such checkpoint") from error
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise CheckpointError(f"{path}: not a softmap checkpoint ({error})") from error
    if version != VERSION:
        raise CheckpointError(f"{path}: written by another version ({version}, not {VERSION})")
    if header["model"] != model.fingerprint():
        raise CheckpointError(f"{path}: this checkpoint belongs to another model")
    return header, arrays


def restore(run: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Put a freshly begun run where the checkpoint was."""
    for name, owner, attribute, value in _leaves(run.state):
        stored = arrays[f"state/{name}"]
        restored = stored if isinstance(value, np.ndarray) else type(value)(stored.item())
        setattr(owner, attribute, restored)
    judge: Judge = run.judge
    for name in JUDGED:
        setattr(judge, name, float(arrays[f"judge/{name}"]))
    for name in JUDGED_ARRAYS:
        setattr(judge, name, arrays[f"judge/{name}"])
    judge.nodes = arrays.get("judge/nodes")
    run.trace = Trace([_row(values) for values in arrays["trace"]])
    run.earlier = header["seconds"]
    for name in ("next_check", "done", "decoded_at", "improved_at"):
        setattr(run, name, header[name])
    run.best_gaps = tuple(header["best_gaps"])


def _row(values: NDArray[np.float64]) -> Row:
    work, *rest = values.tolist()
    return Row(int(work), *rest)
