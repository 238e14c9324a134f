"""Labellings that obey hard constraints: found by search, or proved not to exist."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel
from softmap.labels.improving import strides
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation.dual import Floats

__all__ = ["find_feasible"]

NONE, FOUND = 0, 1


def find_feasible(
    model: Model, preference: Floats | None, *, seconds: float, work: int
) -> NDArray[np.int64] | None:
    """A labelling of finite cost, or None where the limits end the search.

    Keeps arc consistency, goes back where it fails, and prefers labels of greater `preference`
    (node marginals, say).

    Raises
    ------
    InfeasibleModel
        Where the whole tree was searched.
    """
    wish = np.zeros(model.unary.size) if preference is None else np.ascontiguousarray(preference)
    labels = np.zeros(model.n, dtype=np.int64)
    verdict, *_ = core.feasible(
        layout(model), strides(model), model.num_variables, wish, np.isfinite(model.unary), labels,
        min(work, 1 << 62), min(seconds, 1e9),
    )  # fmt: skip
    if verdict == NONE:
        raise InfeasibleModel(
            "no labelling has finite cost: a search over all labels found none", None
        )
    return labels[: model.num_variables] if verdict == FOUND else None
