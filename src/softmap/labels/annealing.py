"""Simulated annealing over single labels.

For each variable, the cost of each of its labels is kept, given all other labels. A change of a
label then takes time in proportion to the tables around the variable, and a proposal hardly any.
This is the best search for models without structure: dense graphs, random couplings.
"""

from __future__ import annotations

import numpy as np

from softmap import core
from softmap.arguments import seeded
from softmap.model import Network
from softmap.model.potentials.base import Ints
from softmap.relaxation.flat import FlatModel

__all__ = ["LabelAnnealing"]


class LabelAnnealing:
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
        self._native = core.Annealing(flat.native, seeded(seed))

    @staticmethod
    def takes(model: Network, entries: int) -> float:
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
        deadline: core.Deadline | None = None,
        work: int = 1 << 62,
    ) -> Ints:
        """Return labels that cost no more than the given ones.

        Parameters
        ----------
        labels : int64 array
            Labels of all variables.
        deadline : core.Deadline, optional
            When to stop. A limit on work or a deadline is needed.
        work : int
            Limit on the number of label costs that are read or changed.
        """
        self._native.offer(np.ascontiguousarray(labels, dtype=np.int64))
        found = np.array(labels, dtype=np.int64)
        self._native.run(work, deadline)
        self._native.best(found)
        return found
