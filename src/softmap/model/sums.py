"""Sums that carry their rounding errors along."""

from __future__ import annotations

from typing import Any

import numpy as np

from softmap import core
from softmap.model.potentials.base import Costs

__all__ = ["careful_sums"]


def careful_sums(terms: Costs) -> Any:
    """Sums over the last axis, as good as rounded once: a float, or an array for a batch.

    Few long rows are added up by the compiled loop, many short ones side by side; both do the same
    additions, so a row has the same sum in any batch.
    """
    if terms.ndim == 1:
        return float(core.careful_sum(np.ascontiguousarray(terms)))
    rows = np.ascontiguousarray(terms).reshape(-1, terms.shape[-1])
    if len(rows) <= rows.shape[1]:
        sums = np.array([core.careful_sum(row) for row in rows], dtype=np.float64)
    else:
        sums = _side_by_side(rows)
    return sums.reshape(terms.shape[:-1])


def _side_by_side(rows: Costs) -> Costs:
    total, errors = np.zeros(len(rows)), np.zeros(len(rows))
    with np.errstate(invalid="ignore", over="ignore"):
        for term in rows.T:
            new = total + term
            part = new - total
            errors += (total - (new - part)) + (term - part)
            total = new
        return np.where(np.isnan(errors), total, total + errors)
