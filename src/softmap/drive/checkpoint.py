"""Checkpoints: the complete state of a run, so that a resumed run repeats it exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count, not_negative
from softmap.drive.stored import evidence_from_arrays, point_from_arrays, trace_from_array
from softmap.errors import CheckpointError
from softmap.io.store import Arrays, digest, read_archive, under, write_archive
from softmap.model import Model, has_fingerprint
from softmap.run.best import Best, checked_labels
from softmap.run.budget import Budget
from softmap.run.evidence import Evidence, evidence_arrays
from softmap.run.options import Options
from softmap.run.result import point_arrays
from softmap.run.subsolver import Subsolver
from softmap.run.trace import Trace

__all__ = ["Checkpoint", "Parts", "load", "save", "taken"]

KIND, VERSION = "checkpoint", 13
# options that a checkpoint stores
SETTINGS = (
    "method", "eta", "dtype", "seed", "updates", "every", "lp_gap", "gap", "goal", "backend",
    "upper_bound",
)  # fmt: skip


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
            trace = trace_from_array(self.arrays["trace"], self.header["stages"])
            stated = recorded and _evidence(self.arrays).stated
        except Exception as error:
            raise CheckpointError(f"{self.path}: the checkpoint is damaged ({error})") from error
        return trace.relaxed() if stated else trace

    def parts(self) -> Parts:
        """What the file keeps of each subsolver."""
        return Parts(self.path, under("subsolver", self.arrays))

    def restore(self, best: Best, budget: Budget, *, recorded: bool = False) -> None:
        """Restore the values of a stored run in the objects of a new one.

        Parameters
        ----------
        best, budget
            The objects.
        recorded : bool, default False
            Whether the new run writes a proof file, see `Best.restore`.
        """
        try:
            self._restore_best(best, recorded)
            seconds = not_negative("seconds", self.header["seconds"])
            budget.resume(seconds, count("work", self.header["work"]))
        except Exception as error:
            raise CheckpointError(f"{self.path}: the checkpoint is damaged ({error})") from error

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
        "labels": checked_labels(best.problem.model, arrays["labels"]),
        "point": point_from_arrays(best.problem.given, point) if point else None,
        "evidence": _evidence(arrays),
        "rounded": bool(arrays["rounded"]),
    }


def _like(name: str, stored: NDArray[Any], value: NDArray[Any]) -> NDArray[Any]:
    """Return an array of a file, if it has the dtype and shape of the array it replaces."""
    if (stored.dtype, stored.shape) != (value.dtype, value.shape):
        raise ValueError(
            f"{name}: expected {value.dtype}{value.shape}, found {stored.dtype}{stored.shape}"
        )
    return stored


class Parts:
    """What a checkpoint keeps of each subsolver; those made late take it back late.

    Parameters
    ----------
    path : Path
        The file.
    arrays : dict
        Arrays by the class of the subsolver and the name.
    """

    def __init__(self, path: Path, arrays: Arrays) -> None:
        self._path, self.waiting = path, arrays

    def put_back(self, subsolver: Subsolver) -> None:
        """Let a subsolver take back its arrays, if there are any."""
        key = _key(subsolver)
        if not (arrays := under(key, self.waiting)):
            return
        self.waiting = {k: a for k, a in self.waiting.items() if not k.startswith(f"{key}/")}
        try:
            subsolver.restore(arrays)
        except Exception as error:
            raise CheckpointError(f"{self._path}: the checkpoint is damaged ({error})") from error


def taken(subsolvers: Iterable[Subsolver], parts: Parts | None) -> Arrays:
    """Return what subsolvers store now, and what waits for those that are not made again yet."""
    arrays = {} if parts is None else dict(parts.waiting)
    for one in subsolvers:
        arrays |= {f"{_key(one)}/{name}": array for name, array in one.snapshot().items()}
    return arrays


def _key(subsolver: Subsolver) -> str:
    """What stands for a subsolver in files: several may have one name in the trace."""
    return type(subsolver).__name__


def save(
    path: Path,
    options: Options,
    best: Best,
    budget: Budget,
    parts: Arrays,
    trace: Trace,
) -> None:
    """Write a checkpoint atomically: if the process is killed, the last checkpoint remains."""
    arrays: dict[str, Any] = {f"subsolver/{name}": array for name, array in parts.items()}
    arrays |= _best_arrays(best.snapshot()) | {"trace": trace.array()}
    if best.aside is not None:
        arrays |= _reached(best.aside)
    header = {
        "kind": KIND,
        "version": VERSION,
        "model": best.problem.posed.fingerprint(),
        "settings": {name: getattr(options, name) for name in SETTINGS},
        "seconds": budget.seconds,
        "work": budget.work,
        "stages": trace.stages,
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
    if not has_fingerprint(model, header.get("model")):
        raise problem("this checkpoint belongs to another model")
    if header.pop("digest", None) != digest(header, arrays):
        raise problem("the checkpoint was changed after it was written (its digest differs)")
    try:
        Options(**{name: header["settings"][name] for name in SETTINGS})
    except Exception as error:
        raise problem(f"the checkpoint is damaged ({error})") from error
    return Checkpoint(path, header, arrays)
