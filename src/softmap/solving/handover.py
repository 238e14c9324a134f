"""Where passes would take long to end a small LP, an exact solver ends it (decision 11)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from softmap.solving.labelling import find_labels

if TYPE_CHECKING:
    from softmap.solving.run import Run

__all__ = ["is_slow", "solve_exactly"]

HAND_OVER = 5_000  # passes after which a small LP that is still open goes to an exact solver
SMALL = 50_000  # node states and edge pairs of such an LP: HiGHS takes seconds


def is_slow(run: Run) -> bool:
    """Whether this check is the first one past `HAND_OVER`, and the LP small but still open."""
    before = run.trace[-1].sweeps if len(run.trace) else 0.0
    passed = run.algorithm.exact_finish and before < HAND_OVER <= run.done
    if not passed or run.closed():
        return False
    size = run.model.unary.size + int(run.model.edge_offset[-1])
    return size <= SMALL and not len(run.model.auxiliaries)


def solve_exactly(run: Run) -> None:
    """Let an interior-point method solve the LP; the judge looks at what it gives."""
    from softmap.relaxation import lp  # few runs come here

    left = None if math.isinf(run.left) else max(0.0, run.left)
    # the last digits depend on the number of threads, so it is always one
    found = lp.solve(run.model, "ipm", time_limit=left, threads=1)
    if found.status == "Optimal":
        nodes = np.maximum(found.node_marginals, 0.0)
        mass = np.add.reduceat(nodes, run.model.node_offset[:-1])
        nodes /= np.repeat(mass, run.model.num_labels)
        run.judge.accept(found.lam, nodes)
        find_labels(run, found.lam, nodes, run.judge.primal)
