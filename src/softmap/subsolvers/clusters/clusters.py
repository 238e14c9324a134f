"""Selection of clusters: short cycles, scored by the increase of the bound that they guarantee."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from softmap import core
from softmap.model.inputs import places_in, within
from softmap.model.potentials.base import Ints, offsets
from softmap.model.structure import unique_rows
from softmap.relaxation.dual import Floats
from softmap.subsolvers.clusters.cluster_numbers import ClusterSizes
from softmap.subsolvers.clusters.regions import Tightened, blocks, pair_codes
from softmap.subsolvers.clusters.scopes import Scopes

# Sizes of the steps between which the deadline is read; no outcome depends on them.
JOINT = 1 << 24  # joint states of three variables
PATHS = 1 << 19  # paths of two and three edges
RANKED = 10_000  # cycles that are sorted together


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
        order = np.argsort(ends[:, 0] * np.int64(n) + ends[:, 1])
        start = np.searchsorted(ends[order, 0], np.arange(n + 1))
        return cls(n, code, start, ends[order, 1])

    def find(self, i: Ints, j: Ints) -> Ints:
        """Return the index of each pair in `code`; -1 if it is not in the graph."""
        code = np.minimum(i, j) * np.int64(self.n) + np.maximum(i, j)
        return places_in(self.code, code)


def short_cycles(
    graph: Adjacency,
    longest: int = 6,
    *,
    limits: ClusterSizes,
    threads: int = 1,
    deadline: core.Deadline | None = None,
) -> Generator[None, None, list[Ints]]:
    """Return the chordless cycles of 3 to `longest` (at most 6) variables. Yields between steps.

    The result has one array (count, length) per length; a row lists the variables in the order of
    the cycle, the smallest first.

    Parameters
    ----------
    graph : Adjacency
    longest : int, default 6
        Largest length of a cycle.
    limits : ClusterSizes
        `paths` is the largest number of paths that are searched per smallest variable and length,
        `pairs` that of pairs of paths.
    threads : int, default 1
    deadline : core.Deadline, optional
        When to stop; the cycles found so far are returned.
    """
    n, start, near = graph.n, graph.start, graph.neighbour
    most, kept = limits.paths, limits.pairs
    found: list[list[Ints]] = [[np.zeros(0, dtype=np.int64)] for _ in range(3, longest + 1)]
    two = _over_neighbours(graph, np.diff(start))
    examined = np.cumsum(two + np.minimum(_over_neighbours(graph, two), most))
    steps = np.arange(PATHS, int(examined[-1]) if n else 0, PATHS)
    ends = [0, *np.unique(np.searchsorted(examined, steps) + 1).tolist(), n]
    for first, last in pairwise(ends):
        if deadline is not None and deadline.passed:
            break
        some = core.short_cycles(start, near, longest, most, kept, first, last, threads, deadline)
        for rows, more in zip(found, some, strict=True):
            rows.append(np.asarray(more))
        yield
    return [np.concatenate(rows).reshape(-1, k) for k, rows in enumerate(found, start=3)]


def _over_neighbours(graph: Adjacency, amount: Ints) -> Ints:
    """Add up an amount over the neighbours of each variable."""
    sums: Ints = np.append(0, np.cumsum(amount[graph.neighbour]))
    return np.diff(sums[graph.start])


def select(
    tight: Tightened,
    costs: PairCosts,
    limits: ClusterSizes,
    least: float,
    *,
    threads: int = 1,
    deadline: core.Deadline | None = None,
) -> Generator[None, None, Scopes]:
    """Choose new clusters: cycles whose gain exceeds `least`. Yields between short steps.

    Cycles are ranked by their gain divided by the square of their number of triangles, and taken
    within `ClusterSizes.states`, and up to as many messages as the model has. The first clusters
    are all cycles of up to four variables, whatever their gain, if they are few (as the faces of a
    grid are), because one face makes others gain.

    Parameters
    ----------
    tight : Tightened
        The model with the clusters so far.
    costs : PairCosts
        Reparametrised costs of pairs.
    limits : ClusterSizes
    least : float
        Smallest gain, in units of cost.
    threads : int, default 1
    deadline : core.Deadline, optional
        When to stop; clusters are then chosen from the cycles found so far.
    """
    most = min(limits.cycles, limits.scored // costs.tables.shape[1] ** 3)
    found: list[Ints] = []
    scores: list[Floats] = []
    for longest in (4, 6):
        cycles = yield from short_cycles(
            costs.graph, longest, limits=limits, threads=threads, deadline=deadline
        )
        cycles = [_small(tight, some, limits) for some in cycles[-2:]]
        yield
        if longest == 4 and not len(tight.scopes) and not (deadline and deadline.passed):
            faces = _faces(tight, costs.graph, cycles, limits)
            if len(faces):
                return faces
        found += [_spread(some, most) for some in cycles]
        for some in found[-2:]:
            gains = yield from _scored(costs, some, threads, deadline)
            scores.append(np.where(gains > least, gains, 0.0) / (some.shape[1] - 2) ** 2)
        ranked = _ranked(found, scores, tight.base.num_variables)
        chosen, all_fit = _within(tight, ranked, limits, 1.0)
        if not all_fit:
            break
    return chosen


def _faces(tight: Tightened, graph: Adjacency, found: list[Ints], limits: ClusterSizes) -> Scopes:
    """Return the clusters of all the cycles found, if these are few; otherwise nothing."""
    # planar graphs have fewer than two cycles of up to four variables per edge
    if sum(map(len, found)) > min(2 * len(graph.code), limits.faces):
        return tight.scopes[:0]
    every = [_padded(found, graph.n)]
    chosen, all_fit = _within(tight, every, limits, math.inf)
    return chosen if all_fit else chosen[:0]


def _spread(rows: Ints, most: int) -> Ints:
    """Return at most `most` rows, evenly spaced."""
    return rows[:: max(1, -(-len(rows) // max(1, most)))]


def _small(tight: Tightened, cycles: Ints, limits: ClusterSizes) -> Ints:
    """Return the cycles whose triangles all have few enough joint states."""
    labels = tight.base.num_labels
    if int(labels.max(initial=0)) ** 3 <= limits.triangle:
        return cycles
    labels = np.sort(labels[cycles], axis=1).astype(np.int64)
    largest = labels[:, 0] * labels[:, -1] * labels[:, -2]
    whole = labels.prod(axis=1) <= limits.whole
    return cycles[whole | (largest <= limits.triangle)]


def _padded(found: Sequence[Ints], n: int) -> Ints:
    """Return cycles of several lengths as rows of one array, filled up with n."""
    widest = max(some.shape[1] for some in found)
    rows = np.full((sum(map(len, found)), widest), n, dtype=np.int64)
    for some, at in zip(found, offsets(np.array([*map(len, found)])).tolist(), strict=False):
        rows[at : at + len(some), : some.shape[1]] = some
    return rows


def _ranked(found: list[Ints], scores: list[Floats], n: int) -> Iterator[Ints]:
    """Yield the cycles of positive score in blocks, the largest score first, filled up with n."""
    rows, score = _padded(found, n), np.concatenate(scores)
    left = np.flatnonzero(score > 0)
    while len(left):
        rest = max(0, len(left) - RANKED)
        least = np.partition(score[left], rest)[rest]
        best = score[left] >= least
        block, left = left[best], left[~best]
        yield rows[block[np.argsort(-score[block], kind="stable")]]


def _within(
    tight: Tightened, cycles: Iterable[Ints], limits: ClusterSizes, growth: float
) -> tuple[Scopes, bool]:
    """Return the new clusters of the first cycles within the limits, and whether these are all.

    Cycles come in blocks, of which only the first ones may be needed.

    A cluster of k variables is coupled to about k pairs: a pass sends k messages of as many entries
    as the cluster has joint states.
    """
    have, labels = tight.scopes, tight.base.num_labels
    states = limits.states - int(tight.model.num_labels[tight.base.n :].sum())
    messages = max(limits.messages, growth * tight.model.half_size)
    for some in cycles:
        fresh = have.fresh(cluster_scopes(some, labels, have.n, limits.whole))
        size = fresh.labels(labels).prod(axis=1)
        left = messages - np.cumsum(fresh.arity * size)
        if len(have) == len(tight.scopes):
            left[:1] = 0.0  # the first one may be larger
        over = (np.cumsum(size) > states) | (left < 0)
        count = int(over.argmax()) if over.any() else len(fresh)
        have = have.joined(fresh[:count])
        if count < len(fresh):
            return have[len(tight.scopes) :], False
        states, messages = states - int(size.sum()), messages - (fresh.arity * size).sum()
    return have[len(tight.scopes) :], True


def unions(tight: Tightened, limits: ClusterSizes) -> Scopes:
    """Return the unions of two clusters that share a pair of variables (adjacent faces of a grid).

    The result is empty if they have too many states, because a few of them gain little.
    """
    have, labels = tight.scopes, tight.base.num_labels
    inside = (tight.upper >= tight.first_cluster) & (tight.lower >= tight.first_pair)
    order = np.lexsort((tight.upper[inside], tight.lower[inside]))
    pair, cluster = tight.lower[inside][order], tight.upper[inside][order] - tight.first_cluster
    room = limits.states - int(tight.model.num_labels[tight.base.n :].sum())
    chosen = have[:0]
    for apart in range(1, len(pair)):  # clusters so far apart in the list of the same pair
        at = np.flatnonzero(pair[apart:] == pair[:-apart])
        if not len(at):
            break
        both = np.concatenate([have.rows[cluster[at]], have.rows[cluster[at + apart]]], axis=1)
        both.sort(axis=1)
        both[:, 1:][both[:, 1:] == both[:, :-1]] = have.n
        joint = Scopes.ascending(have.n, both)
        joint = joint[joint.labels(labels).prod(axis=1, dtype=np.float64) <= limits.union]
        chosen = chosen.joined(have.joined(chosen).fresh(joint))
        if chosen.labels(labels).prod(axis=1).sum() > room:
            return have[:0]
    return chosen


@dataclass(frozen=True)
class PairCosts:
    """Costs of all pairs of variables with an edge or a region.

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


def belief_costs(
    tight: Tightened, nodes: Floats, coupling: Floats, eta: float, most_labels: int = 64
) -> PairCosts:
    """Return -log μ_ij / η of edges and pair regions (up to constants), from marginals at η.

    Marginals overlap in variables, so that gains computed from them are not guaranteed. If the LP
    is degenerate, they rank cycles whose guaranteed gains are all nearly 0 (decision 12). Pairs
    with a variable of more than `most_labels` labels are left out.
    """
    graph, tables = empty_tables(tight, most_labels)
    add_regions(tight, -np.log(np.maximum(nodes, 1e-30)) / eta, graph, tables)
    add_edges(tight, coupling, graph, tables)
    return PairCosts(graph, tables)


def empty_tables(tight: Tightened, most_labels: int) -> tuple[Adjacency, Floats]:
    """Return the graph of edges and pair regions, and a table of zeros for each pair.

    Entries beyond the labels of a variable are +inf.
    """
    model, n = tight.model, tight.base.num_variables
    ordinary = model.edges[: len(tight.kept)].astype(np.int64)
    edges = np.flatnonzero(ordinary.max(axis=1, initial=0) < n)
    ends = np.concatenate([np.sort(ordinary[edges], axis=1), tight.pairs])
    small = (model.num_labels[ends] <= most_labels).all(axis=1)
    code = np.unique(pair_codes(ends[small], n))
    pairs = np.stack(np.divmod(code, n), axis=1)
    width = int(model.num_labels[pairs].max(initial=1))
    padded = np.where(np.arange(width) < model.num_labels[pairs, None], 0.0, np.inf)
    return Adjacency.of(pairs, n), padded[:, 0, :, None] + padded[:, 1, None, :]


def add_regions(tight: Tightened, reduced: Floats, graph: Adjacency, tables: Floats) -> None:
    """Add the costs of pair regions, from costs of all node states, to the tables of pairs."""
    shapes, which = unique_rows(tight.model.num_labels[tight.pairs])
    place = graph.find(tight.pairs[:, 0], tight.pairs[:, 1])
    for s, (rows, cols) in enumerate(shapes.tolist()):
        some = np.flatnonzero((which == s) & (place >= 0))
        at = blocks(tight.model.node_offset, tight.first_pair + some, rows * cols)
        tables[place[some], :rows, :cols] += reduced[at].reshape(len(some), rows, cols)


def add_edges(tight: Tightened, lam: Floats, graph: Adjacency, tables: Floats) -> None:
    """Add C_e + λ_i + λ_j of the edges between variables; +inf for forbidden labels."""
    model, n, kept = tight.model, tight.base.num_variables, len(tight.kept)
    ends = model.edges[:kept].astype(np.int64)
    place = np.where(ends.max(axis=1, initial=0) < n, graph.find(ends[:, 0], ends[:, 1]), -1)
    turned = ends[:, 0] > ends[:, 1]
    bars = np.where(np.isposinf(model.unary), np.inf, 0.0) if model.has_forbidden else None
    for first, last, potential in model.groups():
        among = np.flatnonzero(place[first:last] >= 0)  # empty for coupling edges, the last group
        for some in np.array_split(among, 1 + len(among) * tables[:1].size // JOINT):
            e, x, y = _entries(first + some, model.num_labels[ends[first + some]])
            cost = potential.value(e - first, x, y)
            cost = cost + lam[model.half_offset[2 * e] + x] + lam[model.half_offset[2 * e + 1] + y]
            if bars is not None:
                i, j = model.node_offset[ends[e, 0]] + x, model.node_offset[ends[e, 1]] + y
                cost += bars[i] + bars[j]
            row, col = np.where(turned[e], (y, x), (x, y))
            at = (place[e] * tables.shape[1] + row) * tables.shape[2] + col
            np.add.at(tables.reshape(-1), at, cost)  # sums parallel edges


def _entries(edges: Ints, shapes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return edge, row and column of each entry of the tables of edges, one after the other."""
    sizes = shapes.prod(axis=1)
    each = np.repeat(np.arange(len(edges)), sizes)
    return edges[each], *np.divmod(within(sizes), shapes[each, 1])


def cycle_gains(
    costs: PairCosts,
    cycles: Ints,
    *,
    threads: int = 1,
    deadline: core.Deadline | None = None,
) -> Floats:
    """Return the guaranteed increase of the bound for each cycle (a row of variables).

    It is the minimum of the joint cost of the cycle's pairs minus the sum of their minima (Sontag
    et al. 2008), computed by dynamic programming around the cycle. It is +inf if no labelling of
    the cycle is feasible, and 0 for the cycles that are left at the deadline.
    """
    gains = np.zeros(len(cycles))
    graph, rows = costs.graph, np.ascontiguousarray(cycles)
    core.cycle_gains(costs.tables, graph.code, graph.n, rows, gains, threads, deadline)
    return gains


def _scored(
    costs: PairCosts, cycles: Ints, threads: int, deadline: core.Deadline | None
) -> Generator[None, None, Floats]:
    """As `cycle_gains`, in short steps, between which it yields."""
    step = max(1, JOINT // costs.tables.shape[1] ** 3)
    gains = [np.zeros(0)]
    for at in range(0, len(cycles), step):
        some = cycles[at : at + step]
        gains.append(cycle_gains(costs, some, threads=threads, deadline=deadline))
        yield
    return np.concatenate(gains)


def cluster_scopes(cycles: Ints, num_labels: Ints, n: int, whole: int) -> Scopes:
    """Return the clusters of cycles: the cycle if it has few joint states, otherwise triangles.

    All triangles of a cycle share a variable with the fewest labels, which keeps them and the
    chords small.

    Parameters
    ----------
    cycles : int64[cycles, longest]
        The variables of each cycle in their order, then n.
    num_labels : int64 array
    n : int
        Number of variables.
    whole : int
        Largest number of joint states of a cycle that is one cluster.
    """
    longest = cycles.shape[1]
    clusters = np.full((len(cycles), longest - 2, longest), n, dtype=np.int64)
    labels = Scopes(n, cycles).labels(num_labels)
    length = (cycles < n).sum(axis=1)
    entire = (length == 3) | (labels.prod(axis=1) <= whole)
    clusters[entire, 0] = cycles[entire]
    hub = np.where(cycles < n, labels, np.iinfo(np.int64).max).argmin(axis=1)
    for k in range(4, longest + 1):
        split = np.flatnonzero((length == k) & ~entire)
        turned = cycles[split[:, None], (hub[split, None] + np.arange(k)) % k]
        for t in range(k - 2):
            clusters[split, t, :3] = turned[:, [0, t + 1, t + 2]]
    flat = clusters.reshape(-1, longest)
    return Scopes.ascending(n, flat[flat[:, 0] < n])
