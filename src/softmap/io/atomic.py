"""Bytes out: into a temporary file beside the target, then renamed over it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from softmap.io.streams import COMPRESSED, Source

__all__ = ["replacing", "write_bytes", "write_text"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends without an exception.

    Compressed if the name ends in .gz, .xz or .bz2. Until the end the old file stays whole; after
    an exception (or an interrupt) it still is, and the temporary file is gone.
    """
    target = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as raw:
            opener = COMPRESSED.get(target.suffix.lower())
            if opener is None:
                yield raw
            else:
                with opener(raw, "wb") as packed:
                    yield packed
            raw.flush()
            os.fsync(raw.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _mode(target: Path) -> int:
    """The permissions of the file replaced, else what a plain `open` would have given."""
    try:
        return target.stat().st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def write_text(target: Source, pieces: Iterable[str]) -> None:
    """Write pieces of text to a path (atomically), "-" (standard output) or a binary file."""
    write_bytes(target, (piece.encode() for piece in pieces))


def write_bytes(target: Source, pieces: Iterable[bytes | memoryview]) -> None:
    """The same for bytes."""
    if not isinstance(target, str | os.PathLike):
        target.writelines(pieces)
    elif str(target) == "-":
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
    else:
        with replacing(target) as file:
            file.writelines(pieces)
