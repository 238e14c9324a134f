"""Penalties that stand for hard constraints: costs larger than all smaller ones together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmap.model import Network
from softmap.model.inputs import within
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.flat import lower_tables
from softmap.tuning import TUNING, Numbers

__all__ = ["PenaltyNumbers", "dominating_penalty"]


ROUNDING = 1e-9  # relative error of the sum of all smaller costs


@dataclass(frozen=True)
class PenaltyNumbers(Numbers):
    """The sample of costs that a penalty is estimated from."""

    entries: int = 4_000_000  # most table entries of a model that is looked at; D55
    sampled_nodes: int = 80  # least nodes that are looked at first; D55
    sampled_edges: int = 80  # least edges that are looked at first; D55
    drawn: int = 12  # entries of each node and edge of the sample; D55
    caution: float = 0.25  # factor of estimates from the sample; D55


def dominating_penalty(model: Network, numbers: PenaltyNumbers | None = None) -> float | None:
    """Return the largest cost that exceeds all smaller ones together, if there is one.

    Smaller costs must be in as many tables as half of the variables: otherwise the second smallest
    cost of almost any model would be one.

    The costs of a table count from its least entry. Let θ be the returned cost, and call entries
    of θ and more penalties. A labelling without penalties costs less than θ above the sum of the
    least entries, and a labelling with a penalty costs at least θ more. So if there is a labelling
    without penalties, every optimal labelling is one.

    Parameters
    ----------
    model : Network
    numbers : PenaltyNumbers, optional
        The numbers of the run.
    """
    numbers = numbers or TUNING.of(PenaltyNumbers)
    pairs = np.flatnonzero((model.edges < model.num_variables).all(axis=1))
    entries = model.unary.size + int(np.diff(model.edge_offset)[pairs].sum() if model.m else 0)
    if entries > numbers.entries or model.n + len(pairs) < 2:
        return None
    some = pairs[:: max(1, len(pairs) // numbers.sampled_edges)]
    nodes = np.arange(0, model.n, max(1, model.n // numbers.sampled_nodes))
    low, high = model.extremes()
    light = max(2, model.num_variables // 2)
    most = _most(high - low)
    # If neither a cost of the sample nor the largest possible one exceeds an estimate of those
    # below it, there is hardly one in the whole model.
    counts = [len(nodes), len(some)]
    weight = np.repeat([model.n / len(nodes), len(pairs) / max(1, len(some))], counts)
    if entries > (numbers.sampled_nodes + numbers.sampled_edges) * numbers.drawn:
        found = _drawn(model, nodes, some, low, numbers.drawn)
        caution = numbers.caution
        if _largest(*found, caution * weight, caution * light, most, True) is None:
            return None
    found = _excess(model, np.arange(model.n), pairs)
    return _largest(*found, np.ones(model.n + len(pairs)), light, most)


def _most(ranges: Costs) -> float:
    """A cost that no dominating penalty exceeds, from the ranges of all tables.

    A penalty exceeds the sum of all smaller ranges. It is at most the largest range that does.
    """
    ranges = np.sort(ranges)
    below = np.cumsum(ranges) - ranges
    return float(ranges[ranges >= below * (1.0 - ROUNDING)][-1])


def _largest(
    excess: Costs, table: Ints, weight: Costs, light: float, most: float, sampled: bool = False
) -> float | None:
    """As `dominating_penalty`, of some entries.

    Parameters
    ----------
    excess : float64 array
        Costs above the least of their table.
    table : int64 array
        Their tables.
    weight : float64 array
        The number of tables that each table stands for.
    light : float
        Least number of tables with smaller costs.
    most : float
        Largest possible result.
    sampled : bool, default False
        Whether `most` may be a cost that is not among the entries.
    """
    kept = excess <= most * (1.0 + ROUNDING)
    excess, table = excess[kept], table[kept]
    order = np.lexsort((excess, table))  # by table, then by cost
    excess, table = excess[order], table[order]
    rise = np.diff(excess, prepend=0.0)
    first = np.diff(table, prepend=-1) != 0
    rise[first] = excess[first]
    order = np.argsort(excess, kind="stable")
    excess, weights = excess[order], weight[table[order]]
    total, tables = np.cumsum(rise[order] * weights), np.cumsum(first[order] * weights)
    start = np.flatnonzero(np.diff(excess, prepend=-1.0) > 0)  # the first of equal costs
    below, lighter = (np.where(start > 0, a[start - 1], 0) for a in (total, tables))
    cost = excess[start]
    if sampled and len(total):
        cost = np.append(cost, most)
        below, lighter = np.append(below, total[-1]), np.append(lighter, tables[-1])
    valid = (cost > below * (1.0 + ROUNDING)) & (lighter >= light)
    return float(cost[valid][-1]) if valid.any() else None


def _drawn(model: Network, nodes: Ints, pairs: Ints, low: Costs, count: int) -> tuple[Costs, Ints]:
    """As `_excess`, of `count` entries of each; `low` has the least costs of nodes and edges."""
    x = (_spread(count, len(nodes)) * model.num_labels[nodes]).astype(np.int64)
    costs = [model.unary[model.node_offset[nodes] + x]]
    ends = model.edges[pairs].T
    both = _spread(count, 2 * len(pairs)).reshape(count, 2, -1)
    early, late = (both * model.num_labels[ends]).astype(np.int64).swapaxes(0, 1)
    for first, last, potential in model.groups():
        these = slice(*np.searchsorted(pairs, (first, last)))
        costs.append(potential.value(pairs[these] - first, early[:, these], late[:, these]))
    own = np.concatenate([nodes, model.n + pairs])
    with np.errstate(invalid="ignore"):
        excess = np.concatenate(costs, axis=1) - low[own]
    kept = np.isfinite(excess) & (excess > 0)
    return excess[kept], np.broadcast_to(np.arange(len(own)), excess.shape)[kept]


def _excess(model: Network, nodes: Ints, pairs: Ints) -> tuple[Costs, Ints]:
    """The finite costs above the least of their table, where they are, and their tables."""
    sizes = np.concatenate([model.num_labels[nodes], np.diff(model.edge_offset)[pairs]])
    own = np.repeat(np.arange(len(sizes)), sizes)
    start = np.repeat(model.node_offset[nodes], model.num_labels[nodes])
    unary = model.unary[start + within(model.num_labels[nodes])]
    costs = np.concatenate([unary, lower_tables(model, pairs)])
    begin = np.cumsum(sizes) - sizes
    least = np.minimum.reduceat(costs, begin)
    with np.errstate(invalid="ignore"):
        excess = costs - np.repeat(least, sizes)
    kept = np.isfinite(excess) & (excess > 0)
    return excess[kept], own[kept]


def _spread(rows: int, columns: int) -> Costs:
    """Numbers from 0 to 1 that are spread evenly: multiples of the golden ratio, modulo 1."""
    places = np.arange(1.0, rows * columns + 1.0)
    return (places * 0.6180339887498949 % 1.0).reshape(rows, columns)
