"""The relaxation tightened by clusters of variables, built again in plain Python for the checker.

The nodes are those of the model, then one for each pair region, then one for each cluster. A pair
of variables within a cluster is a pair region if it has an edge, or if a factor or another cluster
contains it. The costs of an edge move to its pair region. Coupling edges lead from a region to the
smaller regions and variables in it. docs/proofs.md specifies the order of all edges, that of λ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.model.potentials import Potential, Projection
from softmap.verification.exact import float_below
from softmap.verification.integers import lower_tables
from softmap.verification.relaxed import relaxed_statement
from softmap.verification.report import Statement, Verdict

if TYPE_CHECKING:
    from softmap.run.result import Result

Floats = NDArray[np.float64]
Ends = NDArray[np.int64]  # the endpoints of edges, one row each
Scope = tuple[int, ...]
Axis = tuple[int, int]  # stride of a variable among joint states, and its number of labels


class Region(NamedTuple):
    """A node of joint states: its number, variables, and their strides."""

    node: int
    members: Scope
    strides: tuple[int, ...]


class Coupling(NamedTuple):
    """An edge from a region to a node that it contains, whose state the region's state decides."""

    upper: int
    lower: int
    size: int  # joint states of the upper node
    axes: tuple[Axis, ...]  # of the variables of the lower node


def tightened(model: Network, clusters: Sequence[Scope], held: int) -> Network:
    """Return the model with clusters added, if λ, which has `held` entries, fits its size.

    λ has one entry per joint state of a cluster, so its length limits the memory allocated here.
    """
    if not clusters:
        return model
    n, labels = model.num_variables, model.num_labels.tolist()
    for i in chain.from_iterable(clusters):
        if not 0 <= i < n:
            raise ValueError(f"there is no variable {i}")
    scopes = list(dict.fromkeys(tuple(sorted(scope)) for scope in clusters))
    if any(len(scope) < 3 or len(set(scope)) < len(scope) for scope in scopes):
        raise ValueError("expected three or more different variables in a cluster")
    states = sum(math.prod(labels[i] for i in scope) for scope in scopes)
    if states > held:
        raise ValueError(f"clusters have {states:.6g} joint states, λ has {held} numbers")
    return _built(model, scopes)


def _built(model: Network, scopes: list[Scope]) -> Network:
    labels, factors = model.num_labels.tolist(), _factors(model)
    between: dict[Scope, list[int]] = {}
    for e, (i, j) in enumerate(model.edges.tolist()):
        between.setdefault((min(i, j), max(i, j)), []).append(e)
    pairs = _pairs(scopes, factors, between)
    place = {pair: model.n + k for k, pair in enumerate(pairs)}
    first = model.n + len(pairs)
    regions = [_region(first + k, scope, labels) for k, scope in enumerate(scopes)]
    couplings = [
        Coupling(place[pair], pair[side], labels[pair[0]] * labels[pair[1]], (axis,))
        for pair in pairs
        for side, axis in enumerate([(labels[pair[1]], labels[pair[0]]), (1, labels[pair[1]])])
    ]
    for group, whole in ((factors, False), (regions, True)):
        for arity in sorted({len(region.members) for region in group}):
            alike = [region for region in group if len(region.members) == arity]
            couplings += _couplings(alike, arity, place, labels, members=whole)
    unary = np.split(model.unary, model.node_offset[1:-1])
    unary += [costs.ravel() for costs in _pair_costs(model, pairs, between)]
    unary += [np.zeros(math.prod(labels[i] for i in scope)) for scope in scopes]
    absorbed = np.array([e for pair in pairs for e in between.get(pair, [])], dtype=np.int64)
    groups: list[tuple[Ends, Potential]] = [*_kept(model, absorbed), *_projections(couplings)]
    return Network(unary, None, groups, constant=model.constant)


def _region(node: int, scope: Scope, labels: list[int]) -> Region:
    """Return a region whose joint states are in row-major order."""
    strides = [math.prod(labels[i] for i in scope[k + 1 :]) for k in range(len(scope))]
    return Region(node, scope, tuple(strides))


def _factors(model: Network) -> list[Region]:
    """Return the auxiliary nodes of factors as regions."""
    held = model.memberships
    spans = [slice(*pair) for pair in pairwise(held.start.tolist())]
    return [
        Region(
            model.num_variables + a,
            tuple(held.variable[own].tolist()),
            tuple(held.stride[own].tolist()),
        )
        for a, own in enumerate(spans)
    ]


def _pairs(
    scopes: list[Scope], factors: list[Region], between: dict[Scope, list[int]]
) -> list[Scope]:
    """Return the pair regions, in increasing order."""
    count = Counter(pair for scope in scopes for pair in combinations(scope, 2))
    held = {p for region in factors for p in combinations(sorted(region.members), 2)}
    wanted = {*between, *held, *(pair for pair, times in count.items() if times > 1)}
    return sorted(pair for pair in count if pair in wanted)


def _couplings(
    group: list[Region], arity: int, place: dict[Scope, int], labels: list[int], *, members: bool
) -> Iterator[Coupling]:
    """Yield couplings to pair regions, by positions of the pair, then to members in no pair."""
    covered: set[tuple[int, int]] = set()
    for a, b in combinations(range(arity), 2):
        for region in group:
            x, y = (a, b) if region.members[a] < region.members[b] else (b, a)
            lower = place.get((region.members[x], region.members[y]))
            if lower is not None:
                covered |= {(region.node, a), (region.node, b)}
                yield _coupling(region, lower, (x, y), labels)
    for region in group if members else []:
        for k in range(arity):
            if (region.node, k) not in covered:
                yield _coupling(region, region.members[k], (k,), labels)


def _coupling(region: Region, lower: int, which: tuple[int, ...], labels: list[int]) -> Coupling:
    axes = tuple((region.strides[k], labels[region.members[k]]) for k in which)
    size = math.prod(labels[i] for i in region.members)
    return Coupling(region.node, lower, size, axes)


def _pair_costs(
    model: Network, pairs: list[Scope], between: dict[Scope, list[int]]
) -> Iterator[Floats]:
    """Yield the costs of pair regions: the tables of their edges, summed and rounded down."""
    tables, labels = lower_tables(model), model.num_labels.tolist()
    for i, j in pairs:
        edges = between.get((i, j), [])
        parts = [tables[e] if model.edges[e, 0] == i else tables[e].T for e in edges]
        if len(parts) < 2:
            yield parts[0] if parts else np.zeros((labels[i], labels[j]))
        else:
            entries = zip(*(part.flat for part in parts), strict=True)
            yield np.array([_lower_sum(terms) for terms in entries])


def _lower_sum(terms: tuple[float, ...]) -> float:
    """The largest float64 that is at most the sum; +inf if a term is."""
    return math.inf if math.inf in terms else float_below(sum(map(Fraction, terms), Fraction(0)))


def _kept(model: Network, absorbed: NDArray[np.int64]) -> Iterator[tuple[Ends, Potential]]:
    """Yield the edges that are in no pair region, with their potentials."""
    kept = np.setdiff1d(np.arange(model.m), absorbed)
    for first, last, potential in model.groups():
        mine = kept[(kept >= first) & (kept < last)]
        if len(mine):
            yield model.edges[mine].astype(np.int64), potential.take(mine - first)


def _projections(couplings: list[Coupling]) -> list[tuple[Ends, Projection]]:
    """Return the coupling edges with the map of each shape from joint states to lower states."""
    if not couplings:
        return []
    shapes = list(dict.fromkeys((one.size, one.axes) for one in couplings))
    maps = []
    for size, axes in shapes:
        at: NDArray[np.int64] = np.zeros(size, np.int64)
        for stride, count in axes:
            at = at * count + np.arange(size) // stride % count
        maps.append(at.astype(np.int32))
    number = {shape: k for k, shape in enumerate(shapes)}
    index = [number[one.size, one.axes] for one in couplings]
    counts = [math.prod(count for _, count in one.axes) for one in couplings]
    ends = np.array([(one.upper, one.lower) for one in couplings], dtype=np.int64)
    return [(ends, Projection(maps, np.array(counts), np.array(index)))]


def check(result: Result, proof: Any) -> Statement:
    """Check that λ of the model with clusters proves the bound."""
    held = 0 if proof.lam is None else np.size(proof.lam)
    try:
        model = tightened(result.model.network, proof.clusters, held)
    except ValueError as error:
        return Statement("bound", Verdict.FALSE, f"the clusters are none ({error})")
    by = f"λ on the relaxation tightened by {len(proof.clusters)} clusters"
    return relaxed_statement("bound", model, proof.lam, result.bound, by)
