"""Proof files that are made to keep the checker busy, or to fill its memory.

Each kind is a small model and records of about so many bytes, which a search would not write: some
are decompressed from almost nothing, some ask for the same work again and again, some leave much
behind. A checker has to refuse or reject them within its limits, or to check them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from itertools import combinations, islice
from pathlib import Path

import numpy as np

from softmap import Model, Potts
from support.proof_files import NUMBERS, packed

WIDTHS = {1: 0, 2: 1, 4: 2, 8: 3}
LOAD = ("LOAD", [[1, 0, 1 << 40]])


def record(name: str, *arrays: np.ndarray) -> bytes:
    """One record of long arrays, each with the bytes per number of its type."""
    out = bytearray([NUMBERS[name]])
    for array in arrays:
        out.append(63 << 2 | WIDTHS[array.itemsize])
        out += len(array).to_bytes(8, "little") + array.tobytes()
    return bytes(out)


def pair() -> Model:
    """Two variables with two labels."""
    return Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], Potts([0.5]))


def star(leaves: int, times: int = 1) -> Model:
    """Stars whose centres come first: to eliminate one makes a table of all its leaves."""
    n = leaves + 1
    edges = [(k, times + k * leaves + i) for k in range(times) for i in range(leaves)]
    return Model(np.zeros((times * n, 2)), edges, Potts(np.ones(len(edges))))


def searched(records: list, model: Model | None = None) -> tuple[Model, bytes]:
    """A model, by default of two variables, and records of a search of it."""
    return model or pair(), packed([LOAD, *records])


def _dives(size: int) -> tuple[Model, bytes]:
    """A long path, and dives to each of the nodes that leave it."""
    levels = min(max(2, size // 60), 200_000)
    one = ("DIVE", [[0]]), *[("BRANCH", [[0, 1, 99]])] * levels, ("LEAVE", [])
    more = [r for k in range(levels + 1) for r in (("DIVE", [[k + 1]]), ("LEAVE", []))]
    return searched([("COMPONENT", [[0, 1], [0]]), *one, *more])


def _tree(record_: tuple) -> Callable[[int], tuple[Model, bytes]]:
    def made(size: int) -> tuple[Model, bytes]:
        first = packed([LOAD, ("COMPONENT", [[0, 1], [0]]), ("DIVE", [[0]])])
        one = packed([record_])
        return pair(), first + one * (size // len(one))

    return made


def _combined(size: int) -> tuple[Model, bytes]:
    """Each factor is combined, alone, into one like it."""
    number = range(min(size // 40, 20_000))
    every = [("COMBINE", [[], [k], [0, 1]]) for k in number]
    model = Model(np.zeros((2, 60)), [[0, 1]], Potts([1.0]))
    return searched([("COMPONENT", [[0, 1], [0]]), ("DIVE", [[0]]), *every], model)


def _stars(leaves: int, times: int) -> Callable[[int], tuple[Model, bytes]]:
    """Large tables, which stay."""
    return lambda _: searched([("ELIMINATE", [[k]]) for k in range(times)], star(leaves, times))


def _numbers(name: str, count: int, kind: type, first: bytes = b"") -> Callable:
    """A record of arrays that share the bytes."""

    def made(size: int) -> tuple[Model, bytes]:
        each = size // (count * np.dtype(kind).itemsize)
        return pair(), first + record(
            name, *[np.full(each, 300 % np.iinfo(kind).max, kind)] * count
        )

    return made


def _given(literals: int) -> Callable[[int], tuple[Model, bytes]]:
    def made(size: int) -> tuple[Model, bytes]:
        first = packed([("BOOLEANS", [[1, 0, 3], [0, 1]])])
        one = record("GIVEN", np.zeros(2, np.int8), np.ones(literals, np.int8))
        return pair(), first + one * (size // len(one))

    return made


def _except(size: int) -> tuple[Model, bytes]:
    rows = np.arange(size // 2)[:, None] >> np.arange(2) & 1
    return pair(), record("EXCEPT", np.arange(2), rows.astype(np.int8).ravel())


def _dual(width: int) -> Callable[[int], tuple[Model, bytes]]:
    def made(size: int) -> tuple[Model, bytes]:
        count = size // (2 * width + 2)
        sizes, members = np.full(count, width, np.int8), np.zeros(count * width, np.int8)
        return pair(), record("DUAL", sizes, members, np.zeros(count * width, np.int8))

    return made


def _clusters(size: int) -> tuple[Model, bytes]:
    """As many triples of 250 variables as λ has numbers for, which are all the same."""
    n = 250
    edges = [(i, i + 1) for i in range(n - 1)]
    model = Model(np.zeros((n, 2)), edges, Potts(np.ones(n - 1)))
    count = size // 64
    members = np.array(list(islice(combinations(range(n), 3), count)), np.int16).ravel()
    sizes, lam = np.full(len(members) // 3, 3, np.int8), np.zeros(60 * count, np.int8)
    return model, record("DUAL", sizes, members, lam)


def _spins(_: int) -> tuple[Model, bytes]:
    """Matrices of all pairs of the variables of a chain."""
    n = 3000
    edges = [(i, i + 1) for i in range(n - 1)]
    none = np.zeros(0, np.int8)
    diagonal = np.zeros(n, np.int8)
    model = Model(np.zeros((n, 2)), edges, Potts(np.ones(n - 1)))
    return model, record("SPINS", none, diagonal, none, none)


def _splits(_: int) -> tuple[Model, bytes]:
    """A table of many variables, which is written as a sum over pairs."""
    return searched([("ELIMINATE", [[0]]), ("SPLIT", [[21]])], star(21))


KINDS: dict[str, Callable[[int], tuple[Model, bytes]]] = {
    "zeros": lambda size: (pair(), bytes(size)),
    "dives": _dives,
    "branches": _tree(("BRANCH", [[0, 1, 99]])),
    "cuts": _tree(("CUT", [[99]])),
    "steps": _tree(("STEP", [[]] * 5)),
    "combinations": _combined,
    "one star": _stars(30, 1),
    "star at the limit": _stars(22, 1),
    "stars": _stars(19, 200),
    "spins": _spins,
    "splits": _splits,
    "numbers of a step": _numbers(
        "STEP", 5, np.int16, packed([LOAD, ("COMPONENT", [[0, 1], [0]]), ("DIVE", [[0]])])
    ),
    "numbers of a component": _numbers("COMPONENT", 2, np.int32, packed([LOAD])),
    "persistent labels": _numbers("PERSISTENT", 2, np.int32, packed([LOAD])),
    "numbers of lambda": _numbers("DUAL", 3, np.int8),
    "numbers of spins": _numbers("SPINS", 4, np.int8),
    "numbers of an assignment": _numbers("ASSIGNMENT", 4, np.int8),
    "numbers of a labelling": _numbers("LABELS", 1, np.int8),
    "clusters": _clusters,
    "clusters of one": _dual(1),
    "clusters that are none": _dual(3),
    "long clauses": _given(5000),
    "short clauses": _given(2),
    "learned": _numbers("LEARNED", 2, np.int8, packed([("BOOLEANS", [[1, 0, 3], [0, 1]])])),
    "groups": _numbers("GROUP", 3, np.int16, packed([("BOOLEANS", [[1, 0, 3], [0, 1]])])),
    "labellings": _except,
}  # fmt: skip


def write_hostile(path: Path, kind: str, size: int, *, compressed: bool, file: int = 0) -> Model:
    """Write a file of a kind with records of about so many bytes; return its model.

    A compressed file that is shorter than `file` bytes is filled up by bytes that cannot be
    compressed: limits grow with the file.
    """
    model, records = KINDS[kind](size)
    if file:
        missing = file - len(zlib.compress(records, 1))
        records += np.random.default_rng(1).bytes(max(0, missing))
    header = {"format": "softmap proof", "version": 3, "model": model.fingerprint()}
    header |= {"exponent": 0, "bytes": len(records), "crc32": zlib.crc32(records)}
    if compressed:
        header["packed"], records = True, zlib.compress(records, 1)
    path.write_bytes(json.dumps(header).encode() + b"\n" + records)
    return model
