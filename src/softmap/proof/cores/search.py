"""Core-guided search: bounds and labellings of a model of hard constraints and costs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model import Model
from softmap.model.potentials.base import Ints
from softmap.proof.cores.encoding import Encoding, encode

__all__ = ["CoreGuided"]


class CoreGuided:
    """A core-guided search over a model; each call of `run` continues it.

    Parameters
    ----------
    model : Model
        The model.
    given : Model, optional
        The model that `model` was made from; it may know more factors over many variables.
    """

    def __init__(self, model: Model, given: Model | None = None) -> None:
        self._encoding = found = encode(model, model if given is None else given)
        self._native = core.CoreSearch(np.zeros(found.variables, dtype=bool))
        for rows in found.clauses:
            start = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
            self._native.add_clauses(np.ascontiguousarray(rows).reshape(-1), start)
        for literals, weights, bound in found.sums:
            start = np.array([0, len(literals)], dtype=np.int64)
            self._native.add_sums(literals, start, weights, np.array([bound], dtype=np.int64))
        for literals, weights in found.costs:
            paid = weights > 0
            self._native.add_costs(literals[paid], weights[paid])
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
