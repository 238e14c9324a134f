"""Which clusters to add: short cycles, scored by the increase of the bound they guarantee."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from softmap import core
from softmap.model.potentials.base import Ints
from softmap.proof.tightening.cycles import Adjacency
from softmap.proof.tightening.regions import Scope, Tightened, blocks, pair_codes
from softmap.relaxation.dual import Floats, edge_batches, reduced_unary

__all__ = ["PairCosts", "belief_costs", "cluster_scopes", "cycle_gains", "pair_costs"]

TINY = 1e-30  # marginals below count as this
WORK = 1 << 24  # joint states of three variables between two looks at the clock


@dataclass(frozen=True)
class PairCosts:
    """Reparametrised costs of all pairs of variables that have any, for one λ.

    Attributes
    ----------
    graph : the pairs, as neighbours
    tables : (pairs, D, D) in the order of `graph.code`, first variable by rows
        +inf beyond the labels of a variable. D is the greatest number of labels.
    """

    graph: Adjacency
    tables: Floats


def pair_costs(tight: Tightened, lam: Floats, most_labels: int = 64) -> PairCosts:
    """Costs of pairs at λ: of edges and pair regions, each with a share of its variables' costs.

    The minima of these costs add up to the bound of λ or more, less what other nodes hold. Pairs
    with a variable of more than `most_labels` labels are left out.
    """
    graph, tables = _pairs_of(tight, most_labels)
    reduced = reduced_unary(tight.model, lam)
    _add_shares(tight, reduced, graph, tables)
    _add_regions(tight, reduced, graph, tables)
    _add_edges(tight, lam, graph, tables)
    return PairCosts(graph, tables)


def belief_costs(
    tight: Tightened, nodes: Floats, coupling: Floats, eta: float, most_labels: int = 64
) -> PairCosts:
    """-log μ_ij / η of edges and pair regions (up to constants), from the marginals of a run at η.

    These overlap, so gains computed from them guarantee nothing; but where the LP is degenerate,
    they tell cycles apart for which the guaranteed gain is next to nothing (decision 12).
    """
    graph, tables = _pairs_of(tight, most_labels)
    _add_shares(tight, np.zeros(len(nodes)), graph, tables)
    _add_regions(tight, -np.log(np.maximum(nodes, TINY)) / eta, graph, tables)
    _add_edges(tight, coupling, graph, tables)
    return PairCosts(graph, tables)


def _pairs_of(tight: Tightened, most_labels: int) -> tuple[Adjacency, Floats]:
    """The graph of edges between variables and of pair regions, and room for their tables."""
    model, n = tight.model, tight.base.num_variables
    ordinary = model.edges[: len(tight.kept)].astype(np.int64)
    edges = np.flatnonzero(ordinary.max(axis=1, initial=0) < n)
    ends = np.concatenate([np.sort(ordinary[edges], axis=1), tight.pairs])
    small = (model.num_labels[ends] <= most_labels).all(axis=1)
    code = np.unique(pair_codes(ends[small], n))
    pairs = np.stack(np.divmod(code, n), axis=1)
    width = int(model.num_labels[pairs].max(initial=1))
    return Adjacency.of(pairs, n), np.full((len(pairs), width, width), np.inf)


def _add_shares(tight: Tightened, reduced: Floats, graph: Adjacency, tables: Floats) -> None:
    """θ_i over the number of edges and regions at i, to each pair."""
    model, n = tight.model, tight.base.num_variables
    labels, width = model.num_labels, tables.shape[1]
    padded = np.full((n, width), np.inf)
    x = np.arange(width)
    inside = (x < labels[:n, None]) & (labels[:n, None] <= width)
    padded[inside] = reduced[(model.node_offset[:n, None] + x)[inside]]
    padded /= np.maximum(model.graph.degree[:n], 1)[:, None]
    i, j = np.divmod(graph.code, n)
    tables[:] = padded[i][:, :, None] + padded[j][:, None, :]


def _add_regions(tight: Tightened, reduced: Floats, graph: Adjacency, tables: Floats) -> None:
    labels = tight.model.num_labels[tight.pairs]
    place = graph.find(tight.pairs[:, 0], tight.pairs[:, 1])
    for rows, cols in np.unique(labels, axis=0).tolist():
        some = np.flatnonzero((labels == (rows, cols)).all(axis=1) & (place >= 0))
        at = blocks(tight.model.node_offset, tight.first_pair + some, rows * cols)
        tables[place[some], :rows, :cols] += reduced[at].reshape(len(some), rows, cols)


def _add_edges(tight: Tightened, lam: Floats, graph: Adjacency, tables: Floats) -> None:
    model, n = tight.model, tight.base.num_variables
    for batch in edge_batches(model):
        if batch.edges[0] >= len(tight.kept):
            break  # ties come last
        i, j = model.edges[batch.edges].astype(np.int64).T
        place = np.where(np.maximum(i, j) < n, graph.find(i, j), -1)
        cost, turned = batch.reduced(lam), i > j
        for flip in (False, True):
            some = np.flatnonzero((place >= 0) & (turned == flip))
            if not len(some):
                continue
            values = cost[some].transpose(0, 2, 1) if flip else cost[some]
            x, y = np.arange(values.shape[1])[:, None], np.arange(values.shape[2])
            flat = (place[some][:, None, None] * tables.shape[1] + x) * tables.shape[2] + y
            np.add.at(tables.reshape(-1), flat, values)


def cycle_gains(
    costs: PairCosts, cycles: Ints, *, deadline: float = math.inf, threads: int = 1
) -> Floats:
    """The guaranteed increase of the bound by each cycle (rows of variables).

    The least joint cost of its pairs minus the sum of their least costs (Sontag et al. 2008), by
    dynamic programming around the cycle. +inf where the cycle allows no labelling, 0 for those not
    looked at before the deadline (of `time.perf_counter`).
    """
    gains = np.zeros(len(cycles))
    step = max(1, WORK // costs.tables.shape[1] ** 3)
    for at in range(0, len(cycles), step):
        if time.perf_counter() > deadline:
            break
        i = np.ascontiguousarray(cycles[at : at + step])
        j = np.roll(i, -1, axis=1)
        core.cycle_gains(
            costs.tables, costs.graph.find(i, j), i > j, gains[at : at + step], threads
        )
    return gains


def cluster_scopes(cycle: Scope, num_labels: Ints, whole: int) -> Iterator[Scope]:
    """The clusters that stand for a cycle: itself if it has few joint states, else triangles.

    Triangles share a variable of the fewest labels, so that chords and triangles stay small.
    """
    labels = num_labels[list(cycle)]
    if len(cycle) == 3 or int(labels.prod()) <= whole:
        yield tuple(sorted(cycle))
        return
    hub = int(np.argmin(labels))
    rest = cycle[hub + 1 :] + cycle[:hub]
    for i, j in pairwise(rest):
        yield tuple(sorted((cycle[hub], i, j)))
