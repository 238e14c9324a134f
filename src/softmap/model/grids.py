"""Grids of any dimension: who is a neighbour of whom."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError, shown
from softmap.model.potentials.base import Costs, numbers

__all__ = ["grid_costs", "grid_width", "neighbours"]


def grid_costs(unary: Any) -> tuple[tuple[int, ...], Costs]:
    """The shape of a grid, and its costs with one row per variable."""
    costs = numbers(unary, "unary")
    if costs.ndim < 2 or not costs.size:
        raise ModelError(
            "a grid needs costs of shape (height, width, labels), one cost per pixel and label, "
            f"not {costs.shape}"
        )
    return costs.shape[:-1], costs.reshape(-1, costs.shape[-1])


def neighbours(shape: Sequence[int], connectivity: Any = None) -> NDArray[np.int64]:
    """Edges of a grid whose variables are numbered row by row, one direction after the other.

    `connectivity` is the number of neighbours of a variable inside: 4 or 8 in a picture, 6 or 26 in
    a volume. Directions along the last axis come first, diagonal ones last.
    """
    axes = len(shape)
    few, many = 2 * axes, 3**axes - 1
    if connectivity is None:
        connectivity = few
    whole = isinstance(connectivity, int | np.integer) and not isinstance(connectivity, bool)
    if not whole or connectivity not in (few, many):
        choice = str(few) if few == many else f"{few} or {many}"
        raise ModelError(f"connectivity={shown(connectivity)}: expected {choice} in {axes}-D")
    index = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(tuple(shape))
    steps = [s for s in itertools.product((0, 1, -1), repeat=axes) if _ahead(s)]
    steps.sort(key=lambda s: (np.count_nonzero(s), s))
    if connectivity == few:
        steps = steps[:axes]
    return np.concatenate([_along(index, step) for step in steps])


def grid_width(edges: Any) -> int | None:
    """Columns of a grid numbered row by row whose edges join neighbours; None for other graphs."""
    if not len(edges):
        return None
    low = np.minimum(edges[:, 0], edges[:, 1])
    step = np.abs(edges[:, 0] - edges[:, 1])
    width = int(step.max())
    if width < 2 or not ((step == 1) | (step == width)).all():
        return None
    crosses = (step == 1) & (low % width == width - 1)
    return None if crosses.any() else width


def _ahead(step: tuple[int, ...]) -> bool:
    """Whether a step leads to a later variable: each edge is listed once."""
    return next((s for s in step if s), 0) > 0


def _along(index: NDArray[np.int64], step: tuple[int, ...]) -> NDArray[np.int64]:
    cuts = {0: (slice(None), slice(None)), 1: (slice(-1), slice(1, None))}
    cuts[-1] = cuts[1][::-1]
    first, second = (tuple(cuts[s][end] for s in step) for end in (0, 1))
    return np.stack([index[first].ravel(), index[second].ravel()], axis=1)
