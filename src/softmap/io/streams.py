"""Bytes in: from a path, a file object or standard input, decompressed within bounds."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from softmap.errors import FormatError
from softmap.io.limits import available_memory, human

__all__ = [
    "COMPRESSED",
    "Content",
    "Source",
    "bare_suffixes",
    "implausible",
    "load",
    "open_content",
]

Source: TypeAlias = "str | os.PathLike[str] | BinaryIO"

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_MAGIC: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
}
_BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError)

CHUNK = 1 << 20
# Honest models of many equal tables reach a ratio of two hundred; bombs a thousand and more.
_TRUSTED_BYTES = 32 << 20
_MAX_RATIO = 300


@dataclass
class Content:
    """The bytes of one input, and what to call it in messages."""

    data: bytes
    name: str | None = None

    def __post_init__(self) -> None:
        self.size = len(self.data)

    def release(self) -> None:
        """Give the text back once the numbers are out of it: it can be the larger half."""
        self.data = b""


def open_content(data: bytes | Content, name: object = None) -> Content:
    """Accept plain bytes wherever a `Content` is wanted, so that parsers stay pure."""
    return data if isinstance(data, Content) else Content(data, None if name is None else str(name))


def bare_suffixes(path: object) -> list[str]:
    """Lower-case suffixes of a file name, without the compression's."""
    suffixes = [s.lower() for s in Path(str(path)).suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes


def load(source: Source) -> Content:
    """Read a path, an open binary file, or standard input ("-"), and decompress by content."""
    if not isinstance(source, str | os.PathLike):
        name = str(getattr(source, "name", "<file>"))
        return Content(_expand(_drain(source, name), name), name)
    if str(source) == "-":
        return Content(_expand(_drain(sys.stdin.buffer, "<stdin>"), "<stdin>"), "<stdin>")
    name = os.fspath(source)
    try:
        with open(name, "rb") as file:
            raw = _drain(file, name)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", name) from error
    except ValueError as error:  # a NUL in the name
        raise FormatError(f"cannot be read: {error}", repr(name)) from error
    return Content(_expand(raw, name), name)


def _drain(file: BinaryIO, name: str) -> bytes:
    """All bytes of a file, refusing what memory cannot hold."""
    limit = available_memory() // 3
    data = file.read(limit + 1)
    if not isinstance(data, bytes):
        raise FormatError("expected a file opened in binary mode", name)
    if len(data) > limit:
        raise FormatError(f"more than {human(limit)}: too large for the memory", name)
    return data


def _expand(raw: bytes, name: str) -> bytes:
    """Decompress if the first bytes say so; twice compressed is not a thing we follow."""
    for magic, opener in _MAGIC.items():
        if raw.startswith(magic):
            packed = io.BytesIO(raw)
            return _bounded(opener(packed), packed, name)
    return raw


def _bounded(stream: BinaryIO, packed: BinaryIO, name: str) -> bytes:
    """Decompress piece by piece and stop at a ratio no honest model has."""
    limit = available_memory() // 3
    pieces: list[bytes] = []
    total = 0
    while True:
        try:
            piece = stream.read(CHUNK)
        except _BROKEN as error:
            raise FormatError(f"the compressed data are damaged: {error}", name) from error
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        total += len(piece)
        if total > limit or implausible(total, packed.tell()):
            raise FormatError(
                f"{human(packed.tell())} expand to {human(total)} and more; "
                "expected a model, not a decompression bomb (unpack it yourself if you trust it)",
                name,
            )


def implausible(total: int, packed: int) -> bool:
    """Whether no honest compression makes `packed` bytes out of `total`."""
    return total > _TRUSTED_BYTES and total > _MAX_RATIO * packed
