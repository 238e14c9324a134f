"""Tables of edges that are certainly not above the real costs, whatever products were rounded."""

from __future__ import annotations

import numpy as np

from softmap.model import Model
from softmap.model.potentials.base import Costs, Ints, Potential

__all__ = ["lower_stack", "lower_tables"]

LEAST = float(np.finfo(np.float64).tiny)  # smallest number with all its digits
SPLIT = 2.0**27 + 1.0  # halves the digits of a float64


def lower_tables(model: Model, edges: Ints) -> Costs:
    """The tables of edges, row by row, one after the other.

    Entries that are products of a weight and a distance, or a shared table, are rounded down where
    they are not exact, so that a bound for these costs is one for the costs that were given.
    """
    sizes = np.diff(model.edge_offset)[edges]
    start = np.cumsum(sizes) - sizes
    labels = model.num_labels[model.edges[edges]]
    out = np.empty(int(sizes.sum()))
    for first, last, potential in model.groups():
        inside = np.flatnonzero((edges >= first) & (edges < last))
        for rows, cols in np.unique(labels[inside], axis=0).tolist():
            some = inside[(labels[inside] == (rows, cols)).all(axis=1)]
            tables = lower_stack(potential, edges[some] - first, rows, cols)
            out[start[some][:, None] + np.arange(rows * cols)] = tables.reshape(len(some), -1)
    return out


def lower_stack(potential: Potential, k: Ints, rows: int, cols: int) -> Costs:
    """Tables of edges `k` of one potential, (len(k), rows, cols), rounded down."""
    weights, stack = potential.factors(k, rows, cols)
    return stack if (weights == 1).all() else _lower_product(weights[:, None, None], stack)


def _lower_product(a: Costs, b: Costs) -> Costs:
    """a · b rounded down, alike at all scales: mantissas tell whether it was rounded up."""
    product, (m, _), (n, _) = np.asarray(a * b), np.frexp(a), np.frexp(b)
    with np.errstate(invalid="ignore"):
        (m_high, m_low), (n_high, n_low) = _halves(m), _halves(n)
        error = m_low * n_low - (((m * n - m_high * n_high) - m_low * n_high) - m_high * n_low)
    # among the least numbers there are, the product has fewer digits
    known = (np.abs(product) >= LEAST) | (a == 0) | (b == 0)
    kept = (known & (error >= 0)) | ~np.isfinite(product)
    return np.where(kept, product, np.nextafter(product, -np.inf))


def _halves(a: Costs) -> tuple[Costs, Costs]:
    """A number as the sum of two with half of its digits each."""
    shifted = SPLIT * a
    high = shifted - (shifted - a)
    return high, a - high
