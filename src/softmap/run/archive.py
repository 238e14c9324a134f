"""Archives of checkpoints and results: a JSON header and arrays in a NumPy file, no pickles."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from softmap.errors import OptionError, SoftmapError, shown

__all__ = [
    "Arrays",
    "checked_path",
    "digest",
    "is_archive",
    "read_archive",
    "same_file",
    "under",
    "write_archive",
]

Arrays = dict[str, NDArray[Any]]
Problem = Callable[[str], SoftmapError]


def checked_path(path: Any) -> Path:
    """Return the path of a file to read, or raise `OptionError`."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise OptionError(f"expected the path of a file, not {shown(path)}")
    return Path(path)


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same regular file; devices do not count as files."""
    try:
        if os.path.samefile(one, other):
            return one.is_file()
    except (OSError, ValueError):  # one of the two files does not exist yet
        pass
    return os.path.realpath(one) == os.path.realpath(other) and not one.exists()


def digest(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Return a digest of the header and the arrays of an archive."""
    import hashlib  # imported late: few runs store files

    found = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def write_archive(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write an archive atomically: if the process is killed, the old file remains."""
    from softmap.io.atomic import replacing
    from softmap.io.streams import COMPRESSED

    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    members: dict[str, Any] = {"header": text, **arrays}
    with replacing(path) as file, _first_error():
        if path.suffix.lower() not in COMPRESSED:
            np.savez(file, **members)
        else:  # writing zip files needs seeking, which a compressed stream does not allow
            whole = io.BytesIO()
            np.savez(whole, **members)
            file.write(whole.getbuffer())


@contextmanager
def _first_error() -> Iterator[None]:
    """Raise the first exception: zipfile replaces it by a ValueError when it is closed."""
    try:
        yield
    except ValueError as error:
        first = _cause(error)
        if isinstance(first, Exception) and not isinstance(first, OSError | MemoryError):
            raise
        raise first from None


def _cause(error: BaseException) -> BaseException:
    """Return the exception during which others were raised."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def read_archive(
    path: Path, kind: str, version: int, problem: Problem
) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays; any error is raised as `problem(sentence)`."""
    if "\0" in str(path):
        raise problem("the file name contains NUL")
    try:
        with _open(path) as raw:
            _refuse_others(raw, kind, problem)
            _refuse_bombs(raw)
            with np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        if "num_labels" in arrays and "header" not in arrays:
            raise problem(f"expected a {kind}, found a model: softmap.read reads it")
        header = json.loads(arrays.pop("header").tobytes())
        found, other = header["version"], header.get("kind", kind)
    except FileNotFoundError as error:
        raise problem(f"there is no such {kind}") from error
    except SoftmapError:
        raise
    except Exception as error:  # numpy, zipfile, zlib and json raise many types for damaged files
        first = _cause(error)
        if isinstance(first, OSError) and first.errno not in (None, errno.EINVAL):  # a wild offset
            raise problem(f"cannot be read: {first.strerror}") from error
        raise problem(f"not a softmap {kind} ({error})") from error
    if other != kind:
        raise problem(
            f"expected a {kind}, found a {other if isinstance(other, str) else shown(other)}"
        )
    if found != version:
        raise problem(
            f"a {kind} of format {shown(found)}, but this version of softmap reads format {version}"
            " only; run solve() again"
        )
    return header, arrays


def is_archive(path: Path) -> bool:
    """Whether a file has the members of an archive; one that cannot be read has none."""
    import zipfile  # imported late: few runs read archives

    try:
        with _open(path) as raw, zipfile.ZipFile(raw) as archive:
            return "header.npy" in archive.namelist()
    except Exception:  # zipfile, zlib and lzma raise many types for damaged files
        return False


def _open(path: Path) -> BinaryIO:
    """Return the bytes of a file, decompressed (within bounds) if it is compressed."""
    from softmap.io.streams import COMPRESSED, load

    file = path.open("rb")
    if path.suffix.lower() not in COMPRESSED:
        return file
    with file:
        return io.BytesIO(load(file).data)


def _refuse_others(raw: BinaryIO, kind: str, problem: Problem) -> None:
    """Say what a file is for that was taken for a result or a checkpoint."""
    head = raw.read(64)
    raw.seek(0)
    if head[:2] == b"PK" or not head:
        return
    word = head.split()[:1]
    if word and word[0].upper() in (b"MPE", b"MAP"):
        raise problem(
            "this is a labelling, which proves nothing about other labellings; "
            "`softmap energy MODEL LABELS` says what it costs"
        )
    written = "Result.save or softmap solve --save" if kind == "result" else "solve(checkpoint=...)"
    raise problem(f"not a softmap {kind}: expected a file written by {written}")


def _refuse_bombs(raw: BinaryIO) -> None:
    """Raise an error for an archive with an implausible compression ratio (a bomb)."""
    import zipfile  # imported late: few runs read archives

    from softmap.io.limits import available_memory, human
    from softmap.io.streams import implausible

    size = raw.seek(0, os.SEEK_END)
    raw.seek(0)
    with zipfile.ZipFile(raw) as archive:
        total = sum(member.file_size for member in archive.infolist())
    raw.seek(0)
    if implausible(total, size) or total > max(size, available_memory()):
        raise ValueError(f"{human(size)} expand to {human(total)}")


def under(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names begin with `prefix/`, with that prefix removed."""
    start = f"{prefix}/"
    return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
