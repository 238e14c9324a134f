"""Checkpoints: the complete state of a run, so that a resumed run repeats it exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, not_negative
from softmap.errors import CheckpointError
from softmap.model import Model, Network
from softmap.run.archive import Arrays, digest, read_archive, under, write_archive
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.evidence import Evidence, evidence_arrays, evidence_from_arrays
from softmap.run.options import Options
from softmap.run.result import point_arrays, point_from_arrays
from softmap.run.trace import Trace
from softmap.subsolvers.passes.decode import Decode
from softmap.subsolvers.passes.passes import Passes

__all__ = ["Checkpoint", "load", "save"]

KIND, VERSION = "checkpoint", 12
# options that a checkpoint stores
SETTINGS = (
    "method", "eta", "dtype", "seed", "updates", "every", "lp_gap", "gap", "goal", "backend",
    "upper_bound",
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
        optional = ("upper_bound", "every")
        return {name: stored[name] for name in SETTINGS if name in stored or name not in optional}

    def trace(self, *, recorded: bool = False) -> Trace:
        """The trace of the stored run; without the bounds that `restore` sets aside."""
        try:
            trace = Trace.from_array(self.arrays["trace"])
            stated = recorded and _evidence(self.arrays).stated
        except Exception as error:
            raise CheckpointError(f"{self.path}: the checkpoint is damaged ({error})") from error
        return trace.relaxed() if stated else trace

    def restore(
        self, best: Best, budget: Budget, passes: Passes, decode: Decode, *, recorded: bool = False
    ) -> None:
        """Restore the values of a stored run in the objects of a new one.

        Parameters
        ----------
        best, budget, passes, decode
            The objects.
        recorded : bool, default False
            Whether the new run writes a proof file, see `Best.restore`.
        """
        try:
            self._restore_best(best, recorded)
            self._restore_passes(passes)
            self._restore_decode(best, decode)
            seconds = not_negative("seconds", self.header["seconds"])
            budget.resume(seconds, count("work", self.header["work"]))
        except Exception as error:
            raise CheckpointError(f"{self.path}: the checkpoint is damaged ({error})") from error

    def _restore_passes(self, passes: Passes) -> None:
        state, numbers = passes.snapshot()
        for name, owner, attribute, value in _leaves(state):
            stored = self.arrays[f"state/{name}"]
            if isinstance(value, np.ndarray):
                room = value[:0] if name in MAY_BE_EMPTY and not len(stored) else value
                setattr(owner, attribute, _like(name, stored, room))
            else:
                setattr(owner, attribute, type(value)(stored.item()))
        if state.work < 0:
            raise ValueError("work is negative")
        stored = self.header["passes"]
        passes.restore({name: _like_number(name, stored[name]) for name in numbers})

    def _restore_decode(self, best: Best, decode: Decode) -> None:
        pending = self.arrays.get("pending")
        labels = None if pending is None else _labels(best, pending)
        decode.restore(count("decoded_at", self.header["decoded_at"]), labels)

    def _restore_best(self, best: Best, recorded: bool) -> None:
        best.restore(_best_values(best, self.arrays), recorded=recorded)
        if reached := under("reached", self.arrays):
            best.set_aside(_best_values(best, reached), recorded=recorded)


def _best_arrays(kept: dict[str, Any]) -> dict[str, Any]:
    """The arrays of values of `Best.snapshot`."""
    evidence = kept["evidence"]
    arrays = {name: value for name, value in kept.items() if name not in ("point", "evidence")}
    arrays["proved"] = evidence.value
    if kept["point"] is not None:
        arrays |= {f"point/{name}": a for name, a in point_arrays(kept["point"]).items()}
    return arrays | {f"proof/{name}": a for name, a in evidence_arrays(evidence).items()}


def _evidence(arrays: Arrays) -> Evidence:
    return evidence_from_arrays(under("proof", arrays), float(arrays["proved"]))


def _best_values(best: Best, arrays: Arrays) -> dict[str, Any]:
    """The values for `Best.restore`, checked against the model."""
    point = under("point", arrays)
    numbers = ("lp_bound", "point_cost", "energy")
    return {name: float(arrays[name]) for name in numbers} | {
        "lam": _like("lam", arrays["lam"], best.lam),
        "labels": _labels(best, arrays["labels"]),
        "point": point_from_arrays(best.problem.given, point) if point else None,
        "evidence": _evidence(arrays),
        "rounded": bool(arrays["rounded"]),
    }


def _like_number(name: str, value: Any) -> Any:
    """Return a number of a header; counts must be integers of at least -1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number")
    return value if isinstance(value, float) else count(name, value, -1)


def _labels(best: Best, stored: NDArray[Any]) -> NDArray[Any]:
    """Return labels of a file, checked against the model."""
    labels = _like("labels", stored, best.labels)
    most = best.problem.model.num_labels[: len(labels)]
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
        if isinstance(value, Network):
            continue
        if is_dataclass(value):
            yield from _leaves(value, f"{prefix}{f.name}.")
        else:
            yield f"{prefix}{f.name}", state, f.name, value


def save(
    path: Path,
    options: Options,
    best: Best,
    budget: Budget,
    passes: Passes,
    decode: Decode,
    trace: Trace,
) -> None:
    """Write a checkpoint atomically: if the process is killed, the last checkpoint remains."""
    state, numbers = passes.snapshot()
    decoded_at, pending = decode.snapshot()
    arrays: dict[str, Any] = {f"state/{name}": value for name, _, _, value in _leaves(state)}
    arrays |= _best_arrays(best.snapshot()) | {"trace": trace.array()}
    if best.aside is not None:
        arrays |= _reached(best.aside)
    if pending is not None:
        arrays["pending"] = pending
    header = {
        "kind": KIND,
        "version": VERSION,
        "model": best.problem.given.fingerprint(),
        "settings": {name: getattr(options, name) for name in SETTINGS},
        "seconds": budget.seconds,
        "work": budget.work,
        "passes": numbers,
        "decoded_at": decoded_at,
    }
    write_archive(path, header | {"digest": digest(header, arrays)}, arrays)


def add_reached(path: Path, best: Best) -> None:
    """Add the best values to a checkpoint of an earlier state; a resumed run ends with them."""
    header, arrays = _read(path)
    header.pop("digest", None)
    arrays = {name: a for name, a in arrays.items() if not name.startswith("reached/")}
    arrays |= {name: np.asarray(a) for name, a in _reached(best.snapshot()).items()}
    write_archive(path, header | {"digest": digest(header, arrays)}, arrays)


def _reached(kept: dict[str, Any]) -> dict[str, Any]:
    return {f"reached/{name}": a for name, a in _best_arrays(kept).items()}


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    return read_archive(path, KIND, VERSION, lambda said: CheckpointError(f"{path}: {said}"))


def load(path: Path, model: Model) -> Checkpoint:
    """Read a checkpoint of this model."""

    def problem(sentence: str) -> CheckpointError:
        return CheckpointError(f"{path}: {sentence}")

    header, arrays = _read(path)
    if header.get("model") != model.fingerprint():
        raise problem("this checkpoint belongs to another model")
    if header.pop("digest", None) != digest(header, arrays):
        raise problem("the checkpoint was changed after it was written (its digest differs)")
    try:
        Options(**{name: header["settings"][name] for name in SETTINGS})
    except Exception as error:
        raise problem(f"the checkpoint is damaged ({error})") from error
    return Checkpoint(path, header, arrays)
