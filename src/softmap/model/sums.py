"""Sums that are exact and rounded once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softmap import core
from softmap.model.potentials.base import Costs

__all__ = ["careful_sums", "exact_terms"]


def careful_sums(terms: Costs) -> Any:
    """Sums over the last axis, each exact and rounded once: a float, or an array for a batch.

    Few long rows are added up by the compiled loop, many short ones in parallel.
    """
    if terms.ndim == 1:
        return float(core.careful_sum(np.ascontiguousarray(terms)))
    rows = np.ascontiguousarray(terms).reshape(-1, terms.shape[-1])
    if len(rows) <= rows.shape[1]:
        sums = np.array([core.careful_sum(row) for row in rows], dtype=np.float64)
    else:
        sums = _in_parallel(rows)
    return sums.reshape(terms.shape[:-1])


def _in_parallel(rows: Costs) -> Costs:
    total, errors, sizes = np.zeros((3, len(rows)))
    with np.errstate(invalid="ignore", over="ignore"):
        for term in rows.T:
            error, total = _error(total, term), total + term
            errors += error
            sizes += np.abs(error)
        sums = np.where(np.isnan(errors), total, total + errors)
        slack = 2.0 * (rows.shape[1] + 2) * 2.0**-53 * sizes
        half = 0.5 * np.spacing(np.nextafter(np.abs(sums), 0.0))
        unsure = np.abs(_error(total, errors)) + slack >= half
    for k in np.flatnonzero(unsure & (sizes > 0)):
        sums[k] = core.careful_sum(rows[k])
    return sums


def _error(a: Costs, b: Costs) -> Costs:
    """The error of a + b, exactly; NaN if the sum is not finite."""
    total = a + b
    part = total - a
    error: Costs = (a - (total - part)) + (b - part)
    return error


def exact_terms(values: Costs, piece: int = 1 << 14) -> list[float]:
    """A few numbers whose exact sum is that of many; +inf is among them if it is among those.

    Leading digits down to a common place are added up without rounding, and again what is left, in
    pieces that fit into a cache. Values are below 2⁹⁰⁰ in size.
    """
    found: list[float] = []
    for begin in range(0, len(values), piece):
        rest = values[begin : begin + piece]
        while (largest := float(np.abs(rest).max(initial=0.0))) > 0.0:
            if math.isinf(largest):
                found.append(float(rest.sum()))
                break
            # so large that the sum of all leading digits is below it, and loses none
            unit = math.ldexp(1.0, math.frexp(largest)[1] + len(rest).bit_length() + 1)
            leading = (rest + unit) - unit
            found.append(float(leading.sum()))
            rest = rest - leading
    return found
