"""Writer of proof files (docs/proofs.md), which let other programs check the bound of a run."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.errors import WriteError
from softmap.io.atomic import replacing
from softmap.model import Model
from softmap.proof.search.exact import Log
from softmap.proof.search.partial import PartialLog

if TYPE_CHECKING:
    from softmap.solving.problem import Problem
    from softmap.solving.result import Result

__all__ = ["ProofFile", "write_dual"]

FORMAT, VERSION = "softmap proof", 2
DUAL, PIECE = 17, 18  # record kinds; the compiled search writes the others
CHUNK = 1 << 20


class ProofFile:
    """The proof file of a run, and temporary files for the proofs of its searches.

    Parameters
    ----------
    target : Path
        The proof file.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        try:
            self._folder = tempfile.TemporaryDirectory(
                prefix=".softmap-proof-", dir=target.parent, ignore_cleanup_errors=True
            )
        except OSError as error:
            raise WriteError(target, error) from error
        self._count = 0

    def fresh(self) -> Path:
        """Return a new file name for the proof of a search."""
        self._count += 1
        return Path(self._folder.name) / str(self._count)

    def write(self, problem: Problem, result: Result, logged: Log | PartialLog | None) -> bool:
        """Write the proof; return False if it proves only the bound of λ."""
        proof = result.proof
        lam = result.lam if proof.lam is None else proof.lam

        def parts() -> Iterator[bytes]:
            if isinstance(logged, Log):
                return _copied(logged)
            if isinstance(logged, PartialLog):
                return _pieces(problem, logged)
            return _dual(proof.clusters, lam)

        _write(self.target, problem.given, problem.exponent, parts)
        return logged is not None or not proof.stated

    def close(self) -> None:
        """Remove the temporary files."""
        self._folder.cleanup()


def write_dual(target: Path, model: Model, lam: Any) -> None:
    """Write λ as a proof of its dual bound."""
    _write(target, model, 0, lambda: _dual((), lam))


def _write(target: Path, model: Model, exponent: int, parts: Callable[[], Iterator[bytes]]) -> None:
    """Write the header and the records; they are generated twice, first for the checksum."""
    size, total = 0, 0
    for part in parts():
        size, total = size + len(part), zlib.crc32(part, total)
    header = {"format": FORMAT, "version": VERSION, "model": model.fingerprint()}
    header |= {"exponent": exponent, "bytes": size, "crc32": total}
    with replacing(target) as out:
        out.write(json.dumps(header).encode() + b"\n")
        out.writelines(parts())


def _copied(log: Log) -> Iterator[bytes]:
    left = log.size
    with log.path.open("rb") as file:
        while left > 0 and (part := file.read(min(left, CHUNK))):
            left -= len(part)
            yield part


def _dual(clusters: Iterable[tuple[int, ...]], lam: Any) -> Iterator[bytes]:
    """Yield the record of λ, with the clusters of its relaxation."""
    sizes = [len(scope) for scope in clusters]
    yield bytes([DUAL])
    yield from _arrays(sizes, [i for scope in clusters for i in scope], _bits(lam))


def _pieces(problem: Problem, log: PartialLog) -> Iterator[bytes]:
    """Yield λ, then nodes, edges, node costs and records of each component searched."""
    yield from _dual((), problem.lam_back(log.lam))
    for nodes, edges, unary, records in log.pieces:
        yield bytes([PIECE])
        yield from _arrays(nodes, edges, _bits(problem.lam_back(unary)))
        yield from _copied(records)


def _bits(values: Any) -> Any:
    """Reinterpret float64 values as int64 with the same bits."""
    return np.ascontiguousarray(values, dtype="<f8").view("<i8")


def _arrays(*arrays: Any) -> Iterator[bytes]:
    for array in arrays:
        flat = np.asarray(array, dtype=np.int64)
        yield bytes([min(len(flat), 63) << 2 | 3])
        if len(flat) >= 63:
            yield len(flat).to_bytes(8, "little")
        yield flat.astype("<i8").tobytes()
