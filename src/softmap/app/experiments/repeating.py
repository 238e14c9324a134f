"""Parts of a stored run again, to the bit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from softmap.app.experiments.trials import Results, Unit, follow

EXACT = [0, 1, 3, 4, 5, 6]  # the fields of a point but the seconds


def part(run: Results, graph: int) -> list[Unit]:
    """Return one trial of every curve of every figure, on the graphs with one seed."""
    curves: dict[Any, Unit] = {}
    for unit in run:
        length = unit.last if unit.method.settled else 0
        key = unit.figure, unit.graph.n, unit.method, unit.eta, length
        if unit.graph.seed == graph:
            curves.setdefault(key, unit)
    return list(curves.values())


def different(run: Results, units: Iterable[Unit], until: int | None = None) -> list[str]:
    """Run trials again, up to some updates; return the names of those that differ in any bit."""
    names = []
    for unit in units:
        now = np.array(follow(unit, until))[:, EXACT]
        before = np.array(run[unit])[: len(now), EXACT]
        if not np.array_equal(now, before, equal_nan=True):
            names.append(f"{unit.figure} n = {unit.graph.n} {unit.method.label}")
    return names
