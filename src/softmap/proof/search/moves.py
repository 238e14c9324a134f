"""Large moves: an exact search over some variables, with the labels of all others fixed.

The search propagates costs and hard constraints over the free variables, so that moves are possible
where dynamic programming over narrow parts (`softmap.labels.neighbourhoods`) is too small: many
labels, dense graphs, hard constraints.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from softmap import core
from softmap.arguments import seeded
from softmap.model.potentials.base import Ints
from softmap.relaxation.flat import FlatModel

SLICE = 0.1  # longest time without a look at the limits of the run, in seconds
MOVE_WORK = 20_000  # work that a move stands for, in message entries
BLOCK = 50  # largest number of moves without such a look


class LargeMoves:
    """Improves labels by exact searches over sets of neighbouring variables; resumable.

    Parameters
    ----------
    flat : FlatModel
        The model.
    seed : int, default 0
        Seed of the random numbers.
    """

    def __init__(self, flat: FlatModel, seed: int = 0) -> None:
        self._native = core.LargeMoves(
            flat.num_labels, flat.unary, flat.scope_start, flat.scope, flat.tables, seeded(seed)
        )

    def improve(
        self,
        labels: Ints,
        *,
        seconds: float,
        work: int = 1 << 62,
        stopped: Callable[[], object] | None = None,
    ) -> Ints:
        """Return labels that cost no more than the given ones.

        Parameters
        ----------
        labels : int64 array
            Labels of all variables, of finite cost.
        seconds : float
            Time limit.
        work : int
            Amount of work; each move counts as `MOVE_WORK`.
        stopped : function, optional
            Called at short intervals; the search ends if it returns something true.
        """
        found = np.array(labels, dtype=np.int64)
        moves = work // MOVE_WORK
        end = time.perf_counter() + min(seconds, 1e8)
        while moves > 0 and not (stopped is not None and stopped()):
            left = end - time.perf_counter()
            if left <= 0.0:
                break
            # without a time limit, whole blocks of moves, so that a run can be repeated
            timed = seconds < np.inf
            self._native.improve(found, min(moves, BLOCK), min(left, SLICE) if timed else 1e8)
            moves -= 0 if timed else min(moves, BLOCK)
        return found
