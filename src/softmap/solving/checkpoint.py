"""Runs on disk: everything a run needs to go on as if it had never stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softmap.errors import CheckpointError
from softmap.model import Model
from softmap.relaxation.point import PrimalPoint
from softmap.solving.archive import Arrays, read_archive, under, write_archive
from softmap.solving.options import Options
from softmap.solving.result import point_arrays, point_from_arrays
from softmap.solving.run import Run
from softmap.solving.trace import Trace

__all__ = ["Checkpoint", "load", "save"]

KIND, VERSION = "checkpoint", 3
SETTINGS = (
    "method",
    "eta",
    "dtype",
    "seed",
    "updates",
    "lp_gap",
    "gap",
    "goal",
)  # options that are kept
COUNTERS = ("next_check", "done", "decoded_at", "improved_at")


@dataclass(frozen=True)
class Checkpoint:
    """A stored run: `settings` are the options it began with."""

    header: dict[str, Any]
    arrays: Arrays

    @property
    def settings(self) -> dict[str, Any]:
        """Options of the run that was stopped, those that a resumed run keeps."""
        return dict(self.header["settings"])

    def restore(self, run: Run) -> None:
        """Put a freshly begun run where this one was."""
        arrays, header = self.arrays, self.header
        for name, owner, attribute, value in _leaves(run.state):
            stored = arrays[f"state/{name}"]
            restored = stored if isinstance(value, np.ndarray) else type(value)(stored.item())
            setattr(owner, attribute, restored)
        run.judge.bound, run.judge.primal = float(arrays["bound"]), float(arrays["primal"])
        run.judge.lam = arrays["lam"]
        run.search.energy, run.search.labels = float(arrays["energy"]), arrays["labels"]
        run.judge.point = _point(run.model, under("point", arrays))
        run.trace = Trace.from_array(arrays["trace"])
        run.earlier = header["seconds"]
        for name in COUNTERS:
            setattr(run, name, header[name])
        run.best_gaps = tuple(header["best_gaps"])


def _point(model: Model, arrays: Arrays) -> PrimalPoint | None:
    return point_from_arrays(model, arrays) if arrays else None


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


def save(path: Path, run: Run) -> None:
    """Write a run atomically: a killed process leaves the last whole checkpoint."""
    judge, search = run.judge, run.search
    arrays: dict[str, Any] = {f"state/{name}": value for name, _, _, value in _leaves(run.state)}
    if judge.point is not None:
        arrays |= {f"point/{name}": a for name, a in point_arrays(judge.point).items()}
    arrays |= {"bound": judge.bound, "lam": judge.lam, "primal": judge.primal}
    arrays |= {"energy": search.energy, "labels": search.labels, "trace": run.trace.array()}
    header = {
        "kind": KIND,
        "version": VERSION,
        "model": run.given.fingerprint(),
        "settings": _settings(run.options),
        "seconds": run.seconds,
        "best_gaps": run.best_gaps,
        **{name: getattr(run, name) for name in COUNTERS},
    }
    write_archive(path, header, arrays)


def _settings(options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in SETTINGS}


def load(path: Path, model: Model) -> Checkpoint:
    """A checkpoint of this model."""

    def problem(sentence: str) -> CheckpointError:
        return CheckpointError(f"{path}: {sentence}")

    header, arrays = read_archive(path, KIND, VERSION, problem)
    if header["model"] != model.fingerprint():
        raise problem("this checkpoint belongs to another model")
    return Checkpoint(header, arrays)
