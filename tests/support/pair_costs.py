"""Reparametrised costs of pairs, whose gains are guaranteed, unlike those by beliefs."""

from __future__ import annotations

import numpy as np

from softmap.relaxation.dual import Floats, reduced_unary
from softmap.subsolvers.clusters.clusters import PairCosts, add_edges, add_regions, empty_tables
from softmap.subsolvers.clusters.regions import Tightened


def pair_costs(tight: Tightened, lam: Floats, most_labels: int = 64) -> PairCosts:
    """The reparametrised costs of edges and pair regions at λ.

    The reparametrised cost of each variable is divided equally among its pairs. The minima of these
    costs add up to at least the bound of λ, minus the minima of all other nodes.
    """
    graph, tables = empty_tables(tight, most_labels)
    reduced, degree = reduced_unary(tight.model, lam), np.maximum(tight.model.graph.degree, 1)
    for table, code in zip(tables, graph.code.tolist(), strict=True):
        first, second = (
            reduced[tight.model.node_slice(i)] / degree[i] for i in divmod(code, graph.n)
        )
        table[: len(first), : len(second)] += first[:, None] + second
    add_regions(tight, reduced, graph, tables)
    add_edges(tight, lam, graph, tables)
    return PairCosts(graph, tables)
