"""Runs on disk: everything a run needs to go on as if it had never stopped."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, flag, not_negative
from softmap.errors import CheckpointError
from softmap.model import Model
from softmap.relaxation.point import PrimalPoint
from softmap.solving.archive import Arrays, digest, read_archive, under, write_archive
from softmap.solving.beside import Beside
from softmap.solving.options import Options
from softmap.solving.proof import proof_arrays, proof_from_arrays
from softmap.solving.result import point_arrays, point_from_arrays
from softmap.solving.run import Run
from softmap.solving.trace import Trace

__all__ = ["Checkpoint", "load", "save"]

KIND, VERSION = "checkpoint", 8
# options that are kept
SETTINGS = ("method", "eta", "dtype", "seed", "updates", "lp_gap", "gap", "goal", "backend")
COUNTERS = (
    "next_check", "done", "refined_at", "decoded_at", "solved_at", "improved_at", "later_work",
    "next_interlude",
)  # fmt: skip
FLOATS = ("eta", "proved")
MAY_BE_EMPTY = ("messages.prev",)  # parts of states that are made when they are needed


@dataclass(frozen=True)
class Checkpoint:
    """A stored run: `settings` are the options it began with."""

    path: Path
    header: dict[str, Any]
    arrays: Arrays

    @property
    def settings(self) -> dict[str, Any]:
        """Options of the run that was stopped, those that a resumed run keeps."""
        return {name: self.header["settings"][name] for name in SETTINGS}

    def restore(self, run: Run) -> None:
        """Put a freshly begun run where this one was."""
        try:
            self._restore_state(run)
            self._restore_best(run)
            self._restore_counters(run)
        except Exception as error:
            raise CheckpointError(f"{self.path}: not a whole checkpoint ({error})") from error

    def _restore_state(self, run: Run) -> None:
        for name, owner, attribute, value in _leaves(run.state):
            stored = self.arrays[f"state/{name}"]
            if isinstance(value, np.ndarray):
                room = value[:0] if name in MAY_BE_EMPTY and not len(stored) else value
                setattr(owner, attribute, _like(name, stored, room))
            else:
                setattr(owner, attribute, type(value)(stored.item()))
        if run.state.work < 0:
            raise ValueError("work is negative")

    def _restore_best(self, run: Run) -> None:
        arrays, judge, search = self.arrays, run.judge, run.search
        judge.bound, judge.primal = float(arrays["bound"]), float(arrays["primal"])
        judge.lam = _like("lam", arrays["lam"], judge.lam)
        labels = _labels(run, arrays["labels"])
        search.energy, search.labels = float(arrays["energy"]), labels
        if "awaited" in arrays:
            waiting = copy.copy(search)
            waiting.take(_labels(run, arrays["awaited"]))
            run.awaited = Beside(lambda: waiting, apart=False)
        judge.point = _point(run.model, under("point", arrays))
        run.proof = proof_from_arrays(under("proof", arrays))
        run.trace = Trace.from_array(arrays["trace"])

    def _restore_counters(self, run: Run) -> None:
        header = self.header
        for name in COUNTERS:
            setattr(run, name, count(name, header[name]))
        for name in FLOATS:
            setattr(run, name, float(header[name]))
        run.earlier = not_negative("seconds", header["seconds"])
        lp_gap, gap = header["best_gaps"]
        run.best_gaps = float(lp_gap), float(gap)
        run.gave_up = flag("gave_up", header["gave_up"])


def _labels(run: Run, stored: NDArray[Any]) -> NDArray[Any]:
    """Labels of a file, if they are some of this model."""
    labels = _like("labels", stored, run.search.labels)
    if (labels < 0).any() or (labels >= run.model.num_labels[: len(labels)]).any():
        raise ValueError("a label is out of its range")
    return labels


def _like(name: str, stored: NDArray[Any], value: NDArray[Any]) -> NDArray[Any]:
    """An array of a file, if it has the type and shape of the one it replaces."""
    if (stored.dtype, stored.shape) != (value.dtype, value.shape):
        raise ValueError(
            f"{name}: expected {value.dtype}{value.shape}, found {stored.dtype}{stored.shape}"
        )
    return stored


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
    arrays |= {f"proof/{name}": a for name, a in proof_arrays(run.proof).items()}
    arrays |= {"bound": judge.bound, "lam": judge.lam, "primal": judge.primal}
    arrays |= {"energy": search.energy, "labels": search.labels, "trace": run.trace.array()}
    if run.awaited is not None and (found := run.awaited.found()) is not None:
        arrays["awaited"] = found.labels
    header = {
        "kind": KIND,
        "version": VERSION,
        "model": run.given.fingerprint(),
        "settings": _settings(run.options),
        "seconds": run.seconds,
        "best_gaps": run.best_gaps,
        "gave_up": run.gave_up,
        **{name: getattr(run, name) for name in COUNTERS + FLOATS},
    }
    write_archive(path, header | {"digest": digest(header, arrays)}, arrays)


def _settings(options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in SETTINGS}


def load(path: Path, model: Model) -> Checkpoint:
    """A checkpoint of this model."""

    def problem(sentence: str) -> CheckpointError:
        return CheckpointError(f"{path}: {sentence}")

    header, arrays = read_archive(path, KIND, VERSION, problem)
    if header.get("model") != model.fingerprint():
        raise problem("this checkpoint belongs to another model")
    if header.pop("digest", None) != digest(header, arrays):
        raise problem("not a softmap checkpoint any more: its numbers were changed")
    try:
        Options(**{name: header["settings"][name] for name in SETTINGS})
    except Exception as error:
        raise problem(f"not a whole checkpoint ({error})") from error
    return Checkpoint(path, header, arrays)
