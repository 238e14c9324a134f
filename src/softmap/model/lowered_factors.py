"""Factors over many variables that a network keeps beside their chains, as arrays.

Older files of models hold them, and so do the fingerprints of networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model.many import KINDS, Many, kind_of
from softmap.model.potentials.base import Costs, Ints

__all__ = ["required_arrays", "required_from_arrays"]

_NAMES = ("kind", "chain", "sizes", "variables", "integers", "costs")


def required_arrays(
    required: Sequence[Many], chained: Sequence[tuple[int, int]], num_labels: Ints
) -> dict[str, NDArray[Any]]:
    """Return factors as arrays by name; no arrays without factors.

    Factor f has the kind `kind[f]`, and the chain variables `chain[f, 0]` to `chain[f, 1] - 1`. Its
    `sizes[f]` are the numbers of its variables, its integers and its costs, which are concatenated.

    Parameters
    ----------
    required : sequence of Many
        The factors.
    chained : sequence of (int, int)
        The first chain variable of each factor, and the one after its last.
    num_labels : int64[nodes]
        The label counts of the network.
    """
    if not required:
        return {}
    kinds, sizes = [], []
    parts: list[tuple[Ints, Ints, Costs]] = []
    for factor in required:
        variables = np.array(factor.variables, dtype=np.int64)
        part = variables, *factor.arrays(num_labels[variables].tolist())
        kinds.append(kind_of(factor))
        sizes.append([len(array) for array in part])
        parts.append(part)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return {
        "kind": np.array(kinds, dtype=np.int64),
        "chain": np.array(chained, dtype=np.int64),
        "sizes": np.array(sizes, dtype=np.int64),
        **dict(zip(_NAMES[3:], columns, strict=True)),
    }


def required_from_arrays(
    arrays: dict[str, NDArray[Any]], num_labels: Ints
) -> tuple[tuple[Many, ...], tuple[tuple[int, int], ...]]:
    """Return the factors of `required_arrays` and their chain variables.

    Parameters
    ----------
    arrays : dict
        The arrays by name.
    num_labels : int64[nodes]
        The label counts of the model.
    """
    if missing := [name for name in _NAMES if name not in arrays]:
        raise ModelError(f"the factors over many variables lack an array {missing[0]!r}")
    kinds, chained, sizes, *members = (arrays[name].astype(np.int64) for name in _NAMES[:-1])
    flat = [*members, arrays["costs"].astype(np.float64)]
    count = len(kinds)
    fits = chained.shape == (count, 2) and sizes.shape == (count, 3) and bool((sizes >= 0).all())
    fits = fits and [a.size for a in flat] == sizes.sum(axis=0).tolist()
    if not fits or not ((kinds >= 0) & (kinds < len(KINDS))).all():
        raise ModelError("the factors over many variables are damaged")
    if len(flat[0]) and not 0 <= flat[0].min() <= flat[0].max() < len(num_labels):
        raise ModelError("a factor over many variables names a variable that does not exist")
    columns = [np.split(a, np.cumsum(sizes[:-1, k])) for k, a in enumerate(flat)]
    factors = []
    for kind, variables, integers, costs in zip(kinds.tolist(), *columns, strict=True):
        labels = num_labels[variables].tolist()
        factors.append(KINDS[kind].from_arrays(variables, labels, integers, costs))
    return tuple(factors), tuple((first, last) for first, last in chained.tolist())
