"""Checkpoints: the complete state of a relaxation, so that a resumed run repeats it exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, not_negative
from softmap.errors import CheckpointError
from softmap.model import Model
from softmap.solving.archive import Arrays, digest, read_archive, under, write_archive
from softmap.solving.options import Options
from softmap.solving.proof import proof_arrays, proof_from_arrays
from softmap.solving.relax import Relaxation
from softmap.solving.result import point_arrays, point_from_arrays
from softmap.solving.trace import Trace

__all__ = ["Checkpoint", "load", "save"]

KIND, VERSION = "checkpoint", 10
# options that a checkpoint stores
SETTINGS = (
    "method", "eta", "dtype", "seed", "updates", "lp_gap", "gap", "goal", "backend", "upper_bound",
)  # fmt: skip
MAY_BE_EMPTY = ("messages.drift",)  # arrays of a state that are allocated lazily


@dataclass(frozen=True)
class Checkpoint:
    """A stored run; `settings` are its options."""

    path: Path
    header: dict[str, Any]
    arrays: Arrays

    @property
    def settings(self) -> dict[str, Any]:
        """The options of the stored run that a resumed run keeps."""
        stored = self.header["settings"]
        return {name: stored[name] for name in SETTINGS if name in stored or name != "upper_bound"}

    def trace(self) -> Trace:
        """The trace of the stored run."""
        try:
            return Trace.from_array(self.arrays["trace"])
        except Exception as error:
            raise CheckpointError(f"{self.path}: the checkpoint is damaged ({error})") from error

    def restore(self, relaxation: Relaxation) -> None:
        """Restore the state of a new relaxation."""
        try:
            self._restore_state(relaxation)
            self._restore_best(relaxation)
            names = [f.name for f in fields(relaxation.at)]
            relaxation.resume({name: _like_number(name, self.header[name]) for name in names})
            seconds = not_negative("seconds", self.header["seconds"])
            relaxation.budget.resume(seconds, count("work", self.header["work"]))
        except Exception as error:
            raise CheckpointError(f"{self.path}: the checkpoint is damaged ({error})") from error

    def _restore_state(self, relaxation: Relaxation) -> None:
        for name, owner, attribute, value in _leaves(relaxation.state):
            stored = self.arrays[f"state/{name}"]
            if isinstance(value, np.ndarray):
                room = value[:0] if name in MAY_BE_EMPTY and not len(stored) else value
                setattr(owner, attribute, _like(name, stored, room))
            else:
                setattr(owner, attribute, type(value)(stored.item()))
        if relaxation.state.work < 0:
            raise ValueError("work is negative")

    def _restore_best(self, relaxation: Relaxation) -> None:
        arrays, best = self.arrays, relaxation.best
        point = under("point", arrays)
        numbers = ("lp_bound", "point_cost", "energy", "proved")
        best.restore(
            {name: float(arrays[name]) for name in numbers}
            | {
                "lam": _like("lam", arrays["lam"], best.lam),
                "labels": _labels(relaxation, arrays["labels"]),
                "point": point_from_arrays(relaxation.problem.given, point) if point else None,
                "proof": proof_from_arrays(under("proof", arrays)),
            }
        )
        if "pending" in arrays:
            relaxation.resume_pending(_labels(relaxation, arrays["pending"]))


def _like_number(name: str, value: Any) -> Any:
    """Return a number of a header; counts must be integers of at least -1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number")
    return value if isinstance(value, float) else count(name, value, -1)


def _labels(relaxation: Relaxation, stored: NDArray[Any]) -> NDArray[Any]:
    """Return labels of a file, checked against the model."""
    labels = _like("labels", stored, relaxation.best.labels)
    most = relaxation.problem.model.num_labels[: len(labels)]
    if (labels < 0).any() or (labels >= most).any():
        raise ValueError("a label is out of its range")
    return labels


def _like(name: str, stored: NDArray[Any], value: NDArray[Any]) -> NDArray[Any]:
    """Return an array of a file, if it has the dtype and shape of the array it replaces."""
    if (stored.dtype, stored.shape) != (value.dtype, value.shape):
        raise ValueError(
            f"{name}: expected {value.dtype}{value.shape}, found {stored.dtype}{stored.shape}"
        )
    return stored


def _leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any, str, Any]]:
    """Yield every array and number of a state as (path, owner, field, value)."""
    for f in fields(state):
        value = getattr(state, f.name)
        if isinstance(value, Model):
            continue
        if is_dataclass(value):
            yield from _leaves(value, f"{prefix}{f.name}.")
        else:
            yield f"{prefix}{f.name}", state, f.name, value


def save(path: Path, relaxation: Relaxation, trace: Trace) -> None:
    """Write a checkpoint atomically: if the process is killed, the last checkpoint remains."""
    kept, at = relaxation.best.snapshot(), relaxation.at
    point, proof = kept.pop("point"), kept.pop("proof")
    relaxation.algorithm.settle(relaxation.state)
    arrays: dict[str, Any] = {
        f"state/{name}": value for name, _, _, value in _leaves(relaxation.state)
    }
    if point is not None:
        arrays |= {f"point/{name}": a for name, a in point_arrays(point).items()}
    arrays |= {f"proof/{name}": a for name, a in proof_arrays(proof).items()}
    arrays |= kept | {"trace": trace.array()}
    if (pending := relaxation.pending_labels()) is not None:
        arrays["pending"] = pending
    header = {
        "kind": KIND,
        "version": VERSION,
        "model": relaxation.problem.given.fingerprint(),
        "settings": {name: getattr(relaxation.options, name) for name in SETTINGS},
        "seconds": relaxation.budget.seconds,
        "work": relaxation.budget.work,
        **{f.name: getattr(at, f.name) for f in fields(at)},
    }
    write_archive(path, header | {"digest": digest(header, arrays)}, arrays)


def load(path: Path, model: Model) -> Checkpoint:
    """Read a checkpoint of this model."""

    def problem(sentence: str) -> CheckpointError:
        return CheckpointError(f"{path}: {sentence}")

    header, arrays = read_archive(path, KIND, VERSION, problem)
    if header.get("model") != model.fingerprint():
        raise problem("this checkpoint belongs to another model")
    if header.pop("digest", None) != digest(header, arrays):
        raise problem("the checkpoint was changed after it was written (its digest differs)")
    try:
        Options(**{name: header["settings"][name] for name in SETTINGS})
    except Exception as error:
        raise problem(f"the checkpoint is damaged ({error})") from error
    return Checkpoint(path, header, arrays)
