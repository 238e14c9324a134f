"""Atomic writing of files: to a temporary file in the same folder, then renamed."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from softmap.errors import OptionError, WriteError, shown
from softmap.io.streams import COMPRESSED, Source

try:
    import fcntl
except ImportError:  # not on this system: abandoned temporary files are not removed
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".part"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces `path` when the block ends without an exception.

    The content is compressed if the name ends in .gz, .xz or .bz2. The old file is unchanged until
    the end, and after an exception or interrupt; the temporary file is then removed. Temporary
    files of killed processes are removed by the next process that writes the same file. Links are
    followed. Devices and pipes are written to, not replaced.
    """
    target = _resolved(path)
    try:
        if target.exists() and not target.is_file():
            with open(target, "wb") as special, _packed(special, target) as file:
                yield file
        else:
            with _renamed(target) as regular, _packed(regular, target) as file:
                yield file
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        raise WriteError(path, error) from error


def _resolved(path: Any) -> Path:
    """Return the target of a path; links are followed, so that they are not replaced."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise OptionError(f"expected the path of a file to write, not {shown(path)}")
    name = os.fspath(path)
    if not name or "\0" in name:
        raise OptionError(f"expected the path of a file to write, not {shown(name)}")
    try:
        target = Path(os.path.realpath(name) if os.path.islink(name) else name)
        target.exists()
    except (OSError, ValueError) as error:  # ValueError: characters that cannot be encoded
        raise WriteError(path, error) from error
    return target


@contextmanager
def _packed(raw: BinaryIO, target: Path) -> Iterator[BinaryIO]:
    opener = COMPRESSED.get(target.suffix.lower())
    if opener is None:
        yield raw
    else:
        with opener(raw, "wb") as packed:
            yield packed


@contextmanager
def _renamed(target: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that is renamed to the target at the end."""
    prefix = f".{target.name[:200]}."
    _remove_abandoned(target.parent, prefix)
    handle, temporary = _locked(target.parent, prefix)
    try:
        with os.fdopen(handle, "wb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
            os.chmod(temporary, _mode(target))
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _locked(folder: Path, prefix: str) -> tuple[int, str]:
    """Create a locked temporary file; the lock shows that its process is alive."""
    import tempfile  # imported late: readers do not need it

    while True:
        handle, name = tempfile.mkstemp(suffix=_SUFFIX, prefix=prefix, dir=folder)
        if fcntl is None:
            return handle, name
        with suppress(OSError):  # the file system has no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):  # otherwise another process removed it as abandoned
            return handle, name
        os.close(handle)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove temporary files of killed processes: those that are not locked."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(_SUFFIX):
                with suppress(OSError):
                    _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(handle)


def _mode(target: Path) -> int:
    """Return the permissions of the replaced file, or those of a file made by `open`."""
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
    """Write pieces of bytes to a path (atomically), "-" (standard output) or a binary file."""
    if callable(getattr(target, "write", None)):
        _write_to(target, pieces)
    elif isinstance(target, str | os.PathLike) and str(target) == "-":
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
    else:
        with replacing(_path(target)) as file:
            file.writelines(pieces)


def _path(target: Any) -> str | os.PathLike[str]:
    if not isinstance(target, str | os.PathLike):
        raise OptionError(
            f"expected the path of a file to write, '-' or a binary file, not {shown(target)}"
        )
    return target


def _write_to(file: Any, pieces: Iterable[bytes | memoryview]) -> None:
    for piece in pieces:
        try:
            file.write(piece)
        except TypeError as error:
            raise OptionError("expected a file opened in binary mode") from error
        except (OSError, ValueError) as error:  # ValueError: a closed file
            raise WriteError(getattr(file, "name", "<file>"), error) from error
