"""Reading of bytes from a path, a file object or standard input, with bounded decompression."""

from __future__ import annotations

import bz2
import codecs
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

import numpy as np

from softmap.errors import FormatError, OptionError, human, shown
from softmap.io.limits import LIMITS, available_memory
from softmap.model.potentials.base import LARGEST_COST, RANGE, Costs, beyond, largest

Source: TypeAlias = "str | os.PathLike[str] | BinaryIO"

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_MAGIC: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lambda packed: _XZ(packed),
    b"BZh": bz2.open,
}
_BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError)


@dataclass
class Content:
    """The bytes of one input, and its name for messages."""

    data: bytes
    name: str | None = None

    def __post_init__(self) -> None:
        self.size = len(self.data)
        self._taken = 0

    def release(self) -> None:
        """Free the text once its numbers are parsed; it can take most of the memory."""
        self.data = b""

    def replaced(self, data: bytes) -> Content:
        """Return other text under the name and the size of this input."""
        other = Content(data, self.name)
        other.size = self.size
        return other

    def error(self, expected: str, found: object = None, line: int | None = None) -> FormatError:
        """Return the error "expected ..., found ..."; the caller raises it."""
        message = f"expected {expected}" + ("" if found is None else f", found {found}")
        return FormatError(message, self.name, line, expected)

    def reserve(self, entries: int, line: int | None = None) -> None:
        """Raise `FormatError` if `entries` costs are implausible for the size of the file."""
        need = 8 * int(entries)
        if need <= LIMITS.free_bytes // 16:
            return
        most = max(LIMITS.free_bytes, LIMITS.expansion * self.size)
        most = min(most, available_memory() // 3)
        if need > most:
            declared = f"the file ({human(self.size)}) declares {int(entries):.6g} costs"
            message = f"{declared}, {human(need)}; expected at most {human(most)}"
            raise FormatError(message, self.name, line, f"at most {human(most)} of costs")

    def take(self, entries: int) -> None:
        """Add entries to those of the model so far; raise `FormatError` as `reserve` does."""
        self._taken += entries
        self.reserve(self._taken)

    def check_arity(self, arity: int, line: int | None = None) -> None:
        """Raise `FormatError` for a factor whose table would have too many axes for an array."""
        if arity > LIMITS.axes:
            raise self.error(f"factors of at most {LIMITS.axes} variables", f"one of {arity}", line)

    def check(self, costs: Costs) -> None:
        """Raise `FormatError` for NaN, -inf, and costs so large that sums could overflow."""
        low = costs.min(initial=0.0)
        if not low > -np.inf:  # NaN, too
            raise self.error("costs", "NaN or -inf")
        if largest(costs, low) > LARGEST_COST:
            raise FormatError(f"found a cost of {costs[beyond(costs)][0]:g}; {RANGE}", self.name)


def open_content(data: bytes | Content) -> Content:
    """Return a `Content`; plain bytes are wrapped, so that parsers accept both."""
    if isinstance(data, Content):
        return data
    if not isinstance(data, bytes | bytearray | memoryview):
        raise OptionError(f"expected the bytes of a file, not {shown(data)}")
    return Content(bytes(data))


def bare_suffixes(path: object) -> list[str]:
    """Return the lower-case suffixes of a file name, without that of compression."""
    if not isinstance(path, str | os.PathLike):
        return []
    return [suffix.lower() for suffix in uncompressed(Path(path)).suffixes]


def uncompressed(path: Path) -> Path:
    """Return a path without the suffixes of compression."""
    while path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path


def load(source: Source) -> Content:
    """Read a path, an open binary file, or standard input ("-"), and decompress by content."""
    file: Any = source
    if callable(getattr(file, "read", None)):
        name = str(getattr(file, "name", "<file>"))
        return Content(_expand(_drain(file, name), name), name)
    if isinstance(source, str | os.PathLike) and str(source) == "-":
        return Content(_expand(_drain(sys.stdin.buffer, "<stdin>"), "<stdin>"), "<stdin>")
    name = _name(source)
    try:
        file = open(name, "rb")  # noqa: SIM115 - closed below; only opening is guarded here
    except (OSError, ValueError) as error:  # ValueError: the name contains NUL
        raise FormatError(f"cannot be read: {_reason(error)}", ascii(name)) from error
    with file:
        return Content(_expand(_drain(file, name), name), name)


def _name(source: object) -> str:
    """Return the name of a file, or raise `OptionError`."""
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(name, str) or not name:
        hint = "; for bytes there is softmap.io.parse" if _is_bytes(source) else ""
        raise OptionError(f"expected a path, '-' or a binary file, not {shown(source)}{hint}")
    return name


def _is_bytes(source: object) -> bool:
    return isinstance(source, bytes | bytearray | memoryview)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _drain(file: BinaryIO, name: str) -> bytes:
    """Return all bytes of a file; raise `FormatError` if they do not fit into memory."""
    try:
        return _collect(file, name, available_memory() // 3)
    except FormatError:
        raise
    except Exception as error:  # of any type: an object with a method `read` may not be a file
        raise FormatError(f"cannot be read: {_reason(error)}", name) from error


def _collect(stream: BinaryIO, name: str, limit: int, packed: BinaryIO | None = None) -> bytes:
    """Read in pieces, within bounds; `packed` is the compressed input of a decompressor."""
    whole = io.BytesIO()  # `getvalue` does not copy
    while piece := stream.read(LIMITS.read_bytes):
        if not isinstance(piece, bytes):
            raise FormatError("expected a file opened in binary mode", name)
        whole.write(piece)
        total = whole.tell()
        if total > limit:
            raise FormatError(f"more than {human(limit)}: too large for the memory", name)
        if packed is not None and implausible(total, packed.tell()):
            raise FormatError(
                f"{human(packed.tell())} expand to {human(total)} and more; "
                "expected a model, not a decompression bomb (unpack it yourself if you trust it)",
                name,
            )
    return whole.getvalue()


def _expand(raw: bytes, name: str) -> bytes:
    """Decompress data that start like a compressed file; only one layer is removed."""
    opener = next((opener for magic, opener in _MAGIC.items() if raw.startswith(magic)), None)
    if opener is None:
        return raw.removeprefix(codecs.BOM_UTF8)  # editors on Windows write this mark
    packed = io.BytesIO(raw)
    try:
        return _collect(opener(packed), name, available_memory() // 3, packed)
    except FormatError:
        raise
    except _BROKEN as error:
        raise FormatError(f"the compressed data are damaged: {error}", name) from error


class _XZ:
    """A reader of xz streams that limits the memory requested by their headers."""

    def __init__(self, packed: BinaryIO) -> None:
        self.packed = packed
        self.decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, LIMITS.decoder_memory)

    def read(self, size: int) -> bytes:
        step = LIMITS.read_bytes >> 4
        while True:
            if self.decoder.eof:
                rest = self.decoder.unused_data.lstrip(b"\0") or self.packed.read(step)
                if not rest.strip(b"\0"):
                    return b""
                self.decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, LIMITS.decoder_memory)
            else:
                rest = self.packed.read(step) if self.decoder.needs_input else b""
                if not rest and self.decoder.needs_input:
                    raise EOFError("the data end before the end of the stream")
            if piece := self.decoder.decompress(rest, size):
                return piece


def implausible(total: int, packed: int) -> bool:
    """Whether the compression ratio of `total` to `packed` bytes is implausible (a bomb)."""
    return total > LIMITS.trusted_bytes and total > LIMITS.compression * packed
