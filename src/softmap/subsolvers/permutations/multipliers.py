"""`AssignmentEvidence`: multipliers of assignment problems that prove a bound of permutations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.io.store import Arrays
from softmap.run.evidence import Evidence
from softmap.run.problem import Problem
from softmap.run.records import record

__all__ = ["ASSIGNMENT", "AssignmentEvidence", "Multipliers"]

Ints = NDArray[np.int64]
ASSIGNMENT = 23  # kind of the records of multipliers


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers of assignment problems (docs/proofs.md).

    Attributes
    ----------
    exponent : int
        The unit of all multipliers is `2**exponent`.
    rows : int64[n, d, n]
        Multipliers of variable j if variable i has label p.
    columns : int64[n, d, d]
        Multipliers of label q if variable i has label p.
    labels : int64[d]
        Multipliers of the labels.
    """

    exponent: int
    rows: Ints
    columns: Ints
    labels: Ints


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AssignmentEvidence(Evidence):
    """Multipliers of assignment problems, and the bound that they prove."""

    kind = "assignment"
    text = "the dual of the relaxation by assignment problems"
    multipliers: Multipliers | None = None

    def back(self, problem: Problem) -> Evidence | None:
        multipliers = self.multipliers
        if multipliers is not None:
            exponent = multipliers.exponent - problem.exponent
            multipliers = replace(multipliers, exponent=exponent)
        return replace(self, value=problem.bound_back(self.value), multipliers=multipliers)

    def records(self, lam: Any) -> Iterator[bytes]:
        given = self.multipliers
        if given is None:
            return super().records(lam)
        shape = [*given.columns.shape[:2], given.exponent]
        return record(ASSIGNMENT, shape, given.rows.ravel(), given.columns.ravel(), given.labels)

    @property
    def recorded(self) -> float | None:
        return None if self.multipliers is None else self.value

    def arrays(self) -> Arrays:
        given = self.multipliers
        if given is None:
            return {}
        arrays = {"rows": given.rows, "columns": given.columns, "labels": given.labels}
        return arrays | {"exponent": np.array(given.exponent)}

    @classmethod
    def of_arrays(cls, arrays: Arrays, value: float) -> AssignmentEvidence:
        if "rows" not in arrays:
            return cls(value=value)
        parts = [arrays[name] for name in ("rows", "columns", "labels")]
        if any(part.dtype != np.int64 for part in parts) or [p.ndim for p in parts] != [3, 3, 1]:
            raise ValueError("the proof has no valid multipliers")
        return cls(value=value, multipliers=Multipliers(int(arrays["exponent"]), *parts))
