"""Records of proof files (docs/proofs.md): one byte for the kind, then arrays of integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from softmap.run.problem import Problem

__all__ = ["CHUNK", "LogFiles", "Recorded", "bits", "copied", "dual_record", "record"]

CHUNK = 1 << 20
DUAL = 17  # kind of the record of λ


class Recorded(Protocol):
    """What was kept of a search, from which the records of a proof file are made."""

    def records(self, problem: Problem, fresh: Callable[[], Path]) -> Iterator[bytes]:
        """Yield the records.

        Parameters
        ----------
        problem : Problem
            The model, and its units.
        fresh : function
            Returns a new file name for records that are written to a temporary file.
        """


class LogFiles(Protocol):
    """Provides files for the logs of searches."""

    def fresh(self) -> Path:
        """Return the name of a new temporary file."""


def record(kind: int, *arrays: Any) -> Iterator[bytes]:
    """Yield one record: its kind, and its arrays of integers."""
    yield bytes([kind])
    for array in arrays:
        flat = np.asarray(array, dtype=np.int64)
        yield bytes([min(len(flat), 63) << 2 | 3])
        if len(flat) >= 63:
            yield len(flat).to_bytes(8, "little")
        yield flat.astype("<i8").tobytes()


def bits(values: Any) -> Any:
    """Reinterpret float64 values as int64 with the same bits."""
    return np.ascontiguousarray(values, dtype="<f8").view("<i8")


def dual_record(scopes: Iterable[tuple[int, ...]], lam: Any) -> Iterator[bytes]:
    """Yield the record of λ, with the clusters of its relaxation."""
    sizes = [len(scope) for scope in scopes]
    yield from record(DUAL, sizes, [i for scope in scopes for i in scope], bits(lam))


def copied(path: Path, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of a file, in pieces."""
    left = size
    with path.open("rb") as file:
        while left > 0 and (part := file.read(min(left, CHUNK))):
            left -= len(part)
            yield part
