"""The lower bound that λ proves: the sum of the minimal reduced costs of all nodes and edges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.verification.exact import (
    Expansion,
    exact_sum,
    rounded_down,
    rounded_sum,
    sign_of_sum,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ENTRIES = 1 << 20  # table entries processed at a time


@dataclass(frozen=True)
class TableBlock:
    """Edges whose tables have one shape, with their costs (edges, rows, columns).

    A product of a weight and a table entry is rounded down. Forbidden pairs cost +inf.
    """

    edges: Ints
    cost: Floats

    def states(self, model: Network, side: int) -> Ints:
        """Indices of the labels of one endpoint in node arrays."""
        labels = np.arange(self.cost.shape[1 + side])
        at: Ints = model.node_offset[model.edges[self.edges, side]][:, None] + labels
        return at

    def halves(self, model: Network, side: int) -> Ints:
        """Indices of the labels of one endpoint in half-edge arrays."""
        labels = np.arange(self.cost.shape[1 + side])
        at: Ints = model.half_offset[2 * self.edges + side][:, None] + labels
        return at

    def entries(self, model: Network) -> Ints:
        """Indices of the label pairs in edge arrays."""
        pairs = np.arange(self.cost[0].size).reshape(self.cost.shape[1:])
        at: Ints = model.edge_offset[self.edges][:, None, None] + pairs
        return at


def stacks(model: Network) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield edges in groups of bounded size, their weights, and tables that the weights multiply.

    Weights have the shape of the tables; both are 0 and +inf at forbidden pairs.
    """
    for first, last, potential in model.groups():
        rows, cols = model.end_labels(first, last)
        shape = rows * (int(cols.max(initial=0)) + 1) + cols
        for one in np.unique(shape):
            members = np.flatnonzero(shape == one)
            d_i, d_j = int(rows[members[0]]), int(cols[members[0]])
            step = max(1, ENTRIES // (d_i * d_j))
            for at in range(0, len(members), step):
                k = members[at : at + step]
                weights, tables = potential.factors(k, d_i, d_j)
                finite = np.isfinite(tables) & np.isfinite(weights)[:, None, None]
                weights = np.where(finite, weights[:, None, None], 0.0)
                yield first + k, weights, np.where(finite, tables, np.inf)


def blocks(model: Network) -> Iterator[TableBlock]:
    """Yield the edges of a model in blocks of bounded size."""
    for edges, weights, tables in stacks(model):
        finite = np.isfinite(tables)
        low = rounded_down(weights, np.where(finite, tables, 0.0))
        yield TableBlock(edges, np.where(finite, low, np.inf))


def allowed_states(model: Network) -> Bools:
    """Return the states that arc consistency does not exclude, as a mask.

    A state needs an allowed partner on every edge of its variable. The rule is repeated until
    nothing changes.
    """
    allowed = np.isfinite(model.unary)
    if not model.has_forbidden:
        return allowed
    while True:
        before = allowed.copy()
        for block in blocks(model):
            _cross_out(block, model, allowed)
        if np.array_equal(before, allowed):
            return allowed


def _cross_out(block: TableBlock, model: Network, allowed: Bools) -> None:
    rows, cols = block.states(model, 0), block.states(model, 1)
    open_pairs = np.isfinite(block.cost) & allowed[rows][:, :, None] & allowed[cols][:, None, :]
    supported = open_pairs.any(axis=2), open_pairs.any(axis=1)
    for states, alive in zip((rows, cols), supported, strict=True):
        allowed[states[~alive]] = False


@dataclass(frozen=True)
class DualBound:
    """Whether λ proves a stated bound, the bound of λ, and the size and number of its terms."""

    proved: bool
    found: float
    size: float
    terms: int


def dual_proves(model: Network, lam: Floats, bound: float) -> DualBound:
    """Decide in exact arithmetic whether λ proves a bound; `found` is nan if it is infinite."""
    terms = bound_terms(model, lam)
    if not all(map(math.isfinite, (bound, *terms))):
        return DualBound(False, math.nan, math.inf, len(terms))
    largest = max(float(np.abs(lam).max(initial=abs(bound))), largest_cost(model))
    size = rounded_sum(map(abs, terms)) + largest
    if not math.isfinite(size):  # of λ near the largest float64
        return DualBound(False, math.nan, math.inf, len(terms))
    proved = sign_of_sum([*terms, -bound]) >= 0
    return DualBound(proved, rounded_sum(terms), size, len(terms))


def exact_bound(model: Network, lam: Floats) -> Fraction:
    """The dual value at λ; raise `OverflowError` if it is not finite."""
    terms = bound_terms(model, lam)
    if not all(map(math.isfinite, terms)):
        raise OverflowError("the bound of λ is not finite")
    return exact_sum(terms)


def largest_cost(model: Network) -> float:
    """The largest absolute value of a finite cost."""
    largest = float(np.abs(model.unary[np.isfinite(model.unary)]).max(initial=0.0))
    for _, weights, tables in stacks(model):
        costs = np.abs(weights * np.where(np.isfinite(tables), tables, 0.0))
        largest = max(largest, float(costs.max(initial=0.0)))
    return largest


def bound_terms(model: Network, lam: Floats) -> list[float]:
    """Return terms whose exact sum is the dual value at λ, a lower bound on all energies.

    The dual value is Σ_i min (C_i - Σ λ_{e,i}) + Σ_e min (C_e + λ_{e,i} + λ_{e,j}) + constant.
    """
    allowed, every = allowed_states(model), np.ones(model.m, dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        nodes = _reduced_nodes(model, np.where(allowed, model.unary, 0.0), lam, every)
        terms = [model.constant, *nodes.least(model.node_offset[:-1], allowed)]
        for block in blocks(model):
            terms += _edge_terms(block, model, lam, allowed)
    return terms


def reduced_costs(
    model: Network, lam: Floats, first: int
) -> tuple[Fraction, list[list[Fraction | None]]]:
    """Return the dual value at λ in two parts: without the first nodes, and their reduced costs.

    States that are not allowed are None.
    """
    allowed, every = allowed_states(model), np.ones(model.m, dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        nodes = _reduced_nodes(model, np.where(allowed, model.unary, 0.0), lam, every)
        terms = [model.constant]
        for block in blocks(model):
            terms += _edge_terms(block, model, lam, allowed)
        split = int(model.node_offset[first])
        if first < model.n:
            rest = nodes.take(np.arange(split, len(allowed)))
            terms += rest.least(model.node_offset[first:-1] - split, allowed[split:])
    if not all(map(math.isfinite, terms)) or not all(np.isfinite(x).all() for x in nodes.parts):
        raise OverflowError("the reduced costs are not finite")
    costs = [nodes.value(k) if ok else None for k, ok in enumerate(allowed[:split].tolist())]
    ends = model.node_offset[: first + 1].tolist()
    return exact_sum(terms), [costs[one:last] for one, last in pairwise(ends)]


def outer_terms(
    model: Network, lam: Floats, inner_nodes: Ints, inner_edges: Ints, unary: Floats
) -> list[float] | None:
    """Return the terms of `bound_terms` for all but the inner nodes and edges.

    `unary` holds the costs of the inner nodes that a search has used. Return None if one of them
    exceeds the node's cost minus λ of its outer edges.
    """
    allowed, outer = allowed_states(model), np.ones(model.m, dtype=bool)
    outer[inner_edges] = False
    reduced = _reduced_nodes(model, np.where(allowed, model.unary, 0.0), lam, outer)
    own = _states(model, inner_nodes)
    if own.shape != unary.shape:
        return None
    finite = np.isfinite(unary)
    over = reduced.take(own[finite]).add(-unary[finite])
    safe = over.nonnegative() | ~allowed[own[finite]]
    if allowed[own[~finite]].any() or not safe.all():
        return None
    rest = np.setdiff1d(np.arange(model.n), inner_nodes)
    states, sizes = _states(model, rest), model.num_labels[rest]
    left = reduced.take(states)
    terms = left.least(np.cumsum(sizes) - sizes, allowed[states]) if len(rest) else []
    for block in blocks(model):
        if (keep := outer[block.edges]).any():
            kept = TableBlock(block.edges[keep], block.cost[keep])
            terms += _edge_terms(kept, model, lam, allowed)
    return [model.constant, *terms]


def _states(model: Network, nodes: Ints) -> Ints:
    """Indices of the states of some nodes in node arrays."""
    return _labels_from(model.node_offset[nodes], model.num_labels[nodes])


def _labels_from(start: Ints, sizes: Ints) -> Ints:
    """Return start, start + 1, ... for each block of labels, concatenated."""
    at: Ints = np.arange(sizes.sum()) + np.repeat(start - np.cumsum(sizes) + sizes, sizes)
    return at


def _reduced_nodes(model: Network, unary: Floats, lam: Floats, outer: Bools) -> Expansion:
    """Node costs minus λ of the selected half-edges.

    The loop subtracts the first half-edge of every variable, then the second, ...
    """
    counting = np.flatnonzero(np.repeat(outer, 2))
    node = model.edges.reshape(-1)[counting]
    order = counting[np.argsort(node, kind="stable")]
    degree = np.bincount(node, minlength=model.n)
    begin = np.cumsum(degree) - degree
    total = Expansion.of(unary)
    for k in range(int(degree.max(initial=0))):
        which = np.flatnonzero(degree > k)
        start = model.half_offset[order[begin[which] + k]]
        values, states = lam[_labels_from(start, model.num_labels[which])], _states(model, which)
        total.put(states, total.take(states).add(-values))
    return total


def _edge_terms(block: TableBlock, model: Network, lam: Floats, allowed: Bools) -> list[float]:
    rows, cols = block.states(model, 0), block.states(model, 1)
    open_pairs = np.isfinite(block.cost) & allowed[rows][:, :, None] & allowed[cols][:, None, :]
    ends = lam[block.halves(model, 0)][:, :, None], lam[block.halves(model, 1)][:, None, :]
    total = Expansion.of(np.where(open_pairs, block.cost, 0.0))
    for end in ends:
        total = total.add(np.broadcast_to(end, block.cost.shape))
    return total.least(np.arange(len(block.edges)) * block.cost[0].size, open_pairs)
