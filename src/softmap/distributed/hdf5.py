"""Arrays in an HDF5 file (extra `opengm`, which brings h5py), mapped into memory when read.

Only what can be mapped is taken: numbers and text that lie in one piece, unpacked, in the file
itself. Nothing in such a file is ever executed or unpickled.
"""

from __future__ import annotations

import io
import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, MissingExtra
from softmap.io.atomic import replacing

__all__ = ["mapped_hdf5", "write_hdf5"]

ALIGNED = 64  # bytes, so that arrays are used where they lie


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("parts as HDF5 files", "opengm") from error
    return h5py


def write_hdf5(path: Path, arrays: dict[str, Any]) -> None:
    """Write arrays by name; text as bytes in UTF-8."""
    h5py, buffer = _h5py(), io.BytesIO()
    # small ones, too: alignment is by size
    with h5py.File(buffer, "w", alignment_threshold=1, alignment_interval=ALIGNED) as file:
        for name, given in arrays.items():
            array = np.ascontiguousarray(given).reshape(np.shape(given))
            if array.dtype.kind == "U":
                array = np.char.encode(array, "utf-8")
            file.create_dataset(name, data=array, track_times=False)
    with replacing(path) as out:
        out.write(buffer.getbuffer())


def mapped_hdf5(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file that `write_hdf5` has written, read when they are looked at."""
    h5py = _h5py()
    try:
        with open(path, "rb") as raw:
            view = memoryview(mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ))
        with h5py.File(path, "r") as file:
            return {name: _array(h5py, file, name, view, path) for name in file}
    except FormatError:
        raise
    except FileNotFoundError as error:
        raise FormatError("there is no such part", path) from error
    except Exception as error:  # h5py raises what its C library suggests, of any type
        raise FormatError(f"not a sound HDF5 file: {error}", path) from error


def _array(h5py: Any, file: Any, name: str, view: memoryview, path: Path) -> NDArray[Any]:
    link = file.get(name, getlink=True)
    found = file.get(name) if isinstance(link, h5py.HardLink) else None
    if not isinstance(found, h5py.Dataset):
        raise FormatError(f"{name}: expected an array in the file itself", path)
    if found.dtype.kind not in "iufS" or found.dtype.byteorder == ">":
        raise FormatError(f"{name}: expected an array of plain numbers or text", path)
    plain = found.chunks is None and not found.is_virtual and not found.external
    if not plain or found.compression is not None:
        raise FormatError(f"{name} is packed or elsewhere; expected one that can be mapped", path)
    array = _mapped(found, view, name, path)
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8") if array.size else np.zeros(array.shape, "U1")
    return array if array.flags.aligned else array.copy()


def _mapped(found: Any, view: memoryview, name: str, path: Path) -> NDArray[Any]:
    begin, size = found.id.get_offset(), int(found.size) * found.dtype.itemsize
    if not size:
        return np.zeros(found.shape, found.dtype)
    if begin is None or begin + size > len(view):
        raise FormatError(f"{name}: its {size:,} bytes are not in the file", path)
    return np.frombuffer(view[begin : begin + size], found.dtype).reshape(found.shape)
