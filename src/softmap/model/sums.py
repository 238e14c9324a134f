"""Sums that carry their rounding errors along."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softmap import core
from softmap.model.potentials.base import Costs

__all__ = ["careful_sums", "exact_terms"]


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


def exact_terms(values: Costs) -> list[float]:
    """A few numbers whose exact sum is that of many; [+inf] where one of them is infinite.

    Leading digits down to a common place are added up without rounding, and again what is left.
    """
    if not np.isfinite(values).all():
        return [float(values.sum())]
    found, rest = [], values[values != 0]
    while len(rest):
        # so large that the sum of all leading digits is below it, and loses none
        place = math.frexp(float(np.abs(rest).max()))[1] + len(rest).bit_length() + 1
        unit = math.ldexp(1.0, place)
        leading = (rest + unit) - unit
        found.append(float(leading.sum()))
        rest = rest - leading
        rest = rest[rest != 0]
    return found
