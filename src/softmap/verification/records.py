"""Proof files: one line of JSON, then records of one byte and arrays of integers."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from struct import Struct
from struct import error as struct_error
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError

__all__ = [
    "FORMAT", "VERSION", "Ints", "Numbers", "Op", "Records", "Rejected", "array_of", "list_of",
    "one_of", "read_header",
]  # fmt: skip

FORMAT, VERSION = "softmap proof", 1
LONGEST_HEADER = 1 << 16
CHUNK = 1 << 20

Ints = NDArray[np.int64]
Numbers = list[int] | Ints  # short arrays are read as lists


class Op(IntEnum):
    """Kinds of records; docs/proofs.md describes the arrays of each."""

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


OPS = {int(op): op for op in Op}
FULL = 63 << 2  # heads from here on: the length follows as eight bytes
PACKED = [Struct(f"<{head >> 2}{'bhiq'[head & 3]}") for head in range(FULL)]
LONGEST = 1 + 4 * (9 + 63 * 8)  # bytes of the longest record whose arrays are all short


class Rejected(Exception):
    """Raised if a step of a proof is not valid."""


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header and the offset of the records; check the length and the checksum."""
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
    """Iterator over the records of an open file.

    Attributes
    ----------
    count : int
        Number of records read so far.
    place : int
        Offset of the last record in the file, in bytes.
    """

    def __init__(self, file: BinaryIO, begin: int) -> None:
        self._file, self._size = file, os.fstat(file.fileno()).st_size
        file.seek(begin)
        self._buffer, self._at, self._before = b"", 0, begin
        self.count, self.place = 0, begin

    def __iter__(self) -> Iterator[tuple[Op, list[Numbers]]]:
        while True:
            if self._at + LONGEST > len(self._buffer):
                self._load(CHUNK)
            if self._at == len(self._buffer):
                return
            self.place, self.count = self._before + self._at, self.count + 1
            code = self._buffer[self._at]
            op = OPS.get(code)
            if op is None:
                raise Rejected(f"there is no record of kind {code}")
            self._at += 1
            try:
                yield op, [self._array() for _ in range(ARRAYS[op])]
            except (struct_error, IndexError):
                raise Rejected("the file ends within a record") from None

    def _load(self, count: int) -> None:
        """Drop the bytes already parsed from the buffer, and read `count` bytes more."""
        self._before, self._buffer = self._before + self._at, self._buffer[self._at :]
        self._buffer, self._at = self._buffer + self._file.read(count), 0

    def _array(self) -> Numbers:
        at, buffer = self._at, self._buffer
        head = buffer[at]
        if head < FULL:
            packed = PACKED[head]
            self._at = at + 1 + packed.size
            return list(packed.unpack_from(buffer, at + 1))
        width, count = 1 << (head & 3), int.from_bytes(buffer[at + 1 : at + 9], "little")
        if count * width > self._size - self._before - at:
            raise Rejected("an array is longer than the file")
        self._at = at + 9
        if self._at + count * width + LONGEST > len(buffer):
            self._load(count * width + CHUNK)
        at = self._at
        self._at += count * width
        return np.frombuffer(self._buffer, f"<i{width}", count, at).astype(np.int64)


def array_of(numbers: Numbers) -> Ints:
    """Return an array of a record as int64[...]."""
    return np.asarray(numbers, dtype=np.int64)


def list_of(numbers: Numbers) -> list[int]:
    """Return an array of a record as a list of integers."""
    return numbers if isinstance(numbers, list) else numbers.tolist()


def one_of(numbers: Numbers) -> int:
    """Return the only element of an array of a record."""
    (number,) = numbers
    return int(number)
