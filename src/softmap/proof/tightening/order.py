"""The order in which passes go through variables and regions."""

from __future__ import annotations

import numpy as np

from softmap.model import Model
from softmap.model.potentials.base import Ints
from softmap.proof.tightening.regions import Tightened

__all__ = ["arrange", "region_order"]


def region_order(tight: Tightened) -> Ints:
    """Nodes by their least variable, then by how many variables they have.

    So a pass goes from variable i to its pairs (i, j), from there to clusters, on to the pairs
    (j, k) in them and to k: chains are long. With all regions after all variables they would have
    three nodes at most.
    """
    aux, n = tight.model.auxiliaries, tight.model.num_variables
    arity = np.concatenate([np.ones(n, dtype=np.int64), np.diff(aux.start)])
    least = np.arange(n)
    if len(aux):
        least = np.concatenate([least, np.minimum.reduceat(aux.member, aux.start[:-1])])
    return np.lexsort((np.arange(tight.model.n), arity, least))


def arrange(tight: Tightened) -> tuple[Model, Ints]:
    """The tightened model in that order, and where its node states lie in the new one.

    Edges stay as they are, so λ is the same for both.
    """
    order = region_order(tight)
    model = tight.arranged(order)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    labels = tight.model.num_labels
    shift = model.node_offset[:-1][place] - tight.model.node_offset[:-1]
    return model, np.repeat(shift, labels) + np.arange(len(tight.model.unary))
