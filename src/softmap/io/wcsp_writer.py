"""WCSP files, the writing half."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softmap.errors import ModelError
from softmap.io.assembly import Costs
from softmap.io.atomic import write_text
from softmap.io.factors import factors_of
from softmap.io.streams import Source
from softmap.io.tokens import LARGEST
from softmap.model import Model, checked_model
from softmap.model.potentials.base import scale_factor

__all__ = ["format_wcsp", "write_wcsp"]


def write_wcsp(model: Model, target: Source, *, scale: float = 1.0) -> None:
    """Write a WCSP file; costs times `scale` must be whole numbers."""
    write_text(target, format_wcsp(model, scale=scale))


def format_wcsp(model: Model, *, scale: float = 1.0) -> Iterator[str]:
    """Text of a WCSP file, in pieces.

    The format knows only non-negative integers: tables are shifted to start at zero, and their sum
    becomes a function without variables, which must not be negative.
    """
    scale = scale_factor(scale)
    factors = factors_of(checked_model(model), zeros=False)
    tables: list[Costs] = []
    rest = factors.constant * scale
    top = 1.0
    for table in factors.tables:
        costs = table * scale
        finite = costs[np.isfinite(costs)]
        least = float(finite.min()) if finite.size else 0.0
        if least < 0:
            costs, rest = costs - least, rest + least
            finite = finite - least
        top += float(finite.max()) if finite.size else 0.0
        tables.append(costs)
    _require_whole([np.array([rest]), *tables], top + rest)
    top += rest
    count = len(tables) + 1
    counts = model.num_labels[: model.num_variables].tolist()
    yield f"softmap {len(counts)} {max(counts)} {count} {int(top)}\n"
    yield " ".join(map(str, counts)) + f"\n0 {int(rest)} 0\n"
    for scope, costs in zip(factors.scopes, tables, strict=True):
        yield _function_text(scope, costs, top)


def _require_whole(tables: list[Costs], top: float) -> None:
    for costs in tables:
        finite = costs[np.isfinite(costs)]
        if (np.round(finite) != finite).any():
            raise ModelError(
                "WCSP holds whole costs only: give a scale that makes them whole, "
                "or write .cfn or .uai.LG instead"
            )
    if tables[0][0] < 0:
        raise ModelError(
            f"WCSP holds no negative costs, but the least possible sum is {tables[0][0]:g}: "
            "write .cfn or .uai.LG instead"
        )
    if top > LARGEST:
        raise ModelError("the costs are too large for the whole numbers of WCSP")


def _function_text(scope: tuple[int, ...], costs: Costs, top: float) -> str:
    """One function: the most frequent cost as default, the others as tuples."""
    whole = np.where(np.isfinite(costs), costs, top).astype(np.int64)
    values, counts = np.unique(whole, return_counts=True)
    default = int(values[np.argmax(counts)])
    where = np.argwhere(whole != default)
    rows = np.column_stack([where, whole[tuple(where.T)]]).tolist()
    head = " ".join(map(str, (len(scope), *scope, default, len(rows))))
    return head + "\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows)
