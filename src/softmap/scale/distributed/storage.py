"""Models in parts on disk: a folder with one file per part and a manifest.

Files hold the arrays of `softmap.io.npz`, with a few more, and are not packed: each process maps
its own parts into memory, and nobody reads all of them.
"""

from __future__ import annotations

import json
import mmap
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count
from softmap.errors import FormatError, OptionError, WriteError, shown
from softmap.io.atomic import replacing, write_text
from softmap.io.npz import array_of, model_arrays, model_from_arrays
from softmap.model import Model, checked_model
from softmap.scale.distributed.partition import partition as partitioned
from softmap.scale.distributed.parts import Part, Whole, cut_model

__all__ = ["read_parts", "read_whole", "write_folder", "write_parts"]

KIND, VERSION = "softmap model in parts", 1
MANIFEST = "model.json"
EXTRA = ("nodes", "edges", "home", "phase", "own")  # arrays of a part besides those of its model
COUNTS = ("variables", "edges", "parts", "phases")


def write_parts(
    model: Model, folder: str | os.PathLike[str], parts: int, *, partition: str = "auto"
) -> None:
    """Cut a model into parts and write them into a folder.

    Parameters
    ----------
    folder : path; made if it is not there
    parts : int
    partition : "auto", "grid", "metis" or "own"
        How to cut: see `softmap.scale.distributed.partition.partition`.
    """
    part = partitioned(checked_model(model), count("parts", parts, 1), partition)
    whole, pieces = cut_model(model, part)
    write_folder(folder, whole, pieces)


def write_folder(folder: Any, whole: Whole, parts: Iterable[Part]) -> None:
    """Write parts one by one; the manifest last, so that a folder with one is whole."""
    if not isinstance(folder, str | os.PathLike) or "\0" in str(folder):
        raise OptionError(f"expected a folder, not {shown(folder)}")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(path, error) from error
    for part in parts:
        arrays: dict[str, Any] = {f"part.{name}": getattr(part, name) for name in EXTRA}
        with replacing(_file(path, part.number)) as file:
            np.savez(file, **arrays, **model_arrays(part.model))
    facts = {name: getattr(whole, name) for name in (*COUNTS, "constant", "fingerprint")}
    facts |= {"kind": KIND, "version": VERSION, "turns": whole.turns.tolist()}
    write_text(path / MANIFEST, [json.dumps(facts, indent=1), "\n"])


def _file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}.npz"


def read_whole(folder: Path) -> Whole:
    """What the manifest says of the model."""
    path = folder / MANIFEST
    try:
        facts = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError("expected the manifest of a model in parts", path) from error
    if not isinstance(facts, dict) or facts.get("kind") != KIND:
        raise FormatError(f"expected a {KIND}", path)
    if facts.get("version") != VERSION:
        raise FormatError(f"format {shown(facts.get('version'))}; expected {VERSION}", path)
    if facts.get("form", "npz") != "npz":  # what earlier versions wrote
        raise FormatError(f"parts of form {shown(facts['form'])}; expected npz", path)
    try:
        whole = Whole(
            turns=np.array([count("turns", turn) for turn in facts["turns"]], dtype=np.int64),
            constant=float(facts["constant"]),
            fingerprint=str(facts["fingerprint"]),
            **{name: count(name, facts[name]) for name in COUNTS},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"not a whole manifest ({error})", path) from error
    if len(whole.turns) != whole.parts or not np.isfinite(whole.constant):
        raise FormatError("not a whole manifest: its numbers do not fit together", path)
    return whole


def read_parts(folder: Path, whole: Whole, wanted: range) -> list[Part]:
    """Some parts, mapped into memory."""
    return [_read(_file(folder, number), number, whole) for number in wanted]


def _read(path: Path, number: int, whole: Whole) -> Part:
    arrays = mapped(path)
    own = {name: arrays.pop(f"part.{name}", None) for name in EXTRA}
    if any(array is None for array in own.values()):
        raise FormatError("expected a part of a model", path)
    model = model_from_arrays(arrays, path)
    found: dict[str, Any] = {name: np.asarray(own[name], dtype=np.int64) for name in EXTRA}
    found["own"] = int(found["own"])
    part = Part(number=number, model=model, **found)
    if not _sound(part, whole):
        raise FormatError("not a sound part: its arrays do not fit together", path)
    return part


def _sound(part: Part, whole: Whole) -> bool:
    """Whether what follows can rely on the arrays."""
    n, m = part.model.n, part.model.m
    sizes = [(part.nodes, n, whole.variables), (part.home, n, whole.parts)]
    sizes += [(part.phase, n, whole.phases), (part.edges, m, whole.edges)]
    own = part.home == part.number
    return (
        all(a.shape == (k,) and (a >= 0).all() and (a < most).all() for a, k, most in sizes)
        and 0 < part.own <= n
        and bool(own[: part.own].all() and not own[part.own :].any())
        and bool((part.model.edges < part.own).any(axis=1).all())
    )


def mapped(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an archive that is not packed, mapped into memory and read when looked at."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            view = memoryview(whole)
            return {
                member.filename.removesuffix(".npy"): array_of(
                    view[slice(*_extent(view, member, path))], member.filename, path
                )
                for member in archive.infolist()
            }
    except FormatError:
        raise
    except FileNotFoundError as error:
        raise FormatError("there is no such part", path) from error
    except Exception as error:  # zipfile has many words for damaged files
        raise FormatError(f"not a sound archive: {error}", path) from error


def _extent(view: memoryview, member: zipfile.ZipInfo, path: Path) -> tuple[int, int]:
    """Where the bytes of a member begin and end."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise FormatError(f"{member.filename} is packed; expected one that can be mapped", path)
    at = member.header_offset
    names = int.from_bytes(view[at + 26 : at + 28], "little")
    extra = int.from_bytes(view[at + 28 : at + 30], "little")
    begin = at + 30 + names + extra
    return begin, begin + member.file_size
