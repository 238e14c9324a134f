"""Which clusters to add: short cycles, scored by the increase of the bound they guarantee."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model.potentials.base import Ints
from softmap.proof.tightening.regions import Scope, Tightened, blocks, pair_codes
from softmap.relaxation.dual import Floats, edge_batches, reduced_unary

__all__ = [
    "Adjacency",
    "Limits",
    "PairCosts",
    "belief_costs",
    "cluster_scopes",
    "cycle_gains",
    "pair_costs",
    "select",
    "short_cycles",
    "unions",
]


@dataclass(frozen=True)
class ClusterLimits:
    """How many cycles are looked at, and in what pieces.

    Attributes
    ----------
    cycles : int
        Cycles of each length, looked at in one batch.
    entries : int
        Joint states of three variables in one batch, if those are fewer.
    faces : float
        Short cycles (3 or 4) per edge up to which all are taken: planar graphs have fewer.
    tiny : float
        Marginals below count as this.
    work : int
        Joint states of three variables between two looks at the clock.
    """

    cycles: int = 300_000
    entries: int = 1_000_000_000
    faces: float = 2.0
    tiny: float = 1e-30
    work: int = 1 << 24


SEARCHED = ClusterLimits()


Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Adjacency:
    """An undirected simple graph: sorted codes of its pairs, and neighbours by row."""

    n: int
    code: Ints  # ascending i * n + j with i < j
    start: Ints
    neighbour: Ints

    @classmethod
    def of(cls, pairs: Ints, n: int) -> Adjacency:
        """From distinct pairs (i, j) with i < j."""
        code = np.sort(pairs[:, 0] * np.int64(n) + pairs[:, 1])
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        start = np.searchsorted(ends[order, 0], np.arange(n + 1))
        return cls(n, code, start, ends[order, 1])

    def find(self, i: Ints, j: Ints) -> Ints:
        """The place of each pair in `code`; -1 where there is none."""
        code = np.minimum(i, j) * np.int64(self.n) + np.maximum(i, j)
        if not len(self.code):
            return np.full(code.shape, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.code, code), len(self.code) - 1)
        return np.where(self.code[at] == code, at, -1)

    def adjacent(self, i: Ints, j: Ints) -> Bools:
        """Whether each pair is in the graph."""
        return np.asarray(self.find(i, j) >= 0)


def short_cycles(graph: Adjacency, longest: int = 6, limit: int = 2_000_000) -> list[Ints]:
    """Chordless cycles of 3 to `longest` (at most 6) variables: one (count, length) array each.

    Vertices in the order of the cycle. Lengths whose paths or joins number more than `limit` are
    cut: of their joins, only the first `limit` are looked at.
    """
    two = _paths_of_two(graph, limit)
    found = [_triangles(graph, two)]
    open_two = two[~graph.adjacent(two[:, 0], two[:, 2])]
    if longest >= 4:
        found.append(_squares(graph, open_two, limit))
    if longest >= 5:
        three = _extend(graph, open_two, limit)
        found.append(_joined(graph, open_two, three, limit))
        if longest >= 6:
            found.append(_joined(graph, three, three, limit))
    return found


def _spread(counts: Ints) -> tuple[Ints, Ints]:
    """For items with so many continuations each: the item and the number of each continuation."""
    item = np.repeat(np.arange(len(counts)), counts)
    return item, np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)


def _affordable(counts: Ints, limit: int) -> Ints:
    """The counts, with 0 for all that come after the limit is reached."""
    return np.where(np.cumsum(counts) <= limit, counts, 0)


def _paths_of_two(graph: Adjacency, limit: int) -> Ints:
    """(u, a, v) with u < v, both neighbours of a."""
    degree = np.diff(graph.start)
    middle, place = _spread(_affordable(degree * degree, 2 * limit))
    u = graph.neighbour[graph.start[middle] + place // degree[middle]]
    v = graph.neighbour[graph.start[middle] + place % degree[middle]]
    return np.stack([u, middle, v], axis=1)[u < v]


def _triangles(graph: Adjacency, two: Ints) -> Ints:
    low = two[two[:, 1] < two[:, 0]]
    return low[graph.adjacent(low[:, 0], low[:, 2])]


def _keyed(paths: Ints, n: int) -> tuple[Ints, Ints]:
    """Paths sorted by their two ends, and the keys."""
    key = paths[:, 0] * np.int64(n) + paths[:, -1]
    order = np.argsort(key, kind="stable")
    return paths[order], key[order]


def _squares(graph: Adjacency, two: Ints, limit: int) -> Ints:
    """Two paths between the same ends; the least vertex is an end."""
    paths, key = _keyed(two, graph.n)
    last = np.searchsorted(key, key, side="right")
    left, place = _spread(_affordable(last - np.arange(len(key)) - 1, limit))
    right = left + 1 + place
    cycle = np.column_stack([paths[left], paths[right, 1]])
    fine = (cycle[:, 0] < np.minimum(cycle[:, 1], cycle[:, 3])) & (cycle[:, 0] < cycle[:, 2])
    cycle = cycle[fine]
    return cycle[~graph.adjacent(cycle[:, 1], cycle[:, 3])]


def _extend(graph: Adjacency, two: Ints, limit: int) -> Ints:
    """Chordless paths of three edges (u, a, b, v) with u < v."""
    both = np.concatenate([two, two[:, ::-1]])
    degree = np.diff(graph.start)
    item, place = _spread(_affordable(degree[both[:, 2]], limit))
    new = graph.neighbour[graph.start[both[item, 2]] + place]
    paths = np.column_stack([both[item], new])
    paths = paths[(new != paths[:, 1]) & (paths[:, 0] < new)]
    chord = graph.adjacent(paths[:, 0], paths[:, 3]) | graph.adjacent(paths[:, 1], paths[:, 3])
    return paths[~chord]


def _joined(graph: Adjacency, left: Ints, right: Ints, limit: int) -> Ints:
    """Chordless cycles made of two paths with the same ends, each once."""
    a, key_a = _keyed(left, graph.n)
    b, key_b = _keyed(right, graph.n)
    first, last = np.searchsorted(key_b, key_a), np.searchsorted(key_b, key_a, side="right")
    item, place = _spread(_affordable(last - first, limit))
    back = b[first[item] + place]
    cycle = np.column_stack([a[item], back[:, -2:0:-1]])
    length = cycle.shape[1]
    fine = np.ones(len(cycle), dtype=bool)
    for s, t in combinations(range(length), 2):
        if t - s not in (1, length - 1):
            i, j = cycle[fine, s], cycle[fine, t]
            fine[fine] = (i != j) & ~graph.adjacent(i, j)
    cycle = cycle[fine]
    # a chordless cycle is known by its vertices
    once = np.unique(np.sort(cycle, axis=1), axis=0, return_index=True)[1]
    return np.asarray(cycle[np.sort(once)])


@dataclass(frozen=True)
class Limits:
    """What clusters may cost.

    Attributes
    ----------
    states : joint states of all regions together
    cluster : joint states of one cluster
    whole : cycles of up to so many joint states are not cut into triangles
    labels : variables with more labels take no part
    union : joint states of two clusters made one, when no cycle is left
    """

    states: int = 4_000_000
    cluster: int = 4096
    whole: int = 16
    labels: int = 64
    union: int = 64


def select(
    tight: Tightened, costs: PairCosts, limits: Limits, least: float, batch: int,
    *, deadline: float = math.inf, threads: int = 1,
) -> tuple[Scope, ...]:  # fmt: skip
    """New clusters, at most about `batch` cycles, whose gains are above `least`.

    Cycles are ranked by their gain over the square of the triangles they take. The first batch
    takes all cycles of up to four variables, gain or not, where they are few, as the faces of a
    grid are: one face frees the next. Later ones look for short cycles among edges and chords
    together.
    """
    first = not tight.clusters
    most = min(SEARCHED.cycles, SEARCHED.entries // costs.tables.shape[1] ** 3)
    found = short_cycles(costs.graph, 6 if first else 4, SEARCHED.cycles)
    found = [_small(tight, cycles, limits)[:most] for cycles in found]
    faces = sum(len(c) for c in found[:2])
    whole = first and faces <= SEARCHED.faces * max(1, len(costs.graph.code))
    gains = [cycle_gains(costs, c, deadline=deadline, threads=threads) for c in found]
    size = [(c.shape[1] - 2) ** 2 for c in found]
    scores = [np.where(g > least, g, 0.0) / k for g, k in zip(gains, size, strict=True)]
    if whole:
        scores[:2] = [s + np.inf for s in scores[:2]]
    return _best_within(tight, found, scores, limits, max(batch, faces if whole else 0))


def _small(tight: Tightened, cycles: Ints, limits: Limits) -> Ints:
    """Cycles of which no triangle has too many joint states."""
    labels = np.sort(tight.base.num_labels[cycles], axis=1).astype(np.int64)
    largest = labels[:, 0] * labels[:, -1] * labels[:, -2]
    whole = labels.prod(axis=1) <= limits.whole
    return cycles[whole | (largest <= limits.cluster)]


def _best_within(
    tight: Tightened, found: list[Ints], scores: list[Floats], limits: Limits, batch: int
) -> tuple[Scope, ...]:  # fmt: skip
    """The cycles of greatest score, as clusters, within the limits."""
    labels = tight.base.num_labels
    kind = np.repeat(np.arange(len(found)), [len(part) for part in found])
    place = np.concatenate([np.arange(len(part)) for part in found])
    score = np.concatenate(scores)
    fine = np.flatnonzero(score > 0)
    # some will turn out to be there already, so more are ranked than wanted
    ranked = fine[np.argsort(-score[fine], kind="stable")][: 4 * batch]
    left = limits.states - int((tight.model.num_labels[tight.base.n :]).sum())
    have, chosen, cycles = set(tight.clusters), {}, 0
    for r in ranked:
        cycle = tuple(found[kind[r]][place[r]].tolist())
        scopes = list(cluster_scopes(cycle, labels, limits.whole))
        sizes = [int(labels[list(scope)].prod()) for scope in scopes]
        fresh = [s for s in scopes if s not in have and s not in chosen]
        if max(sizes) > limits.cluster or not fresh:
            continue
        left -= sum(sizes)
        if left < 0 or cycles >= batch:
            break
        cycles += 1
        chosen.update(dict.fromkeys(fresh))
    return tuple(chosen)


def unions(tight: Tightened, limits: Limits, most: int) -> tuple[Scope, ...]:
    """Two clusters that share a pair of variables, made one: neighbouring faces of a grid.

    None at all where there would be more than `most`, as a few of them gain little.
    """
    first = tight.first_cluster
    sharing: dict[int, list[Scope]] = {}
    for upper, lower in zip(tight.upper.tolist(), tight.lower.tolist(), strict=True):
        if upper >= first and lower >= tight.first_pair:
            sharing.setdefault(lower, []).append(tight.clusters[upper - first])
    labels, chosen = tight.base.num_labels, {}
    left = limits.states - int((tight.model.num_labels[tight.base.n :]).sum())
    for clusters in sharing.values():
        for a, b in combinations(clusters, 2):
            scope = tuple(sorted({*a, *b}))
            size = int(labels[list(scope)].prod())
            if size <= limits.union and scope not in tight.cluster_number and scope not in chosen:
                chosen[scope] = size
        if len(chosen) > most or sum(chosen.values()) > left:
            return ()
    return tuple(chosen)


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
    _add_regions(tight, -np.log(np.maximum(nodes, SEARCHED.tiny)) / eta, graph, tables)
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
    step = max(1, SEARCHED.work // costs.tables.shape[1] ** 3)
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
