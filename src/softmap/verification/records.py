"""The file of a proof: a line of JSON, then records, each a byte and arrays of integers."""

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


OPS = {int(op): op for op in Op}
FULL = 63 << 2  # the first byte of arrays whose length is given by itself
PACKED = [Struct(f"<{head >> 2}{'bhiq'[head & 3]}") for head in range(FULL)]
LONGEST = 1 + 4 * (9 + 63 * 8)  # bytes of a record of short arrays, and of the heads of long ones


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
        """Forget what was read, and hold more of the file."""
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
    """An array of a record, as one of numpy's."""
    return np.asarray(numbers, dtype=np.int64)


def list_of(numbers: Numbers) -> list[int]:
    """An array of a record, as a list."""
    return numbers if isinstance(numbers, list) else numbers.tolist()


def one_of(numbers: Numbers) -> int:
    """The only number of an array."""
    (number,) = numbers
    return int(number)
