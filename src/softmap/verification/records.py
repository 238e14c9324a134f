"""The file of a proof: a line of JSON, then records, each a byte and arrays of integers."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from struct import unpack_from
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError

__all__ = [
    "FORMAT", "VERSION", "Ints", "Numbers", "Op", "Records", "Rejected", "array_of", "list_of",
    "read_header",
]  # fmt: skip

FORMAT, VERSION = "softmap proof", 1
LONGEST_HEADER = 1 << 16
CHUNK = 1 << 20

Ints = NDArray[np.int64]
Numbers = list[int] | Ints  # short arrays of records are lists


class Op(IntEnum):
    """What a record does; docs/proofs.md says what each of its arrays is."""

    LOAD = 1
    DROP = 2
    BAN = 3
    DOMINATED = 4
    PERSISTENT = 5
    SPLIT = 6
    SUBSTITUTE = 7
    ELIMINATE = 8
    FIX = 9
    NORMALISE = 10
    SHIFT = 11
    COMPONENT = 12
    END = 13
    CUT = 14
    DIVE = 15
    BRANCH = 16
    CLOSE = 17
    LEAVE = 18
    MOVE = 19
    REMOVE = 20
    COMBINE = 21
    ABANDON = 22
    DUAL = 23
    PIECE = 24
    DONE = 25


ARRAYS = dict.fromkeys(Op, 1) | {
    Op.LOAD: 3, Op.DROP: 2, Op.DOMINATED: 2, Op.PERSISTENT: 3, Op.SUBSTITUTE: 2, Op.SHIFT: 2,
    Op.COMPONENT: 2, Op.MOVE: 4, Op.REMOVE: 2, Op.COMBINE: 3, Op.DUAL: 3, Op.PIECE: 3,
}  # fmt: skip


class Rejected(Exception):
    """A step of a proof does not follow."""


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """The header of a proof, and where its records begin; the whole file is compared with it."""
    try:
        with path.open("rb") as file:
            line = file.readline(LONGEST_HEADER)
            header = json.loads(line) if line.endswith(b"\n") else None
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise FormatError("not a proof written by softmap", path)
            if header.get("version") != VERSION:
                raise FormatError(f"a proof of version {header.get('version')!r}", path)
            size, found = os.fstat(file.fileno()).st_size - len(line), 0
            if header.get("bytes") != size:
                said = f"{size} bytes of records, of {header.get('bytes')!r}: it was cut or altered"
                raise FormatError(said, path)
            while part := file.read(CHUNK):
                found = zlib.crc32(part, found)
            if header.get("crc32") != found:
                raise FormatError("the check sum is another one: it was damaged or altered", path)
    except (ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError("not a proof written by softmap", path) from error
    return header, len(line)


class Records:
    """The records of an open file, one at a time.

    Attributes
    ----------
    count : int
        Records so far.
    place : int
        Where the last one begins in the file.
    """

    def __init__(self, file: BinaryIO, begin: int) -> None:
        self._file, self._size = file, os.fstat(file.fileno()).st_size
        file.seek(begin)
        self._buffer, self._at, self._end = b"", 0, begin
        self.count, self.place = 0, begin

    def __iter__(self) -> Iterator[tuple[Op, list[Numbers]]]:
        while self._end - len(self._buffer) + self._at < self._size:
            self.place = self._end - len(self._buffer) + self._at
            self.count += 1
            code = self._take(1)
            try:
                op = Op(self._buffer[code])
            except ValueError:
                raise Rejected(f"there is no record of kind {self._buffer[code]}") from None
            yield op, [self._array() for _ in range(ARRAYS[op])]

    def _take(self, count: int) -> int:
        """Where the next bytes lie in the buffer; never more than the file holds."""
        at = self._at
        if at + count > len(self._buffer):
            left = self._size - self._end
            if count - (len(self._buffer) - at) > left:
                raise Rejected("the file ends within a record")
            more = self._file.read(min(left, max(count, CHUNK)))
            self._buffer, self._end = self._buffer[at:] + more, self._end + len(more)
            at = 0
            if count > len(self._buffer):
                raise Rejected("the file ends within a record")
        self._at = at + count
        return at

    def _array(self) -> Numbers:
        at = self._take(1)  # which may change the buffer
        head = self._buffer[at]
        width, count = 1 << (head & 3), head >> 2
        if count == 63:
            at = self._take(8)
            count = int.from_bytes(self._buffer[at : at + 8], "little", signed=True)
            if not 0 <= count <= self._size:
                raise Rejected("an array is longer than the file")
        at = self._take(count * width)
        if count < 63:
            return list(unpack_from(f"<{count}{'bhiq'[head & 3]}", self._buffer, at))
        return np.frombuffer(self._buffer, f"<i{width}", count, at).astype(np.int64)


def array_of(numbers: Numbers) -> Ints:
    """An array of a record, as one of numpy's."""
    return np.asarray(numbers, dtype=np.int64)


def list_of(numbers: Numbers) -> list[int]:
    """An array of a record, as a list."""
    found: list[int] = numbers if isinstance(numbers, list) else numbers.tolist()
    return found
