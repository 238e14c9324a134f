"""The store of arrays: archives of NumPy without pickles, for models, results and checkpoints.

Nothing is believed of a file: sizes are checked before memory is allocated. An archive of a result
or of a checkpoint has a JSON header among its arrays; its digest names both.
"""

from __future__ import annotations

import errno
import io
import json
import math
import mmap
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, OptionError, SoftmapError, human, shown

if TYPE_CHECKING:
    from softmap.io.streams import Content

__all__ = [
    "Arrays", "checked_path", "digest", "is_archive", "mapped", "packed", "read_archive",
    "same_file", "under", "unpacked", "write_archive",
]  # fmt: skip

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


def write_arrays(file: Any, arrays: Mapping[str, Any], *, compress: bool = False) -> None:
    """Write an archive as `numpy.savez` does, which in NumPy 2.0 leaves it open if that fails.

    Parameters
    ----------
    file : binary file
        An open file.
    arrays : mapping from str to array
        The members.
    compress : bool, default False
        Whether they are compressed.
    """
    import zipfile  # imported late: few runs store files

    how = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def write_archive(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write an archive atomically: if the process is killed, the old file remains."""
    from softmap.io.atomic import replacing  # imported late: few runs store files
    from softmap.io.streams import COMPRESSED

    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    members: dict[str, Any] = {"header": text, **arrays}
    with replacing(path) as file, _first_error():
        if path.suffix.lower() not in COMPRESSED:
            write_arrays(file, members)
        else:  # writing zip files needs seeking, which a compressed stream does not allow
            whole = io.BytesIO()
            write_arrays(whole, members)
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
            arrays = _members(raw)
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

    from softmap.io.limits import available_memory
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


# --- archives of NumPy ---------------------------------------------------------------------------

_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|]?[biufU])(\d{1,6})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,15},? ?){0,8})\), \} *\n",
    re.DOTALL,
)


class _Damaged(ValueError):
    """What is wrong with an archive, in words."""


def packed(arrays: Mapping[str, Any], *, compress: bool) -> memoryview:
    """Return the bytes of an archive; stored, not compressed, if a reader took it for a bomb.

    Parameters
    ----------
    arrays : mapping
        The arrays by name.
    compress : bool
        Whether arrays are compressed.
    """
    from softmap.io.streams import implausible

    buffer = io.BytesIO()
    write_arrays(buffer, arrays, compress=compress)
    if implausible(sum(np.asarray(array).nbytes for array in arrays.values()), buffer.tell()):
        buffer = io.BytesIO()
        write_arrays(buffer, arrays)
    return buffer.getbuffer()


def unpacked(content: Content, expected: str) -> Arrays:
    """Return the arrays of an archive given as bytes; raise `FormatError` if it is damaged.

    Parameters
    ----------
    content : Content
        The bytes of the archive.
    expected : str
        What the archive should hold, for errors.
    """
    import zipfile  # imported late: few runs read archives

    from softmap.io.streams import implausible

    try:
        with zipfile.ZipFile(io.BytesIO(content.data)) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if implausible(total, content.size):
                size = human(content.size)
                raise _Damaged(f"{size} expand to {human(total)}; expected {expected}")
            content.reserve(total // 8)
            if other := [m.filename for m in members if not m.filename.endswith(".npy")]:
                raise _Damaged(
                    f"expected an archive of NumPy, found a ZIP file with {other[0]}: unpack it"
                )
            return {_name(m): _array(archive.read(m), m.filename) for m in members}
    except FormatError:
        raise
    except _Damaged as error:
        raise FormatError(str(error), content.name) from error
    except Exception as error:  # zipfile and its decompressors raise a dozen types
        raise FormatError(f"damaged archive: {error}", content.name) from error


def mapped(path: Path) -> Arrays:
    """Return the arrays of an uncompressed archive, mapped into memory and read lazily."""
    import zipfile  # imported late: few runs read archives

    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            view = memoryview(whole)
            return {
                _name(member): _array(view[slice(*_extent(view, member))], member.filename)
                for member in archive.infolist()
            }
    except FileNotFoundError as error:
        raise FormatError("there is no such part", path) from error
    except _Damaged as error:
        raise FormatError(str(error), path) from error
    except Exception as error:  # zipfile has many words for damaged files
        raise FormatError(f"damaged archive: {error}", path) from error


def _members(raw: BinaryIO) -> Arrays:
    """Return the arrays of an open archive, which may be changed."""
    import zipfile  # imported late: few runs read archives

    with zipfile.ZipFile(raw) as archive:
        return {
            _name(member): _array(bytearray(archive.read(member)), member.filename)
            for member in archive.infolist()
        }


def _name(member: Any) -> str:
    name: str = member.filename
    return name.removesuffix(".npy")


def _array(raw: bytes | bytearray | memoryview, member: str) -> NDArray[Any]:
    """Return the array of a member of an archive, without a copy.

    NumPy's own reader is not used: it would allocate whatever size the header states.
    """
    header = _HEADER.match(raw)
    if header is None:
        raise _Damaged(f"{member}: expected an array of plain numbers or text")
    kind, size = header[1].decode(), int(header[2])
    shape = tuple(int(d) for d in header[4].split(b",") if d.strip())
    body = memoryview(raw)[10 + int.from_bytes(raw[8:10], "little") :]
    if math.prod(shape) * size * (4 if kind.endswith("U") else 1) != len(body):
        raise _Damaged(f"{member}: expected {math.prod(shape)} numbers, found {len(body)} bytes")
    array = np.frombuffer(body, f"{kind}{size}")
    return array.reshape(shape, order="F" if header[3] == b"True" else "C")


def _extent(view: memoryview, member: Any) -> tuple[int, int]:
    """Where the bytes of a member begin and end."""
    if member.compress_type != 0:
        raise _Damaged(f"{member.filename} is compressed and cannot be mapped into memory")
    at = member.header_offset
    names = int.from_bytes(view[at + 26 : at + 28], "little")
    extra = int.from_bytes(view[at + 28 : at + 30], "little")
    begin = at + 30 + names + extra
    return begin, begin + member.file_size
