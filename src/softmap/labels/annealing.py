"""Simulated annealing over single labels.

For each variable, the cost of each of its labels is kept, given all other labels. A change of a
label then takes time in proportion to the tables around the variable, and a proposal hardly any.
This is the best search for models without structure: dense graphs, random couplings.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from softmap import core
from softmap.arguments import seeded
from softmap.model import Model
from softmap.model.potentials.base import Ints
from softmap.relaxation.flat import FlatModel

__all__ = ["Annealing"]

SLICE = 0.02  # longest time without a look at the limits of the run, in seconds


class Annealing:
    """Annealing runs from random labels and from the best ones, ever longer; resumable.

    What a run does depends on the seed, its number and the labels from which it starts, not on the
    limits of single calls: more calls continue what earlier ones have begun.

    Parameters
    ----------
    flat : FlatModel
        The model.
    seed : int, default 0
        Seed of the random numbers.
    """

    def __init__(self, flat: FlatModel, seed: int = 0) -> None:
        self._native = core.Annealing(
            flat.num_labels, flat.unary, flat.scope_start, flat.scope, flat.tables, seeded(seed)
        )

    @staticmethod
    def takes(model: Model, entries: int) -> float:
        """Memory for a model with some number of table entries, flat tables included, in bytes."""
        return float(8 * entries + 200 * (model.n + model.m) + 8 * model.unary.size)

    @property
    def runs(self) -> int:
        """The number of complete runs."""
        return int(self._native.runs)

    def improve(
        self,
        labels: Ints,
        *,
        seconds: float = np.inf,
        work: int = 1 << 62,
        stopped: Callable[[], object] | None = None,
    ) -> Ints:
        """Return labels that cost no more than the given ones.

        Parameters
        ----------
        labels : int64 array
            Labels of all variables.
        seconds : float, default +inf
            Time limit.
        work : int
            Limit on the number of label costs that are read or changed.
        stopped : function, optional
            Called at short intervals; the search ends if it returns something true.
        """
        self._native.offer(np.ascontiguousarray(labels, dtype=np.int64))
        found = np.array(labels, dtype=np.int64)
        end = time.perf_counter() + min(seconds, 1e8)
        while work > 0 and not (stopped is not None and stopped()):
            if (left := end - time.perf_counter()) <= 0.0:
                break
            work -= self._native.run(work, min(left, SLICE))
        self._native.best(found)
        return found
