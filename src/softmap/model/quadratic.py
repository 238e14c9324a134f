"""Quadratic functions of variables with two values: QUBO (0 and 1) and Ising (-1 and 1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.errors import ModelError, shown
from softmap.model.potentials import Potential, Potts
from softmap.model.potentials.base import Costs, Ints, numbers


@dataclass(frozen=True)
class QuadraticTerms:
    """The function `Σ linear[i] v_i + Σ weight[k] v_i v_j`; pairs may repeat, and i may equal j.

    Attributes
    ----------
    names : tuple, optional
        Names of the variables; None if they are numbered.
    linear : float64 array (n,)
    pairs : int64 array (m, 2)
    weight : float64 array (m,)
    """

    names: tuple[Hashable, ...] | None
    linear: Costs
    pairs: Ints
    weight: Costs


def terms_of(linear: Any, quadratic: Any, what: str) -> QuadraticTerms:
    """Read linear and quadratic terms from mappings, arrays or sparse arrays.

    Parameters
    ----------
    linear : mapping or array (n,), or None
        Biases; None for none.
    quadratic : mapping, array (n, n) or sparse array (n, n)
        A mapping has pairs (u, v) as keys. Every entry of an array counts, so that a symmetric
        matrix counts each pair twice.
    what : str
        The name of `quadratic` in errors.
    """
    if isinstance(quadratic, Mapping):
        return _mapped({} if linear is None else linear, quadratic, what)
    if hasattr(quadratic, "tocoo"):
        entries = quadratic.tocoo()
        shape, weight = entries.shape, numbers(entries.data, what)
        pairs = np.column_stack([entries.row, entries.col]).astype(np.int64)
    else:
        matrix = numbers(quadratic, what)
        shape = matrix.shape
        pairs = np.argwhere(matrix != 0) if matrix.ndim == 2 else np.zeros((0, 2), dtype=np.int64)
        weight = matrix[tuple(pairs.T)] if matrix.ndim == 2 else matrix
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise ModelError(f"{what} must be a mapping or a square matrix, not of shape {shape}")
    biases = np.zeros(shape[0]) if linear is None else numbers(linear, "h")
    if biases.shape != shape[:1]:
        raise ModelError(f"h must have one entry for each of {shape[0]} variables")
    return _checked(None, biases, pairs, weight, what)


def _mapped(linear: Any, quadratic: Mapping[Any, Any], what: str) -> QuadraticTerms:
    if not isinstance(linear, Mapping):
        raise ModelError(f"h must be a mapping, as {what} is one, not {shown(linear)}")
    for key in quadratic:
        if not isinstance(key, tuple) or len(key) != 2:
            raise ModelError(f"{what}: a key must be a pair of variables, not {shown(key)}")
    seen = dict.fromkeys([*linear, *(v for pair in quadratic for v in pair)])
    if not seen:
        raise ModelError("a model needs at least one variable")
    place = {v: i for i, v in enumerate(seen)}
    biases = np.zeros(len(place))
    for v, bias in linear.items():
        biases[place[v]] = bias
    pairs = np.array([[place[u], place[v]] for u, v in quadratic], dtype=np.int64)
    weight = numbers(list(quadratic.values()), what)
    return _checked(tuple(place), biases, pairs.reshape(-1, 2), weight, what)


def _checked(
    names: tuple[Hashable, ...] | None, linear: Costs, pairs: Ints, weight: Costs, what: str
) -> QuadraticTerms:
    if not (np.isfinite(linear).all() and np.isfinite(weight).all()):
        raise ModelError(f"{what} and h must be finite numbers")
    return QuadraticTerms(names, linear, pairs, weight)


def quadratic_parts(
    linear: Costs, pairs: Ints, weight: Costs, values: tuple[float, float]
) -> tuple[Costs, list[tuple[Ints, Potential]], float]:
    """Return unary costs, groups of edges and the constant of a quadratic function.

    A pair becomes a Potts edge. With the values (0, 1), `v w = (v + w - [v ≠ w]) / 2`; with spins,
    `v w = 1 - 2 [v ≠ w]`.

    Parameters
    ----------
    linear, pairs, weight
        As in `QuadraticTerms`.
    values : (float, float)
        The values of the labels 0 and 1: (0, 1), (-1, 1) or (1, -1).
    """
    n, constant = len(linear), 0.0
    unary = linear[:, None] * np.array(values)
    first, second = pairs[:, 0], pairs[:, 1]
    spins = values[0] != 0.0
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
    groups: list[tuple[Ints, Potential]] = []
    if len(ends):
        groups.append((ends, Potts(weight * (-2.0 if spins else -0.5))))
    return unary, groups, constant


def merged(n: int, first: Ints, second: Ints, weight: Costs) -> tuple[Ints, Costs]:
    """Return the sorted pairs, each once, without those whose weights cancel."""
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
