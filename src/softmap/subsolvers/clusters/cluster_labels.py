"""Decoding of labels from tightened marginals: rounding, and maximum-information trees."""

from __future__ import annotations

import numpy as np

from softmap import labels as decoding
from softmap.model.graph import spanning_forest
from softmap.model.inputs import FlatUnary
from softmap.model.network import Network
from softmap.model.potentials import Tables
from softmap.model.potentials.base import Ints
from softmap.relaxation.dual import Floats
from softmap.subsolvers.clusters.regions import Tightened, blocks


def candidates(tight: Tightened, nodes: Floats) -> list[Ints]:
    """Return labellings of the base model for node marginals of the tightened model."""
    rounded = decoding.round_nodes(tight.base, nodes[: tight.base.unary.size])
    found = [rounded]
    if len(tight.pairs):
        found.append(tree_labels(tight, nodes, rounded))
    return found


def tree_labels(tight: Tightened, nodes: Floats, start: Ints) -> Ints:
    """Return the mode of the Chow-Liu tree: the pair regions of largest mutual information.

    Pairs can be decided although single variables are not (for example, if a symmetry flips all
    labels of a domain). Variables in no pair region keep their label of `start`.
    """
    base, n = tight.base, tight.base.num_variables
    nodes = nodes[: int(tight.model.node_offset[tight.first_cluster])]
    logs = np.log(np.maximum(nodes, 1e-30))
    terms = np.add.reduceat(nodes * logs, tight.model.node_offset[: tight.first_cluster])
    single, joint = terms[tight.pairs].sum(axis=1), terms[tight.first_pair :]
    chosen = spanning_forest(n, tight.pairs, single - joint)  # minus the mutual information
    pairs = tight.pairs[chosen]
    degree = np.bincount(pairs.ravel(), minlength=n)
    unary = logs[: int(base.node_offset[n])] * np.repeat(degree - 1, base.num_labels[:n])
    model = Network(
        FlatUnary(unary, base.num_labels[:n]), pairs, Tables(_pair_tables(tight, -logs, chosen))
    )
    found = decoding.forests(model, start, rounds=1)
    return np.where(degree > 0, found, start)


def _pair_tables(tight: Tightened, values: Floats, which: Ints) -> Floats | list[Floats]:
    model = tight.model
    labels = model.num_labels[tight.pairs[which]]
    if (labels == labels[0]).all():
        rows, cols = labels[0].tolist()
        at = blocks(model.node_offset, tight.first_pair + which, rows * cols)
        return values[at].reshape(-1, rows, cols)
    return [
        values[model.node_slice(tight.first_pair + int(p))].reshape(rows, cols)
        for p, (rows, cols) in zip(which, labels.tolist(), strict=True)
    ]
