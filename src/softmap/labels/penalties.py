"""Penalties that stand for hard constraints: costs larger than all smaller ones together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmap.model import Model
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.bounds import lower_tables

__all__ = ["dominating_penalty"]


@dataclass(frozen=True)
class PenaltyTuning:
    """Tuning numbers of the search for penalties.

    Attributes
    ----------
    entries : int
        Largest number of table entries that are looked at.
    sample : int
        Number of tables that are looked at first.
    rounding : float
        Relative error of the sum of all smaller costs.
    """

    entries: int = 2_000_000
    sample: int = 200
    rounding: float = 1e-9


TUNING = PenaltyTuning()


def dominating_penalty(model: Model) -> float | None:
    """Return the largest cost that exceeds all smaller ones together, if there is one.

    Smaller costs must be in as many tables as half of the variables: otherwise the second smallest
    cost of almost any model would be one.

    The costs of a table count from its least entry. Let θ be the returned cost, and call entries
    of θ and more penalties. A labelling without penalties costs less than θ above the sum of the
    least entries, and a labelling with a penalty costs at least θ more. So if there is a labelling
    without penalties, every optimal labelling is one.

    Parameters
    ----------
    model : Model
    """
    pairs = np.flatnonzero((model.edges < model.num_variables).all(axis=1))
    entries = model.unary.size + int(np.diff(model.edge_offset)[pairs].sum() if model.m else 0)
    if entries > TUNING.entries or model.n + len(pairs) < 2:
        return None
    some = pairs[:: max(1, len(pairs) // TUNING.sample)]
    nodes = np.arange(0, model.n, max(1, model.n // TUNING.sample))
    largest = float(np.ptp(np.array(model.extremes()), axis=0).max())
    light = max(2, model.num_variables // 2)
    whole = len(some) == len(pairs) and len(nodes) == model.n
    # If no cost of the sample exceeds those below it, and all of them together are larger than the
    # largest cost, there is hardly one in the whole model.
    expected = light * (len(some) + len(nodes)) // (len(pairs) + model.n)
    if not whole and _largest(model, nodes, some, light=expected // 2, beyond=largest) is None:
        return None
    return _largest(model, np.arange(model.n), pairs, light=light)


def _largest(
    model: Model, nodes: Ints, pairs: Ints, *, light: int = 0, beyond: float = 0.0
) -> float | None:
    """As `dominating_penalty`, among some tables.

    `light` is the least number of tables with smaller costs, `beyond` a cost of other tables.
    """
    excess, table = _excess(model, nodes, pairs)
    if not len(excess):
        return beyond or None
    order = np.lexsort((excess, table))  # by table, then by cost
    excess, table = excess[order], table[order]
    rise = np.diff(excess, prepend=0.0)
    first = np.diff(table, prepend=-1) != 0
    rise[first] = excess[first]
    order = np.argsort(excess, kind="stable")
    excess, total, tables = excess[order], np.cumsum(rise[order]), np.cumsum(first[order])
    if beyond > total[-1] * (1.0 + TUNING.rounding):
        return beyond
    start = np.flatnonzero(np.diff(excess, prepend=-1.0) > 0)  # the first of equal costs
    below, lighter = (np.where(start > 0, a[start - 1], 0) for a in (total, tables))
    valid = (excess[start] > below * (1.0 + TUNING.rounding)) & (lighter >= light)
    return float(excess[start[valid][-1]]) if valid.any() else None


def _excess(model: Model, nodes: Ints, pairs: Ints) -> tuple[Costs, Ints]:
    """The finite costs above the least of their table, where they are, and their tables."""
    sizes = np.concatenate([model.num_labels[nodes], np.diff(model.edge_offset)[pairs]])
    own = np.repeat(np.arange(len(sizes)), sizes)
    start = np.repeat(model.node_offset[nodes], model.num_labels[nodes])
    count = len(start)
    inside = np.arange(count) - np.repeat(
        np.cumsum(model.num_labels[nodes]) - model.num_labels[nodes], model.num_labels[nodes]
    )
    costs = np.concatenate([model.unary[start + inside], lower_tables(model, pairs)])
    begin = np.cumsum(sizes) - sizes
    least = np.minimum.reduceat(costs, begin)
    with np.errstate(invalid="ignore"):
        excess = costs - np.repeat(least, sizes)
    kept = np.isfinite(excess) & (excess > 0)
    return excess[kept], own[kept]
