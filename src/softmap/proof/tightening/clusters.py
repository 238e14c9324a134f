"""Selection of clusters: short cycles, scored by the increase of the bound that they guarantee."""

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


@dataclass(frozen=True)
class ClusterLimits:
    """Limits on the number of cycles that are scored.

    Attributes
    ----------
    cycles : int
        Largest number of cycles of each length that are scored at a time.
    entries : int
        Largest number of joint states of three variables that are scored at a time.
    faces : float
        All cycles of length 3 and 4 are added if there are at most this many per edge; planar
        graphs have fewer.
    tiny : float
        Lower bound that marginals are clipped to before taking logarithms.
    work : int
        Number of joint states of three variables that are scored between two checks of the time.
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
    """An undirected simple graph: sorted codes of its edges, and neighbours by row."""

    n: int
    code: Ints  # ascending i * n + j with i < j
    start: Ints
    neighbour: Ints

    @classmethod
    def of(cls, pairs: Ints, n: int) -> Adjacency:
        """Make the graph from distinct pairs (i, j) with i < j."""
        code = np.sort(pairs[:, 0] * np.int64(n) + pairs[:, 1])
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        start = np.searchsorted(ends[order, 0], np.arange(n + 1))
        return cls(n, code, start, ends[order, 1])

    def find(self, i: Ints, j: Ints) -> Ints:
        """Return the index of each pair in `code`; -1 if it is not in the graph."""
        code = np.minimum(i, j) * np.int64(self.n) + np.maximum(i, j)
        if not len(self.code):
            return np.full(code.shape, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.code, code), len(self.code) - 1)
        return np.where(self.code[at] == code, at, -1)

    def adjacent(self, i: Ints, j: Ints) -> Bools:
        """Whether each pair is in the graph."""
        return np.asarray(self.find(i, j) >= 0)


def short_cycles(graph: Adjacency, longest: int = 6, limit: int = 2_000_000) -> list[Ints]:
    """Return the chordless cycles of 3 to `longest` (at most 6) variables.

    The result has one array (count, length) per length; a row lists the variables in the order of
    the cycle. Of the paths of a length, and of the pairs of paths that may form a cycle, only the
    first `limit` are examined.
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
    """Enumerate the continuations of items: the item, and the rank within it, of each one.

    `counts` is the number of continuations of each item.
    """
    item = np.repeat(np.arange(len(counts)), counts)
    return item, np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)


def _affordable(counts: Ints, limit: int) -> Ints:
    """Return the counts with 0 for all items after their sum has reached the limit."""
    return np.where(np.cumsum(counts) <= limit, counts, 0)


def _paths_of_two(graph: Adjacency, limit: int) -> Ints:
    """Return the paths (u, a, v) with u < v."""
    degree = np.diff(graph.start)
    middle, place = _spread(_affordable(degree * degree, 2 * limit))
    u = graph.neighbour[graph.start[middle] + place // degree[middle]]
    v = graph.neighbour[graph.start[middle] + place % degree[middle]]
    return np.stack([u, middle, v], axis=1)[u < v]


def _triangles(graph: Adjacency, two: Ints) -> Ints:
    low = two[two[:, 1] < two[:, 0]]
    return low[graph.adjacent(low[:, 0], low[:, 2])]


def _keyed(paths: Ints, n: int) -> tuple[Ints, Ints]:
    """Return the paths sorted by their two endpoints, and the sort keys."""
    key = paths[:, 0] * np.int64(n) + paths[:, -1]
    order = np.argsort(key, kind="stable")
    return paths[order], key[order]


def _squares(graph: Adjacency, two: Ints, limit: int) -> Ints:
    """Return cycles of length 4: two paths between the same endpoints, one the smallest vertex."""
    paths, key = _keyed(two, graph.n)
    last = np.searchsorted(key, key, side="right")
    left, place = _spread(_affordable(last - np.arange(len(key)) - 1, limit))
    right = left + 1 + place
    cycle = np.column_stack([paths[left], paths[right, 1]])
    fine = (cycle[:, 0] < np.minimum(cycle[:, 1], cycle[:, 3])) & (cycle[:, 0] < cycle[:, 2])
    cycle = cycle[fine]
    return cycle[~graph.adjacent(cycle[:, 1], cycle[:, 3])]


def _extend(graph: Adjacency, two: Ints, limit: int) -> Ints:
    """Return the chordless paths of three edges (u, a, b, v) with u < v."""
    both = np.concatenate([two, two[:, ::-1]])
    degree = np.diff(graph.start)
    item, place = _spread(_affordable(degree[both[:, 2]], limit))
    new = graph.neighbour[graph.start[both[item, 2]] + place]
    paths = np.column_stack([both[item], new])
    paths = paths[(new != paths[:, 1]) & (paths[:, 0] < new)]
    chord = graph.adjacent(paths[:, 0], paths[:, 3]) | graph.adjacent(paths[:, 1], paths[:, 3])
    return paths[~chord]


def _joined(graph: Adjacency, left: Ints, right: Ints, limit: int) -> Ints:
    """Return the chordless cycles made of two paths with the same endpoints, each once."""
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
    # a set of vertices has at most one chordless cycle
    once = np.unique(np.sort(cycle, axis=1), axis=0, return_index=True)[1]
    return np.asarray(cycle[np.sort(once)])


@dataclass(frozen=True)
class Limits:
    """Limits on the size of clusters.

    Attributes
    ----------
    states : int
        Largest number of joint states of all regions together.
    cluster : int
        Largest number of joint states of one cluster.
    whole : int
        Cycles with at most this many joint states are not split into triangles.
    labels : int
        Variables with more labels are in no cluster.
    union : int
        Largest number of joint states of the union of two clusters, which are added when no cycle
        is left.
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
    """Return new clusters: at most about `batch` cycles whose gain exceeds `least`.

    Cycles are ranked by their gain divided by the square of their number of triangles. The first
    batch adds all cycles of up to four variables, whatever their gain, if they are few (as the
    faces of a grid are), because one face makes others gain. Later batches search for short cycles
    in the graph of edges and chords.

    Parameters
    ----------
    tight : Tightened
        The model with the clusters so far.
    costs : PairCosts
        Reparametrised costs of pairs.
    limits : Limits
    least : float
        Smallest gain, in units of cost.
    batch : int
        Approximate number of cycles.
    deadline : float
        Time of `time.perf_counter` at which scoring stops.
    threads : int
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
    """Return the cycles whose triangles all have few enough joint states."""
    labels = np.sort(tight.base.num_labels[cycles], axis=1).astype(np.int64)
    largest = labels[:, 0] * labels[:, -1] * labels[:, -2]
    whole = labels.prod(axis=1) <= limits.whole
    return cycles[whole | (largest <= limits.cluster)]


def _best_within(
    tight: Tightened, found: list[Ints], scores: list[Floats], limits: Limits, batch: int
) -> tuple[Scope, ...]:  # fmt: skip
    """Return the cycles of largest score, as clusters, within the limits."""
    labels = tight.base.num_labels
    kind = np.repeat(np.arange(len(found)), [len(part) for part in found])
    place = np.concatenate([np.arange(len(part)) for part in found])
    score = np.concatenate(scores)
    fine = np.flatnonzero(score > 0)
    # Rank more cycles than wanted: some are clusters already.
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
    """Return the unions of two clusters that share a pair of variables (adjacent faces of a grid).

    The result is empty if there are more than `most` unions, because a few of them gain little.
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
    """The reparametrised costs of all pairs of variables with an edge or a region, for one λ.

    Attributes
    ----------
    graph : Adjacency
        The pairs.
    tables : float64[pairs, D, D]
        Costs in the order of `graph.code`; rows belong to the first variable. D is the largest
        number of labels; entries beyond the labels of a variable are +inf.
    """

    graph: Adjacency
    tables: Floats


def pair_costs(tight: Tightened, lam: Floats, most_labels: int = 64) -> PairCosts:
    """Return the reparametrised costs of edges and pair regions at λ.

    The reparametrised cost of each variable is divided equally among its pairs. The minima of these
    costs add up to at least the bound of λ, minus the minima of all other nodes. Pairs with a
    variable of more than `most_labels` labels are left out.
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
    """Return -log μ_ij / η of edges and pair regions (up to constants), from marginals at η.

    Marginals overlap in variables, so that gains computed from them are not guaranteed. If the LP
    is degenerate, they rank cycles whose guaranteed gains are all nearly 0 (decision 12).
    """
    graph, tables = _pairs_of(tight, most_labels)
    _add_shares(tight, np.zeros(len(nodes)), graph, tables)
    _add_regions(tight, -np.log(np.maximum(nodes, SEARCHED.tiny)) / eta, graph, tables)
    _add_edges(tight, coupling, graph, tables)
    return PairCosts(graph, tables)


def _pairs_of(tight: Tightened, most_labels: int) -> tuple[Adjacency, Floats]:
    """Return the graph of edges and pair regions, and an array for their tables."""
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
    """Add θ_i / (number of edges and regions at i) to each pair of variable i."""
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
            break  # the coupling edges of regions come last
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
    """Return the guaranteed increase of the bound for each cycle (a row of variables).

    It is the minimum of the joint cost of the cycle's pairs minus the sum of their minima (Sontag
    et al. 2008), computed by dynamic programming around the cycle. It is +inf if no labelling of
    the cycle is feasible, and 0 for cycles not scored before the deadline (of
    `time.perf_counter`).
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
    """Yield the clusters of a cycle: the cycle itself if it has few joint states, else triangles.

    All triangles share a variable with the fewest labels, which keeps them and the chords small.
    """
    labels = num_labels[list(cycle)]
    if len(cycle) == 3 or int(labels.prod()) <= whole:
        yield tuple(sorted(cycle))
        return
    hub = int(np.argmin(labels))
    rest = cycle[hub + 1 :] + cycle[:hub]
    for i, j in pairwise(rest):
        yield tuple(sorted((cycle[hub], i, j)))
