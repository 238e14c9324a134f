"""CFN files, the writing half."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softmap.io.atomic import write_text
from softmap.io.factors import factors_of
from softmap.io.streams import Source
from softmap.model import Model, checked_model

__all__ = ["format_cfn", "write_cfn"]


def write_cfn(model: Model, target: Source) -> None:
    """Write a CFN file."""
    write_text(target, format_cfn(model))


def format_cfn(model: Model) -> Iterator[str]:
    """Text of a CFN file, in pieces: dense tables, shortest decimals that read back the same."""
    factors = factors_of(checked_model(model), zeros=False)
    top = 1.0 + max(0.0, model.constant)
    decimals = 1
    texts = []
    for table in [np.array([model.constant]), *factors.tables]:
        finite = table[np.isfinite(table)]
        top += float(np.abs(finite).max(initial=0.0))
        words = [_decimal(x) for x in table.ravel().tolist()]
        decimals = max(decimals, *(len(w) - w.find(".") - 1 for w in words if "." in w), 1)
        texts.append(", ".join(words))
    yield f'{{"problem": {{"name": "softmap", "mustbe": "<{2 * top:.{decimals}f}"}},\n'
    counts = model.num_labels[: model.num_variables].tolist()
    yield '"variables": {' + ", ".join(f'"x{i}": {d}' for i, d in enumerate(counts)) + "},\n"
    yield '"functions": {\n'
    scopes: list[tuple[int, ...]] = [(), *factors.scopes]
    for k, (scope, text) in enumerate(zip(scopes, texts, strict=True)):
        names = ", ".join(f'"x{i}"' for i in scope)
        comma = ",\n" if k else ""
        yield f'{comma}"f{k}": {{"scope": [{names}], "costs": [{text}]}}'
    yield "\n}}\n"


def _decimal(cost: float) -> str:
    """Positional notation: the format knows no exponents."""
    if cost == np.inf:
        return "inf"
    return np.format_float_positional(cost, trim="0")
