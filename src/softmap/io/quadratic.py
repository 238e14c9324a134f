"""Quadratic functions of variables with two labels, to a model and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.assembly import Costs, Ints, check_range
from softmap.io.limits import check_entries
from softmap.io.streams import Content
from softmap.model import Model, checked_model
from softmap.model.potentials import Potts

__all__ = ["Quadratic", "quadratic_model", "quadratic_of", "written"]

_EDGE = 4  # memory of a pair beside its weight, in costs of eight bytes


@dataclass(frozen=True)
class Quadratic:
    """`constant + Σ linear[i] x_i + Σ weight[k] x_i x_j` over labels x in {0, 1}."""

    linear: Costs
    pairs: Ints
    weight: Costs
    constant: float = 0.0


def quadratic_model(
    n: int, pairs: Ints, weight: Costs, content: Content, *, spins: bool = False
) -> Model:
    """Minimise the sum of `weight[k] v_i v_j` over all pairs, equal ends and repeats included.

    The values v are the labels 0 and 1, or, for `spins`, 1 (label 0) and -1 (label 1). Each pair
    becomes a Potts edge: `x y = (x + y - [x ≠ y]) / 2`, and `1 - 2 [x ≠ y]` for spins.
    """
    check_entries(2 * n + _EDGE * len(weight), content.size, content.name)
    if np.isnan(weight).any() or np.isinf(weight).any():
        raise FormatError("expected finite weights", content.name, expected="finite weights")
    check_range(np.abs(weight), content.name)
    content.release()
    unary = np.zeros((n, 2))
    constant = 0.0
    first, second = pairs[:, 0], pairs[:, 1]
    own = first == second
    if own.any():
        if spins:
            constant += float(weight[own].sum())
        else:
            unary[:, 1] += np.bincount(first[own], weight[own], n)
        first, second, weight = first[~own], second[~own], weight[~own]
    ends, weight = merged(n, first, second, weight)
    if spins:
        constant += float(weight.sum())
    else:
        unary[:, 1] += np.bincount(ends[:, 0], weight, n) / 2
        unary[:, 1] += np.bincount(ends[:, 1], weight, n) / 2
    groups = [(ends, Potts(weight * (-2.0 if spins else -0.5)))] if len(ends) else []
    try:
        return Model(unary, None, groups, constant=constant)
    except ModelError as error:
        raise FormatError(str(error), content.name) from error


def merged(n: int, first: Ints, second: Ints, weight: Costs) -> tuple[Ints, Costs]:
    """Pairs in order, each once; those whose weights cancel are gone."""
    keys = np.minimum(first, second) * n + np.maximum(first, second)
    if len(keys) > 1 and not (keys[1:] > keys[:-1]).all():
        if not (keys[1:] >= keys[:-1]).all():
            order = np.argsort(keys, kind="stable")
            keys, weight = keys[order], weight[order]
        first_of = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        keys, weight = keys[first_of], np.add.reduceat(weight, first_of)
    kept = weight != 0
    if not kept.all():
        keys, weight = keys[kept], weight[kept]
    return np.column_stack([keys // n, keys % n]), weight


def quadratic_of(model: Model, form: str) -> Quadratic:
    """The function of a model with two labels each and finite costs of one and two variables."""
    checked_model(model)
    if model.n != model.num_variables:
        raise ModelError(f"{form} holds costs of one and two variables only")
    if (model.num_labels != 2).any():
        i = int(np.argmax(model.num_labels != 2))
        counted = f"variable {i} has {model.num_labels[i]}"
        raise ModelError(f"{form} holds variables with two labels only; {counted}")
    unary = model.unary.reshape(-1, 2)
    tables = [p.stack(np.arange(len(p)), 2, 2) for p in model.potentials]
    stacked = np.concatenate([np.zeros((0, 2, 2)), *tables])
    if not (np.isfinite(unary).all() and np.isfinite(stacked).all()):
        raise ModelError(f"{form} holds finite costs only, no hard constraints")
    linear = unary[:, 1] - unary[:, 0]
    ends = model.edges.astype(np.int64)
    linear += np.bincount(ends[:, 0], stacked[:, 1, 0] - stacked[:, 0, 0], model.n)
    linear += np.bincount(ends[:, 1], stacked[:, 0, 1] - stacked[:, 0, 0], model.n)
    both = stacked[:, 0, 0] + stacked[:, 1, 1] - stacked[:, 0, 1] - stacked[:, 1, 0]
    pairs, weight = merged(model.n, ends[:, 0], ends[:, 1], both)
    constant = model.constant + float(unary[:, 0].sum() + stacked[:, 0, 0].sum())
    return Quadratic(linear, pairs, weight, constant)


def written(value: float) -> str:
    """A number that reads back the same, whole ones without a point."""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
