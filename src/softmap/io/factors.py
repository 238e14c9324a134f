"""The factors of a `Network`: scopes and tables; auxiliary nodes become factors again."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from softmap.errors import FormatWarning, ModelError, shown
from softmap.model import Network
from softmap.model.potentials.base import Costs


@dataclass(frozen=True)
class Factors:
    """The factors of arity one and more over the model's variables, and the constant."""

    scopes: list[tuple[int, ...]]
    tables: list[Costs]
    constant: float


def factors_of(model: Network, *, zeros: bool = True) -> Factors:
    """Return all factors: unary ones, edges, then larger ones.

    `zeros` says whether to include unary factors whose costs are all 0.
    """
    scopes: list[tuple[int, ...]] = []
    tables: list[Costs] = []
    for i in range(model.num_variables):
        costs = model.unary_of(i)
        if zeros or costs.any():
            scopes.append((i,))
            tables.append(costs)
    for e, (i, j) in enumerate(model.edges.tolist()):
        if i < model.num_variables:
            scopes.append((i, j))
            tables.append(model.table(e))
    for scope, table in model.factors():
        scopes.append(scope)
        tables.append(table)
    return Factors(scopes, tables, model.constant)


def require_pairwise(model: Network, form: str, hint: str = "") -> None:
    """Raise `ModelError` for a model with factors of more than two variables."""
    if model.n != model.num_variables:
        raise ModelError(f"{form} holds costs of one and two variables only{hint}")


def require_binary(model: Network, form: str) -> None:
    """Raise `ModelError` for a model with a variable that has not two labels."""
    counts = model.num_labels[: model.num_variables]
    if (counts != 2).any():
        i = int(np.argmax(counts != 2))
        counted = f"variable {i} has {counts[i]}"
        raise ModelError(f"{form} holds variables with two labels only; {counted}")


def warn_of_lost_names(name: object) -> None:
    """Warn that a file does not hold the names of a model, one of which it cannot hold."""
    warnings.warn(
        FormatWarning(
            f"names of variables or states are not in the file: the format cannot hold "
            f"{shown(name)}"
        ),
        stacklevel=5,
    )
