"""Models tightened by regions: pairs and clusters become nodes, coupled by projections."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from softmap import core
from softmap.model import Network
from softmap.model.inputs import FlatUnary, Group, places_in
from softmap.model.lowered_nodes import Auxiliaries
from softmap.model.potentials import Projection
from softmap.model.potentials.base import Costs, Ints, frozen, offsets
from softmap.model.structure import unique_rows
from softmap.relaxation.dual import Floats, check_lam
from softmap.relaxation.flat import lower_stack
from softmap.subsolvers.clusters.scopes import Bools, Scope, Scopes


def region_order(tight: Tightened) -> Ints:
    """Return the nodes sorted by their smallest variable, then by their number of variables.

    In this order a chain goes from variable i to its pairs (i, j), to clusters, to their pairs
    (j, k) and to k, so that chains are long. With all regions after all variables a chain would
    have at most three nodes.
    """
    held, n = tight.base.memberships, tight.base.num_variables
    first = [np.minimum.reduceat(held.variable, held.start[:-1])] if len(held.arity) else []
    least = np.concatenate([np.arange(n), *first, tight.pairs[:, 0], tight.scopes.rows[:, 0]])
    pairs = np.full(len(tight.pairs), 2)
    arity = np.concatenate([np.ones(n, np.int64), held.arity, pairs, tight.scopes.arity])
    key = least * (arity.max(initial=0) + 1) + arity
    return np.argsort(key * len(key) + np.arange(len(key)))


def arrange(tight: Tightened) -> tuple[Network, Ints]:
    """Return the tightened model in the order of `region_order`, and the new index of each state.

    The order of edges does not change, so that λ is the same for both models.
    """
    order = region_order(tight)
    model = tight.arranged(order)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    labels = tight.model.num_labels
    shift = model.node_offset[:-1][place] - tight.model.node_offset[:-1]
    return model, np.repeat(shift, labels) + np.arange(len(tight.model.unary))


ROUNDING = 2.0**-51  # safe bound on the error of one addition, relative to the |terms|


@dataclass(frozen=True, eq=False)
class Tightened:
    """A base model, clusters of its variables, and the tightened model made of both.

    The nodes of `model` are those of `base` in their order, then one per pair region, then one per
    cluster. Its first edges are the edges of `base` that lie in no pair region. All others are
    coupling edges (ties): each leads from a region to a node that the region contains.

    Attributes
    ----------
    base, model : Network
    scopes : Scopes
        The variables of each cluster.
    pairs : int64[P, 2]
        First and second variable (ascending) of each pair region.
    kept : int64 array
        Edges of `base` that are edges of `model`, in the order of `model`.
    absorbed : int64 array
        Edges of `base` whose costs are in a pair region.
    region : int64 array
        The pair region of each absorbed edge.
    flipped : bool array
        Whether the first endpoint of an absorbed edge is the second variable of the pair.
    upper, lower : int64 array
        The region and the contained node of each coupling edge. Coupling edge t is edge
        `len(kept) + t`; numbers 2p and 2p + 1 lead from pair p to its variables.
    """

    base: Network
    model: Network
    scopes: Scopes
    pairs: Ints
    kept: Ints
    absorbed: Ints
    region: Ints
    flipped: Bools
    upper: Ints
    lower: Ints

    @property
    def first_pair(self) -> int:
        """The node of the first pair region."""
        return self.base.n

    @property
    def first_cluster(self) -> int:
        """The node of the first cluster."""
        return self.base.n + len(self.pairs)

    @property
    def clusters(self) -> tuple[Scope, ...]:
        """The variables of each cluster, ascending."""
        return self.scopes.listed

    def declared(self) -> Tightened:
        """Return the same with regions that `model` knows as auxiliary nodes, which checks them."""
        base, model = self.base, self.model.with_auxiliaries(self._states())
        return replace(self, model=model.called(base.shape, model.names))

    def _states(self) -> Auxiliaries:
        """Return the joint states of the auxiliary nodes of the base, of pairs and of clusters."""
        held, new = self.base.memberships, Scopes(self.scopes.n, self.pairs).joined(self.scopes)
        stride = _strides(new.labels(self.base.num_labels))
        start = held.start[-1] + offsets(new.arity)[1:]
        return Auxiliaries(
            frozen(np.concatenate([held.start, start]), np.int64),
            frozen(np.concatenate([held.variable, new.rows[new.inside]]), np.int64),
            frozen(np.concatenate([held.stride, stride[new.inside]]), np.int64),
        )

    def arranged(self, order: Ints) -> Network:
        """Return `model` with its nodes in another order; edges and λ keep theirs."""
        place = np.empty(self.model.n, dtype=np.int64)
        place[order] = np.arange(self.model.n)
        labels = self.model.num_labels[order]
        moved = self.model.node_offset[order] - offsets(labels)[:-1]
        at = np.repeat(moved, labels) + np.arange(len(self.model.unary))
        unary = FlatUnary(self.model.unary[at], labels)
        groups: list[Group] = [
            (place[self.model.edges[first:last]], potential)
            for first, last, potential in self.model.groups()
        ]
        return Network(unary, None, groups, constant=self.model.constant)


@dataclass(frozen=True)
class _Holders:
    """Nodes of one arity whose states are joint states: auxiliary nodes of the base, clusters."""

    node: Ints  # (K,)
    member: Ints  # (K, k)
    stride: Ints  # (K, k)
    size: Ints  # (K,) joint states


@dataclass(frozen=True)
class _Ties:
    """Coupling edges as rows of integers.

    Columns are the upper node, the lower node, the number of joint states of the upper node, then
    stride and number of labels of up to two members.
    """

    rows: Ints

    @classmethod
    def of(cls, *columns: Ints) -> _Ties:
        return cls(np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.int64))


def build(base: Network, clusters: Iterable[Iterable[int]]) -> Tightened:
    """Tighten a model by clusters of variables.

    A pair of variables inside a cluster becomes a pair region if it has an edge (whose costs move
    to the region), or if two or more clusters or factors contain it (a chord, without costs).
    Clusters, and auxiliary nodes of factors, are coupled to the pair regions they contain.

    Parameters
    ----------
    base : Network
    clusters : iterable of iterables of int
        The variables of each cluster, three or more.
    """
    steps = building(base, Scopes.of(clusters, base.num_variables))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: Tightened = end.value
            return made.declared()


def building(base: Network, scopes: Scopes) -> Generator[None, None, Tightened]:
    """As `build`, in several steps, between which it yields; regions are not `declared`."""
    members = _clusters(base, scopes)
    pairs = _chosen_pairs(base, [*_auxiliaries(base), *members])
    first = base.n + len(pairs)
    members = [replace(group, node=first + group.node) for group in members]
    edge_pair, flipped = _pair_of_edges(base, pairs)
    kept, absorbed = np.flatnonzero(edge_pair < 0), np.flatnonzero(edge_pair >= 0)
    yield
    ties = _ties(base, pairs, [*_auxiliaries(base), *members])
    yield
    costs = _pair_costs(base, pairs, absorbed, edge_pair[absorbed], flipped[absorbed])
    sizes = np.zeros(len(scopes), dtype=np.int64)
    for group in members:
        sizes[group.node - first] = group.size
    labels = np.concatenate([base.num_labels, base.num_labels[pairs].prod(axis=1), sizes])
    unary = FlatUnary(np.concatenate([base.unary, costs, np.zeros(int(sizes.sum()))]), labels)
    groups = _kept_groups(base, kept) + _tie_groups(ties)
    model = Network(unary, None, groups, constant=base.constant)
    return Tightened(
        base, model, scopes, pairs, kept, absorbed, edge_pair[absorbed], flipped[absorbed],
        ties.rows[:, 0], ties.rows[:, 1],
    )  # fmt: skip


def blocks(offset: Ints, which: Ints, size: int) -> Ints:
    """Return the indices of blocks of one size, as an array (len(which), size)."""
    return offset[which][:, None] + np.arange(size)


def pair_codes(pairs: Ints, n: int) -> Ints:
    """Return one integer per pair of variables, equal for (i, j) and (j, i)."""
    low, high = pairs.min(axis=1, initial=n), pairs.max(axis=1, initial=0)
    return np.asarray(low.astype(np.int64) * n + high)


def _auxiliaries(base: Network) -> list[_Holders]:
    held, arity = base.memberships, base.memberships.arity
    out = []
    for k in np.unique(arity).tolist():
        which = np.flatnonzero(arity == k)
        at = blocks(held.start, which, k)
        size = base.num_labels[held.variable[at]].prod(axis=1)
        out.append(_Holders(base.num_variables + which, held.variable[at], held.stride[at], size))
    return out


def _clusters(base: Network, scopes: Scopes) -> list[_Holders]:
    """Return the clusters by arity, numbered from 0."""
    labels = scopes.labels(base.num_labels)
    stride, size = _strides(labels), labels.prod(axis=1)
    out = []
    for k in np.unique(scopes.arity).tolist():
        which = np.flatnonzero(scopes.arity == k)
        out.append(_Holders(which, scopes.rows[which, :k], stride[which, :k], size[which]))
    return out


def _strides(labels: Ints) -> Ints:
    """Return the strides of row-major joint states, for the label counts of their variables."""
    stride = np.ones_like(labels)
    for k in range(labels.shape[1] - 2, -1, -1):
        stride[:, k] = stride[:, k + 1] * labels[:, k + 1]
    return stride


def _inner_pairs(holders: _Holders, n: int) -> list[tuple[int, int, Ints]]:
    """For every two member positions, return the codes (`pair_codes`) of the pairs there."""
    places = combinations(range(holders.member.shape[1]), 2)
    return [(a, b, pair_codes(holders.member[:, [a, b]], n)) for a, b in places]


def _chosen_pairs(base: Network, holders: list[_Holders]) -> Ints:
    n, own = base.num_variables, len(_auxiliaries(base))
    codes = [
        [code for group in part for _, _, code in _inner_pairs(group, n)]
        for part in (holders[:own], holders[own:])
    ]
    none = np.zeros(0, dtype=np.int64)
    inside, count = np.unique(np.concatenate([none, *codes[1]]), return_counts=True)
    factors = np.isin(inside, np.concatenate([none, *codes[0]]))
    ordinary = base.edges[base.edges.max(axis=1, initial=0) < n].astype(np.int64)
    wanted = np.isin(inside, pair_codes(ordinary, n)) | factors | (count > 1)
    return np.stack(np.divmod(inside[wanted], n), axis=1)


def _pair_of_edges(base: Network, pairs: Ints) -> tuple[Ints, Bools]:
    """Return the pair region of each edge (-1: none), and whether its endpoints are swapped."""
    n = base.num_variables
    edges = base.edges.astype(np.int64)
    found = np.full(base.m, -1, dtype=np.int64)
    ordinary = np.flatnonzero(edges.max(axis=1, initial=0) < n)
    found[ordinary] = places_in(pair_codes(pairs, n), pair_codes(edges[ordinary], n))
    return found, edges[:, 0] > edges[:, 1]


def _pair_costs(base: Network, pairs: Ints, absorbed: Ints, region: Ints, flipped: Bools) -> Costs:
    """Return the costs of pair regions, at most the exact sum of the costs of their edges."""
    begin = offsets(base.num_labels[pairs].prod(axis=1))
    costs, sizes = np.zeros((2, int(begin[-1])))
    for first, last, potential in base.groups():
        mine = np.flatnonzero((absorbed >= first) & (absorbed < last))
        shapes, which = unique_rows(base.num_labels[base.edges[absorbed[mine]]])
        for s, (rows, cols) in enumerate(shapes.tolist()):
            for turned in (False, True):
                some = mine[(which == s) & (flipped[mine] == turned)]
                tables = lower_stack(potential, absorbed[some] - first, rows, cols)
                tables = tables.transpose(0, 2, 1) if turned else tables
                place = blocks(begin, region[some], rows * cols)
                np.add.at(costs, place, tables.reshape(len(some), rows * cols))
                np.add.at(sizes, place, np.abs(tables).reshape(len(some), rows * cols))
    several = np.repeat(np.bincount(region, minlength=len(pairs)), np.diff(begin))
    # Subtract a bound on the rounding error of sums of parallel edges.
    summed = (several > 1) & np.isfinite(costs)
    costs[summed] -= (several * ROUNDING)[summed] * sizes[summed]
    return costs


def _ties(base: Network, pairs: Ints, holders: list[_Holders]) -> _Ties:
    labels = base.num_labels
    d_i, d_j = labels[pairs[:, 0]], labels[pairs[:, 1]]
    node, one = base.n + np.arange(len(pairs)), np.ones(len(pairs), dtype=np.int64)
    to_first = _Ties.of(node, pairs[:, 0], d_i * d_j, d_j, d_i, one, one).rows
    to_second = _Ties.of(node, pairs[:, 1], d_i * d_j, one, d_j, one, one).rows
    rows = [np.stack([to_first, to_second], axis=1).reshape(-1, 7)]
    for group in holders:
        rows += _holder_ties(base, pairs, group)
    return _Ties(np.concatenate(rows))


def _holder_ties(base: Network, pairs: Ints, group: _Holders) -> list[Ints]:
    """Return coupling edges to the pair regions inside, and to members of clusters in none."""
    n, labels = base.num_variables, base.num_labels
    have = pair_codes(pairs, n)
    covered = np.zeros(group.member.shape, dtype=bool)
    rows = []
    for a, b, code in _inner_pairs(group, n):
        at = places_in(have, code)
        hit = np.flatnonzero(at >= 0)
        covered[hit, a] = covered[hit, b] = True
        turned = group.member[hit, a] > group.member[hit, b]
        i, j = np.where(turned, b, a), np.where(turned, a, b)
        rows.append(
            _Ties.of(
                group.node[hit], base.n + at[hit], group.size[hit],
                group.stride[hit, i], labels[group.member[hit, i]],
                group.stride[hit, j], labels[group.member[hit, j]],
            ).rows
        )  # fmt: skip
    if group.node.min(initial=base.n) >= base.n:  # auxiliary nodes of the base have these already
        k, t = np.nonzero(~covered)
        one, member = np.ones(len(k), dtype=np.int64), group.member[k, t]
        node, size, stride = group.node[k], group.size[k], group.stride[k, t]
        rows.append(_Ties.of(node, member, size, stride, labels[member], one, one).rows)
    return rows


def _kept_groups(base: Network, kept: Ints) -> list[Group]:
    groups: list[Group] = []
    for first, last, potential in base.groups():
        mine = kept[(kept >= first) & (kept < last)]
        if len(mine):
            groups.append((base.edges[mine], potential.take(mine - first)))
    return groups


def _tie_groups(ties: _Ties) -> list[Group]:
    """Return one group with shared maps: coupling edges of the same shape use the same map."""
    if not len(ties.rows):
        return []
    shapes, index = unique_rows(ties.rows[:, 2:])
    states = np.arange(shapes[:, 0].max(), dtype=np.int32)  # fits, as a model holds all states
    maps = []
    for size, stride_i, d_i, stride_j, d_j in shapes.tolist():
        s = states[:size]
        maps.append((s // stride_i % d_i) * d_j + s // stride_j % d_j)
    labels = ties.rows[:, 4] * ties.rows[:, 6]
    return [(ties.rows[:, :2], Projection(maps, labels, index))]


def carry(old: Tightened, lam: Floats, new: Tightened, *, threads: int = 1) -> Floats:
    """Return λ for `new` whose bound is at least that of `lam` for `old`.

    `new` must have all clusters of `old`.
    """
    flat = check_lam(old.model, lam)
    out = np.zeros(int(new.model.half_offset[-1]))
    move = partial(_move, threads=threads)
    _copy_ties(old, flat, new, out, move)
    by_edge = _edge_lam(old, flat, new, move)
    kept = np.arange(len(new.kept))
    for side in (0, 1):
        move(new.base, by_edge, 2 * new.kept + side, new.model, out, 2 * kept + side)
        _to_pairs(old, new, by_edge, side, out)
    return out


def _copy_ties(
    old: Tightened, lam: Floats, new: Tightened, out: Floats, move: Callable[..., None]
) -> None:
    """Copy λ of the coupling edges that both have."""
    node = _node_map(old, new)
    upper, lower = node[old.upper], node[old.lower]
    wanted = new.upper * np.int64(new.model.n) + new.lower
    order = np.argsort(wanted)
    code = upper * np.int64(new.model.n) + lower
    at = places_in(wanted[order], code)
    same = (upper >= 0) & (lower >= 0) & (at >= 0)
    source, target = len(old.kept) + np.flatnonzero(same), len(new.kept) + order[at[same]]
    for side in (0, 1):
        move(old.model, lam, 2 * source + side, new.model, out, 2 * target + side)


def _move(a: Network, lam: Floats, h: Ints, b: Network, out: Floats, g: Ints, threads: int) -> None:
    """Copy `lam` at half-edges `h` of `a` to `out` at half-edges `g` of `b`."""
    size = a.half_offset[h + 1] - a.half_offset[h]
    core.move_blocks(lam, a.half_offset[h], size, out, b.half_offset[g], threads)


def _node_map(old: Tightened, new: Tightened) -> Ints:
    """Return the node of `new` that corresponds to each node of `old`; -1 if there is none."""
    n = old.base.num_variables
    at = places_in(pair_codes(new.pairs, n), pair_codes(old.pairs, n))
    pairs = np.where(at >= 0, new.first_pair + at, -1)
    number = new.scopes.find(old.scopes)
    clusters = np.where(number >= 0, new.first_cluster + number, -1)
    return np.concatenate([np.arange(old.base.n), pairs, clusters])


def _edge_lam(old: Tightened, lam: Floats, new: Tightened, move: Callable[..., None]) -> Floats:
    """Return λ on the edges of the base, 0 for edges whose pair is a region in both.

    The two coupling edges of a pair region carry the λ of its edge: C_e + λ_i + λ_j is the sum of
    the costs of the region and of its two coupling edges.
    """
    base = old.base
    out = np.zeros(int(base.half_offset[-1]))
    kept = np.arange(len(old.kept))
    for side in (0, 1):
        move(old.model, lam, 2 * kept + side, base, out, 2 * old.kept + side)
    alone = np.isin(pair_codes(old.pairs, base.num_variables),
                    pair_codes(new.pairs, base.num_variables), invert=True)  # fmt: skip
    first = np.unique(old.region, return_index=True)[1]  # the first of parallel edges gets their λ
    first = first[alone[old.region[first]]]
    for side in (0, 1):
        axis = np.where(old.flipped[first], 1 - side, side)
        tie = len(old.kept) + 2 * old.region[first] + axis
        move(old.model, lam, 2 * tie + 1, base, out, 2 * old.absorbed[first] + side)
    return out


def _to_pairs(old: Tightened, new: Tightened, by_edge: Floats, side: int, out: Floats) -> None:
    """Set λ of edges that became regions: λ_i at the variable, -λ_i at the region's states."""
    fresh = np.isin(new.absorbed, old.kept)
    edge, region = new.absorbed[fresh], new.region[fresh]
    axis = np.where(new.flipped[fresh], 1 - side, side)
    tie = len(new.kept) + 2 * region + axis
    ends = new.base.num_labels[new.pairs[region]]
    shapes, which = unique_rows(np.column_stack([ends, axis]))
    for s, (d_i, d_j, a) in enumerate(shapes.tolist()):
        some = which == s
        d = d_j if a else d_i
        label = np.arange(d_i * d_j) % d_j if a else np.arange(d_i * d_j) // d_j
        value = by_edge[blocks(new.base.half_offset, 2 * edge[some] + side, d)]
        low = blocks(new.model.half_offset, 2 * tie[some] + 1, d)
        high = blocks(new.model.half_offset, 2 * tie[some], d_i * d_j)
        np.add.at(out, low, value)
        np.add.at(out, high, -value[:, label])
