"""Whether variables that must differ can: a matching of variables to labels, or a Hall set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import InfeasibleModel

__all__ = ["require_different"]


def require_different(
    variables: Sequence[int], allowed: Sequence[NDArray[np.bool_]], names: Sequence[Any]
) -> None:
    """Raise `InfeasibleModel` unless the variables can all have different labels.

    Parameters
    ----------
    variables : sequence of int
        The variables that must differ.
    allowed : sequence of bool arrays
        Which labels each of them may have.
    names : sequence
        What messages call them.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    labels = [np.flatnonzero(mask) for mask in allowed]
    start = np.cumsum([0, *map(len, labels)])
    flat = np.concatenate(labels)
    shape = len(labels), max(map(len, allowed))
    graph = csr_array((np.ones(len(flat), dtype=np.int8), flat, start), shape=shape)
    label_of = maximum_bipartite_matching(graph, perm_type="column")
    alone = np.flatnonzero(label_of < 0)
    if not len(alone):
        return
    crowd, between = _hall_set(int(alone[0]), labels, label_of)
    called = ", ".join(str(names[k]) for k in crowd)
    raise InfeasibleModel(
        f"no labelling has finite cost: variables {called} must have different labels, but "
        f"the {len(crowd)} variables have only {between} allowed labels together",
        variables[crowd[0]],
    )


def _hall_set(
    first: int, labels: list[NDArray[np.int64]], label_of: NDArray[np.int32]
) -> tuple[list[int], int]:
    """Variables with fewer labels than there are of them, from one that no matching serves."""
    owner = {int(label): k for k, label in enumerate(label_of.tolist()) if label >= 0}
    crowd, reached, front = {first}, set(), [first]
    while front:
        for label in labels[front.pop()].tolist():
            if label not in reached:  # a maximum matching gives it to somebody
                reached.add(label)
                if owner[label] not in crowd:
                    crowd.add(owner[label])
                    front.append(owner[label])
    return sorted(crowd), len(reached)
