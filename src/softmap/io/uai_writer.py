"""UAI files, the writing half: potentials within the range of exp, logarithms, or costs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from softmap.errors import ModelError
from softmap.io.assembly import Costs
from softmap.io.atomic import write_text
from softmap.io.factors import Factors, factors_of
from softmap.io.streams import Source
from softmap.io.uai import Values, check_values, default_values
from softmap.model import Model, checked_model

__all__ = ["format_uai", "write_uai"]

# exp and log are exact enough, and far from overflow, up to here; beyond, tables are shifted.
_SAFE_EXPONENT = 500.0
_SMALLEST_EXPONENT = -708.0
# A constant beyond the range of exp is the product of several factors: of so many for each table of
# the file, and so many more.
_PIECES_PER_TABLE, _MOST_PIECES = 8, 64


def write_uai(model: Model, target: Source, *, values: Values | None = None) -> None:
    """Write a UAI file; logarithms by default if the name ends in `.LG`, else potentials."""
    name = getattr(target, "name", target)
    write_text(target, format_uai(model, values=default_values(name) if values is None else values))


def format_uai(model: Model, *, values: Values = "potential") -> Iterator[str]:
    """Text of a UAI file, in pieces.

    Potentials are written as exp(-cost). A table whose costs would leave the range of exp is
    shifted first, and the shift becomes a factor without variables; entries that still underflow
    turn into zeros, with a warning. `ModelError` if the constant is so large that it would take
    many such factors: logarithms and costs hold it.
    """
    check_values(values)
    factors = factors_of(checked_model(model))
    tables = [table.ravel() for table in factors.tables]
    scopes = list(factors.scopes)
    if values == "potential":
        tables, scopes = _potentials(tables, scopes, factors)
    elif factors.constant:
        tables, scopes = [np.array([factors.constant]), *tables], [(), *scopes]
    labels = " ".join(map(str, model.num_labels[: model.num_variables].tolist()))
    yield f"MARKOV\n{model.num_variables}\n{labels}\n{len(scopes)}\n"
    for scope in scopes:
        yield " ".join(map(str, (len(scope), *scope))) + "\n"
    for table in tables:
        out = table if values != "log" else 0.0 - table
        yield f"\n{table.size}\n{' '.join(map(repr, out.tolist()))}\n"


def _potentials(
    tables: list[Costs], scopes: list[tuple[int, ...]], factors: Factors
) -> tuple[list[Costs], list[tuple[int, ...]]]:
    out: list[Costs] = []
    rest, lost = factors.constant, 0
    for table in tables:
        finite = table[np.isfinite(table)]
        shift = 0.0
        if finite.size and np.abs(finite).max() > _SAFE_EXPONENT:
            shift = float(finite.min())
            rest += shift
        exponent = shift - table
        lost += int(((exponent < _SMALLEST_EXPONENT) & (exponent > -np.inf)).sum())
        out.append(np.exp(exponent))
    if lost:
        warnings.warn(
            f"{lost} entries underflow as potentials; write logarithms (.LG) to keep them",
            stacklevel=4,
        )
    needed = np.ceil(abs(rest) / _SAFE_EXPONENT)
    if needed > _MOST_PIECES + _PIECES_PER_TABLE * len(tables):
        raise ModelError(
            f"potentials cannot hold exp({-rest:.6g}), the part of the costs common to all "
            "labellings: write logarithms (.uai.LG), costs (values='cost') or .npz instead"
        )
    pieces = int(needed)
    constant = [np.exp(np.array([-rest / max(pieces, 1)]))] * pieces
    return [*constant, *out], [()] * pieces + scopes
