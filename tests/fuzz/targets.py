"""What is fuzzed: every reader, with small valid files to start from.

A reader may return a model or raise one of our exceptions; anything else is a finding.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

import softmap
from softmap.io.formats import FORMATS
from softmap.io.limits import LIMITS
from softmap.io.results import read_evidence, read_labels, read_sln
from softmap.verification.limit import Refused
from softmap.verification.proof import check_proof

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.hostile_proofs import KINDS
from support.samples import RESULTS, SAMPLES, content


def _models() -> list[softmap.Model]:
    table = np.arange(6.0).reshape(2, 3)
    large = np.where(np.arange(12) == 5, np.inf, np.arange(12.0)).reshape(2, 3, 2)
    potts = softmap.Model(np.eye(3), [[0, 1], [1, 2]], softmap.Potts([1.0, 2.0]))
    far = softmap.TruncatedLinear([1.0, 2.0], [1.0, 2.0])
    shared = softmap.SharedTables([table], [0])
    return [
        softmap.Model.from_factors([2, 3, 2], [((0, 1, 2), large), ((0, 1), table)]),
        potts,
        softmap.Model(np.eye(3), [[0, 1], [1, 2]], far, constant=2.0),
        softmap.Model([[1.0, 2.0], [1.0, 0.0, 3.0]], [[0, 1]], shared),
    ]


def _zipped(kind: int, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        archive.writestr("header.npy", data)
    return buffer.getvalue()


def _members(data: bytes) -> None:
    """An archive whose members are sound by construction, their contents fuzzed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        parts = [part.partition(b"\n") for part in data.split(b"\nMEMBER ")]
        for name, body in {n.partition(b"\0")[0]: body for n, _, body in parts}.items():
            if name:
                archive.writestr(name.decode("latin-1"), body)
    FORMATS["npz"].parse(buffer.getvalue())


def _member_text(archive: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        parts = [name.encode() + b"\n" + file.read(name) for name in file.namelist()]
    return b"\nMEMBER ".join(parts)


def _datasets(data: bytes) -> None:
    """A sound HDF5 file whose arrays are fuzzed: lines of a name and numbers."""
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for line in data.split(b"\n"):
            name, _, rest = line.partition(b" ")
            numbers = np.array([_number(word) for word in rest.split()])
            odd = numbers.size and not (numbers >= 0).all()  # such as NaN, or a negative count
            kind = np.float64 if odd or name.endswith(b"values") else np.uint64
            unwritable = contextlib.suppress(ValueError, OSError, RuntimeError, TypeError)
            with unwritable, np.errstate(invalid="ignore"):
                file[f"gm/{name.decode('latin-1')}"] = numbers.astype(kind)
    FORMATS["opengm"].parse(buffer.getvalue())


def _number(word: bytes) -> float:
    try:
        return float(word)
    except ValueError:
        return 0.0


def _dataset_text(file: bytes) -> bytes:
    import h5py

    lines: list[str] = []
    with h5py.File(io.BytesIO(file)) as opened:
        opened["gm"].visititems(
            lambda name, node: (
                lines.append(" ".join([name, *map(str, node[()].tolist())]))
                if isinstance(node, h5py.Dataset)
                else None
            )
        )
    return "\n".join(lines).encode()


def _uai(data: bytes) -> None:
    FORMATS["uai"].parse(data, values=("potential", "log", "cost")[len(data) % 3])


def _read(data: bytes) -> None:
    softmap.read(io.BytesIO(data))


SMALL = replace(LIMITS, trusted_bytes=1 << 19)
PACKERS: list[Callable[[bytes], bytes]] = [
    lambda data: gzip.compress(data, 9), lambda data: lzma.compress(data, preset=0),
    lambda data: bz2.compress(data, 1), *(partial(_zipped, kind) for kind in (8, 12, 14)),
]  # fmt: skip


def _packed(data: bytes) -> None:
    """Content that is repeated, to a megabyte at most, and compressed.

    Readers take bombs for what they are from half of that on: larger ones take seconds to make.
    """
    if len(data) > 2:
        way, content = data[0] % len(PACKERS), data[2:]
        times = min(1 << data[1] % 21, (1 << 20) // len(content))
        with mock.patch("softmap.io.streams.LIMITS", SMALL):
            softmap.read(io.BytesIO(PACKERS[way](content * times)))


def _proof(data: bytes) -> None:
    """Records of a proof whose header is sound, compressed or not."""
    body, model = data[1:], _models()[data[0] % 4 if data else 0]
    header = {"format": "softmap proof", "version": 3, "model": model.fingerprint(), "exponent": 0}
    header |= {"bytes": len(body), "crc32": zlib.crc32(body), "packed": bool(len(data) % 2)}
    body = zlib.compress(body, 1) if header["packed"] else body
    with tempfile.NamedTemporaryFile() as file:
        file.write(json.dumps(header).encode() + b"\n" + body)
        file.flush()
        with contextlib.suppress(Refused):
            check_proof(file.name, model, effort=0.01)


def _proofs() -> list[bytes]:
    """Records that searches of the models have written, and hostile ones."""
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "proof"
        for k, model in enumerate(_models()):
            softmap.solve(model, proof=path, threads=1, max_work=10_000)
            header, _, body = path.read_bytes().partition(b"\n")
            body = zlib.decompress(body) if json.loads(header).get("packed") else body
            found.append(bytes([k]) + body)
    return found + [b"\1" + KINDS[kind](300)[1][:4000] for kind in KINDS if kind != "clusters"]


def _of_bytes(read: Callable[[io.BytesIO], object]) -> Callable[[bytes], object]:
    return lambda data: read(io.BytesIO(data))


TYPES = [
    b"header 2 0 3 3 3 16001 1 16006 1 16011 1 1\nnumbers-of-states 2 2 2\n"
    b"factors 0 0 2 0 1 0 1 2 1 2 0 2 3 0 1 2\n"
    b"function-id-16001/indices 2 2 2 2 1 3\nfunction-id-16001/values 7 1 2\n"
    b"function-id-16006/indices 2 2\nfunction-id-16006/values 0 1\n"
    b"function-id-16011/indices 3 2 2 2\nfunction-id-16011/values 1 2 3 4 5",
    b"header 2 0 2 3 3 16002 1 16005 1 16008 1 1\nnumbers-of-states 3 3\n"
    b"factors 0 0 2 0 1 0 1 2 1 0 0 2 1 0\n"
    b"function-id-16002/indices 3 3\nfunction-id-16002/values 2\n"
    b"function-id-16005/indices 3 3\nfunction-id-16005/values 4 1\n"
    b"function-id-16008/indices 1 3\nfunction-id-16008/values 6",
    b"header 2 0 3 1 1 16007 1 1\nnumbers-of-states 3 2 3\nfactors 0 0 3 0 1 2\n"
    b"function-id-16007/indices 3 3 2 3\nfunction-id-16007/values 4 1",
]


def _texts(form: str, **options: object) -> list[bytes]:
    return [content(m, form, **options) for m in _models()]


def targets() -> dict[str, tuple[Callable[[bytes], object], list[bytes]]]:
    """By name: a function of bytes, and the files to start from."""
    uai = [*_texts("uai"), *_texts("uai", values="log")]
    opengm, npz = _texts("opengm"), _texts("npz", compress=False)
    found = {form: (FORMATS[form].parse, texts) for form, texts in SAMPLES.items()}
    parsers = {"evidence": read_evidence, "labels": read_labels, "sln": read_sln}
    written = {
        form: (FORMATS[form].parse, SAMPLES[form] + _texts(form)) for form in ("cfn", "wcsp")
    }
    return {
        **found,
        **written,
        **{kind: (_of_bytes(parsers[kind]), texts) for kind, texts in RESULTS.items()},
        "uai": (_uai, uai),
        "opengm": (FORMATS["opengm"].parse, opengm),
        "opengm-arrays": (_datasets, [*map(_dataset_text, opengm), *TYPES]),
        "npz": (FORMATS["npz"].parse, [*npz, *_texts("npz")]),
        "npz-arrays": (_members, [_member_text(x) for x in npz]),
        "packed": (_packed, [bytes([k, 20 * (k % 2)]) + uai[0] for k in range(len(PACKERS))]),
        "proof": (_proof, _proofs()),
        "read": (_read, [uai[0], opengm[0], npz[0], *(texts[0] for texts in SAMPLES.values())]),
    }
