"""Models as factor tables, without auxiliary nodes, and orders of variable elimination for them.

Costs of tables are rounded down: lower bounds for a flat model are lower bounds for the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model import Network
from softmap.model.potentials.base import Costs, Ints, Potential

LEAST = float(np.finfo(np.float64).tiny)  # smallest normal float64
BLOCK = 1 << 19  # table entries that are rounded at a time: some 20 ms
SPLIT = 2.0**27 + 1.0  # Dekker's constant: splits the mantissa of a float64 in halves


@dataclass(frozen=True)
class FlatModel:
    """Variables with unary costs, and factors of two or more variables as row-major tables."""

    num_labels: Ints
    unary: Costs
    scope_start: Ints
    scope: Ints
    tables: Costs
    constant: float

    @cached_property
    def native(self) -> core.FlatModel:
        """The arrays as compiled searches take them, checked once."""
        return core.FlatModel(
            self.num_labels, self.unary, self.scope_start, self.scope, self.tables, self.constant
        )


@dataclass(frozen=True)
class EliminationOrder:
    """An order of variable elimination, and the size of its tables.

    Attributes
    ----------
    entries : float
        Number of table entries in all, those of the eliminated variables included; +inf if it
        exceeds a limit.
    stored : float
        Number of entries of all results.
    variables : int64 array
        The variables in the order of elimination; empty if `entries` is +inf.
    """

    entries: float
    stored: float
    variables: Ints

    @property
    def found(self) -> bool:
        """Whether the tables are within the limit."""
        return math.isfinite(self.entries)


def flat_entries(model: Network) -> int:
    """The number of node costs and table entries of a model without its auxiliary edges."""
    if not model.has_factors:
        return model.edge_size + model.unary.size
    tied = model.edges[:, 0] >= model.num_variables
    return int(np.diff(model.edge_offset)[~tied].sum()) + model.unary.size


def flatten(model: Network, deadline: core.Deadline | None = None) -> FlatModel:
    """Return the model with each auxiliary node replaced by the factor that it represents.

    Costs that are products are rounded down, so a lower bound of the flat model is a lower bound of
    the model.

    Parameters
    ----------
    model : Network
        The model.
    deadline : Deadline, optional
        When to stop: `core.OutOfTime` is raised.
    """
    n, held = model.num_variables, model.memberships
    pairs = np.flatnonzero((model.edges < n).all(axis=1))
    split = int(model.node_offset[n])
    rises = np.diff(held.stride) > 0
    rises[held.start[1:-1] - 1] = False  # members are in the order of the axes of their table
    if rises.any():
        raise ValueError("the strides of an auxiliary node must not increase")
    arity = np.concatenate([np.full(len(pairs), 2), held.arity]).astype(np.int64)
    scopes = [model.edges[pairs].astype(np.int64).ravel(), held.variable]
    tables, joint = lower_tables(model, pairs, deadline), model.unary[split:]
    return FlatModel(
        model.num_labels[:n].astype(np.int64),
        np.ascontiguousarray(model.unary[:split], float),
        np.concatenate([[0], np.cumsum(arity)]).astype(np.int64),
        np.concatenate(scopes).astype(np.int64),
        np.concatenate([tables, joint]) if joint.size else tables,
        float(model.constant),
    )


def lower_tables(model: Network, edges: Ints, deadline: core.Deadline | None = None) -> Costs:
    """Return the concatenated row-major tables of some edges, rounded down.

    An entry that is a product (weight times distance, or weight times shared table) is rounded down
    if it is inexact. A lower bound for these costs is then one for the costs that were given.

    Parameters
    ----------
    model : Network
        The model.
    edges : int64 array
        The edges.
    deadline : Deadline, optional
        When to stop, looked at after every `BLOCK` entries: `core.OutOfTime` is raised.
    """
    sizes = np.diff(model.edge_offset)[edges]
    start = np.cumsum(sizes) - sizes
    labels = model.num_labels[model.edges[edges]]
    out = np.empty(int(sizes.sum()))
    for first, last, potential in model.groups():
        inside = np.flatnonzero((edges >= first) & (edges < last))
        shape = labels[inside, 0].astype(np.int64) << 32 | labels[inside, 1]
        alike = (shape == shape[:1]).all()
        for one in set(shape[:1] if alike else shape.tolist()):  # np.unique imports masked arrays
            same, (rows, cols) = inside[shape == one], divmod(int(one), 1 << 32)
            step = max(1, BLOCK // (rows * cols))
            for some in (same[k : k + step] for k in range(0, len(same), step)):
                if deadline is not None:
                    deadline.require()
                tables = lower_stack(potential, edges[some] - first, rows, cols)
                begin, end = int(start[some[0]]), int(start[some[-1]]) + rows * cols
                if end - begin == tables.size:  # one after the other: no index of every entry
                    out[begin:end] = tables.reshape(-1)
                else:
                    place = start[some][:, None] + np.arange(rows * cols)
                    out[place] = tables.reshape(len(some), -1)
    return out


def lower_stack(potential: Potential, k: Ints, rows: int, cols: int) -> Costs:
    """Return the tables of edges `k` of one potential, (len(k), rows, cols), rounded down."""
    weights, stack = potential.factors(k, rows, cols)
    return stack if (weights == 1).all() else _lower_product(weights[:, None, None], stack)


def _lower_product(a: Costs, b: Costs) -> Costs:
    """Return a · b rounded down; the result is equivariant to scaling by powers of two."""
    product, (m, _), (n, _) = np.asarray(a * b), np.frexp(a), np.frexp(b)
    with np.errstate(invalid="ignore"):
        (m_high, m_low), (n_high, n_low) = _halves(m), _halves(n)
        error = m_low * n_low - (((m * n - m_high * n_high) - m_low * n_high) - m_high * n_low)
    # A subnormal product has fewer digits, so that its error cannot be computed.
    known = (np.abs(product) >= LEAST) | (a == 0) | (b == 0)
    kept = (known & (error >= 0)) | ~np.isfinite(product)
    return np.where(kept, product, np.nextafter(product, -np.inf))


def _halves(a: Costs) -> tuple[Costs, Costs]:
    """Split a float into a sum of two with half of the digits each (Dekker)."""
    shifted = SPLIT * a
    high = shifted - (shifted - a)
    return high, a - high


def flat_lam(model: Network, lam: NDArray[np.float64]) -> Costs:
    """Return λ of the half-edges as one block per variable in the scope of each flat factor."""
    n = model.num_variables
    if not model.has_factors:  # then there are edges between variables only, in this order
        return np.array(lam, dtype=np.float64)
    tied = (model.edges >= n).any(axis=1)
    pairs = np.flatnonzero(~tied)
    ties = np.flatnonzero(tied)
    member = 2 * ties + (model.edges[ties, 0] >= n)
    halves = np.concatenate([np.stack([2 * pairs, 2 * pairs + 1], axis=1).ravel(), member])
    sizes = np.diff(model.half_offset)[halves]
    begin = np.cumsum(sizes) - sizes
    return lam[np.repeat(model.half_offset[halves] - begin, sizes) + np.arange(sizes.sum())]


def elimination_order(
    model: Network | FlatModel,
    limit: float,
    deadline: core.Deadline | None = None,
    tries: int = 30,
) -> EliminationOrder:
    """Return the best of several greedy elimination orders.

    Parameters
    ----------
    model : Network or FlatModel
        The model. The factors of a `Network` are not computed.
    limit : float
        Largest number of table entries. The search for an order stops where it is exceeded.
    deadline : core.Deadline, optional
        When to stop; the best order so far is returned, if there is one.
    tries : int, default 30
        Largest number of greedy orders.
    """
    if isinstance(model, FlatModel):
        shape = model.num_labels, model.scope_start, model.scope
    else:
        n, held = model.num_variables, model.memberships
        pairs = model.edges[(model.edges < n).all(axis=1)].astype(np.int64)
        start = np.concatenate([2 * np.arange(len(pairs)), 2 * len(pairs) + held.start])
        scope = np.concatenate([pairs.ravel(), held.variable]).astype(np.int64)
        shape = model.num_labels[:n].astype(np.int64), start.astype(np.int64), scope
    entries, stored, order = core.elimination_order(*shape, limit, deadline, tries)
    return EliminationOrder(entries, stored, np.array(order, np.int64))


def live_entries(model: FlatModel, order: EliminationOrder) -> float:
    """Return how many entries of results are needed at one time, if used ones are freed."""
    return core.live_entries(model.num_labels, model.scope_start, model.scope, order.variables)
