"""Proof files: one line of JSON, then records of one byte and arrays of integers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct, unpack_from
from struct import error as struct_error
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError

FORMAT, VERSION = "softmap proof", 2
LONGEST_HEADER = 1 << 16
CHUNK = 1 << 20

# name and number of arrays of record kinds 1, 2, ...; docs/proofs.md describes them
KINDS = (
    ("load", 1), ("remove", 2), ("persistent", 2), ("split", 1), ("substitute", 2),
    ("eliminate", 1), ("shift", 2), ("component", 2), ("end", 0), ("cut", 1), ("dive", 1),
    ("branch", 1), ("close", 0), ("leave", 0), ("step", 5), ("combine", 3), ("dual", 3),
    ("piece", 3),
)  # fmt: skip
REAL = {"dual", "piece"}  # records of real numbers, read as arrays

FULL = 63 << 2  # heads from here on: the length follows as eight bytes
PACKED = [Struct(f"<{head >> 2}{'bhiq'[head & 3]}") for head in range(FULL)]

Ints = NDArray[np.int64]
Numbers = tuple[int, ...]


class Rejected(Exception):
    """Raised if a step of a proof is not valid."""


def mapped(path: Path) -> mmap:
    """Return the bytes of a file, mapped into memory so that they are read when needed."""
    if not path.stat().st_size:  # an empty file cannot be mapped
        raise FormatError("not a proof written by softmap", path)
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)


def read_header(data: mmap, path: Path) -> tuple[dict[str, Any], int]:
    """Return the header and the offset of the records; check the length and the checksum."""
    begin = data.find(b"\n", 0, LONGEST_HEADER) + 1
    try:
        header = json.loads(data[:begin])
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FormatError("not a proof written by softmap", path)
    if header.get("version") != VERSION:
        raise FormatError(f"a proof of version {header.get('version')!r}", path)
    size, found = len(data) - begin, 0
    if header.get("bytes") != size:
        raise FormatError(f"{size} bytes of records, of {header.get('bytes')!r}: it was cut", path)
    for at in range(begin, len(data), CHUNK):
        found = zlib.crc32(data[at : at + CHUNK], found)
    if header.get("crc32") != found:
        raise FormatError("the check sum is another one: it was damaged or altered", path)
    return header, begin


class Records:
    """Iterator over the records of a file: their names and arrays.

    Attributes
    ----------
    count : int
        Number of records read so far.
    place : int
        Offset of the last record in the file, in bytes.
    """

    def __init__(self, data: mmap, begin: int) -> None:
        self._data, self._at = data, begin
        self.count, self.place = 0, begin

    def __iter__(self) -> Iterator[tuple[str, list[Any]]]:
        data, end = self._data, len(self._data)
        while self._at < end:
            self.place, self.count = self._at, self.count + 1
            kind = data[self._at]
            if not 1 <= kind <= len(KINDS):
                raise Rejected(f"there is no record of kind {kind}")
            name, arrays = KINDS[kind - 1]
            self._at += 1
            try:
                found = [self._array(name) for _ in range(arrays)]
            except (struct_error, IndexError):
                raise Rejected("the file ends within a record") from None
            yield name, found

    def _array(self, name: str) -> Numbers | Ints:
        data, at = self._data, self._at + 1
        head = data[at - 1]
        if head < FULL and name not in REAL:
            packed = PACKED[head]
            self._at = at + packed.size
            return packed.unpack_from(data, at)
        width, count = head & 3, head >> 2
        if head >= FULL:
            count, at = int.from_bytes(data[at : at + 8], "little"), at + 8
        self._at = at + (count << width)
        if self._at > len(data):
            raise Rejected("an array is longer than the file")
        if name in REAL:
            return np.frombuffer(data, f"<i{1 << width}", count, at).astype(np.int64)
        return unpack_from(f"<{count}{'bhiq'[width]}", data, at)
