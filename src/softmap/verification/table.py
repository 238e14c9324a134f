"""The table of the checker: who checks records of each kind, and evidence of each kind.

Modules are named as text, so that the checks of a kind are imported when a proof has it. A class
that checks records has `step(name, arrays)` and `bound()`; it is made of `Given`. A module that
checks evidence has `check(result, evidence)`, which returns a statement.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

__all__ = ["EVIDENCE", "RECORDS", "RecordKind", "evidence_check", "named", "part_of"]


class RecordKind(NamedTuple):
    """A kind of records.

    Attributes
    ----------
    name : str
        Its name, as in docs/proofs.md.
    arrays : int
        The number of arrays of a record.
    checker : str
        The class that checks it, as "module:Class"; empty for those that every proof may have.
    real : bool
        Whether numbers are read as arrays.
    leaf : bool
        Whether a record closes a node of a search.
    """

    name: str
    arrays: int
    checker: str = ""
    real: bool = False
    leaf: bool = False


SEARCH = "softmap.verification.search:SearchProof"
DUAL = "softmap.verification.dual_proof:DualProof"
SPINS = "softmap.verification.spins:SpinProof"
SQUARES = "softmap.verification.squares:SquareProof"
MULTIPLIERS = "softmap.verification.permutations:MultiplierProof"
CORES = "softmap.verification.cores:CoreSteps"

RECORDS: dict[int, RecordKind] = {
    1: RecordKind("load", 1, SEARCH),
    2: RecordKind("remove", 2, SEARCH),
    3: RecordKind("persistent", 2, SEARCH),
    4: RecordKind("split", 1, SEARCH),
    5: RecordKind("substitute", 2, SEARCH),
    6: RecordKind("eliminate", 1, SEARCH),
    7: RecordKind("shift", 2, SEARCH),
    8: RecordKind("component", 2, SEARCH),
    9: RecordKind("end", 0, SEARCH),
    10: RecordKind("cut", 1, SEARCH),
    11: RecordKind("dive", 1, SEARCH),
    12: RecordKind("branch", 1, SEARCH),
    13: RecordKind("close", 0, SEARCH, leaf=True),
    14: RecordKind("leave", 0, SEARCH),
    15: RecordKind("step", 5, SEARCH),
    16: RecordKind("combine", 3, SEARCH),
    17: RecordKind("dual", 3, DUAL, real=True),
    18: RecordKind("piece", 3, DUAL, real=True),
    19: RecordKind("labels", 1, real=True),
    20: RecordKind("conclude", 2, real=True),
    21: RecordKind("hard", 0),
    22: RecordKind("spins", 4, SPINS, real=True, leaf=True),
    23: RecordKind("assignment", 4, MULTIPLIERS, real=True),
    24: RecordKind("booleans", 2, CORES),
    25: RecordKind("costs", 2, CORES),
    26: RecordKind("given", 2, CORES),
    27: RecordKind("learned", 2, CORES),
    28: RecordKind("core", 1, CORES),
    29: RecordKind("group", 3, CORES),
    30: RecordKind("except", 2, real=True),
    31: RecordKind("part", 2, real=True),
    32: RecordKind("ranks", 1, real=True),
    33: RecordKind("squares", 3, SQUARES, real=True),
}
"""The kinds of records by the number that stands for them in files."""

EVIDENCE = {
    "relaxation": "softmap.verification.relaxed",
    "tightened": "softmap.verification.regions",
    "assignment": "softmap.verification.assignment",
}
"""Who checks evidence without a proof file, by kind; evidence of other kinds is stated."""


def named(name: str) -> RecordKind | None:
    """The kind of records with a name."""
    return next((kind for kind in RECORDS.values() if kind.name == name), None)


def part_of(name: str) -> type[Any] | None:
    """The class that checks records of a name; None for those that belong to nobody."""
    kind = named(name)
    if kind is None or not kind.checker:
        return None
    module, which = kind.checker.split(":")
    part: type[Any] = getattr(import_module(module), which)
    return part


def evidence_check(word: str) -> Any:
    """The function that checks evidence of a kind; None if there is none."""
    module = EVIDENCE.get(word)
    return None if module is None else import_module(module).check
