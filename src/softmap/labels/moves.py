"""Large moves: an exact search over some variables, with the labels of all others fixed.

The search propagates costs and hard constraints over the free variables, so that moves are possible
where dynamic programming over narrow parts (`softmap.labels.neighbourhoods`) is too small: many
labels, dense graphs, hard constraints.
"""

from __future__ import annotations

import numpy as np

from softmap import core
from softmap.arguments import seeded
from softmap.model.potentials.base import Ints
from softmap.relaxation.flat import FlatModel


class LargeMoves:
    """Improves labels by exact searches over sets of neighbouring variables; resumable.

    Half of the sets are unions of neighbouring clusters of a tree decomposition.

    Parameters
    ----------
    flat : FlatModel
        The model.
    seed : int
        Seed of the random numbers.
    each : int
        The work that a search counts as.
    """

    def __init__(self, flat: FlatModel, seed: int, each: int) -> None:
        self._each = each
        self._native = core.LargeMoves(flat.native, seeded(seed))

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
            Labels of all variables, of finite cost.
        deadline : core.Deadline, optional
            When to stop. A limit on work or a deadline is needed.
        work : int
            Amount of work; each search counts as `each`.
        """
        found = np.array(labels, dtype=np.int64)
        self._native.improve(found, work // self._each, deadline)
        return found
