"""Whether the labels of all variables of a model differ: then it is a permutation.

Runs ask this of every model with hard constraints. What searches for permutations is in
`softmap.labels.permutations`, which is imported only if the answer is yes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softmap.model import Network
from softmap.model.many import AllDifferent
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.flat import lower_tables

__all__ = ["inner_tables", "shared_labels"]


def shared_labels(model: Network, given: Network) -> list[int] | None:
    """Return the label that several variables may have, in a list, which is empty if all differ.

    The other labels must differ, by forbidden pairs or an `AllDifferent`; None if they need not.
    A label that may be shared is the "unassigned" of a partial matching.

    Factors of more variables or chain variables are left out; their costs must be at least 0.

    Parameters
    ----------
    model : Network
        The model to solve.
    given : Network
        The model that it was made from, which knows the `AllDifferent`.
    """
    n = len(model.visible_counts)
    if not model.has_forbidden or not model.m or n < 3 or model.num_labels[:n].min() < 3:
        return None
    inner = model.inner_edges
    required = (f for f in given.required if isinstance(f, AllDifferent))
    different = any(len(set(factor.variables)) == n for factor in required)
    if not len(inner) or (not different and len(inner) != n * (n - 1) // 2):
        return None
    pairs = np.sort(model.edges[inner].astype(np.int64), axis=1) @ (n, 1)
    if len(set(pairs.tolist())) < len(inner) or (model.n > n and not _harmless(model)):
        return None
    shared = [] if different else _shared(model, inner)
    return None if shared == [] and n > model.num_labels[:n].min() else shared


def _harmless(model: Network) -> bool:
    """Whether all costs beside those of visible variables and their edges are at least 0."""
    low = model.extremes()[0]
    outer = np.delete(low[model.n :], model.inner_edges)
    nodes, edges = low[len(model.visible_counts) : model.n], outer
    return bool((nodes >= 0).all() and (edges >= 0).all())


def _shared(model: Network, inner: Ints) -> list[int] | None:
    """The label that variables may share, if there is one; None if there are more."""
    shared: set[int] = set()
    for first, last, potential in model.groups():
        for e in inner[(inner >= first) & (inner < last)].tolist():
            i, j = model.edges[e].tolist()
            label = np.arange(int(min(model.num_labels[i], model.num_labels[j])))
            costs = potential.value(e - first, label, label)
            for node in (i, j):
                costs = costs + model.unary[model.node_slice(node)][: len(label)]
            shared.update(np.flatnonzero(~np.isposinf(costs)).tolist())
            if len(shared) > 1:
                return None
    return [*shared]


def inner_tables(model: Network, inner: Ints) -> Iterator[tuple[list[int], Costs]]:
    """Yield the endpoints and the table of each edge, rounded down."""
    ends = model.edges[inner].astype(np.int64)
    shapes = model.num_labels[ends]
    flat = np.split(lower_tables(model, inner), np.cumsum(shapes.prod(axis=1))[:-1])
    for pair, table, shape in zip(ends.tolist(), flat, shapes.tolist(), strict=True):
        yield pair, table.reshape(shape)
