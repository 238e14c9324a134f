"""Core-guided search: bounds and labellings of a model of hard constraints and costs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model import Network
from softmap.model.potentials.base import Ints
from softmap.subsolvers.cores.encoding import Encoding, encode

__all__ = ["CoreGuided"]


class CoreGuided:
    """A core-guided search over a model; each call of `run` continues it.

    Parameters
    ----------
    model : Network
        The model.
    given : Network, optional
        The model that `model` was made from; it may know more factors over many variables.
    logged : int, default 0
        Size of the proof that is kept, in integers of four bytes; none is kept if it is 0.
    """

    def __init__(self, model: Network, given: Network | None = None, logged: int = 0) -> None:
        self._encoding = found = encode(model, model if given is None else given)
        self._native = core.CoreSearch(np.zeros(found.variables, dtype=bool), logged)
        for rows, tables in found.clauses:
            start = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
            self._native.add_clauses(np.ascontiguousarray(rows).reshape(-1), start, tables)
        for literals, weights, bound, source in found.sums:
            start = np.array([0, len(literals)], dtype=np.int64)
            least, parts = np.array([bound], dtype=np.int64), np.array(source, dtype=np.int64)
            self._native.add_sums(literals, start, weights, least, parts)
        for literals, weights, _ in found.costs:
            self._native.add_costs(literals, weights)
        self.done = False

    @property
    def encoding(self) -> Encoding:
        """The clauses, sums and costs."""
        return self._encoding

    @property
    def bound(self) -> float:
        """No labelling costs less; +inf if there is none of finite cost."""
        found, lower = self._encoding, int(self._native.lower)
        return found.units.lower(found.base + lower) if lower < NONE else math.inf

    @property
    def proved(self) -> bool:
        """Whether a proof of the bound is kept; one that is too large is not."""
        return not self._native.full

    def write(self, path: Path) -> int:
        """Write the records of the search to a file; return their size in bytes, or 0."""
        return int(self._native.write(str(path)))

    @property
    def cores(self) -> int:
        """The number of cores so far."""
        return int(self._native.cores)

    @property
    def conflicts(self) -> int:
        """The number of conflicts so far."""
        return int(self._native.conflicts)

    def run(
        self,
        *,
        energy: float = np.inf,
        conflicts: int = 1 << 60,
        deadline: core.Deadline | None = None,
    ) -> Ints | None:
        """Continue until the optimum is known or a limit is reached; return the best labels.

        Parameters
        ----------
        energy : float, default +inf
            Cost of labels that are known: only better ones are looked for, and the bound does not
            exceed it by more than a unit.
        conflicts : int
            Number of conflicts of this call.
        deadline : core.Deadline, optional
            When to stop.
        """
        found = self._encoding
        if np.isfinite(energy):
            self._native.below(found.units.above(energy) - found.base)
        self.done = self._native.run(conflicts, deadline)
        values: NDArray[np.bool_] = np.zeros(found.variables, dtype=bool)
        return found.labels(values) if self._native.read(values) else None


NONE = 1 << 61
"""A lower bound of as many units says that there is no labelling."""
