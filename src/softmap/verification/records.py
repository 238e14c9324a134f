"""Proof files: one line of JSON, then records of one byte and arrays of integers."""

from __future__ import annotations

import json
import mmap as mapping
import tempfile
import zlib
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct, unpack_from
from struct import error as struct_error
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, WriteError
from softmap.verification.limit import CALL, ITEM, Held, Limits
from softmap.verification.table import RECORDS

FORMAT, VERSION = "softmap proof", 3
LONGEST_HEADER = 1 << 16
CHUNK = 1 << 20
WINDOW = 1 << 24  # bytes of a file in memory: the operating system may forget those before
FORGET = getattr(mapping, "MADV_DONTNEED", None)  # none on Windows
OBJECT = 44  # bytes of an integer in a tuple
MOST_PACKED = 1100  # bytes of records per compressed byte: what zlib can reach

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
    """Return the header and the offset of the records."""
    begin = data.find(b"\n", 0, LONGEST_HEADER) + 1
    try:
        header = json.loads(data[:begin])
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FormatError("not a proof written by softmap", path)
    if header.get("version") != VERSION:
        raise FormatError(f"found version {header.get('version')!r}; expected {VERSION}", path)
    return header, begin


def unpacked(
    data: mmap, begin: int, header: dict[str, Any], path: Path, limits: Limits
) -> tuple[mmap, int]:
    """Return the records, decompressed if the header says so, and their offset.

    The length and the checksum are checked; no more than the stated length is decompressed, and no
    file of more bytes than the limit.
    """
    size, given = header.get("bytes"), len(data) - begin
    if not header.get("packed"):
        if size != given:
            raise FormatError(
                f"found {given} bytes of records; expected {size!r} (truncated)", path
            )
        parts = (data[at : at + CHUNK] for at in range(begin, len(data), CHUNK))
        _check_sum(parts, header, path)
        return data, begin
    if not isinstance(size, int) or not 0 < size <= MOST_PACKED * given:
        raise FormatError(f"{given} compressed bytes cannot hold {size!r} bytes", path)
    limits.require_bytes(size)
    try:
        with tempfile.TemporaryFile() as file:
            _check_sum(_written(_inflated(data, begin, size, path), file), header, path)
            if file.tell() != size:
                raise FormatError(
                    f"found {file.tell()} bytes of records; expected {size} (truncated)", path
                )
            file.flush()
            return mmap(file.fileno(), 0, access=ACCESS_READ), 0
    except OSError as error:
        raise WriteError(f"a temporary file in {tempfile.gettempdir()}", error) from error


def _inflated(data: mmap, begin: int, size: int, path: Path) -> Iterator[bytes]:
    """Decompress pieces of the records, up to one more than `size` bytes."""
    stream, left = zlib.decompressobj(), size + 1
    try:
        for at in range(begin, len(data), CHUNK):
            rest, most = data[at : at + CHUNK], 1
            while (rest or not most) and left:  # a limit of 0 would be none to zlib
                most = min(left, CHUNK)
                part = stream.decompress(rest, most)
                rest = stream.unconsumed_tail
                left, most = left - len(part), most - len(part)  # 0: there may be more to come
                yield part
    except zlib.error as error:
        raise FormatError(f"the records cannot be decompressed ({error})", path) from error
    if not stream.eof or stream.unused_data:
        raise FormatError("the records are truncated, or followed by other bytes", path)


def _written(parts: Iterator[bytes], file: Any) -> Iterator[bytes]:
    """Yield pieces after writing them to a file."""
    for part in parts:
        file.write(part)
        yield part


def _check_sum(parts: Iterator[bytes], header: dict[str, Any], path: Path) -> None:
    found = 0
    for part in parts:
        found = zlib.crc32(part, found)
    if header.get("crc32") != found:
        raise FormatError("the checksum differs: the file was damaged or altered", path)


class Records:
    """Iterator over the records of a file: their names and arrays.

    Attributes
    ----------
    count : int
        Number of records read so far.
    leaves : int
        Number of those that close a node of a search.
    place : int
        Offset of the last record in the file, in bytes.
    """

    def __init__(self, data: mmap, begin: int, limits: Limits | None = None) -> None:
        self._data, self._at = data, begin
        self._limits = limits or Limits()
        self._held = Held(self._limits)  # of the arrays of one record
        self._forgotten = 0  # bytes from the begin of the file on
        self.count, self.leaves, self.place = 0, 0, begin

    def __iter__(self) -> Iterator[tuple[str, list[Any]]]:
        data, end = self._data, len(self._data)
        while self._at < end:
            before = self.place = self._at
            self._held.release()
            if before - self._forgotten > WINDOW:
                self._forget(before)
            self.count += 1
            kind = data[self._at]
            if kind not in RECORDS:
                raise Rejected(f"there is no record of kind {kind}")
            entry = RECORDS[kind]
            self._at += 1
            read = self._reals if entry.real else self._integers
            try:
                found = [read() for _ in range(entry.arrays)]
            except (struct_error, IndexError):
                raise Rejected("the file ends within a record") from None
            self._limits.work(CALL + ITEM * (self._at - before))
            self.leaves += entry.leaf
            yield entry.name, found

    def _forget(self, until: int) -> None:
        """Let the operating system drop pages of the file that were read, where it can."""
        if FORGET is not None:
            self._data.madvise(FORGET, 0, until // WINDOW * WINDOW)
        self._forgotten = until

    def _integers(self) -> Numbers:
        at = self._at + 1
        head = self._data[self._at]
        if head < 4:
            self._at = at
            return ()
        if head < FULL:
            packed = PACKED[head]
            self._at = at + packed.size
            return packed.unpack_from(self._data, at)
        at, count, width = self._long(head)
        self._held.keep(OBJECT * count)
        return unpack_from(f"<{count}{'bhiq'[width]}", self._data, at)

    def _reals(self) -> Ints:
        at, count, width = self._long(self._data[self._at])
        self._held.keep(8 * count)
        return np.frombuffer(self._data, f"<i{1 << width}", count, at).astype(np.int64)

    def _long(self, head: int) -> tuple[int, int, int]:
        """The offset of the numbers of an array, their count and the logarithm of their width."""
        at, width, count = self._at + 1, head & 3, head >> 2
        if head >= FULL:
            count, at = int.from_bytes(self._data[at : at + 8], "little"), at + 8
        self._at = at + (count << width)
        if self._at > len(self._data):
            raise Rejected("an array is longer than the file")
        return at, count, width
